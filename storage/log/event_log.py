"""The evidence log: append-only; the events of each model are numbered without gaps."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import MISSING, fields, replace
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Connection,
    Select,
    bindparam,
    func,
    literal_column,
    select,
    union_all,
    update,
)

from quercus.labelling import checks
from quercus.labelling.event import EVENT_FIELDS, UNASKED, Event, EventKind
from quercus.labelling.shapes import widened_event
from quercus.storage.clocks import Timestamps
from quercus.storage.errors import NotFound
from quercus.storage.inserts import insert_rows
from quercus.storage.json_values import one_of
from quercus.storage.prepared import Prepared
from quercus.storage.records import EventSelection
from quercus.storage.rows import chunks_of, find_model, shapes_of
from quercus.storage.schema import AnyRow, log, model, vocabulary

MAX_SEQUENCE = 2**62
STATED_SINCE = Prepared(
    select(log.c.instance).where(
        log.c.model_id == bindparam("of"),
        log.c.kind.in_([literal_column(str(int(kind))) for kind in sorted(UNASKED)]),
        log.c.instance.is_not(None),
        log.c.sequence > bindparam("behind"),
    )
)
"""Instances with statements or adjudications after the event `behind`."""
_LEARNED = Prepared(
    select(vocabulary.c.attribute, vocabulary.c.value)
    .where(vocabulary.c.model_id == bindparam("of"))
    .order_by(vocabulary.c.attribute, vocabulary.c.position)
)


def learned_values(connection: Connection, model_id: int) -> defaultdict[int, list[str]]:
    """Return the learned values by attribute."""
    values: defaultdict[int, list[str]] = defaultdict(list)
    for attribute, value in _LEARNED.run_for_all(connection, of=model_id):
        values[attribute].append(value)
    return values


def read_vocabulary(connection: Connection, name: str) -> dict[int, tuple[str, ...]]:
    """Return the learned values by attribute, in order of arrival."""
    known = learned_values(connection, find_model(connection, name).id)
    return {attribute: tuple(values) for attribute, values in known.items()}


def read_events(connection: Connection, name: str, after: int, limit: int) -> list[Event]:
    """Return events after sequence number `after`, in order."""
    checks.at_least("limit", limit, 1)
    row = find_model(connection, name)
    wanted = (
        _select_events()
        .where(log.c.model_id == row.id, log.c.sequence > after)
        .order_by(log.c.sequence)
        .limit(limit)
    )
    return _as_events(connection.execute(wanted), row)


def others_between(connection: Connection, row: AnyRow, after: int, last: int) -> list[Event]:
    """Return events of other kinds than INSTANCE, after `after` and up to `last`, in order."""
    return _as_events(_OTHERS.run_for_all(connection, of=row.id, after=after, last=last), row)


def list_instances(connection: Connection, name: str, after: int, limit: int) -> list[Event]:
    """Return INSTANCE events after sequence number `after`, in order."""
    checks.at_least("limit", limit, 1)
    row = find_model(connection, name)
    mine = (log.c.model_id == row.id, log.c.sequence > after, log.c.kind == EventKind.INSTANCE)
    wanted = _select_events().where(*mine).order_by(log.c.sequence).limit(limit)
    return _as_events(connection.execute(wanted), row)


def row_ids(connection: Connection, name: str, after: int, limit: int) -> list[str]:
    """Return the ids of the instances after sequence number `after`, in order."""
    checks.at_least("limit", limit, 1)
    mine = (log.c.model_id == find_model(connection, name).id, log.c.sequence > after, log.c.id.is_not(None))
    return list(
        connection.execute(select(log.c.id).where(*mine).order_by(log.c.sequence).limit(limit)).scalars()
    )


def get_instance(connection: Connection, name: str, identifier: str) -> list[Event]:
    """Return the events of one instance, oldest first, beginning with its INSTANCE event."""
    row = find_model(connection, name)
    wanted = select(log.c.sequence).where(log.c.model_id == row.id, log.c.id == identifier)
    sequence = connection.execute(wanted).scalar_one_or_none()
    if sequence is None:
        raise NotFound("instance", f"{name}/{identifier}")
    return instance_history(connection, name, [sequence])[sequence]


def instance_history(connection: Connection, name: str, instances: Sequence[int]) -> dict[int, list[Event]]:
    """Return the events of instances, oldest first, by the sequence of their INSTANCE event."""
    return history_of(connection, find_model(connection, name), instances)


def history_of(connection: Connection, row: AnyRow, instances: Sequence[int]) -> dict[int, list[Event]]:
    """Return the events of instances, by the model's row; see `instance_history`."""
    found: dict[int, list[Event]] = {instance: [] for instance in instances}
    wanted = json.dumps([int(instance) for instance in found])
    rows = _SAID.run_for_all(connection, model=row.id, instances=wanted) if found else []
    for event in sorted(_as_events(rows, row), key=lambda each: each.sequence):
        found[event.instance].append(event)
    for instance, events in found.items():
        if not events:
            raise NotFound("instance", f"{row.name}/sequence {instance}")
    return found


