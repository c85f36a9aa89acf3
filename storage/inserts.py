"""Inserting rows: many at once, or one if its key is free."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

from sqlalchemy import Connection, Table, bindparam, insert

from quercus.storage.backend import backend_of
from quercus.storage.prepared import Prepared
from quercus.storage.schema import AnyRow


def insert_rows(
    connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
) -> None:
    """Insert rows, in order; raise one of `Backend.repeated` if a key exists already.

    Parameters
    ----------
    connection : connection in a write transaction.
    table : table of the rows; columns that are not named get their defaults, or NULL.
    columns : names of the columns.
    rows : values that both drivers accept: numbers, strings, bytes, booleans, None.
    """
    backend_of(connection).insert_rows(connection, table, columns, rows)


@cache
def row_insert(table: Table, columns: tuple[str, ...]) -> Prepared:
    """Return the insert of a row with parameters named like these columns; other columns get their defaults."""
    values = {name: bindparam(name, type_=table.c[name].type) for name in columns}
    return Prepared(insert(table).inline().values(values))


def insert_new(connection: Connection, table: Table, **values: object) -> AnyRow | None:
    """Insert a row and return its key; None if the key, or another unique value, is taken.

    If several transactions insert the same row at once, one succeeds, and the others get None.
    """
    statement = backend_of(connection).insert(table).values(values).on_conflict_do_nothing()
    return connection.execute(statement.returning(*table.primary_key)).one_or_none()
