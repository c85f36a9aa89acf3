"""Statements: what labellers say of instances without having been asked.

A statement is a row of the log like any other. It spends no budget and settles no query: the query about its instance
is withdrawn when it is open, and stays with its holder when it is leased. What all say together of the instance, asked
or not, stands in a CORRECTION of no query behind the statements (`Join` makes it), and behind every later answer.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlalchemy import Connection, insert, select, update

from quercus.labelling.event import Event, EventKind
from quercus.storage import checks
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.errors import AlreadyExists, FailedPrecondition, NotFound
from quercus.storage.log import event_log
from quercus.storage.queries import agenda, expiry, policies
from quercus.storage.queries.records import Corrections, QueryState
from quercus.storage.rows import chunks_of, find_model, lock_model
from quercus.storage.schema import AnyRow, model, query
from quercus.storage.schema import log as log_table

_Words: TypeAlias = tuple[str, str, bytes | None]
"""Instance (its id), labeller and label of a statement."""

UNASKED = "its label was stated unasked"
NAMED = 5  # instances that an error names
LABEL_KINDS = frozenset({EventKind.ANSWER, EventKind.OPINION, EventKind.CORRECTION, EventKind.STATEMENT})


@dataclass(frozen=True, slots=True)
class StatementRecord:
    """One statement: instance (its id), labeller and label; label None takes a statement back.

    `declared` False: the reliability is an estimate, and another one does not make another statement.
    """

    instance: str
    labeller: str
    label: bytes | None
    reliability: float = 1.0
    comment: str = ""
    declared: bool = True


@dataclass(frozen=True, slots=True)
class StatementBatch:
    """Statements that are stored together or not at all.

    Attributes
    ----------
    request : str
        Names the batch: sent again, it is acknowledged again.
    key : int or None
        `ModelRecord.key` of the model it was made for: guards against another of the same name.
    """

    request: str
    statements: Sequence[StatementRecord]
    key: int | None = None


@dataclass(frozen=True, slots=True)
class CombinedStatement:
    """The combined label of all labellers of an instance; `author` names them, label None means that there is none."""

    label: bytes | None
    author: str
    reliability: float = 1.0
    conflict: bool = False


Join: TypeAlias = Callable[[Sequence[Event]], CombinedStatement]
"""Takes everything said about an instance, oldest first; some of it was stated."""


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """The outcome of a batch: newest event of the log, statements stored, and those that were there already."""

    committed_sequence: int
    stored: int
    known: int


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """The effect of a batch, by the log as it stood at an event.

    Attributes
    ----------
    model_id, as_of : int
        Of the model, and of its newest event.
    instances : frozenset of int
        Instances of the batch.
    fresh : sequence of Event
        The statements that are to be stored; their numbers and times are given when they are.
    joints : sequence of (int, CombinedStatement)
        What all say together then, by instance.
    corrects : bool
        Whether a labeller states something else than before, which the policy may forbid.
    """

    model_id: int
    as_of: int
    instances: frozenset[int]
    fresh: Sequence[Event]
    joints: Sequence[tuple[int, CombinedStatement]]
    corrects: bool


def plan_statements(
    connection: Connection, name: str, batch: StatementBatch, join: Join
) -> StatementPlan | None:
    """Plan the events of a batch, which takes long, before the model's row is held.

    None where there is nothing to work out: it was acknowledged before, or is of another model.
    """
    _check_batch(batch)
    row = find_model(connection, name)
    if batch.key not in (None, row.id) or _acknowledge_again(connection, row, batch) is not None:
        return None
    return _plan_in_transaction(connection, row, batch, join)


def append_statements(
    connection: Connection,
    name: str,
    batch: StatementBatch,
    join: Join,
    clock: Clock,
    planned: StatementPlan | None = None,
) -> StatementOutcome:
    """Append statements, and what then holds of each instance they speak of.

    `planned` is used unless one of these instances has new labels since.
    """
    _check_batch(batch)
    row = lock_model(connection, name)
    now = clock()
    if batch.key not in (None, row.id):
        raise FailedPrecondition(f"model {name} was deleted, and another has its name: start again")
    if (report := _acknowledge_again(connection, row, batch)) is not None:
        return report
    expiry.write_expired(connection, row.id, now)
    if planned is None or _is_overtaken(connection, row, planned):
        planned = _plan_in_transaction(connection, row, batch, join)
    last = _append_plan(connection, row, batch.request, planned, now)
    asked = _live_queries(connection, row, [instance for instance, _ in planned.joints])
    agenda.drop_queries(connection, row, asked, UNASKED, now)
    stored = len(planned.fresh)
    return StatementOutcome(last, stored, len(batch.statements) - stored)


def _plan_in_transaction(
    connection: Connection, row: AnyRow, batch: StatementBatch, join: Join
) -> StatementPlan:
    places = _sequences_of(connection, row, batch.statements)
    said = event_log.instance_history(connection, row.name, sorted(set(places.values())))
    allowed, corrects = _allows_corrections(connection, row.id), False
    fresh: list[Event] = []
    for given in batch.statements:
        instance = places[given.instance]
        own = _newest_of_labeller(said[instance], given.labeller)
        if _is_known(own, given):
            continue
        if own and not allowed:
            raise FailedPrecondition(
                f"{given.labeller} has stated a different label for instance {given.instance!r} before, and the "
                "labelling policy of this model allows no corrections"
            )
        corrects |= own is not None
        event = _event_of(row.sequence_committed + len(fresh) + 1, instance, given)
        said[instance].append(event)
        fresh.append(event)
    touched = dict.fromkeys(event.instance for event in fresh)
    joints = [(instance, join(said[instance])) for instance in touched]
    return StatementPlan(row.id, int(row.sequence_committed), frozenset(said), fresh, joints, corrects)


def _allows_corrections(connection: Connection, model_id: int) -> bool:
    return policies.policy_of(connection, model_id).corrections is not Corrections.NOBODY


def _is_overtaken(connection: Connection, row: AnyRow, planned: StatementPlan) -> bool:
    """Return whether the plan is out of date: new labels, a policy that forbids it, or another model of the name."""
    if planned.corrects and not _allows_corrections(connection, row.id):
        return True
    since = (log_table.c.model_id == row.id, log_table.c.sequence > planned.as_of)
    spoken = select(log_table.c.instance).where(*since, log_table.c.instance.is_not(None)).distinct()
    return row.id != planned.model_id or not planned.instances.isdisjoint(
        connection.execute(spoken).scalars()
    )


def is_spoken_of(connection: Connection, model_id: int, instance: int) -> bool:
    """Return whether any statement about an instance was ever made."""
    mine = (log_table.c.model_id == model_id, log_table.c.instance == instance)
    wanted = select(log_table.c.sequence).where(*mine, log_table.c.kind == EventKind.STATEMENT)
    return connection.execute(wanted.limit(1)).first() is not None


def append_joint(
    connection: Connection, row: AnyRow, instance: int, sequence: int, join: Join | None, now: Timestamps
) -> tuple[int, bool]:
    """Append the combination of all labels after an answer to an instance with statements, else nothing.

    `sequence` is the newest event; returned are the newest event then, and whether the joint label conflicts.
    """
    if join is None or not is_spoken_of(connection, row.id, instance):
        return sequence, False
    joint = join(event_log.instance_history(connection, row.name, [instance])[instance])
    connection.execute(insert(log_table).values(_joint_row(row, instance, sequence + 1, joint, now)))
    return sequence + 1, joint.conflict


def statement_counts(connection: Connection, model_id: int) -> dict[str, int]:
    """Return the number of statements of each labeller."""
    mine = (log_table.c.model_id == model_id, log_table.c.kind == EventKind.STATEMENT)
    found: dict[str, int] = {}
    wanted = select(log_table.c.author).where(*mine, log_table.c.instance.is_not(None))
    for author in connection.execute(wanted).scalars():
        found[author] = found.get(author, 0) + 1
    return found


def _check_batch(batch: StatementBatch) -> None:
    checks.name_text("request_id", batch.request)
    for given in batch.statements:
        checks.name_text("labeller", given.labeller)
        checks.reliability(given.reliability)
        checks.comment(given.comment)


def _acknowledge_again(connection: Connection, row: AnyRow, batch: StatementBatch) -> StatementOutcome | None:
    mine = (log_table.c.model_id == row.id, log_table.c.request == batch.request)
    origin = log_table.alias("origin")
    same = (origin.c.model_id == log_table.c.model_id) & (origin.c.sequence == log_table.c.instance)
    columns = (
        log_table.c.sequence,
        origin.c.id,
        log_table.c.author,
        log_table.c.label,
        log_table.c.reliability,
    )
    found = connection.execute(select(*columns).select_from(log_table.join(origin, same)).where(*mine)).all()
    if not found:
        return None
    stored: dict[_Words, set[float]] = {}
    for each in found:
        stored.setdefault((each.id, each.author, each.label), set()).add(each.reliability)
    others = [given for given in batch.statements if not _is_stored(given, stored)]
    first = min(each.sequence for each in found)
    sent = {_words_of(given) for given in batch.statements}
    if not stored.keys() <= sent or not _were_known(connection, row, others, first):
        raise AlreadyExists("request", batch.request, f"in model {row.name} with other statements")
    return StatementOutcome(int(row.sequence_committed), 0, len(batch.statements))


def _words_of(given: StatementRecord) -> _Words:
    return given.instance, given.labeller, given.label


def _is_stored(given: StatementRecord, stored: Mapping[_Words, Collection[float]]) -> bool:
    """Return whether a statement is one of those that a request stored, by their reliabilities."""
    found = stored.get(_words_of(given), ())
    return bool(found) and (not given.declared or given.label is None or given.reliability in found)


def _were_known(
    connection: Connection, row: AnyRow, statements: Sequence[StatementRecord], first: int
) -> bool:
    """Return whether statements that a request did not store held when it came, before its first event."""
    places = _sequences_of(connection, row, statements)
    said = event_log.history_of(connection, row, sorted(set(places.values())))
    before = {place: [event for event in events if event.sequence < first] for place, events in said.items()}
    return all(
        (own := _newest_of_labeller(before[places[given.instance]], given.labeller)) is not None
        and _is_known(own, given)
        for given in statements
    )


def _sequences_of(
    connection: Connection, row: AnyRow, statements: Sequence[StatementRecord]
) -> dict[str, int]:
    """Sequence of each instance, by id."""
    wanted = list(dict.fromkeys(given.instance for given in statements))
    found = event_log.instance_sequences(connection, row.id, wanted)
    if missing := [identifier for identifier in wanted if identifier not in found]:
        raise _not_there(row.name, missing, len(wanted))
    return found


def _not_there(name: str, missing: list[str], count: int) -> NotFound:
    first = ", ".join(repr(identifier) for identifier in missing[:NAMED])
    if len(missing) == 1:
        return NotFound("instance", first, f"in model {name}")
    more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
    return NotFound(
        "instance", f"{first}{more}", f"in model {name} ({len(missing):,} of {count:,} are not there)"
    )


def _newest_of_labeller(said: Sequence[Event], labeller: str) -> Event | None:
    """The newest words of a labeller about an instance; a refusal is none."""
    mine = (event for event in reversed(said) if event.author == labeller and event.kind in LABEL_KINDS)
    return next((event for event in mine if event.query or event.kind is EventKind.STATEMENT), None)


def _is_known(own: Event | None, given: StatementRecord) -> bool:
    if own is None:
        if given.label is None:
            raise FailedPrecondition(
                f"{given.labeller} has no statement about instance {given.instance!r} to take back"
            )
        return False
    if given.label is None and own.kind is not EventKind.STATEMENT:
        raise FailedPrecondition(
            f"{given.labeller} answered query {own.query} about instance {given.instance!r}: undo that answer"
        )
    same = own.reliability == given.reliability or not given.declared or given.label is None
    return own.kind is EventKind.STATEMENT and own.label == given.label and same


def _event_of(sequence: int, instance: int, given: StatementRecord) -> Event:
    return Event(
        sequence, EventKind.STATEMENT, instance, given.instance, None, given.label, given.labeller,
        given.reliability, None, False, None, 0.0, comment=given.comment, assumed=not given.declared,
    )  # fmt: skip


def _append_plan(
    connection: Connection, row: AnyRow, request: str, planned: StatementPlan, now: Timestamps
) -> int:
    """Append the planned events, numbered after the newest one; return the newest event then."""
    if not planned.fresh:
        return int(row.sequence_committed)
    first = int(row.sequence_committed) + 1
    rows = [_log_row(row, request, event, first + k, now) for k, event in enumerate(planned.fresh)]
    first += len(rows)
    rows += [
        _joint_row(row, instance, first + k, joint, now) for k, (instance, joint) in enumerate(planned.joints)
    ]
    connection.execute(insert(log_table), rows)
    last = first + len(planned.joints) - 1
    change = {
        "sequence_committed": last,
        "conflicts": row.conflicts + sum(joint.conflict for _, joint in planned.joints),
    }
    connection.execute(update(model).where(model.c.id == row.id).values(change))
    return last


def _log_row(row: AnyRow, request: str, event: Event, sequence: int, now: Timestamps) -> dict[str, Any]:
    return {
        "model_id": row.id,
        "sequence": sequence,
        "kind": int(event.kind),
        "instance": event.instance,
        "label": event.label,
        "author": event.author,
        "reliability": event.reliability,
        "conflict": False,
        "created_at": now.wall,
        "clock": now.clock,
        "comment": event.comment or None,
        "request": request,
        "assumed": event.assumed or None,
    }


def _joint_row(
    row: AnyRow, instance: int, sequence: int, joint: CombinedStatement, now: Timestamps
) -> dict[str, Any]:
    event = Event(
        sequence, EventKind.CORRECTION, instance, "", None, joint.label, joint.author, joint.reliability,
        None, joint.conflict, None, now.wall,
    )  # fmt: skip
    return _log_row(row, "", event, sequence, now) | {"request": None, "conflict": joint.conflict}


def _live_queries(connection: Connection, row: AnyRow, instances: Sequence[int]) -> list[AnyRow]:
    live = select(query).where(query.c.model_id == row.id, query.c.state <= QueryState.LEASED)
    return [
        found
        for chunk in chunks_of(instances)
        for found in connection.execute(live.where(query.c.instance.in_(chunk)))
    ]
