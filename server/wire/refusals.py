"""Faults of a batch by row, for rows that are refused one by one."""

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
    """The faults of a batch whose valid rows are stored: the first of each invalid row.

    Parameters
    ----------
    known : refusals of rows that are known before.
    """

    def __init__(self, known: Mapping[int, Exception] | None = None) -> None:
        self.by_row: dict[int, Exception] = dict(known or {})

    def add(self, fault: RowFault) -> None:
        """Note a fault."""
        self.by_row.setdefault(fault.row, fault)


class _FirstFault(RowFaults):
    """The faults of a batch that is stored as a whole or not at all: the first is raised."""

    def add(self, fault: RowFault) -> None:
        raise fault


WHOLE: Final[RowFaults] = _FirstFault()


def encode_refusals(refused: Mapping[int, Exception]) -> list[instance_pb2.RefusedRow]:
    """Return the messages of refused rows, in order; the reasons of many are cut, so that the list is bounded."""
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
    """Return the positions, of `count` rows, of those that are not refused."""
    return [row for row in range(count) if row not in refused] if refused else range(count)
