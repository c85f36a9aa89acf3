"""Trees as they were published, one row a version; of old versions only some are kept.

A tree is a function of the log, which is kept for ever: any old one can be grown again.
"""

from sqlalchemy import Connection, delete, func, insert, select, update

from quercus.storage.errors import NotFound
from quercus.storage.records import Snapshot
from quercus.storage.rows import find
from quercus.storage.schema import AnyRow, model, snapshot


def add(connection: Connection, row: AnyRow, new: Snapshot, keep: int) -> None:
    """Insert the next version and remove those that are older than the newest `keep`; the caller holds the model."""
    values = {"version": new.version, "as_of": new.as_of, "data": new.data, "created_at": new.created_at}
    connection.execute(insert(snapshot).values(model_id=row.id, **values))
    change = {"tree_version": new.version, "sequence_grown": new.as_of}
    connection.execute(update(model).where(model.c.id == row.id).values(change))
    old = (snapshot.c.model_id == row.id, snapshot.c.version <= new.version - keep)
    connection.execute(delete(snapshot).where(*old))


def get(connection: Connection, name: str, version: int | None) -> Snapshot:
    """One version, or the newest."""
    row = find(connection, name)
    wanted = row.tree_version if version is None else version
    found = connection.execute(
        select(snapshot.c.version, snapshot.c.as_of, snapshot.c.data, snapshot.c.created_at).where(
            snapshot.c.model_id == row.id, snapshot.c.version == wanted
        )
    ).one_or_none()
    if found is None:
        raise NotFound("tree version", f"{name}/{wanted}", _missing_reason(connection, row, wanted))
    return Snapshot(*found)


def _missing_reason(connection: Connection, row: AnyRow, wanted: int) -> str:
    if not 1 <= wanted <= row.tree_version:
        return ""
    first = select(func.min(snapshot.c.version)).where(snapshot.c.model_id == row.id)
    oldest = connection.execute(first).scalar_one()
    return f"any more: old versions are removed, {oldest} to {row.tree_version} are kept"
