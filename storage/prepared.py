"""Statements that every commit runs: their text is made once, and SQLite's driver runs it.

To make such a statement ready takes SQLAlchemy ten times as long as SQLite takes to run it. PostgreSQL runs them by
SQLAlchemy, and changes many rows by one statement.
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from sqlite3 import Connection as SqliteConnection
from typing import Any, TypeAlias, cast

from sqlalchemy import ARRAY, BindParameter, Connection, String, Text, Update, bindparam, column, func
from sqlalchemy.dialects import sqlite
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.sql.visitors import iterate, replacement_traverse

from quercus.storage.backend import backend_of

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
        self._constants = {name: value for name, value in compiled.params.items() if value is not None}
        self._order: tuple[str, ...] = tuple(cast(Any, compiled).positiontup or ())
        names: Sequence[str] = cast(Any, statement).exported_columns.keys()
        self._row: Callable[..., Any] = namedtuple("Row", names)  # type: ignore[misc]

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run it in a transaction; return the row, None where there is none."""
        found = self.run_for_all(connection, **values)
        return found[0] if found else None

    def run_for_all(self, connection: Connection, **values: Any) -> Rows:
        """Run it in a transaction; return all rows."""
        if backend_of(connection).runs_texts:
            return [self._row(*cells) for cells in self.fetch_by(driver_of(connection), values)]
        result = connection.execute(self.statement, values)
        return result.all() if result.returns_rows else []

    def run_for_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run it, an update, in a transaction with the values of each row, which name all its parameters.

        No two of them name the same row.
        """
        if not rows:
            return
        if backend_of(connection).runs_texts:
            driver_of(connection).executemany(
                self._text, [[row[name] for name in self._order] for row in rows]
            )
            return
        # Never many by psycopg, in a pipeline: a client that is stopped amid it holds its locks for ever.
        if len(rows) == 1:
            connection.execute(self.statement, rows[0])
        else:
            sent = {name: [row[name] for row in rows] for name in self._order}
            connection.execute(self._of_many_rows, sent)

    @cached_property
    def _of_many_rows(self) -> Update:
        """The same update of as many rows as its parameters, which are arrays, have elements."""
        one = cast(Update, self.statement)
        asked = {each.key: each.type for each in iterate(one) if isinstance(each, BindParameter)}
        sent = {name: Text() if isinstance(asked[name], String) else asked[name] for name in self._order}
        arrays = (bindparam(name, type_=ARRAY(kind)) for name, kind in sent.items())
        heads = (column(name, kind) for name, kind in sent.items())
        given = func.unnest(*arrays).table_valued(*heads).render_derived(name="given")

        def of_row(element: Any, **_: Any) -> Any:
            return given.c[element.key] if isinstance(element, BindParameter) and element.key in sent else None

        return cast(Update, replacement_traverse(one, {}, of_row))

    def fetch_by(self, driver: SqliteConnection, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        """Run it on SQLite's own connection, in whatever transaction that is; return all rows."""
        given = {**self._constants, **values}
        return driver.execute(self._text, [given[name] for name in self._order]).fetchall()


def driver_of(connection: Connection) -> SqliteConnection:
    """SQLite's own connection beneath one of SQLAlchemy."""
    return cast(SqliteConnection, connection.connection.driver_connection)

