"""Deleting a model: a mark, which is a small transaction, and then its rows, some at a time.

SQLite writes every page that it changes into the write-ahead log first. To delete all rows of a model at once would so
take as much room as the model, and time in which nothing else is written. A marked model is invisible, and
its name is free; a process that ends before all rows are removed leaves the rest to the next one.
"""

from typing import Any, Final

from sqlalchemy import Column, Connection, Table, delete, select, tuple_, update

from quercus.storage import changes
from quercus.storage.rows import lock_model
from quercus.storage.schema import display, log, model, query, query_history, snapshot, vocabulary

ROWS: Final = 1024
"""Removed at a time: some hundredths of a second."""

FEW_ROWS: Final = (256, 32, 4)
"""The same on a full disk, the next where there is no room for one. A row changes a page of its table and of each index
at most: some MiB together, a tenth of one, and next to nothing."""

# What refers to a table comes before it. The last transaction takes the policy along with the model.
_PARTS: Final[tuple[tuple[Table, tuple[Column[Any], ...]], ...]] = (
    (query_history, (query_history.c.id,)),
    (query, (query.c.number,)),
    (display, (display.c.instance,)),
    (log, (log.c.sequence,)),
    (snapshot, (snapshot.c.version,)),
    (vocabulary, (vocabulary.c.attribute, vocabulary.c.position)),
)


def mark_deleted(connection: Connection, name: str) -> bool:
    """Mark a model as deleted, and return True: there is something to be removed. Others learn of it as of changes."""
    key = lock_model(connection, name).id
    # No model is looked up by such a name, and no other can have it.
    gone = {"name": f"deleted/{key}", "deleted": True}
    connection.execute(update(model).where(model.c.id == key).values(gone))
    return True


def remove_some(connection: Connection, rows: int) -> bool:
    """Remove up to `rows` rows of a deleted model; return whether rows of any are left."""
    some_model = select(model.c.id).where(model.c.deleted).limit(1)
    key = connection.execute(some_model.with_for_update(skip_locked=True)).scalar()  # another may be at it
    if key is None:
        return False
    for table, columns in _PARTS:
        some = select(*columns).where(table.c.model_id == key).limit(rows)
        mine = (table.c.model_id == key, tuple_(*columns).in_(some))
        if connection.execute(delete(table).where(*mine)).rowcount:
            return True
    connection.execute(delete(model).where(model.c.id == key))
    changes.forget_removed(connection)
    return True
