"""Moving a store between SQLite and PostgreSQL, every row unchanged, with its numbers and keys.

Each model is moved in one transaction, which is committed only if its rows, read back, have the same digest as in the
source. An interrupted move can be started again: it skips the models that were moved. Growers and their epochs are not
moved, because the new store has other growers.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Select, Table, delete, func, select, update

from quercus.storage.admin.verify import ContentReader, verify_store
from quercus.storage.backend import backend_of
from quercus.storage.clocks import DATABASE
from quercus.storage.errors import CorruptStore, FailedPrecondition, StoreBusy
from quercus.storage.inserts import insert_rows
from quercus.storage.schema import (
    LIVE,
    AnyRow,
    audit,
    change_counter,
    display,
    lease_clock,
    log,
    model,
    model_change,
    policy,
    query,
    query_history,
    snapshot,
    token,
    vocabulary,
)
from quercus.storage.store import Store

ROWS: Final = 1000
"""Rows that one statement writes."""

# A table comes after those that it refers to.
OF_MODELS: Final = (model, model_change, policy, vocabulary, log, display, snapshot, query, query_history)
OF_ALL: Final = {token: "access tokens", audit: "entries in the audit log"}
"""Tables whose rows belong to no model, and their names in messages."""
NUMBERED: Final = (model, query_history, audit)
"""Tables whose keys the database assigns."""


@dataclass(frozen=True, slots=True)
class MovedModel:
    """A model in its new store: its rows in all tables, and whether an earlier move had written it."""

    name: str
    rows: int
    was_there: bool


MoveObserver = Callable[[MovedModel], None]


def move_store(
    source_url: str,
    target_url: str,
    notify: MoveObserver = lambda _: None,
    contents: ContentReader | None = None,
) -> list[MovedModel]:
    """Move all models, tokens and the audit log of a store that no server uses.

    Parameters
    ----------
    source_url : URL of a store. Its schema is upgraded to this version first; nothing else in it changes.
    target_url : URL of a new store, or of one that an interrupted move of the same source began.
    notify : called with each model after it was moved.
    contents : see `verify_store`.

    Raises
    ------
    StoreBusy
        If a server uses the source, or wrote to it meanwhile.
    FailedPrecondition
        If the target has a model, an access token or an entry in the audit log that the source does not have.
    CorruptStore
        If the rows read back differ from those written, the target is inconsistent, or either store has triggers that
        are not part of Quercus.
    """
    with Store.open(source_url) as source, Store.open(target_url) as target:
        if source.url == target.url:
            raise FailedPrecondition("both URLs name the same store")
        source.claim("quercus migrate")
        if growers := source.live_growers():
            raise StoreBusy(f"the store is used by {growers[0].place}: stop all of its servers first")
        newest = source.newest_change()
        _check_target(source, target)
        moved = []
        with source._database.read() as connection:
            keys = sorted(_model_identities(connection))
        for key in keys:
            moved.append(_move_model(source, target, key))
            notify(moved[-1])
        _move_rest(source, target)
        if source.newest_change() != newest:
            raise StoreBusy(
                "the store was written while it was moved: stop all of its servers, and begin again"
            )
    if faults := [fault for fault in verify_store(target_url, contents) if fault.is_damage]:
        raise CorruptStore(f"the moved store is inconsistent: {faults[0]}")
    return moved


def _model_identities(connection: Connection) -> dict[int, tuple[str, str]]:
    rows = connection.execute(select(model.c.id, model.c.uid, model.c.name).where(LIVE))
    return {int(key): (uid, name) for key, uid, name in rows}


def _check_target(source: Store, target: Store) -> None:
    with source._database.read() as connection:
        known = _model_identities(connection)
    with target._database.read() as connection:
        there = _model_identities(connection)
        others = connection.execute(select(model.c.name).where(~LIVE)).first()
    strange = [name for key, (uid, name) in there.items() if known.get(key) != (uid, name)]
    if strange or others is not None:
        raise _has_more(f"model {strange[0]}" if strange else "models that are being deleted")
    with source._database.read() as reading, target._database.read() as connection:
        for table, name in OF_ALL.items():
            if not _has_all(reading, connection, table):
                raise _has_more(name)


def _has_more(what: str) -> FailedPrecondition:
    return FailedPrecondition(
        f"the target has {what}, which the source does not have: move to a new store, or to one that an "
        "interrupted move of the same source began"
    )


def _has_all(reading: Connection, target: Connection, table: Table) -> bool:
    """Return whether the source has every row of a table that the target has; both are read in order of the key."""
    wanted = _in_order(table).execution_options(yield_per=ROWS)
    with reading.execute(wanted) as of_source, target.execute(wanted) as of_target:
        known = map(_canonical_bytes, of_source)
        # `in` on an iterator continues after the row that it found last
        return all(row in known for row in map(_canonical_bytes, of_target))


def _move_model(source: Store, target: Store, key: int) -> MovedModel:
    with source._database.read(unhurried=True) as reading:
        name = str(reading.execute(select(model.c.name).where(model.c.id == key)).scalar_one())
        with target._database.write(unhurried=True) as writing:
            found = _table_digests(writing, key)
            if found[model.name][0]:
                if found != _table_digests(reading, key):
                    raise FailedPrecondition(
                        f"model {name} of the target is not that of the source any more: move to a new store"
                    )
                return MovedModel(name, sum(count for count, _ in found.values()), was_there=True)
            wanted = {
                table.name: _copy_rows(reading, writing, table, _rows_of(table, key)) for table in OF_MODELS
            }
            if (written := _table_digests(writing, key)) != wanted:
                wrong = next(each for each in wanted if wanted[each] != written[each])
                raise CorruptStore(f"model {name}: rows of table {wrong} came back as others than they went")
    return MovedModel(name, sum(count for count, _ in wanted.values()), was_there=False)


def _move_rest(source: Store, target: Store) -> None:
    """Move the rows that belong to no model, the counters and the lease clock."""
    with source._database.read() as reading, target._database.write(unhurried=True) as writing:
        for table in OF_ALL:
            writing.execute(delete(table))  # rows of an earlier move of this source, by `_check_target`
            _copy_rows(reading, writing, table, _in_order(table))
        number = reading.execute(select(change_counter.c.number)).scalar_one()
        writing.execute(update(change_counter).values(number=number))
        for table in NUMBERED:
            if last := _largest_key(reading, table):
                backend_of(writing).continue_keys(writing, table, last)
        _set_clock(reading, writing, source, target)


def _rows_of(table: Table, key: int) -> Select[Any]:
    owner = table.c.id if table is model else table.c.model_id
    return _in_order(table).where(owner == key)


def _in_order(table: Table) -> Select[Any]:
    return select(table).order_by(*table.primary_key)


def _copy_rows(
    reading: Connection, writing: Connection, table: Table, wanted: Select[Any]
) -> tuple[int, str]:
    """Copy rows; return their number and digest."""
    digest, count = hashlib.sha256(), 0
    for rows in reading.execute(wanted.execution_options(yield_per=ROWS)).partitions(ROWS):
        for row in rows:
            digest.update(_canonical_bytes(row))
        count += len(rows)
        insert_rows(writing, table, table.columns.keys(), rows)
    return count, digest.hexdigest()


def _table_digests(connection: Connection, key: int) -> dict[str, tuple[int, str]]:
    """Return the number and digest of a model's rows, by table."""
    found = {}
    for table in OF_MODELS:
        digest, count = hashlib.sha256(), 0
        for row in connection.execute(_rows_of(table, key).execution_options(yield_per=ROWS)):
            digest.update(_canonical_bytes(row))
            count += 1
        found[table.name] = (count, digest.hexdigest())
    return found


def _canonical_bytes(row: AnyRow) -> bytes:
    """Return a row as bytes that depend only on its values, not on the database."""
    return repr([bytes(value) if isinstance(value, memoryview) else value for value in row]).encode()


def _largest_key(connection: Connection, table: Table) -> int:
    """Return the largest key that was assigned, as far as known; changes also tell of deleted models."""
    keys = [table.c.id] + ([model_change.c.model_id] if table is model else [])
    return max(int(connection.execute(select(func.coalesce(func.max(key), 0))).scalar_one()) for key in keys)


def _set_clock(reading: Connection, writing: Connection, source: Store, target: Store) -> None:
    """Set the lease clock of the target to that of the source."""
    clock, there = source._clocks.now(reading).clock, target._clocks.now(writing)
    is_database = (
        lease_clock.c.boot == DATABASE
    )  # then the clock is the database's wall clock plus the offset
    writing.execute(update(lease_clock).where(is_database).values(offset=clock - there.wall))
    more = lease_clock.c.offset + (clock - there.clock)
    writing.execute(update(lease_clock).where(~is_database).values(offset=more))
