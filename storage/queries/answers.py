"""Answers, refusals and corrections: what `quercus.labelling.answers` says of them is written, in one transaction."""

from dataclasses import replace

from sqlalchemy import Connection, bindparam, select, update

from quercus.labelling import answers as rules
from quercus.labelling import checks
from quercus.labelling.answers import Amendment, AnswerOutcome, Effects, check_declared
from quercus.labelling.crowds.labellers import Crowd
from quercus.labelling.leasing import why_late_answer_is_beyond
from quercus.labelling.lifecycle import QueryState
from quercus.storage import deferred_writes
from quercus.storage.clocks import Clock
from quercus.storage.deferred_writes import Write
from quercus.storage.errors import FailedPrecondition
from quercus.storage.log import event_log
from quercus.storage.queries import expiry, history
from quercus.storage.queries.desk import AnswerRequest, Desk, KnownModel, find_query, read_desk
from quercus.storage.queries.leases import usage_of
from quercus.storage.queries.query_state import SETTLE, columns_of, lifecycle_of, query_update_parameters
from quercus.storage.schema import model, query

_COUNT = (
    update(model)
    .where(model.c.id == bindparam("counted"))
    .values(
        sequence_committed=model.c.sequence_committed + bindparam("more_events"),
        conflicts=model.c.conflicts + bindparam("more_conflicts"),
        queries_refused=model.c.queries_refused + bindparam("more_refused"),
        queries_answered=model.c.queries_answered + bindparam("more_answered"),
        times_opened=model.c.times_opened + bindparam("more_opened"),
    )
)


def answer(desk: Desk, request: AnswerRequest) -> AnswerOutcome:
    """Settle a query, or open it again for the next answer. The same words again are acknowledged again."""
    held = desk.held_query(request.claim)
    request.known.check_key(desk.row)
    request.check()
    crowd = desk.crowd(request.known)
    spends_budget = desk.row.queries_answered + 1 >= desk.row.budget
    of = desk.labelled(held.instance, request.known, crowd)
    outcome, effects = rules.answer(held, request.words, of, spends_budget=spends_budget)
    if effects is None:
        return outcome
    labeller = held.given.labeller
    if effects.answered and held.life.state is QueryState.OPEN:  # another labeller may have used the budget
        mine = expiry.count_leased(desk.write(), desk.row.id, desk.now, labeller)
        usage = usage_of(desk, labeller, mine)
        beyond = why_late_answer_is_beyond(usage, desk.policy, desk.now.clock, held.expired)
        if beyond is not None:
            raise FailedPrecondition(beyond)
    early: list[tuple[int, Effects]] = []
    if effects.answered and spends_budget:
        early = _settled_early(desk, request.known, crowd, of.committed + len(effects.events), held.number)
    for number, each in [(held.number, effects), *early]:
        _write_effects(desk, number, each)
    if held.life.state is QueryState.LEASED:
        desk.leased -= 1
        desk.held[labeller] -= 1
    if outcome.settled:
        desk.last_settled[labeller] = effects.settled_by or 0
    else:
        desk.is_reopened = True
    return outcome


def settle_pending(connection: Connection, name: str, known: KnownModel, clock: Clock) -> None:
    """Settle the open queries of a model that have some of several answers; its budget is spent."""
    desk = read_desk(connection, name, [], clock)
    known.check_key(desk.row)
    committed = int(desk.row.sequence_committed)
    for number, effects in _settled_early(desk, known, desk.crowd(known), committed):
        _write_effects(desk, number, effects)
    desk.write()


def amend_answer(
    connection: Connection, name: str, number: int, change: Amendment, known: KnownModel, clock: Clock
) -> AnswerOutcome:
    """Append a correction; the policy says who may do so. The same again is acknowledged again."""
    desk = read_desk(connection, name, [], clock)
    found = find_query(connection, desk.row, number)
    known.check_key(desk.row)
    check_declared(change.reliability)
    checks.name_text("labeller", change.labeller)
    checks.comment(change.comment)
    of = desk.labelled(found.instance, known, desk.crowd(known))
    outcome, effects = rules.amend(number, lifecycle_of(found), change, of)
    if effects is not None:
        effects = replace(effects, labeller=found.labeller, settled_by=found.sequence)
        _write_effects(desk, number, effects)
    return outcome


def _settled_early(
    desk: Desk, known: KnownModel, crowd: Crowd | None, committed: int, but: int = 0
) -> list[tuple[int, Effects]]:
    """Settle the open queries that have answers, in order of number, `but` one; their events come after `committed`."""
    has_some = (query.c.model_id == desk.row.id, query.c.state == QueryState.OPEN, query.c.answers > 0)
    connection = desk.write()
    pending = connection.execute(
        select(query).where(*has_some, query.c.number != but).order_by(query.c.number)
    )
    found: list[tuple[int, Effects]] = []
    for each in pending.all():
        of = replace(desk.labelled(each.instance, known, crowd), committed=committed)
        effects = rules.settle_early(each.number, each.asked, lifecycle_of(each), of)
        committed += len(effects.events)
        found.append((each.number, effects))
    return found


def _write_effects(desk: Desk, number: int, effects: Effects) -> None:
    """Write what a call changes of a query, and note it for the calls after it."""
    row, note, now = desk.row, effects.note, desk.now
    columns = columns_of(effects.life, effects.labeller) | {"sequence": effects.settled_by}
    counted = {
        "counted": row.id,
        "more_events": len(effects.events),
        "more_conflicts": effects.conflicts,
        "more_refused": effects.refused,
        "more_answered": effects.answered,
        "more_opened": int(note.state is QueryState.OPEN),
    }
    deferred_writes.write_last(
        desk.connection,
        Write(event_log.ADD, [event_log.row_of(row.id, event, now) for event in effects.events]),
        Write(_COUNT, [counted], counts="counted"),
        Write(SETTLE, [query_update_parameters("settle", row.id, number, columns)]),
        Write(history.ADD, [history.step_parameters(row.id, note, now)]),
    )
    row.sequence_committed += len(effects.events)
    row.queries_refused += effects.refused
    row.queries_answered += effects.answered
    desk.touched.add(number)
    desk.spoken_of.add(note.instance)
