"""Statements that every commit runs: their text is made once, and SQLite's driver runs it.

To make such a statement ready takes SQLAlchemy ten times as long as SQLite takes to run it.
"""

from sqlite3 import Connection as SqliteConnection
from typing import Any, cast

from sqlalchemy import Connection
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement


class Prepared:
    """A statement that is run with different values.

    Parameters
    ----------
    statement : with a `bindparam` for each value; it returns one row or none.
    """

    def __init__(self, statement: Executable) -> None:
        self._statement = statement
        compiled = cast(ClauseElement, statement).compile(dialect=sqlite.dialect(paramstyle="qmark"))
        self._text = str(compiled)
        self._constants = dict(compiled.params)
        self._order: tuple[str, ...] = tuple(cast(Any, compiled).positiontup or ())

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run it in a transaction that writes; return the row, None where it returns none."""
        if connection.dialect.name != "sqlite":
            result = connection.execute(self._statement, values)
            return result.one() if result.returns_rows else None
        given = self._constants | values
        driver = cast(SqliteConnection, connection.connection.driver_connection)
        rows = driver.execute(self._text, [given[name] for name in self._order]).fetchall()
        return rows[0] if rows else None
