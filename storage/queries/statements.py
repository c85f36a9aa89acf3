"""Writing statements by the rules of `quercus.labelling.statements`."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, select

from quercus.labelling import checks
from quercus.labelling import statements as rules
from quercus.labelling.answers import check_declared
from quercus.labelling.crowds.labellers import MAX_LABELS, Crowd, crowd_of
from quercus.labelling.event import Event, EventKind
from quercus.labelling.lifecycle import QueryState
from quercus.labelling.policy import Policy, Reliability
from quercus.labelling.statements import WHY_STATED, Statement, StatementBatch, StatementPlan
from quercus.storage.clocks import Clock
from quercus.storage.errors import AlreadyExists, NotFound
from quercus.storage.log import event_log
from quercus.storage.queries import agenda, expiry, policies
from quercus.storage.queries.desk import KnownModel
from quercus.storage.rows import chunks_of, find_model, lock_model, shapes_of
from quercus.storage.schema import AnyRow, query
from quercus.storage.schema import log as log_table

NAMED = 5  # most instances that an error names


@dataclass(frozen=True, slots=True)
class StatementOutcome:
    """The outcome of a batch: newest event of the log, number of statements stored, and of those stored before."""

    committed_sequence: int
    stored: int
    known: int


def plan_statements(
    connection: Connection, name: str, batch: StatementBatch, known: KnownModel
) -> StatementPlan | None:
    """Plan the events of a batch without locking the model, because it may take long.

    Return None if there is nothing to plan: the batch was acknowledged before, or the model is not the known one.
    """
    _check_batch(batch)
    row = find_model(connection, name)
    if not known.fits(row) or _acknowledge_again(connection, row, batch) is not None:
        return None
    return _plan(connection, row, batch, known, policies.policy_of(connection, row.id))


def append_statements(
    connection: Connection,
    name: str,
    batch: StatementBatch,
    known: KnownModel,
    clock: Clock,
    planned: StatementPlan | None = None,
) -> StatementOutcome:
    """Append statements, and for each instance a CORRECTION with its combined label.

    `planned` is used unless it is out of date.
    """
    _check_batch(batch)
    row = lock_model(connection, name)
    now = clock()
    known.check_key(row)
    if (report := _acknowledge_again(connection, row, batch)) is not None:
        return report
    expiry.write_expired(connection, row.id, now)
    policy = policies.policy_of(connection, row.id)
    if (
        known.key is None
        or planned is None
        or planned.is_overtaken(
            policy, _spoken_since(connection, row, planned.as_of), permitted=batch.permitted
        )
    ):
        planned = _plan(connection, row, batch, known, policy)
    stored, committed = len(planned.fresh), int(row.sequence_committed)
    events = planned.events(committed, now.wall, batch.request)
    if events:
        event_log.append_labels(connection, row, events, now)
    asked = live_queries(connection, row, [event.instance for event in planned.joints])
    asked = [each for each in asked if not each.gold]
    agenda.drop_queries(connection, row, asked, WHY_STATED, now)
    return StatementOutcome(committed + len(events), stored, len(batch.statements) - stored)


def statement_counts(connection: Connection, model_id: int) -> dict[str, int]:
    """Return the number of statements of each labeller."""
    mine = (log_table.c.model_id == model_id, log_table.c.kind == EventKind.STATEMENT)
    found: dict[str, int] = {}
    wanted = select(log_table.c.author).where(*mine, log_table.c.instance.is_not(None))
    for author in connection.execute(wanted).scalars():
        found[author] = found.get(author, 0) + 1
    return found


def _plan(
    connection: Connection, row: AnyRow, batch: StatementBatch, known: KnownModel, policy: Policy
) -> StatementPlan:
    places = _sequences_of(connection, row, batch.statements)
    said = event_log.history_of(connection, row, sorted(set(places.values())))
    crowd = (
        _crowd(connection, row, batch, known, places) if policy.reliability is Reliability.ESTIMATED else None
    )
    return rules.plan(
        batch.statements, places, said, policy, crowd, known.size, int(row.sequence_committed),
        permitted=batch.permitted,
    )  # fmt: skip


def _crowd(
    connection: Connection, row: AnyRow, batch: StatementBatch, known: KnownModel, places: dict[str, int]
) -> Crowd:
    """Return the estimates of the labellers of a model and a batch."""
    if known.crowd is not None:
        return known.crowd
    newest = event_log.newest_opinions(connection, row.name, MAX_LABELS)
    return crowd_of([*newest, *rules.statement_events(batch.statements, places)], known.size)


def _spoken_since(connection: Connection, row: AnyRow, sequence: int) -> Sequence[int]:
    """Return the instances with labels after an event."""
    since = (log_table.c.model_id == row.id, log_table.c.sequence > sequence)
    spoken = select(log_table.c.instance).where(*since, log_table.c.instance.is_not(None)).distinct()
    return connection.execute(spoken).scalars().all()


def _check_batch(batch: StatementBatch) -> None:
    checks.name_text("request_id", batch.request)
    for given in batch.statements:
        checks.name_text("labeller", given.labeller)
        check_declared(given.reliability)
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
    shapes = shapes_of(row)
    stored = [
        (
            (each.id, each.author, each.label and shapes.widen_label(each.sequence, each.label)),
            each.reliability,
        )
        for each in found
    ]
    others, first = rules.not_stored(batch, stored), min(each.sequence for each in found)
    if others is None or not _were_known(connection, row, others, first):
        raise AlreadyExists("request", batch.request, f"in model {row.name} with other statements")
    return StatementOutcome(int(row.sequence_committed), 0, len(batch.statements))


def _were_known(connection: Connection, row: AnyRow, statements: Sequence[Statement], first: int) -> bool:
    """Return whether all statements were stored before an event."""
    places = _sequences_of(connection, row, statements)
    said = event_log.history_of(connection, row, sorted(set(places.values())))
    before: dict[str, list[Event]] = {
        identifier: [event for event in said[place] if event.sequence < first]
        for identifier, place in places.items()
    }
    return rules.were_known(statements, before)


def _sequences_of(connection: Connection, row: AnyRow, statements: Sequence[Statement]) -> dict[str, int]:
    """Return the sequence of each instance, by id; raise `NotFound` if one is not stored."""
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


def live_queries(connection: Connection, row: AnyRow, instances: Sequence[int]) -> list[AnyRow]:
    """Return the open and leased queries about instances."""
    live = select(query).where(query.c.model_id == row.id, query.c.state <= QueryState.LEASED)
    return [
        found
        for chunk in chunks_of(instances)
        for found in connection.execute(live.where(query.c.instance.in_(chunk)))
    ]
