"""Finding and locking the row of a model."""

from collections.abc import Iterator, Sequence
from typing import Final, TypeVar

from sqlalchemy import Connection, bindparam, select, update

from quercus.labelling.shapes import Shapes
from quercus.storage import changes
from quercus.storage.errors import NotFound
from quercus.storage.prepared import Prepared
from quercus.storage.schema import LIVE, AnyRow, model

T = TypeVar("T")
CHUNK: Final = 500  # parameters of one IN (...)
# built once: every write begins with it, and building it took as long as running it
_BY_NAME = select(model).where(model.c.name == bindparam("wanted"), LIVE)
_OPENED = update(model).where(model.c.id == bindparam("key")).values(times_opened=model.c.times_opened + 1)
_HELD = Prepared(_BY_NAME.with_for_update())
_FOUND = Prepared(_BY_NAME)


def lock_model(connection: Connection, name: str) -> AnyRow:
    """Lock the row of a model until the transaction ends, and return it (SQLite has no row locks, but one writer)."""
    row: AnyRow | None = _HELD.run(connection, wanted=name)
    if row is None:
        raise NotFound("model", name)
    changes.note_held_model(connection, row)
    return row


def find_model(connection: Connection, name: str) -> AnyRow:
    """Return the row of a model, for reading."""
    row: AnyRow | None = _FOUND.run(connection, wanted=name)
    if row is None:
        raise NotFound("model", name)
    return row


def shapes_of(row: AnyRow) -> Shapes:
    """Return the shapes of a model's log, by its row."""
    return Shapes.parse(row.shapes)


def find_key(connection: Connection, name: str) -> int:
    """Return the key of a model, even if the rest of its row is damaged."""
    key = connection.execute(select(model.c.id).where(model.c.name == name, LIVE)).scalar()
    if key is None:
        raise NotFound("model", name)
    return int(key)


def count_opening(connection: Connection, model_id: int) -> None:
    """Note that a labeller may now get a query that was not free before; see `ModelRecord.times_opened`."""
    connection.execute(_OPENED, {"key": model_id})


def chunks_of(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield keys in chunks that are small enough for one statement."""
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))
