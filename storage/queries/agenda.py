"""Publishing a tree: its snapshot, and the queries by its agenda, in one transaction."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Integer, bindparam, delete, select, update

from quercus.belief.errors import InvalidInput
from quercus.labelling.event import EventKind
from quercus.labelling.lifecycle import (
    HistoryNote,
    NoLongerWanted,
    QueryLifecycle,
    QueryState,
    Step,
    apply_event,
)
from quercus.specification.server import KEEP_TREES
from quercus.storage import snapshots
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.errors import FailedPrecondition, NotFound
from quercus.storage.growers import Fence, check_fence
from quercus.storage.json_values import one_of
from quercus.storage.log.event_log import STATED_SINCE
from quercus.storage.prepared import Prepared
from quercus.storage.queries import expiry, gold, history
from quercus.storage.queries.query_state import insert_opened, lifecycle_of, query_update, write_lifecycles
from quercus.storage.records import AgendaEntry, Snapshot
from quercus.storage.rows import chunks_of, lock_model
from quercus.storage.schema import LIVE, AnyRow, each_of, log, model, query, query_history

KEPT_WITHDRAWN = 1000
LOOKED_THROUGH = 5000
"""Query numbers that are searched for old withdrawn queries, whenever one is withdrawn."""

DROPPED_BY_GROWTH = "growth does not want this label any more"
_MOVE = query_update("position", "asked", "reason", "tree_version")
_COUNT = Prepared(
    update(model)
    .where(model.c.id == bindparam("of"))
    .values(
        tree_version=bindparam("newest_version"),
        sequence_grown=bindparam("grown"),
        report=bindparam("told"),
        sequence_asked=bindparam("asked"),
        query_count=model.c.query_count + bindparam("opened"),
        times_opened=model.c.times_opened + bindparam("openings"),
    )
)
_LIVE = Prepared(
    select(query)
    .where(query.c.model_id == bindparam("of"), query.c.state <= int(QueryState.LEASED))
    .order_by(query.c.state, query.c.position, query.c.number)
)
_SETTLED_SINCE = Prepared(
    select(query.c.instance).where(
        query.c.model_id == bindparam("of"), query.c.sequence > bindparam("behind")
    )
)
_INSTANCES = Prepared(
    select(log.c.sequence).where(
        log.c.model_id == bindparam("of"),
        one_of(log.c.sequence, "sequences"),
        log.c.kind == int(EventKind.INSTANCE),
    )
)

_WITHDRAWN = (
    select(query.c.number)
    # `each_of`: use the index of numbers, which have bounds here, not that of states
    .where(query.c.model_id == bindparam("of"), each_of(query.c.state) == int(QueryState.WITHDRAWN))
    .where(query.c.number > bindparam("since"))
)
_NEWEST_WITHDRAWN = Prepared(
    _WITHDRAWN.order_by(query.c.number.desc()).offset(bindparam("kept", type_=Integer)).limit(1)
)
_NEVER_HELD = Prepared(
    _WITHDRAWN.where(
        query.c.number <= bindparam("last"), ~history.ever_held(query.c.number, query.c.model_id)
    )
)
_REMOVALS = [  # PostgreSQL has no foreign key between them that would cascade
    Prepared(delete(table).where(table.c.model_id == bindparam("of"), one_of(table.c.number, "numbers")))
    for table in (query_history, query)
]


@dataclass(frozen=True, slots=True)
class Publication:
    """A tree to publish; see `Store.publish` for the fields."""

    as_of: int
    data: bytes
    agenda: Sequence[AgendaEntry] | None
    key: int | None = None
    keep: int = KEEP_TREES.default
    fence: Fence | None = None
    report: bytes = b""


@dataclass(frozen=True, slots=True)
class Agenda:
    """The queries to ask, chosen by event `as_of`, and the version of the tree that asks them."""

    as_of: int
    entries: Sequence[AgendaEntry]
    version: int


def publish_tree(connection: Connection, name: str, published: Publication, clock: Clock) -> int:
    """Insert the next tree version, and update the queries by its agenda; see `Store.publish`."""
    held = _held_model(connection, name, published.key, clock)
    if held is None:
        return 0
    row, now = held
    check_fence(connection, row.id, name, published.fence)
    as_of = published.as_of
    if not 0 <= as_of <= row.sequence_committed:
        raise FailedPrecondition(f"a tree as of event {as_of} of a log with {row.sequence_committed} events")
    if as_of < row.sequence_grown:
        return int(row.tree_version)
    version = int(row.tree_version) + 1
    tree = Snapshot(version, as_of, published.data, now.wall)
    snapshots.add_snapshot(connection, row.id, tree, published.keep)
    grown = {"newest_version": version, "grown": as_of, "told": published.report}
    agenda = None if published.agenda is None else Agenda(as_of, published.agenda, version)
    _follow_agenda(connection, row, agenda, grown, now)
    return version


def follow_agenda(
    connection: Connection,
    name: str,
    as_of: int,
    entries: Sequence[AgendaEntry],
    *,
    key: int,
    clock: Clock,
    fence: Fence | None = None,
) -> None:
    """Update the queries by an agenda that is published after its tree."""
    held = _held_model(connection, name, key, clock)
    if held is None:
        return
    row, now = held
    check_fence(connection, row.id, name, fence)
    if as_of < row.sequence_grown:  # a newer tree was published
        return
    grown = {"newest_version": row.tree_version, "grown": row.sequence_grown, "told": row.report}
    _follow_agenda(connection, row, Agenda(as_of, entries, row.tree_version), grown, now)


def replace_report(
    connection: Connection, name: str, report: bytes, *, key: int, clock: Clock, fence: Fence | None = None
) -> None:
    """Replace the report about the model; tree and queries stay as they are."""
    held = _held_model(connection, name, key, clock)
    if held is not None:
        row, now = held
        check_fence(connection, row.id, name, fence)
        grown = {"newest_version": row.tree_version, "grown": row.sequence_grown, "told": report}
        _follow_agenda(connection, row, None, grown, now)


def has_queries(connection: Connection, name: str) -> bool:
    """Return whether the model has open queries, or leased ones that will be open again if they are given back."""
    live = (
        (query.c.state <= QueryState.LEASED)
        & (query.c.wanted | (query.c.answers > 0))
        & query.c.gold.is_(False)
    )
    mine = (
        select(query.c.number)
        .join(model, model.c.id == query.c.model_id)
        .where(model.c.name == name, LIVE, live)
    )
    return connection.execute(mine.limit(1)).one_or_none() is not None


def _held_model(
    connection: Connection, name: str, key: int | None, clock: Clock
) -> tuple[AnyRow, Timestamps] | None:
    """Lock a model; return its row and the time. None if the model was deleted, or does not have this `key`."""
    try:
        row = lock_model(connection, name)
    except NotFound:
        return None
    return (row, clock()) if key in (None, row.id) else None


def _follow_agenda(
    connection: Connection, row: AnyRow, agenda: Agenda | None, grown: Mapping[str, Any], now: Timestamps
) -> None:
    """Update the queries by an agenda, if there is one, and the model's row by `grown`."""
    asked, opened = int(row.sequence_asked), 0
    if agenda is not None:
        expiry.write_expired(connection, row.id, now)
        asked, opened = max(asked, agenda.as_of), _reconcile_queries(connection, row, agenda, now)
    _COUNT.run(connection, of=row.id, asked=asked, opened=opened, openings=int(opened > 0), **grown)


