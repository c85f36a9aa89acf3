"""Leasing queries, extending and ending leases, and giving queries back.

Two invariants always hold: a query has at most one holder, and answered + leased never exceeds a budget. Every function
here locks the model's row while it reads and writes. `quercus.labelling.lifecycle` defines the possible steps.
"""

import secrets
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select, update

from quercus.labelling import checks
from quercus.labelling.leasing import (
    HOUR_S,
    LONGEST_HOLD_S,
    Growth,
    Idle,
    Usage,
    remaining_budget,
    why_no_lease,
    why_none_is_free,
)
from quercus.labelling.lifecycle import (
    NEVER,
    Evict,
    Extend,
    HistoryNote,
    QueryState,
    Step,
    Take,
    apply_event,
    give_back,
)
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.errors import BeyondLog, FailedPrecondition
from quercus.storage.log.event_log import history_of
from quercus.storage.queries import expiry, gold, history, reading
from quercus.storage.queries.desk import Desk, LeaseClaim, LeaseRequest, claim_one, find_query, is_query
from quercus.storage.queries.query_state import columns_of, lifecycle_of
from quercus.storage.queries.records import Leased, QueryRecord
from quercus.storage.records import growth_mark
from quercus.storage.rows import lock_model
from quercus.storage.schema import LIVE, AnyRow, model, query, token

TOKEN_BYTES = 16


@dataclass(frozen=True, slots=True)
class Eviction:
    """The end of a lease by an operator: the reason, and the labeller who must hold it (empty for anybody)."""

    why: str
    labeller: str = ""


@dataclass(frozen=True, slots=True)
class QueryReturn:
    """The return of a query: RELEASED to everybody, SKIPPED to everybody else, or POSTPONED; `why` is the reason."""

    how: Step
    delay_s: float = 0.0
    why: str = ""


def usage_of(desk: Desk, labeller: str, held: int) -> Usage:
    """Return the use of a model's budgets, for a labeller who holds `held` queries."""
    row, policy, model_id = desk.row, desk.policy, desk.row.id
    given = 0 if policy.per_labeller is None else history.count_answers(desk.write(), model_id, labeller)
    recent = (
        [] if policy.per_hour is None
        else history.answers_since(desk.write(), model_id, desk.now.clock - HOUR_S)
    )  # fmt: skip
    return Usage(row.budget, row.queries_answered, desk.leased, held, given, recent)


def lease(desk: Desk, request: LeaseRequest, free: list[AnyRow]) -> Leased:
    """Lease open queries in the order of the agenda; `free` are those that the labeller may get."""
    row, now, labeller = desk.row, desk.now, request.labeller
    BeyondLog.check(request.min_sequence, row.name, row.sequence_committed)
    if not desk.policy.may_label(labeller):
        return Leased([], Idle.NOT_ASSIGNED, row.budget - row.queries_answered - desk.leased)
    room = remaining_budget(usage_of(desk, labeller, desk.held[labeller]), desk.policy, now.clock)
    growth = Growth(row.sequence_grown, row.sequence_asked, row.sequence_committed)
    idle = why_no_lease(room, growth, request.min_sequence, desk.last_settled[labeller])
    if idle is not Idle.NOT_IDLE:
        awaits = growth_mark(row) if idle is Idle.GROWING else ()
        return Leased([], idle, room.total, room.again_s if idle is Idle.HOUR_SPENT else None, awaits)
    if request.filter is not None:
        said = history_of(desk.write(), row, sorted({each.instance for each in free}))
        free = [each for each in free if request.filter.accepts(said[each.instance])]
    if desk.policy.gold_share:
        free = gold.with_returned(desk, request, free)
    free = free[: min(request.limit, room.mine)]
    if not free:
        connection = desk.write()
        mine = (query.c.model_id == row.id, query.c.state == QueryState.OPEN, query.c.gold.is_(False))
        there = connection.execute(select(func.count()).where(*mine)).scalar_one()
        again_s = reading.next_change_s(connection, row.name, now)
        return Leased([], why_none_is_free(there, desk.leased, growth), room.total, again_s)

    if desk.policy.gold_share:
        free = gold.mix_in(desk, request, free)
    taken: list[QueryRecord] = []
    for each in free:
        mine_token = secrets.token_urlsafe(TOKEN_BYTES)
        life = apply_event(lifecycle_of(each), Take(mine_token, now.clock + request.duration_s), now.clock)
        note = HistoryNote(
            each.number, each.instance, Step.LEASED, life.state, labeller, mine_token, life.ends
        )
        desk.note_lease(note, life, labeller, request.credential)
        taken.append(
            reading.record_with(each, life, labeller, now, left_s=request.duration_s, token=mine_token)
        )
    return Leased(taken, Idle.NOT_IDLE, room.total - len(taken))


