"""Faults of single rows in a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from quercus.belief.errors import InvalidInput
from quercus.server.wire.errors import error_fields, shorten_text
from quercus.server.wire.limits import MAX_ERROR_BYTES, REFUSALS_BYTES
from quercus.v1 import instance_pb2


class RowFault(InvalidInput):
    """A fault of one row.

    Attributes
    ----------
    row : int
        Position of the row in the batch.
    """

    def __init__(self, row: int, field: str, reason: str) -> None:
        super().__init__(field, reason)
        self.args = (row, field, reason)
        self.row = row


class RowFaults:
    """Collects the first fault of each invalid row, in a batch whose valid rows are stored.

    Parameters
    ----------
    known : rows that are refused already, with their errors.
    """

    def __init__(self, known: Mapping[int, Exception] | None = None) -> None:
        self.by_row: dict[int, Exception] = dict(known or {})

    def add(self, fault: RowFault) -> None:
        """Note a fault."""
        self.by_row.setdefault(fault.row, fault)


class _FirstFault(RowFaults):
    """Raises the first fault, for a batch that is stored completely or not at all."""

    def add(self, fault: RowFault) -> None:
        raise fault


WHOLE: Final[RowFaults] = _FirstFault()


def encode_refusals(refused: Mapping[int, Exception]) -> list[instance_pb2.RefusedRow]:
    """Return the messages of refused rows, in order; if they are many, reasons are cut to limit the size."""
    most = min(MAX_ERROR_BYTES, REFUSALS_BYTES // max(1, len(refused)))
    messages = []
    for row, error in sorted(refused.items()):
        field, reason = f"ids[{row}]", str(error)
        if isinstance(error, InvalidInput):
            field, reason = error.field, error.reason
        code = (error_fields(error) or {})["code"]
        messages.append(
            instance_pb2.RefusedRow(
                row=row, code=code, field=shorten_text(field, most), message=shorten_text(reason, most)
            )
        )
    return messages


def kept_rows(count: int, refused: Mapping[int, object]) -> Sequence[int]:
    """Return the positions of the rows, of `count`, that are not refused."""
    return [row for row in range(count) if row not in refused] if refused else range(count)
