"""Moving a store to another database, SQLite or PostgreSQL, either way: every row as it is, numbers and keys included.

A model is moved in one transaction, which is committed only when all of its rows were read back and have the digest
that they had. So an interrupted move begins again, and finds the models that are there already. Growers and their
epochs are not moved: the new store has other growers.
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
"""Written by one statement."""

# What refers to a table comes after it.
OF_MODELS: Final = (model, model_change, policy, vocabulary, log, display, snapshot, query, query_history)
OF_ALL: Final = {token: "access tokens", audit: "entries in the audit log"}
"""Tables whose rows belong to no model, in words."""
NUMBERED: Final = (model, query_history, audit)
"""Tables whose keys the database chooses."""


@dataclass(frozen=True, slots=True)
class MovedModel:
    """A model in its new store: how many rows of all tables it has, and whether it was there before."""

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
    source_url : address of a store. Its schema is upgraded to this version first; nothing else in it changes.
    target_url : address of a new store, or of one that has a part of the source already.
    notify : called with each model when it has been moved.
    contents : see `verify_store`.

    Raises
    ------
    StoreBusy
        A server uses the source, or it was written meanwhile.
    FailedPrecondition
        The target has a model, an access token or an entry in the audit log that the source does not have.
    CorruptStore
        If the rows read back differ from those written, the target is inconsistent, or either has triggers of others.
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
    """Return whether the source has each row of a table that the target has; both are read in order of their key."""
    wanted = _in_order(table).execution_options(yield_per=ROWS)
    with reading.execute(wanted) as of_source, target.execute(wanted) as of_target:
        known = map(_canonical_bytes, of_source)
        # `in` goes on after the row that it found last
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
    """Move the rows that belong to no model, and continue the numbers and the clock of the source."""
    with source._database.read() as reading, target._database.write(unhurried=True) as writing:
        for table in OF_ALL:
            writing.execute(delete(table))  # of an earlier move of this source: `_check_target`
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
    """Copy rows; how many, and their digest."""
    digest, count = hashlib.sha256(), 0
    for rows in reading.execute(wanted.execution_options(yield_per=ROWS)).partitions(ROWS):
        for row in rows:
            digest.update(_canonical_bytes(row))
        count += len(rows)
        insert_rows(writing, table, table.columns.keys(), rows)
    return count, digest.hexdigest()


def _table_digests(connection: Connection, key: int) -> dict[str, tuple[int, str]]:
    """Return, for each table, the number of a model's rows and their digest."""
    found = {}
    for table in OF_MODELS:
        digest, count = hashlib.sha256(), 0
        for row in connection.execute(_rows_of(table, key).execution_options(yield_per=ROWS)):
            digest.update(_canonical_bytes(row))
            count += 1
        found[table.name] = (count, digest.hexdigest())
    return found


def _canonical_bytes(row: AnyRow) -> bytes:
    """Return a row as bytes: the same for the same values, whatever the database."""
    return repr([bytes(value) if isinstance(value, memoryview) else value for value in row]).encode()


def _largest_key(connection: Connection, table: Table) -> int:
    """The largest key that was given, as far as it is known; of a model that is gone its last change tells."""
    keys = [table.c.id] + ([model_change.c.model_id] if table is model else [])
    return max(int(connection.execute(select(func.coalesce(func.max(key), 0))).scalar_one()) for key in keys)


def _set_clock(reading: Connection, writing: Connection, source: Store, target: Store) -> None:
    """Set the lease clock of the target to that of the source."""
    clock, there = source._clocks.now(reading).clock, target._clocks.now(writing)
    is_database = lease_clock.c.boot == DATABASE  # whose clock is its wall's and the offset, never back
    writing.execute(update(lease_clock).where(is_database).values(offset=clock - there.wall))
    more = lease_clock.c.offset + (clock - there.clock)
    writing.execute(update(lease_clock).where(~is_database).values(offset=more))
