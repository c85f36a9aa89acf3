"""Trees as they were published, one row a version."""

from sqlalchemy import Connection, insert, select, update

from quercus.storage.errors import NotFound
from quercus.storage.models import find
from quercus.storage.records import Snapshot
from quercus.storage.schema import AnyRow, model, snapshot


def add(connection: Connection, row: AnyRow, as_of: int, data: bytes, now: float) -> int:
    """Insert the next version; the caller holds the model."""
    version = int(row.tree_version) + 1
    connection.execute(
        insert(snapshot).values(model_id=row.id, version=version, as_of=as_of, data=data, created_at=now)
    )
    change = {"tree_version": version, "sequence_grown": as_of}
    connection.execute(update(model).where(model.c.id == row.id).values(change))
    return version


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
        raise NotFound("tree version", f"{name}/{wanted}")
    return Snapshot(*found)
