"""The row of a model: to read, or held for as long as something of the model is written."""

from sqlalchemy import Connection, bindparam, select, update

from quercus.storage import changes
from quercus.storage.errors import NotFound
from quercus.storage.prepared import Prepared
from quercus.storage.schema import LIVE, AnyRow, model

# Made once: every write begins with it, and to make it took as long as to run it.
_BY_NAME = select(model).where(model.c.name == bindparam("wanted"), LIVE)
_OPENED = update(model).where(model.c.id == bindparam("key")).values(times_opened=model.c.times_opened + 1)
_HELD = Prepared(_BY_NAME.with_for_update())
_FOUND = Prepared(_BY_NAME)


def lock(connection: Connection, name: str) -> AnyRow:
    """The model's row, held until the transaction ends (a row lock where the database has them)."""
    row: AnyRow | None = _HELD.run(connection, wanted=name)
    if row is None:
        raise NotFound("model", name)
    changes.hold(connection, row)
    return row


def find(connection: Connection, name: str) -> AnyRow:
    """The model's row, for reading."""
    row: AnyRow | None = _FOUND.run(connection, wanted=name)
    if row is None:
        raise NotFound("model", name)
    return row


def count_opening(connection: Connection, model_id: int) -> None:
    """Count that a labeller may now get what he could not; see `ModelRecord.times_opened`."""
    connection.execute(_OPENED, {"key": model_id})