def extend_lease(connection: Connection, claim: LeaseClaim, duration_s: float, clock: Clock) -> float:
    """Extend a live lease to `duration_s` from now, but never shorten it; return its end by the wall clock.

    Extensions end `LONGEST_HOLD_S` after the lease was given.
    """
    checks.duration("duration_s", duration_s)
    desk, held = claim_one(connection, claim, clock)
    now, latest = desk.now, held.given.since + LONGEST_HOLD_S
    life = held.after(Extend(held.given.lease, min(now.clock + duration_s, latest)), now.clock)
    where = is_query(query, desk.row.id, claim.number)
    connection.execute(update(query).where(*where).values(ends=life.ends))
    return now.on_wall(life.ends)


def end_lease(connection: Connection, name: str, number: int, end: Eviction, clock: Clock) -> None:
    """End the lease of a query; raise `FailedPrecondition` if nobody holds it, or not the labeller whom `end` names."""
    checks.comment(end.why)
    row = lock_model(connection, name)
    now = clock()
    expiry.write_expired(connection, row.id, now)
    _evict_holder(connection, row, find_query(connection, row, number), end, now)


def evict_revoked(connection: Connection, clock: Clock) -> int:
    """End the leases that were taken with access tokens that are no longer valid; return their number."""
    names = sorted({found.name for found in connection.execute(_of_dead_tokens(clock())).all()})
    count = 0
    for name in names:
        row = lock_model(connection, name)
        now = clock()
        expiry.write_expired(connection, row.id, now)
        for found in connection.execute(_of_dead_tokens(now).where(query.c.model_id == row.id)).all():
            how = "was revoked" if found.revoked_at is not None else "expired"
            held = find_query(connection, row, found.number)
            _evict_holder(connection, row, held, Eviction(f"the access token of {held.labeller} {how}"), now)
            count += 1
    return count


def has_revoked(connection: Connection, clock: Clock) -> bool:
    """Return whether a caller whose access token is no longer valid holds a query."""
    return connection.execute(_of_dead_tokens(clock()).limit(1)).first() is not None


def _of_dead_tokens(now: Timestamps) -> Select[Any]:
    dead = or_(token.c.revoked_at.is_not(None), token.c.expires_at <= now.wall)
    both = query.join(token, token.c.id == query.c.credential).join(
        model, (model.c.id == query.c.model_id) & LIVE
    )
    # `ends` is indexed, and set only for leased queries
    held = and_(query.c.ends.is_not(None), query.c.state == QueryState.LEASED)
    return select(model.c.name, query.c.number, token.c.revoked_at).select_from(both).where(held, dead)


def _evict_holder(connection: Connection, row: AnyRow, held: AnyRow, end: Eviction, now: Timestamps) -> None:
    life = apply_event(lifecycle_of(held), Evict(), now.clock)
    if end.labeller not in {"", held.labeller}:
        raise FailedPrecondition(f"it is not leased to {end.labeller}, but to {held.labeller}")
    where = is_query(query, row.id, held.number)
    connection.execute(update(query).where(*where).values(columns_of(life)))
    who = (held.labeller, held.token, held.ends)
    note = HistoryNote(held.number, held.instance, Step.EVICTED, life.state, *who, why=end.why)
    history.write_steps(connection, row.id, [note], now)


def return_query(connection: Connection, claim: LeaseClaim, back: QueryReturn, clock: Clock) -> None:
    """Give a query back; if the lease has ended, the query can still be skipped."""
    desk, held = claim_one(connection, claim, clock)
    now = desk.now
    not_before = now.clock + back.delay_s if back.how is Step.POSTPONED else NEVER
    life, note = give_back(held, back.how, not_before, back.why, now.clock)
    if note is None:
        return
    if life != held.life:
        where = is_query(query, desk.row.id, claim.number)
        connection.execute(update(query).where(*where).values(columns_of(life)))
    history.write_steps(connection, desk.row.id, [note], now)
