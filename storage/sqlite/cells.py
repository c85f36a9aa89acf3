"""Conditions under which a cell has a value that is not of its column's type, which SQLite does not prevent."""

from typing import Any, Final

from sqlalchemy import (
    Boolean,
    Column,
    ColumnElement,
    Connection,
    Double,
    LargeBinary,
    String,
    cast,
    func,
    type_coerce,
)
from sqlalchemy.types import NullType

from quercus.storage.sqlite.texts import driver_of

_IS_TEXT: Final = "quercus_is_text"


def prepare_check(connection: Connection) -> None:
    """See `quercus.storage.backend.Backend`."""
    driver_of(connection).create_function(_IS_TEXT, 1, _is_text, deterministic=True)


def type_faults(column: Column[Any]) -> list[ColumnElement[bool]]:
    """See `quercus.storage.backend.Backend`."""
    cell: ColumnElement[Any] = type_coerce(column, NullType())
    faults: list[ColumnElement[bool]] = [func.typeof(cell) != _type_name(column)]
    if isinstance(column.type, Boolean):
        faults.append(cell.not_in([0, 1]))
    if isinstance(column.type, String):
        # SQLite's length() of a text stops at a NUL
        faults.append(func.instr(cast(cell, LargeBinary), b"\0") > 0)
        faults.append(getattr(func, _IS_TEXT)(cast(cell, LargeBinary)) == 0)
    return faults


def printed(column: Column[Any]) -> ColumnElement[Any]:
    """See `quercus.storage.backend.Backend`."""
    return func.quote(type_coerce(column, NullType()))


def _type_name(column: Column[Any]) -> str:
    for kind, name in ((LargeBinary, "blob"), (String, "text"), (Double, "real")):
        if isinstance(column.type, kind):
            return name
    return "integer"


def _is_text(data: object) -> bool:
    if not isinstance(data, bytes):
        return True  # the condition on the type reports it
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
