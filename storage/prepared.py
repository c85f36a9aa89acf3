"""Statements that are compiled once for each database, and then run by the database's driver, for frequent use.

SQLAlchemy takes ten times as long to prepare such a statement as SQLite takes to run it. Through a server, 32 labellers
lease and answer 837 and 841 queries a second, and 764 and 784 if SQLAlchemy runs these statements; with PostgreSQL 701
and 959, and 628 and 715 (`served_pairs` of `bench/_labellers.py`, taking turns).
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection as SqliteConnection
from typing import Any, TypeAlias, cast

from sqlalchemy import Boolean, Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement

from quercus.storage.backend import backend_of

Rows: TypeAlias = Sequence[Any]
"""Rows, each a named tuple."""


class Prepared:
    """A statement that is run with different values.

    Parameters
    ----------
    statement : with a `bindparam` for each value; it returns only numbers, strings, bytes and booleans.
    """

    def __init__(self, statement: Executable) -> None:
        self.statement = statement
        compiled = cast(ClauseElement, statement).compile(dialect=sqlite.dialect(paramstyle="qmark"))
        self._text = str(compiled)
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}
        self._order: tuple[str, ...] = tuple(cast(Any, compiled).positiontup or ())
        columns = cast(Any, statement).exported_columns
        self._row: Callable[..., Any] = namedtuple("Row", columns.keys())  # type: ignore[misc]
        self._truths = {place for place, each in enumerate(columns) if isinstance(each.type, Boolean)}

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run the statement in a transaction; return the first row, or None."""
        found = self.run_for_all(connection, **values)
        return found[0] if found else None

    def run_for_all(self, connection: Connection, **values: Any) -> Rows:
        """Run the statement in a transaction; return all rows."""
        return [self._row(*cells) for cells in backend_of(connection).fetch(connection, self, values)]

    def run_for_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run the statement, an update, with the values of each row; no two may update the same row of the table."""
        if rows:
            backend_of(connection).update_rows(connection, self, rows)

    def fetch_by(self, driver: SqliteConnection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run the statement on a connection of SQLite's driver; return all rows."""
        given = {**self._constants, **values}
        found = driver.execute(self._text, [given[name] for name in self._order]).fetchall()
        return [self._with_truths(row) for row in found] if self._truths else found

    def _with_truths(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the row with booleans for SQLite's 0 and 1; other values are damage, and stay as they are."""
        cells = list(row)
        for place in self._truths:
            cells[place] = bool(cells[place]) if cells[place] in (0, 1) else cells[place]
        return tuple(cells)

    def update_by(self, driver: SqliteConnection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run the statement on a connection of SQLite's driver, for each row."""
        driver.executemany(self._text, [[row[name] for name in self._order] for row in rows])


def driver_of(connection: Connection) -> SqliteConnection:
    """Return the connection of SQLite's driver that SQLAlchemy's connection uses."""
    return cast(SqliteConnection, connection.connection.driver_connection)