def _reconcile_queries(connection: Connection, row: AnyRow, agenda: Agenda, now: Timestamps) -> int:
    """Withdraw, move and open queries by the agenda; return the number of those opened."""
    version = agenda.version
    wanted = {int(entry.instance): (position, entry) for position, entry in enumerate(agenda.entries)}
    if len(wanted) != len(agenda.entries):
        raise InvalidInput("agenda", "names an instance twice")
    behind = {"of": row.id, "behind": agenda.as_of}
    for (instance,) in STATED_SINCE.run_for_all(connection, **behind):
        wanted.pop(instance, None)  # the tree does not know the statements about it yet
    for instance in gold.marked_instances(connection, row.id):
        wanted.pop(instance, None)  # its label is known, by the mark
    live = _LIVE.run_for_all(connection, of=row.id)
    there: dict[int, AnyRow] = {found.instance: found for found in live if not found.gold}
    waiting = {instance: found for instance, found in there.items() if found.state == QueryState.OPEN}
    unnamed = [found for instance, found in there.items() if instance not in wanted]
    # settled after `as_of`: the tree does not know the answer yet
    settled = _SETTLED_SINCE.run_for_all(connection, **behind)
    passed = {found.instance for found in (*settled, *live)}
    fresh = {instance: item for instance, item in wanted.items() if instance not in passed}
    _check_instances(connection, row, list(fresh))
    drop_queries(connection, row, unnamed, DROPPED_BY_GROWTH, now)
    _want_again(connection, row, [found for instance, found in there.items() if instance in wanted])
    _update_waiting(connection, row, waiting, wanted, version)
    _insert_queries(connection, row, fresh, version, now)
    return len(fresh)


