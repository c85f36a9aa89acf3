"""The two ways to insert rows.

`insert_rows` inserts one row or many, whose keys must be free. `insert_new` inserts a row that other transactions may
insert at the same moment, and says whether this one did. Only pushed rows have a way of their own,
`Backend.insert_together`; why is said beside its statements, in `postgres/backend.py` and `sqlite/pushed_rows.py`.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Table

from quercus.storage.backend import backend_of
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


def insert_new(connection: Connection, table: Table, **values: object) -> AnyRow | None:
    """Insert a row and return its key; None if the key, or another unique value, is taken.

    If several transactions insert the same row at once, one succeeds, and the others get None.
    """
    statement = backend_of(connection).insert(table).values(values).on_conflict_do_nothing()
    return connection.execute(statement.returning(*table.primary_key)).one_or_none()
