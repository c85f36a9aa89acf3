"""Statements that every commit runs: their text is made once, and the driver runs it.

To make such a statement ready takes SQLAlchemy ten times as long as SQLite takes to run it.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from sqlite3 import Connection as SqliteConnection
from typing import Any, TypeAlias, cast

from sqlalchemy import Connection, Select
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement

from quercus.storage.backend import backend_of
from quercus.storage.driver_reads import read_each

Rows: TypeAlias = Sequence[Sequence[Any]]


class Prepared:
    """A statement that is run with different values.

    Parameters
    ----------
    statement : with a `bindparam` for each value; what it returns are numbers, texts and bytes. SQLite gives 0 and 1
        for a truth value.
    """

    def __init__(self, statement: Executable) -> None:
        self.statement = statement
        compiled = cast(ClauseElement, statement).compile(dialect=sqlite.dialect(paramstyle="qmark"))
        self._text = str(compiled)
        self._constants = dict(compiled.params)
        self._order: tuple[str, ...] = tuple(cast(Any, compiled).positiontup or ())
        self._row = _row_type(cast(Any, statement).exported_columns.keys())

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run it in a transaction; return the row, None where there is none."""
        if backend_of(connection).takes_arrays:
            found = self._run_by_sqlalchemy(connection, values)
            return found[0] if found else None
        rows = self._fetch_rows(connection, values)
        return self._row(*rows[0]) if rows else None

    def run_for_all(self, connection: Connection, **values: Any) -> Rows:
        """Run it in a transaction; return all rows."""
        if backend_of(connection).takes_arrays:
            return self._run_by_sqlalchemy(connection, values)
        return self._fetch_rows(connection, values)

    def run_for_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it, a change, in a transaction of SQLite with the values of each row, which name all its parameters."""
        driver_of(connection).executemany(self._text, [[row[name] for name in self._order] for row in rows])

    def _run_by_sqlalchemy(self, connection: Connection, values: Mapping[str, Any]) -> Sequence[Any]:
        if isinstance(self.statement, Select):
            return read_each(connection, (self.statement, values))[0]
        result = connection.execute(self.statement, values)
        return result.all() if result.returns_rows else []

    def _fetch_rows(self, connection: Connection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return self.fetch_by(driver_of(connection), values)

    def fetch_by(self, driver: SqliteConnection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run it on SQLite's own connection, in whatever transaction that is; return all rows."""
        given = {**self._constants, **values}
        return driver.execute(self._text, [given[name] for name in self._order]).fetchall()


def driver_of(connection: Connection) -> SqliteConnection:
    """SQLite's own connection beneath one of SQLAlchemy."""
    return cast(SqliteConnection, connection.connection.driver_connection)


def _row_type(names: Sequence[str]) -> Callable[..., Any]:
    return namedtuple("Row", names)
