"""Trees as they were published, one row a version; of old versions only some are kept.

A tree is a function of the log, which is kept for ever: any old one can be grown again.
"""

from sqlalchemy import Connection, bindparam, delete, func, insert, select, update

from quercus.storage.errors import NotFound
from quercus.storage.prepared import Prepared
from quercus.storage.records import Snapshot
from quercus.storage.rows import find
from quercus.storage.schema import AnyRow, model, snapshot

_ADD = Prepared(
    insert(snapshot).values(
        model_id=bindparam("key"),
        version=bindparam("new_version"),
        as_of=bindparam("grown"),
        data=bindparam("tree"),
        created_at=bindparam("now"),
    )
)
_COUNT = Prepared(
    update(model)
    .where(model.c.id == bindparam("key"))
    .values(
        tree_version=bindparam("new_version"), sequence_grown=bindparam("grown"), report=bindparam("told")
    )
)
_REMOVE = Prepared(
    delete(snapshot).where(snapshot.c.model_id == bindparam("key"), snapshot.c.version <= bindparam("oldest"))
)


def add(connection: Connection, row: AnyRow, new: Snapshot, keep: int, report: bytes) -> None:
    """Insert the next version and what is reported with it; the caller holds the model.

    Versions that are older than the newest `keep` are removed.
    """
    counted = {"key": row.id, "new_version": new.version, "grown": new.as_of}
    _ADD.run(connection, **counted, tree=new.data, now=new.created_at)
    _COUNT.run(connection, **counted, told=report)
    _REMOVE.run(connection, key=row.id, oldest=new.version - keep)


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
