"""Models: creating, reading, extending and changing them."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Double, Select, bindparam, func, or_, select, type_coerce, update
from sqlalchemy.types import NullType

from quercus.labelling import checks
from quercus.labelling.event import Event, EventKind
from quercus.labelling.lifecycle import QueryState
from quercus.labelling.shapes import Shape
from quercus.storage import changes
from quercus.storage.backend import backend_of
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.errors import AlreadyExists, CorruptStore, FailedPrecondition, NotFound
from quercus.storage.inserts import insert_new
from quercus.storage.log import event_log
from quercus.storage.prepared import Prepared
from quercus.storage.queries.answers import settle_pending
from quercus.storage.queries.desk import KnownModel
from quercus.storage.queries.expiry import count_leased, write_expired
from quercus.storage.records import ModelRecord
from quercus.storage.rows import chunks_of, count_opening, lock_model, shapes_of
from quercus.storage.schema import LIVE, AnyRow, log, model, query

COUNTERS = (
    "sequence_committed",
    "sequence_grown",
    "sequence_asked",
    "tree_version",
    "instance_count",
    "query_count",
    "queries_answered",
    "queries_refused",
    "conflicts",
)


SpecificationRule: TypeAlias = Callable[[bytes], tuple[bytes, int] | None]
"""Returns the next specification and budget for the present specification, None for no change; may raise any error."""


def create(
    connection: Connection,
    name: str,
    specification: bytes,
    budget: int,
    clock: Clock,
    admit: Callable[[int], object] | None = None,
) -> ModelRecord:
    """Insert a model with an empty log, unless `admit`, which is called with the new number of models, raises."""
    checks.name_text("name", name)
    checks.at_least("budget", budget, 0)
    now = clock()
    insert_empty(connection, name, specification, budget, now.wall)
    if admit is not None:
        changes.hold_counter(connection)
        admit(count_models(connection))
    return get(connection, name, now)


def insert_empty(
    connection: Connection, name: str, specification: bytes, budget: int, created_at: float
) -> int:
    """Insert the row of a model with an empty log, and return its key; raise `AlreadyExists` if the name is taken."""
    made = insert_new(
        connection,
        model,
        name=name,
        uid=new_uid(),
        initial_specification=specification,
        specification=specification,
        budget=budget,
        created_at=created_at,
        **dict.fromkeys(COUNTERS, 0),
    )
    if made is None:
        raise AlreadyExists("model", name)
    (key,) = made
    changes.record_new_model(connection, int(key), name)
    return int(key)


def get(connection: Connection, name: str, now: Timestamps) -> ModelRecord:
    """Return a model with its counts."""
    row = _by_name().run(connection, now=now.clock, wanted=name)
    if row is None:
        raise NotFound("model", name)
    return _to_record(row, now)


def new_uid() -> str:
    """Return a new uid for a model, unique among all stores."""
    return str(uuid.uuid4())


def models_of_keys(connection: Connection, keys: Sequence[int], now: Timestamps) -> list[ModelRecord]:
    """Return the models with these keys that exist, with their counts."""
    if len(keys) == 1:  # most calls of a grower
        with suppress(CorruptStore):
            row = _by_key().run(connection, now=now.clock, wanted=keys[0])
            return [] if row is None else [_to_record(row, now)]
        return []
    found: list[ModelRecord] = []
    for chunk in chunks_of(keys):
        found += _sound_records(connection, _with_keys(), {"keys": chunk}, now)
    return found


def with_queries(connection: Connection, now: Timestamps) -> list[ModelRecord]:
    """Return the models that have an open or leased query."""
    live = select(query.c.number).where(query.c.model_id == model.c.id, query.c.state <= QueryState.LEASED)
    return _sound_records(connection, _with_counts().where(live.exists()), {}, now)


def read_page(connection: Connection, after: str, limit: int, now: Timestamps) -> list[ModelRecord]:
    """Return models in order of name, after the name `after`."""
    checks.at_least("limit", limit, 1)
    wanted = _with_counts().where(model.c.name > after).order_by(model.c.name).limit(limit)
    return _sound_records(connection, wanted, {}, now, limit)


def _sound_records(
    connection: Connection,
    wanted: Select[Any],
    values: Mapping[str, Any],
    now: Timestamps,
    limit: int | None = None,
) -> list[ModelRecord]:
    """Return the records of a statement, without damaged models, which would make the whole list unreadable.

    `limit` is that of the statement. Later models take the place of damaged ones, since a short page means the end.
    """
    misread = backend_of(connection).misread
    try:
        return [_to_record(row, now) for row in connection.execute(wanted, {"now": now.clock, **values})]
    except misread as error:
        cause = error
    found, is_damaged = [], False
    keys = wanted.with_only_columns(model.c.id).limit(None)
    for key in connection.execute(keys, {"now": now.clock, **values}).scalars().all():
        try:
            row = _by_key().run(connection, now=now.clock, wanted=key)
            record = None if row is None else _to_record(row, now)
        except misread:
            is_damaged = True
            continue
        if record is not None:
            found.append(record)
        if len(found) == limit:
            break
    if not is_damaged:
        raise cause
    return found


def read_names(connection: Connection) -> list[str]:
    """Return the names of all models, in order, without names that cannot be read as text."""
    statement: Select[Any] = select(type_coerce(model.c.name, NullType())).where(LIVE).order_by(model.c.name)
    return [name for name in connection.execute(statement).scalars() if isinstance(name, str)]


def count_models(connection: Connection) -> int:
    """Return the number of models."""
    return int(connection.execute(select(func.count()).where(LIVE)).scalar_one())


@dataclass(frozen=True, slots=True)
class Extension:
    """A specification with further classes or attributes.

    Attributes
    ----------
    specification : bytes
        The specification of the extended model.
    before, now : tuple of int
        Numbers of attributes and classes before and after the extension.
    """

    specification: bytes
    before: tuple[int, int]
    now: tuple[int, int]


def extend(
    connection: Connection,
    name: str,
    rule: Callable[[bytes], Extension],
    request: str,
    is_same: Callable[[bytes, Shape], bool],
    clock: Clock,
) -> ModelRecord:
    """Extend a model by a rule that runs while the model is locked, as an event of the log, once for each request.

    `is_same` is called if the request extended the model before, with the specification of that event and the shape
    before it; it returns whether that extension was the same.
    """
    checks.name_text("request_id", request)
    row = lock_model(connection, name)
    now, shapes = clock(), shapes_of(row)
    mine = (log.c.model_id == row.id, log.c.request == request, log.c.kind == EventKind.SPECIFICATION)
    earlier = connection.execute(select(log.c.sequence, log.c.specification).where(*mine)).first()
    if earlier is not None:
        if not is_same(earlier.specification, shapes.shape_of(earlier.sequence - 1)):
            raise AlreadyExists("request", request, f"in model {name} with other classes or attributes")
        return get(connection, name, now)
    extension = rule(row.specification)
    sequence = row.sequence_committed + 1
    event = Event(
        sequence, EventKind.SPECIFICATION, 0, "", None, None, "", 1.0, None, False, extension.specification, now.wall,
        request=request,
    )  # fmt: skip
    event_log.add_events(connection, row.id, [event], now)
    later = shapes.after(sequence, extension.before, extension.now)
    change = {
        "specification": extension.specification,
        "sequence_committed": sequence,
        "shapes": later.text,
    }
    connection.execute(update(model).where(model.c.id == row.id).values(change))
    count_opening(connection, row.id)
    return get(connection, name, now)


def respecify(
    connection: Connection,
    name: str,
    rule: SpecificationRule,
    clock: Clock,
    known: KnownModel | None = None,
) -> ModelRecord:
    """Change the present specification by a rule that runs while the model is locked, as an event of the log.

    If the new budget is spent and the model is `known`, queries with some of several answers are settled with those.
    """
    row = lock_model(connection, name)
    now = clock()
    revised = rule(row.specification)
    if revised is None:
        return get(connection, name, now)
    specification, budget = revised
    checks.at_least("budget", budget, 0)
    write_expired(connection, row.id, now)
    leased = count_leased(connection, row.id, now)
    if budget < row.queries_answered + leased:
        raise FailedPrecondition(
            f"the budget cannot become {budget}, below its queries: {row.queries_answered} answered, {leased} leased"
        )
    sequence = row.sequence_committed + 1
    event = Event(
        sequence, EventKind.SPECIFICATION, 0, "", None, None, "", 1.0, None, False, specification, now.wall
    )
    event_log.add_events(connection, row.id, [event], now)
    change = {"specification": specification, "budget": budget, "sequence_committed": sequence}
    connection.execute(update(model).where(model.c.id == row.id).values(change))
    if known is not None and budget == row.queries_answered:
        settle_pending(connection, name, known, clock)
    count_opening(connection, row.id)
    return get(connection, name, now)


@cache
def _with_counts() -> Select[Any]:
    now = bindparam("now", type_=Double)
    mine = query.c.model_id == model.c.id
    leased = select(func.count()).where(mine, query.c.state == QueryState.LEASED, query.c.ends > now)
    stays = or_(
        query.c.ends > now, query.c.wanted, query.c.answers > 0
    )  # others are withdrawn when the lease ends
    # two counts, each by a range of the index: for a single count with OR, both databases read more rows
    free = select(func.count()).where(mine, query.c.state == QueryState.OPEN)
    held = select(func.count()).where(mine, query.c.state == QueryState.LEASED, stays)
    # gold questions that were given back, which do not wait for a label; they have an index of their own
    gold = select(func.count()).where(mine, query.c.state == QueryState.OPEN, query.c.gold.is_(True))
    waiting = select(log.c.clock).where(
        log.c.model_id == model.c.id, log.c.sequence == model.c.sequence_grown + 1
    )
    live = free.scalar_subquery() + held.scalar_subquery() - gold.scalar_subquery()
    counts = {"leased": leased.scalar_subquery(), "live": live, "waiting_since": waiting.scalar_subquery()}
    return select(model, *(count.label(name) for name, count in counts.items())).where(LIVE)


@cache
def _by_name() -> Prepared:
    return Prepared(_with_counts().where(model.c.name == bindparam("wanted")))


@cache
def _by_key() -> Prepared:
    return Prepared(_with_counts().where(model.c.id == bindparam("wanted")))


@cache
def _with_keys() -> Select[Any]:
    return _with_counts().where(model.c.id.in_(bindparam("keys", expanding=True)))


_SOUND_TYPES: Final[set[tuple[type, ...]]] = set()
"""Types of the cells of rows that passed the check; there are few combinations."""


def _check_types(row: AnyRow) -> None:
    """Raise `CorruptStore` if a cell has a type that its column does not allow, which SQLite does not prevent."""
    kinds = tuple(map(type, row))
    if kinds in _SOUND_TYPES:
        return
    for column in model.columns:
        cell = getattr(row, column.name)
        wanted = column.type.python_type
        is_good = isinstance(cell, wanted | (int if wanted in {float, bool} else wanted))
        if not (is_good or (cell is None and column.nullable)):
            raise CorruptStore(f"model {row.name!r} is damaged: its {column.name} is no {wanted.__name__}")
    if not isinstance(row.waiting_since, float | int | None):
        raise CorruptStore(f"model {row.name!r} is damaged: event {row.sequence_grown + 1} has no time")
    _SOUND_TYPES.add(kinds)


def _to_record(row: AnyRow, now: Timestamps) -> ModelRecord:
    _check_types(row)
    return ModelRecord(
        key=row.id,
        name=row.name,
        initial_specification=row.initial_specification,
        specification=row.specification,
        budget=row.budget,
        created_at=row.created_at,
        sequence_committed=row.sequence_committed,
        sequence_grown=row.sequence_grown,
        sequence_asked=row.sequence_asked,
        tree_version=row.tree_version,
        instance_count=row.instance_count,
        queries_answered=row.queries_answered,
        queries_leased=row.leased,
        queries_refused=row.queries_refused,
        queries_open=row.live - row.leased,
        conflicts=row.conflicts,
        times_opened=row.times_opened,
        uid=row.uid,
        report=row.report or b"",
        shapes=shapes_of(row),
        lag_s=0.0 if row.waiting_since is None else max(0.0, now.clock - row.waiting_since),
    )