def newest_opinions(connection: Connection, name: str, limit: int) -> list[Event]:
    """Return the newest `limit` OPINION and STATEMENT events, oldest first."""
    checks.at_least("limit", limit, 1)
    row = find_model(connection, name)
    found: list[Event] = []
    for kind in (EventKind.OPINION, EventKind.STATEMENT):  # separately, so that the index applies
        mine = (log.c.model_id == row.id, log.c.kind == kind, log.c.instance.is_not(None))
        newest = _select_events().where(*mine).order_by(log.c.sequence.desc()).limit(limit)
        found += _as_events(connection.execute(newest), row)
    return sorted(found, key=lambda event: event.sequence)[-limit:]


def newest_shared(connection: Connection, name: str, limit: int) -> list[int]:
    """Return the instances of the newest `limit` events by which several may have labelled one, oldest event first.

    These events are opinions and statements, and, of the newest `limit` corrections, those that took an answer back:
    somebody else may have answered since. An instance is returned once for each of its events.
    """
    checks.at_least("limit", limit, 1)
    model_id = find_model(connection, name).id
    is_undone = log.c.label.is_(None) & log.c.query.is_not(None) & log.c.gold.is_(None)
    found: list[tuple[int, int]] = []
    for kind in (
        EventKind.OPINION,
        EventKind.STATEMENT,
        EventKind.CORRECTION,
    ):  # separately, so that the index applies
        mine = (log.c.model_id == model_id, log.c.kind == kind, log.c.instance.is_not(None))
        newest = select(log.c.sequence, log.c.instance, is_undone).where(*mine)
        found += [
            (sequence, instance)
            for sequence, instance, undone in connection.execute(
                newest.order_by(log.c.sequence.desc()).limit(limit)
            )
            if undone or kind != EventKind.CORRECTION
        ]
    return [instance for _, instance in sorted(found)[-limit:]]


def newest_spoken(connection: Connection, name: str, limit: int) -> list[int]:
    """Return the sequences of the instances of the last `limit` label events."""
    model_id = find_model(connection, name).id
    mine = (log.c.model_id == model_id, log.c.instance.is_not(None))
    words = select(log.c.instance).where(*mine).order_by(log.c.sequence.desc()).limit(limit)
    return list(dict.fromkeys(connection.execute(words).scalars()))


def newest_instances(connection: Connection, name: str, limit: int) -> list[int]:
    """Return the sequences of the instances that were pushed last."""
    model_id = find_model(connection, name).id
    mine = (log.c.model_id == model_id, log.c.kind == EventKind.INSTANCE)
    rows = select(log.c.sequence).where(*mine).order_by(log.c.sequence.desc()).limit(limit)
    return list(connection.execute(rows).scalars())


def instance_sequences(connection: Connection, model_id: int, ids: Sequence[str]) -> dict[str, int]:
    """Return the sequence of the INSTANCE event of each id that is stored."""
    found: dict[str, int] = {}
    for chunk in chunks_of(ids):
        mine = (log.c.model_id == model_id, log.c.id.in_(chunk))
        rows = connection.execute(select(log.c.id, log.c.sequence).where(*mine))
        found.update((identifier, sequence) for identifier, sequence in rows)
    return found


