"""Writing answers, refusals and corrections by the rules of `quercus.labelling.answers`."""

from dataclasses import replace

from sqlalchemy import Connection, select

from quercus.labelling import answers as rules
from quercus.labelling import checks
from quercus.labelling.answers import Amendment, AnswerOutcome, Effects, LabelledInstance, check_declared
from quercus.labelling.crowds.labellers import Crowd
from quercus.labelling.gold import as_known_to, flagged
from quercus.labelling.leasing import why_late_answer_is_beyond
from quercus.labelling.lifecycle import QueryState
from quercus.storage.clocks import Clock
from quercus.storage.errors import FailedPrecondition
from quercus.storage.queries import expiry
from quercus.storage.queries.desk import AnswerRequest, Desk, KnownModel, find_query, read_desk
from quercus.storage.queries.leases import usage_of
from quercus.storage.queries.query_state import lifecycle_of
from quercus.storage.schema import query


def answer(desk: Desk, request: AnswerRequest) -> AnswerOutcome:
    """Settle a query, or open it again for the next answer; an answer that is repeated is acknowledged again."""
    held = desk.held_query(request.claim)
    request.known.check_key(desk.row)
    request.check()
    crowd = desk.crowd(request.known)
    spends_budget = desk.row.queries_answered + 1 >= desk.row.budget
    of = desk.labelled(held.instance, request.known, crowd)
    if held.is_gold:
        of = _as_known_to(held.given.labeller, held.number, of)
    outcome, effects = rules.answer(held, request.words, of, spends_budget=spends_budget)
    if effects is None:
        return outcome
    if held.is_gold:
        effects = flagged(effects)
    labeller = held.given.labeller
    if (
        effects.answered and held.life.state is QueryState.OPEN
    ):  # a late answer: the budget may be used up since
        mine = expiry.count_leased(desk.write(), desk.row.id, desk.now, labeller)
        usage = usage_of(desk, labeller, mine)
        beyond = why_late_answer_is_beyond(usage, desk.policy, desk.now.clock, held.expired)
        if beyond is not None:
            raise FailedPrecondition(beyond)
    early: list[tuple[int, Effects]] = []
    if effects.answered and spends_budget:
        early = _settled_early(desk, request.known, crowd, of.committed + len(effects.events), held.number)
    for number, each in [(held.number, effects), *early]:
        desk.note_effects(number, each)
    if held.life.state is QueryState.LEASED:
        desk.leased -= 1
        desk.held[labeller] -= 1
    if outcome.settled:
        desk.last_settled[labeller] = effects.settled_by or 0
    else:
        desk.is_reopened = True
    return outcome


def settle_pending(connection: Connection, name: str, known: KnownModel, clock: Clock) -> None:
    """Settle the open queries of a model that have some of several answers, because its budget is spent."""
    desk = read_desk(connection, name, [], clock)
    known.check_key(desk.row)
    committed = int(desk.row.sequence_committed)
    for number, effects in _settled_early(desk, known, desk.crowd(known), committed):
        desk.note_effects(number, effects)
    desk.write()


def amend_answer(
    connection: Connection, name: str, number: int, change: Amendment, known: KnownModel, clock: Clock
) -> AnswerOutcome:
    """Append a correction, if the policy allows it; one that is repeated is acknowledged again."""
    desk = read_desk(connection, name, [], clock)
    found = find_query(connection, desk.row, number)
    known.check_key(desk.row)
    check_declared(change.reliability)
    checks.name_text("labeller", change.labeller)
    checks.comment(change.comment)
    of = desk.labelled(found.instance, known, desk.crowd(known))
    if found.gold:
        of = _as_known_to(change.labeller, number, of)
    outcome, effects = rules.amend(number, lifecycle_of(found), change, of)
    if effects is not None:
        effects = flagged(effects) if found.gold else effects
        effects = replace(effects, labeller=found.labeller, settled_by=found.sequence)
        desk.note_effects(number, effects)
        desk.write()
    return outcome


def _as_known_to(labeller: str, number: int, of: LabelledInstance) -> LabelledInstance:
    """Return the instance of a gold question as the labeller who is asked may see it."""
    return replace(of, said=as_known_to(labeller, of.said, of.size, of.policy.combination, number))


def _settled_early(
    desk: Desk, known: KnownModel, crowd: Crowd | None, committed: int, but: int = 0
) -> list[tuple[int, Effects]]:
    """Settle the open queries that have answers, except for number `but`; their events come after `committed`."""
    has_some = (query.c.model_id == desk.row.id, query.c.state == QueryState.OPEN, query.c.answers > 0)
    pending = desk.write().execute(
        select(query).where(*has_some, query.c.number != but).order_by(query.c.number)
    )
    found: list[tuple[int, Effects]] = []
    for each in pending.all():
        of = replace(desk.labelled(each.instance, known, crowd), committed=committed)
        if each.gold:
            of = _as_known_to("", each.number, of)
        effects = rules.settle_early(each.number, each.asked, lifecycle_of(each), of)
        effects = flagged(effects) if each.gold else effects
        committed += len(effects.events)
        found.append((each.number, effects))
    return found
