"""Inserting a row unless it is there: of several who do so at once one inserts it, and none fails."""

from collections.abc import Callable
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from quercus.storage.schema import AnyRow

_INSERTS: Final[dict[str, Callable[[Table], Any]]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


def insert_new(connection: Connection, table: Table, **values: object) -> AnyRow | None:
    """Insert a row and return its key; None where its key, or another unique value, is taken."""
    statement = _INSERTS[connection.dialect.name](table).values(values).on_conflict_do_nothing()
    return connection.execute(statement.returning(*table.primary_key)).one_or_none()
