"""The contents of a store's cells, read as the service reads them; see `quercus.storage.admin.verify`."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from google.protobuf.message import DecodeError

from quercus.belief.errors import InvalidInput, shown
from quercus.server.gate.access import DIGEST_BYTES, ID_PATTERN
from quercus.server.gate.rpcs import ROLES
from quercus.server.transfer.importing import LogChecker
from quercus.server.wire.reports import accuracy_in
from quercus.server.wire.snapshots import UnreadableSnapshotError, is_earlier
from quercus.server.wire.trees import check_stored_tree
from quercus.v1 import query_pb2

UNREADABLE: Final = (
    DecodeError,
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    OverflowError,
    RecursionError,
    struct.error,
    zlib.error,
    UnreadableSnapshotError,
)
"""Errors in reading bytes that are not what they should be."""


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Make one kind of error of all that bytes raise which cannot be read as `what`."""
    try:
        yield
    except InvalidInput:
        raise
    except UNREADABLE as error:
        raise InvalidInput(what, f"cannot be read ({type(error).__name__}: {str(error)[:200]})") from None


def _check_report(data: bytes) -> None:
    for block in accuracy_in(data):
        if not 0 <= block.right <= block.precise_rows <= block.rows:
            raise InvalidInput("report", f"counts {block.right} of {block.precise_rows} of {block.rows} rows")


def _check_snapshot(data: bytes) -> None:
    if not is_earlier(data):  # of an earlier version: it is grown and stored anew
        check_stored_tree(data)


def _check_digest(data: bytes) -> None:
    if len(data) != DIGEST_BYTES:
        raise InvalidInput("digest", f"has {len(data)} bytes, must have {DIGEST_BYTES}")


def _check_roles(text: str) -> None:
    unknown = sorted(set(text.split()) - set(ROLES))
    if unknown or not text:
        raise InvalidInput("roles", f"are {shown(text)}, must be some of {', '.join(ROLES)}")


def _check_granted(text: str) -> None:
    names = json.loads(text)
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
        raise InvalidInput("models", f"is {shown(text)}, must be a list of names")


def _check_token_id(text: str) -> None:
    if re.fullmatch(ID_PATTERN, text) is None:
        raise InvalidInput("id", f"is {shown(text)}, must be 12 hexadecimal digits")


CELLS: Final[Mapping[str, Callable[[Any], object]]] = {
    "model.report": _check_report,
    "snapshot.data": _check_snapshot,
    "query.reason": query_pb2.Reason.FromString,
    "token.id": _check_token_id,
    "token.digest": _check_digest,
    "token.roles": _check_roles,
    "token.models": _check_granted,
}
"""Readers of cells that stand alone, by table and column."""


class StoredModel(LogChecker):
    """Reader of what belongs to one model: its specifications, its log, its queries and trees."""

    IN_LOG: Final = (
        "model.initial_specification",
        "model.specification",
        "log.values",
        "log.label",
        "log.asked",
        "log.specification",
        "display.data",
        "query.asked",
    )
    """Columns that are read along with the model."""

    def check_cell(self, column: str, data: bytes | str) -> None:
        """Check a cell that stands alone, of a column of `CELLS`."""
        with _reading(column.partition(".")[2]):
            CELLS[column](data)