def drop_queries(
    connection: Connection, row: AnyRow, unnamed: list[AnyRow], why: str, now: Timestamps
) -> None:
    """Withdraw open queries, and note that leased ones are no longer wanted."""
    notes: list[HistoryNote] = []
    lifecycles: list[tuple[int, QueryLifecycle, str | None]] = []
    for found in unnamed:
        before = lifecycle_of(found)
        after = apply_event(before, NoLongerWanted(), now.clock)
        if after == before:
            continue
        lifecycles.append((found.number, after, found.labeller))
        if after.state is QueryState.WITHDRAWN:
            notes.append(HistoryNote(found.number, found.instance, Step.WITHDRAWN, after.state, why=why))
    write_lifecycles(connection, row.id, lifecycles)
    history.write_steps(connection, row.id, notes, now)
    if notes:
        _remove_old_withdrawn(connection, row)


def _want_again(connection: Connection, row: AnyRow, named: list[AnyRow]) -> None:
    for chunk in chunks_of([found.number for found in named if not found.wanted]):
        mine = (query.c.model_id == row.id, query.c.number.in_(chunk))
        connection.execute(update(query).where(*mine).values(wanted=True))


def _remove_old_withdrawn(connection: Connection, row: AnyRow) -> None:
    """Remove old withdrawn queries that nobody ever held; all others are kept for ever, with their history.

    The number of kept queries grows without bound, so only `LOOKED_THROUGH` of the newest numbers are searched, and as
    many before the first old one. If few queries are withdrawn, some old ones stay.
    """
    if row.query_count <= KEPT_WITHDRAWN:
        return
    since = row.query_count - LOOKED_THROUGH
    last = _NEWEST_WITHDRAWN.run(connection, of=row.id, since=since, kept=KEPT_WITHDRAWN)
    if last is None:
        return
    since = last.number - LOOKED_THROUGH
    old = _NEVER_HELD.run_for_all(connection, of=row.id, since=since, last=last.number)
    numbers = json.dumps([each.number for each in old])
    for removal in _REMOVALS if old else ():
        removal.run(connection, of=row.id, numbers=numbers)


def _update_waiting(
    connection: Connection,
    row: AnyRow,
    waiting: dict[int, AnyRow],
    wanted: dict[int, tuple[int, AgendaEntry]],
    version: int,
) -> None:
    changes = [
        {
            "of": row.id,
            "which": found.number,
            "position": position,
            "asked": entry.asked,
            "reason": entry.reason,
            "tree_version": version,
        }
        for instance, found in waiting.items()
        if instance in wanted
        for position, entry in [wanted[instance]]
        if (found.position, found.asked, found.reason) != (position, entry.asked, entry.reason)
    ]
    _MOVE.run_for_each(connection, changes)


def _insert_queries(
    connection: Connection,
    row: AnyRow,
    fresh: dict[int, tuple[int, AgendaEntry]],
    version: int,
    now: Timestamps,
) -> None:
    if not fresh:
        return
    numbered = list(enumerate(fresh.items(), row.query_count + 1))
    opened = [
        (number, instance, position, entry.asked, entry.reason, version)
        for number, (instance, (position, entry)) in numbered
    ]
    insert_opened(connection, row.id, opened, now)
    steps = [
        HistoryNote(number, instance, Step.OPENED, QueryState.OPEN) for number, (instance, _) in numbered
    ]
    history.add_steps(connection, row.id, steps, now)


def _check_instances(connection: Connection, row: AnyRow, instances: list[int]) -> None:
    known = _INSTANCES.run_for_all(connection, of=row.id, sequences=json.dumps(instances))
    found = {each.sequence for each in known}
    for instance in instances:
        if instance not in found:
            raise InvalidInput("agenda", f"event {instance} is not an instance of model {row.name}")
