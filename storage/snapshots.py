"""Published trees, one row for each version; only the newest versions are kept.

A tree is a function of the log, which is kept for ever, so any old tree can be grown again.
"""

from sqlalchemy import Connection, bindparam, delete, func, select

from quercus.storage.errors import NotFound
from quercus.storage.inserts import insert_rows
from quercus.storage.prepared import Prepared
from quercus.storage.records import Snapshot
from quercus.storage.rows import find_model
from quercus.storage.schema import AnyRow, snapshot

_REMOVE = Prepared(
    delete(snapshot).where(snapshot.c.model_id == bindparam("of"), snapshot.c.version <= bindparam("oldest"))
)


def add_snapshot(connection: Connection, model_id: int, new: Snapshot, keep: int) -> None:
    """Insert the next version, and remove all but the newest `keep` versions; the caller has locked the model."""
    insert_rows(
        connection, snapshot, ("model_id", "version", "as_of", "data", "created_at"),
        [(model_id, new.version, new.as_of, new.data, new.created_at)],
    )  # fmt: skip
    _REMOVE.run(connection, of=model_id, oldest=new.version - keep)


def get_snapshot(connection: Connection, name: str, version: int | None) -> Snapshot:
    """Return one version, by default the newest."""
    row = find_model(connection, name)
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
