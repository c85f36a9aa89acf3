"""Deleting a model: it is marked as deleted in a small transaction, then its rows are removed, some at a time.

SQLite first writes every page that it changes into the write-ahead log. Deleting all rows of a model at once would
therefore need as much disk space as the model, and block all other writes meanwhile. A marked model is invisible, and
its name is free; if a process ends before all rows are removed, the next one continues.
"""

from typing import Any, Final

from sqlalchemy import Column, Connection, Table, delete, select, tuple_, update

from quercus.storage import changes
from quercus.storage.rows import lock_model
from quercus.storage.schema import display, log, model, query, query_history, snapshot, vocabulary

ROWS: Final = 1024
"""Rows removed by one transaction, which takes some hundredths of a second."""

FEW_ROWS: Final = (256, 32, 4)
"""The same on a full disk, each tried if there was no space for the one before. A row changes at most one page of its
table and of each index, so the log grows by some MiB, a tenth of a MiB, or next to nothing."""

# A table comes before those that it refers to. The last transaction removes the policy along with the model.
_PARTS: Final[tuple[tuple[Table, tuple[Column[Any], ...]], ...]] = (
    (query_history, (query_history.c.id,)),
    (query, (query.c.number,)),
    (display, (display.c.instance,)),
    (log, (log.c.sequence,)),
    (snapshot, (snapshot.c.version,)),
    (vocabulary, (vocabulary.c.attribute, vocabulary.c.position)),
)


def mark_deleted(connection: Connection, name: str) -> bool:
    """Mark a model as deleted; return True, because there are rows to remove. Other processes see it as a change."""
    key = lock_model(connection, name).id
    # No valid model name has a slash.
    gone = {"name": f"deleted/{key}", "deleted": True}
    connection.execute(update(model).where(model.c.id == key).values(gone))
    return True


def remove_some(connection: Connection, rows: int) -> bool:
    """Remove up to `rows` rows of a deleted model; return whether rows of deleted models are left."""
    some_model = select(model.c.id).where(model.c.deleted).limit(1)
    key = connection.execute(
        some_model.with_for_update(skip_locked=True)
    ).scalar()  # another process may remove one
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