def labeller_events(connection: Connection, name: str, selection: EventSelection) -> list[Event]:
    """Return the events of labellers, in the requested order."""
    checks.at_least("limit", selection.limit, 1)
    row = find_model(connection, name)
    wanted = _select_events().where(log.c.model_id == row.id, log.c.instance.is_not(None))
    if selection.newest_first:
        wanted = wanted.where(log.c.sequence < (selection.after or MAX_SEQUENCE)).order_by(
            log.c.sequence.desc()
        )
    else:
        wanted = wanted.where(log.c.sequence > selection.after).order_by(log.c.sequence)
    if selection.authors:
        wanted = wanted.where(log.c.author.in_(selection.authors))
    if selection.since is not None:
        wanted = wanted.where(log.c.created_at >= selection.since)
    if selection.until is not None:
        wanted = wanted.where(log.c.created_at < selection.until)
    if selection.instances is not None:
        wanted = wanted.where(log.c.instance.in_(selection.instances))
    return _as_events(connection.execute(wanted.limit(selection.limit)), row)


def add_events(connection: Connection, model_id: int, events: Sequence[Event], now: Timestamps) -> None:
    """Append events; the caller has locked the model, and counts them."""
    rows = [(model_id, now.clock, *_cells_of(replace(event, created_at=now.wall))) for event in events]
    insert_rows(connection, log, ("model_id", "clock", *_STORED), rows)


def append_labels(connection: Connection, row: AnyRow, events: Sequence[Event], now: Timestamps) -> None:
    """Append events about instances to the log of a locked model, and count them and their conflicts."""
    add_events(connection, row.id, events, now)
    counts = {
        "sequence_committed": row.sequence_committed + len(events),
        "conflicts": row.conflicts + sum(event.conflict for event in events),
    }
    connection.execute(update(model).where(model.c.id == row.id).values(counts))


def _cells_of(event: Event) -> Iterator[Any]:
    """Yield the cells of an event, in the order of `_STORED`."""
    for name, (stored, null) in _STORED.items():
        value = getattr(event, name)
        is_absent = stored.may_be_null and (value == null or event.kind not in stored.needed | stored.allowed)
        yield None if is_absent else int(value) if name == "kind" else value


_STORED = {
    each.name: (EVENT_FIELDS[each.name], None if each.default is MISSING else each.default)
    for each in fields(Event)
}
"""The storage of each field, and its value if the cell is NULL."""


@cache
def _select_events() -> Select[Any]:
    # `origin` is the INSTANCE event, which has the id.
    origin = log.alias("origin")
    same = (origin.c.model_id == log.c.model_id) & (origin.c.sequence == log.c.instance)
    cells: dict[str, ColumnElement[Any]] = {
        each.name: log.c[each.name]
        if each.default in {MISSING, None}
        else func.coalesce(log.c[each.name], each.default)
        for each in fields(Event)
    }
    cells["instance"] = func.coalesce(log.c.instance, log.c.sequence)
    cells["id"] = func.coalesce(log.c.id, origin.c.id, "")
    return select(*cells.values()).select_from(log.outerjoin(origin, same))


def _said_of() -> CompoundSelect[Any]:
    """Select the INSTANCE events of `instances`, and the labellers' events about them."""
    there, events = log.c.model_id == bindparam("model"), _select_events()
    own = events.where(there, one_of(log.c.sequence, "instances"), log.c.kind == EventKind.INSTANCE)
    return union_all(own, events.where(there, one_of(log.c.instance, "instances")))


_SAID = Prepared(_said_of())
_OTHERS = Prepared(
    _select_events()
    .where(
        log.c.model_id == bindparam("of"),
        log.c.sequence > bindparam("after"),
        log.c.sequence <= bindparam("last"),
        log.c.kind != int(EventKind.INSTANCE),
    )
    .order_by(log.c.sequence)
)


def _as_events(rows: Iterable[AnyRow], model: AnyRow) -> list[Event]:
    """Return rows of a model as events, in its present shape."""
    kinds = {int(kind): kind for kind in EventKind}
    events = [
        Event(row[0], kinds[row[1]], 0 if row[1] == EventKind.SPECIFICATION else row[2], *tuple(row)[3:])
        for row in rows
    ]
    shapes = shapes_of(model)
    return [widened_event(event, shapes) for event in events] if shapes.extensions else events
