"""Statements for frequent use, which are compiled once for each database, and then run by the database's driver.

SQLAlchemy takes ten times as long to prepare such a statement as SQLite takes to run it. Through a server, 32 labellers
lease and answer 837 and 841 queries a second, and 764 and 784 if SQLAlchemy runs these statements; with PostgreSQL 701
and 959, and 628 and 715 (`served_pairs` of `bench/_labellers.py`, taking turns).
"""

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, cast

from sqlalchemy import Connection
from sqlalchemy.sql import Executable

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
        columns = cast(Any, statement).exported_columns
        self._row: Callable[..., Any] = namedtuple("Row", columns.keys())  # type: ignore[misc]

    def run(self, connection: Connection, **values: Any) -> Any:
        """Run the statement in a transaction; return the first row, or None."""
        found = self.run_for_all(connection, **values)
        return found[0] if found else None

    def run_for_all(self, connection: Connection, **values: Any) -> Rows:
        """Run the statement in a transaction; return all rows."""
        return [
            self._row(*cells) for cells in backend_of(connection).fetch(connection, self.statement, values)
        ]

    def run_for_each(self, connection: Connection, rows: Sequence[Mapping[str, Any]]) -> None:
        """Run the statement, an update, with the values of each row; no two may update the same row of the table."""
        if rows:
            backend_of(connection).update_rows(connection, self.statement, rows)
