"""Statements as texts for SQLite's driver, and its connection."""

from collections.abc import Mapping, Sequence
from functools import cache
from sqlite3 import Connection as SqliteConnection
from typing import Any, Final, NamedTuple, cast

from sqlalchemy import Boolean, Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement

_DIALECT: Final = sqlite.dialect(paramstyle="qmark")


class SqliteText(NamedTuple):
    """A statement as the driver runs it.

    Attributes
    ----------
    text : with a question mark for each parameter.
    constants : values of constant parameters.
    order : names of the parameters, in the order of the question marks.
    truths : positions of the columns that are booleans.
    """

    text: str
    constants: Mapping[str, Any]
    order: Sequence[str]
    truths: Sequence[int]


@cache
def text_of(statement: Executable) -> SqliteText:
    """Return the text of a statement."""
    compiled = cast(ClauseElement, statement).compile(dialect=_DIALECT)
    constants = {name: value for name, value in compiled.params.items() if value is not None}
    columns = cast(Any, statement).exported_columns
    truths = [place for place, each in enumerate(columns) if isinstance(each.type, Boolean)]
    return SqliteText(str(compiled), constants, tuple(cast(Any, compiled).positiontup or ()), truths)


def fetch_by(
    driver: SqliteConnection, statement: Executable, values: Mapping[str, Any]
) -> list[tuple[Any, ...]]:
    """Run a statement; return all rows."""
    text, constants, order, truths = text_of(statement)
    given = {**constants, **values}
    found = driver.execute(text, [given[name] for name in order]).fetchall()
    return [_with_truths(row, truths) for row in found] if truths else found


def _with_truths(row: tuple[Any, ...], places: Sequence[int]) -> tuple[Any, ...]:
    """Return the row with booleans for SQLite's 0 and 1; other values are damage, and stay as they are."""
    cells = list(row)
    for place in places:
        cells[place] = bool(cells[place]) if cells[place] in (0, 1) else cells[place]
    return tuple(cells)


def update_by(driver: SqliteConnection, statement: Executable, rows: Sequence[Mapping[str, Any]]) -> None:
    """Run an update for each row."""
    text = text_of(statement)
    driver.executemany(text.text, [[row[name] for name in text.order] for row in rows])


def driver_of(connection: Connection) -> SqliteConnection:
    """Return the connection of SQLite's driver that SQLAlchemy's connection uses."""
    return cast(SqliteConnection, connection.connection.driver_connection)
