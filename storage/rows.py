"""The row of a model, to read, or held for as long as something of the model is written; chunks of many keys."""

from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import Connection, Select, bindparam, select, update

from quercus.storage import changes
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.driver_reads import read_each
from quercus.storage.errors import NotFound
from quercus.storage.prepared import Prepared
from quercus.storage.row_writes import takes_arrays
from quercus.storage.schema import LIVE, AnyRow, model

T = TypeVar("T")
CHUNK: Final = 500  # bound parameters of one IN (...)
# Made once: every write begins with it, and to make it took as long as to run it.
_BY_NAME = select(model).where(model.c.name == bindparam("wanted"), LIVE)
_OPENED = update(model).where(model.c.id == bindparam("key")).values(times_opened=model.c.times_opened + 1)
BY_NAME_TO_HOLD: Final[Select[Any]] = _BY_NAME.with_for_update()
"""The row of the model that the parameter `wanted` names; see `hold_row`."""

_HELD = Prepared(BY_NAME_TO_HOLD)
_FOUND = Prepared(_BY_NAME)


def lock_model(connection: Connection, name: str) -> AnyRow:
    """The model's row, held until the transaction ends (a row lock where the database has them)."""
    row: AnyRow | None = _HELD.run(connection, wanted=name)
    return hold_row(connection, name, [] if row is None else [row])


def lock_now(connection: Connection, name: str, clock: Clock) -> tuple[AnyRow, Timestamps]:
    """Lock the row of a model like `lock_model`, and return it with the time of locking."""
    if not (takes_arrays(connection) and clock.clocks.is_in_database):
        return lock_model(connection, name), clock()
    told = clock.clocks.moment, clock.clocks.moment_parameters()
    found, ((at, wall),) = read_each(connection, (BY_NAME_TO_HOLD, {"wanted": name}), told)
    return hold_row(connection, name, found), clock.clocks.timestamps_of(at, wall)


def hold_row(connection: Connection, name: str, found: Sequence[AnyRow]) -> AnyRow:
    """Return the row that `BY_NAME_TO_HOLD` found; the transaction locks it from now on."""
    if not found:
        raise NotFound("model", name)
    changes.note_held_model(connection, found[0])
    return found[0]


def find_model(connection: Connection, name: str) -> AnyRow:
    """Return the model's row, for reading."""
    row: AnyRow | None = _FOUND.run(connection, wanted=name)
    if row is None:
        raise NotFound("model", name)
    return row


def find_key(connection: Connection, name: str) -> int:
    """Return the key of a model, of whose row nothing else is read."""
    key = connection.execute(select(model.c.id).where(model.c.name == name, LIVE)).scalar()
    if key is None:
        raise NotFound("model", name)
    return int(key)


def count_opening(connection: Connection, model_id: int) -> None:
    """Count that a labeller may now get a query that was not free before; see `ModelRecord.times_opened`."""
    connection.execute(_OPENED, {"key": model_id})


def chunks_of(keys: Sequence[T]) -> Iterator[Sequence[T]]:
    """Yield keys in chunks, each of which one statement takes."""
    return (keys[start : start + CHUNK] for start in range(0, len(keys), CHUNK))
