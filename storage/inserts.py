"""Inserting rows: many at once, or one unless it is there."""

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
    """Insert rows, in order; one of `Backend.repeated` when a key is there already.

    Parameters
    ----------
    connection : connection with a write transaction.
    table : into which; columns that are not named are NULL or have their defaults.
    columns : names of the columns.
    rows : values that both drivers take: numbers, texts, bytes, truth values, None.
    """
    backend_of(connection).insert_rows(connection, table, columns, rows)


@cache
def row_insert(table: Table, columns: tuple[str, ...]) -> Prepared:
    """Return the insert of a row with these columns, by parameters of the same names; others have their defaults."""
    values = {name: bindparam(name, type_=table.c[name].type) for name in columns}
    return Prepared(insert(table).inline().values(values))


def insert_new(connection: Connection, table: Table, **values: object) -> AnyRow | None:
    """Insert a row and return its key; None where its key, or another unique value, is taken.

    Of several who do so at once one inserts it, and none fails.
    """
    statement = backend_of(connection).insert(table).values(values).on_conflict_do_nothing()
    return connection.execute(statement.returning(*table.primary_key)).one_or_none()
