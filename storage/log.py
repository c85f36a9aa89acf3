"""The evidence log: append-only, one sequence of numbers a model, without gaps."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Select, false, func, insert, literal_column, select, update

from quercus.belief.errors import InvalidInput
from quercus.storage import checks
from quercus.storage.errors import AlreadyExists, NotFound, Stale
from quercus.storage.models import find, lock
from quercus.storage.records import Appended, Event, EventKind, NewValue, Push
from quercus.storage.schema import AnyRow, log, model, vocabulary

SOURCE = "source"
CHUNK = 500  # bound parameters of one IN (...)

# What is the same in every row stands in the statement: to bind it for each row took a third of the time.
INSERT_INSTANCE = insert(log).values(
    kind=literal_column(str(int(EventKind.INSTANCE))),
    author=literal_column(f"'{SOURCE}'"),
    reliability=literal_column("1.0"),
    conflict=false(),
)


def append(connection: Connection, push: Push, now: float) -> Appended:
    """Store a batch. Nothing is written before everything is checked, so an error leaves no trace."""
    checks.push(push.ids, push.values, push.labels)
    row = lock(connection, push.model)
    fresh, known = _split_known(connection, row, push)
    _check_vocabulary(connection, row, push.new_values)
    if push.new_values:
        connection.execute(insert(vocabulary), [_vocabulary_row(row, new) for new in push.new_values])
    if not fresh:
        return Appended(row.sequence_committed, 0, known)
    first = row.sequence_committed + 1
    connection.execute(
        INSERT_INSTANCE,
        [
            {
                "model_id": row.id,
                "sequence": sequence,
                "id": identifier,
                "values": values,
                "label": label,
                "created_at": now,
            }
            for sequence, (identifier, (values, label)) in enumerate(fresh.items(), first)
        ],
    )
    last = first + len(fresh) - 1
    counts = {"sequence_committed": last, "instance_count": row.instance_count + len(fresh)}
    connection.execute(update(model).where(model.c.id == row.id).values(counts))
    return Appended(last, len(fresh), known)


def _split_known(
    connection: Connection, row: AnyRow, push: Push
) -> tuple[dict[str, tuple[bytes, bytes]], int]:
    """Rows to write, by id in order, and how many are there already (stored, or earlier in the batch)."""
    stored: dict[str, tuple[bytes, bytes]] = {}
    for start in range(0, len(push.ids), CHUNK):
        chunk = list(push.ids[start : start + CHUNK])
        wanted = select(log.c.id, log.c["values"], log.c.label).where(
            log.c.model_id == row.id, log.c.id.in_(chunk)
        )
        stored.update(
            (identifier, (values, label)) for identifier, values, label in connection.execute(wanted)
        )
    fresh: dict[str, tuple[bytes, bytes]] = {}
    rows = zip(push.ids, checks.packed_rows(push.values), push.labels, strict=True)
    for identifier, values, label in rows:
        content = (values, label)
        there = stored.get(identifier) or fresh.get(identifier)
        if there is None:
            fresh[identifier] = content
        elif there != content:
            what = "values" if there[0] != values else "label"
            raise AlreadyExists("instance", identifier, f"in model {push.model} with another {what}")
    return fresh, len(push.ids) - len(fresh)


def _check_vocabulary(connection: Connection, row: AnyRow, new_values: Sequence[NewValue]) -> None:
    if not new_values:
        return
    learned = _learned(connection, row.id)
    for new in new_values:
        if len(new.value) == 0 or new.attribute < 0:
            raise InvalidInput("new_values", f"{new} names no value or no attribute")
        checks.encodable("new_values", new.value)
        values = learned[new.attribute]
        if new.index != len(values) or new.value in values:
            raise Stale(
                f"value {new.value!r} of attribute {new.attribute} was given index {new.index}; "
                f"{len(values)} values are learned: read the vocabulary again"
            )
        values.append(new.value)


def _vocabulary_row(row: AnyRow, new: NewValue) -> dict[str, Any]:
    return {"model_id": row.id, "attribute": new.attribute, "position": new.index, "value": new.value}


def _learned(connection: Connection, model_id: int) -> defaultdict[int, list[str]]:
    wanted = select(vocabulary.c.attribute, vocabulary.c.value).where(vocabulary.c.model_id == model_id)
    learned: defaultdict[int, list[str]] = defaultdict(list)
    for attribute, value in connection.execute(
        wanted.order_by(vocabulary.c.attribute, vocabulary.c.position)
    ):
        learned[attribute].append(value)
    return learned


def read_vocabulary(connection: Connection, name: str) -> dict[int, tuple[str, ...]]:
    """Learned values by attribute, in the order they came."""
    learned = _learned(connection, find(connection, name).id)
    return {attribute: tuple(values) for attribute, values in learned.items()}


def read_events(connection: Connection, name: str, after: int, limit: int) -> list[Event]:
    """Events behind sequence number `after`, in order."""
    checks.at_least("limit", limit, 1)
    row = find(connection, name)
    wanted = (
        _events()
        .where(log.c.model_id == row.id, log.c.sequence > after)
        .order_by(log.c.sequence)
        .limit(limit)
    )
    return _as_events(connection.execute(wanted))


def list_instances(connection: Connection, name: str, after: int, limit: int) -> list[Event]:
    """INSTANCE events behind sequence number `after`, in order."""
    checks.at_least("limit", limit, 1)
    row = find(connection, name)
    mine = (log.c.model_id == row.id, log.c.sequence > after, log.c.kind == EventKind.INSTANCE)
    return _as_events(connection.execute(_events().where(*mine).order_by(log.c.sequence).limit(limit)))


def get_instance(connection: Connection, name: str, identifier: str) -> list[Event]:
    """Everything said about one instance, oldest first; its INSTANCE event leads."""
    row = find(connection, name)
    wanted = select(log.c.sequence).where(log.c.model_id == row.id, log.c.id == identifier)
    sequence = connection.execute(wanted).scalar_one_or_none()
    if sequence is None:
        raise NotFound("instance", f"{name}/{identifier}")
    return history(connection, name, [sequence])[sequence]


def history(connection: Connection, name: str, instances: Sequence[int]) -> dict[int, list[Event]]:
    """Everything said about some instances, oldest first, by the sequence of their INSTANCE event."""
    row = find(connection, name)
    found: dict[int, list[Event]] = {instance: [] for instance in instances}
    for column in (log.c.sequence, log.c.instance):
        for start in range(0, len(instances), CHUNK):
            chunk = list(instances[start : start + CHUNK])
            wanted = _events().where(log.c.model_id == row.id, column.in_(chunk)).order_by(log.c.sequence)
            for event in _as_events(connection.execute(wanted)):
                if column is log.c.instance or event.kind is EventKind.INSTANCE:
                    found[event.instance].append(event)
    for instance, events in found.items():
        if not events:
            raise NotFound("instance", f"{name}/sequence {instance}")
    return found


def insert_event(connection: Connection, **columns: object) -> None:
    """Append one event; the caller holds the model, chose the next sequence number and counts it."""
    connection.execute(insert(log).values(columns))


def _events() -> Select[Any]:
    # An answer's row has no id of its own: it is its instance's. `origin` is looked up only for those rows.
    origin = log.alias("origin")
    same = (origin.c.model_id == log.c.model_id) & (origin.c.sequence == log.c.instance)
    return select(
        log.c.sequence,
        log.c.kind,
        func.coalesce(log.c.instance, log.c.sequence),
        func.coalesce(log.c.id, origin.c.id, ""),
        log.c["values"],
        log.c.label,
        log.c.author,
        log.c.reliability,
        log.c.asked,
        log.c.conflict,
        log.c.specification,
        log.c.created_at,
    ).select_from(log.outerjoin(origin, same))


def _as_events(rows: Iterable[AnyRow]) -> list[Event]:
    kinds = {int(kind): kind for kind in EventKind}
    return [
        Event(row[0], kinds[row[1]], 0 if row[1] == EventKind.SPECIFICATION else row[2], *tuple(row)[3:])
        for row in rows
    ]
