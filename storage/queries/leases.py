"""Leasing queries, longer, and giving them back.

Invariants, at every moment: a query has one holder at most; answered + leased never exceeds a budget. Every function
here holds the model's row while it reads and writes. `transitions` defines the possible steps.
"""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Select, and_, func, or_, select, update

from quercus.labelling.event import Event
from quercus.storage import checks, deferred_writes
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.deferred_writes import Write
from quercus.storage.errors import BeyondLog, FailedPrecondition
from quercus.storage.log.event_log import instance_history
from quercus.storage.queries import budgets, choosing, claims, expiry, history, reading
from quercus.storage.queries.choosing import LeaseView
from quercus.storage.queries.claims import LeaseClaim
from quercus.storage.queries.history import HistoryNote
from quercus.storage.queries.query_state import (
    columns_of,
    lifecycle_of,
    query_update,
    query_update_parameters,
)
from quercus.storage.queries.records import Idle, Leased, QueryRecord, QueryState, Step
from quercus.storage.queries.shared_view import SharedView
from quercus.storage.queries.transitions import NEVER, Evict, Extend, ReturnLease, Take
from quercus.storage.rows import lock_model
from quercus.storage.schema import LIVE, AnyRow, model, query, token

TOKEN_BYTES = 16
LONGEST_HOLD_S = 14_400.0  # that extensions can make of a lease, from when it was given
Accept = Callable[[QueryRecord, Sequence[Event]], bool]
_TAKE = query_update("take", "credential")


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A labeller's request for leases, see `Store.lease`.

    Parameters
    ----------
    labeller
        Its name.
    limit
        Most queries.
    duration_s
        Length of the leases, in seconds.
    min_sequence
        Only queries of a tree that contains the log up to this event.
    accept
        Filter of queries; None: all.
    credential
        Id of the token that the caller showed, "" for none.
    """

    labeller: str
    limit: int
    duration_s: float
    min_sequence: int
    accept: Accept | None = None
    credential: str = ""

    def check(self) -> None:
        """Raise `InvalidInput` if a value is out of bounds."""
        checks.name_text("labeller", self.labeller)
        checks.at_least("limit", self.limit, 1)
        checks.duration("duration_s", self.duration_s)


@dataclass(frozen=True, slots=True)
class Eviction:
    """The end of a lease by an operator: the reason in words, and the holder (empty: any)."""

    why: str
    labeller: str = ""


@dataclass(frozen=True, slots=True)
class QueryReturn:
    """The return of a query: RELEASED to all, SKIPPED to all others, or POSTPONED; `why` is the reason in words."""

    how: Step
    delay_s: float = 0.0
    why: str = ""


def hand_out(connection: Connection, name: str, request: LeaseRequest, clock: Clock) -> Leased:
    """Lease open queries in the order of the agenda."""
    request.check()
    row = lock_model(connection, name)
    BeyondLog.check(request.min_sequence, name, row.sequence_committed)
    most = request.limit if request.accept is None else choosing.ALL_ROWS
    view = choosing.read_lease_view(connection, row.id, request.labeller, most, clock)
    return _hand_out(connection, row, request, view)


def hand_out_together(connection: Connection, seen: SharedView, request: LeaseRequest) -> Leased | None:
    """Lease queries like `hand_out`, from rows read for several calls; None if they do not suffice."""
    request.check()
    BeyondLog.check(request.min_sequence, seen.row.name, seen.row.sequence_committed)
    view = None if request.accept is not None else seen.lease_view(request.labeller, request.limit)
    if view is None:
        return None
    leased = _hand_out(connection, seen.row, request, view)
    seen.note_leased(request.labeller, [each.number for each in leased.queries])
    return leased


def _hand_out(connection: Connection, row: AnyRow, request: LeaseRequest, view: LeaseView) -> Leased:
    now = view.now
    room = budgets.remaining_budget(connection, row, view.policy, request.labeller, view.leases, now)
    if room.idle in (Idle.BUDGET_SPENT, Idle.SHARE_SPENT):
        return Leased([], room.idle, room.total)
    known = max(row.sequence_grown, row.sequence_asked)
    if row.sequence_grown < request.min_sequence or known < view.last_settled:
        return Leased([], Idle.GROWING, room.total)
    if room.mine <= 0:
        return Leased([], room.idle, room.total, room.again_s)
    found = _accepted_queries(connection, row, request, view)[: min(request.limit, room.mine)]
    if not found:
        again_s = reading.next_change_s(connection, row.name, now)
        return Leased([], _why_none(connection, row, room), room.total, again_s)
    held = _take_queries(connection, row, found, request, now)
    return Leased(held, Idle.NOT_IDLE, room.total - len(held))


def extend_lease(connection: Connection, claim: LeaseClaim, duration_s: float, clock: Clock) -> float:
    """Extend a live lease to at least `duration_s` from now; return its end, by the wall clock.

    However often it is extended, it ends `LONGEST_HOLD_S` after it was given, unless it was given for longer.
    """
    checks.duration("duration_s", duration_s)
    held = claims.look_up(connection, claim, clock)
    now = held.now
    lifecycle = held.lifecycle_after(
        Extend(held.lease, min(now.clock + duration_s, held.given.since + LONGEST_HOLD_S))
    )
    where = claims.is_query(query, held.model.id, claim.number)
    connection.execute(update(query).where(*where).values(ends=lifecycle.ends))
    return now.on_wall(lifecycle.ends)


def end_lease(connection: Connection, name: str, number: int, end: Eviction, clock: Clock) -> None:
    """End the lease of a query, for any holder; `FailedPrecondition` if there is none, or not the named one."""
    checks.comment(end.why)
    row = lock_model(connection, name)
    now = clock()
    expiry.write_expired(connection, row.id, now)
    _evict_holder(connection, row, claims.find_query(connection, row, number), end, now)


def evict_revoked(connection: Connection, clock: Clock) -> int:
    """End the leases that were taken with access tokens which count no more; returns how many."""
    names = sorted({found.name for found in connection.execute(_of_dead_tokens(clock())).all()})
    count = 0
    for name in names:
        row = lock_model(connection, name)
        now = clock()
        expiry.write_expired(connection, row.id, now)
        for found in connection.execute(_of_dead_tokens(now).where(query.c.model_id == row.id)).all():
            how = "was revoked" if found.revoked_at is not None else "expired"
            held = claims.find_query(connection, row, found.number)
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
    # `ends` is indexed, and set for leased queries alone.
    held = and_(query.c.ends.is_not(None), query.c.state == QueryState.LEASED)
    return select(model.c.name, query.c.number, token.c.revoked_at).select_from(both).where(held, dead)


def _evict_holder(connection: Connection, row: AnyRow, held: AnyRow, end: Eviction, now: Timestamps) -> None:
    lifecycle = claims.lifecycle_after(lifecycle_of(held), Evict(), now)
    if end.labeller not in {"", held.labeller}:
        raise FailedPrecondition(f"it is not leased to {end.labeller}, but to {held.labeller}")
    where = claims.is_query(query, row.id, held.number)
    connection.execute(update(query).where(*where).values(columns_of(lifecycle)))
    who = (held.labeller, held.token, held.ends)
    note = HistoryNote(held.number, held.instance, Step.EVICTED, lifecycle.state, *who, why=end.why)
    history.write_steps(connection, row.id, [note], now)


def give_back(connection: Connection, claim: LeaseClaim, back: QueryReturn, clock: Clock) -> None:
    """Return a query. If the lease has ended already, there is nothing to return, but it may still be skipped."""
    how = back.how
    held = claims.look_up(connection, claim, clock)
    now = held.now
    before = held.lifecycle
    lifecycle = held.lifecycle_after(
        ReturnLease(held.lease, now.clock + back.delay_s if how is Step.POSTPONED else NEVER)
    )
    if lifecycle == before and (how is not Step.SKIPPED or held.lease.given_up):
        return
    if lifecycle != before:
        where = claims.is_query(query, held.model.id, claim.number)
        connection.execute(update(query).where(*where).values(columns_of(lifecycle)))
    until = None if lifecycle.not_before == NEVER else lifecycle.not_before
    note = HistoryNote(
        claim.number,
        held.query.instance,
        how,
        lifecycle.state,
        held.given.labeller,
        claim.token,
        until,
        why=back.why,
    )
    history.write_steps(connection, held.model.id, [note], now)


def _take_queries(
    connection: Connection, row: AnyRow, free: list[AnyRow], request: LeaseRequest, now: Timestamps
) -> list[QueryRecord]:
    taken: list[QueryRecord] = []
    changes, steps = [], []
    for each in free:
        mine = secrets.token_urlsafe(TOKEN_BYTES)
        lifecycle = claims.lifecycle_after(
            lifecycle_of(each), Take(mine, now.clock + request.duration_s), now
        )
        columns = columns_of(lifecycle, request.labeller) | {"credential": request.credential or None}
        changes.append(query_update_parameters("take", row.id, each.number, columns))
        note = HistoryNote(
            each.number, each.instance, Step.LEASED, lifecycle.state, request.labeller, mine, lifecycle.ends
        )
        steps.append(history.step_parameters(row.id, note, now))
        taken.append(
            reading.record_with(each, lifecycle, request.labeller, now, left_s=request.duration_s, token=mine)
        )
    deferred_writes.write_last(connection, Write(_TAKE, changes), Write(history.ADD, steps))
    return taken


def _why_none(connection: Connection, row: AnyRow, room: budgets.RemainingBudget) -> Idle:
    mine = (query.c.model_id == row.id, query.c.state == QueryState.OPEN)
    if connection.execute(select(func.count()).where(*mine)).scalar_one():
        return Idle.NOT_FOR_YOU
    if room.leased:
        return Idle.ALL_LEASED
    # events that are not in the tree yet may lead to queries
    return Idle.GROWING if row.sequence_grown < row.sequence_committed else Idle.NOTHING_TO_ASK


def _accepted_queries(
    connection: Connection, row: AnyRow, request: LeaseRequest, view: LeaseView
) -> list[AnyRow]:
    """The free queries that pass the filter of who asks."""
    if request.accept is None:
        return view.free
    said = instance_history(connection, row.name, sorted({free.instance for free in view.free}))
    return [
        free for free in view.free if request.accept(reading.to_record(free, view.now), said[free.instance])
    ]
