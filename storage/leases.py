"""Leasing queries, longer, and giving them back.

Invariants, at every moment: a query has one holder at most; answered + leased never exceeds the budget.
Every function here holds the model's row while it looks and writes.
"""

import secrets
from dataclasses import dataclass, replace

from sqlalchemy import Connection, bindparam, func, insert, select, update

from quercus.storage import checks, claims, expiry, queries
from quercus.storage.claims import Claim
from quercus.storage.errors import FailedPrecondition
from quercus.storage.expiry import count_leased
from quercus.storage.models import lock
from quercus.storage.records import Idle, Leased, QueryRecord, QueryState
from quercus.storage.schema import lease, query

TOKEN_BYTES = 16


@dataclass(frozen=True, slots=True)
class Wish:
    """Who wants how many queries, for how long, of a tree grown up to which event."""

    labeller: str
    limit: int
    duration_s: float
    min_sequence: int


def hand_out(connection: Connection, name: str, wish: Wish, now: float) -> Leased:
    """Lease open queries in the order of the agenda."""
    checks.text("labeller", wish.labeller)
    checks.at_least("limit", wish.limit, 1)
    checks.duration("duration_s", wish.duration_s)
    row = lock(connection, name)
    expiry.reopen_expired(connection, row.id, now)
    leased = count_leased(connection, row.id, now)
    left = row.budget - row.queries_answered - leased
    if row.queries_answered >= row.budget:
        return Leased([], Idle.BUDGET_SPENT, left)
    if row.sequence_grown < max(wish.min_sequence, _last_settled(connection, row.id, wish.labeller)):
        return Leased([], Idle.GROWING, left)
    found = _open(connection, row.id, min(wish.limit, left), now) if left > 0 else []
    if not found:
        return Leased([], Idle.ALL_LEASED if leased else Idle.NOTHING_TO_ASK, left)
    held = [
        replace(
            free,
            state=QueryState.LEASED,
            labeller=wish.labeller,
            token=secrets.token_urlsafe(TOKEN_BYTES),
            expires_at=now + wish.duration_s,
        )
        for free in found
    ]
    _write_leases(connection, row.id, held)
    return Leased(held, Idle.NOT_IDLE, left - len(held))


def extend(connection: Connection, claim: Claim, duration_s: float, now: float) -> float:
    """Let a lease that is alive end `duration_s` from now."""
    checks.duration("duration_s", duration_s)
    held = claims.look_up(connection, claim, now)
    claims.refuse_settled(held)
    claims.refuse_lost(held)
    if held.query.state == QueryState.OPEN:
        raise FailedPrecondition(f"{held.expired}; it cannot be extended, but an answer is still welcome")
    until = now + duration_s
    where = claims.named(query, held.model.id, claim.number)
    connection.execute(update(query).where(*where).values(expires_at=until))
    where = claims.named(lease, held.model.id, claim.number)
    connection.execute(update(lease).where(*where, lease.c.token == claim.token).values(expires_at=until))
    return until


def release(connection: Connection, claim: Claim, now: float) -> None:
    """Give a query back. Of a lease that has ended already, only the right to a late answer goes."""
    held = claims.look_up(connection, claim, now)
    claims.refuse_settled(held)
    if not held.lease.released:
        where = (*claims.named(lease, held.model.id, claim.number), lease.c.token == claim.token)
        connection.execute(update(lease).where(*where).values(released=True))
    if held.query.state == QueryState.LEASED and held.current:
        mine = claims.named(query, held.model.id, claim.number)
        connection.execute(update(query).where(*mine).values(expiry.FREE))


def _last_settled(connection: Connection, model_id: int, labeller: str) -> int:
    mine = (query.c.model_id == model_id, query.c.labeller == labeller, query.c.sequence.is_not(None))
    return connection.execute(select(func.max(query.c.sequence)).where(*mine)).scalar() or 0


def _open(connection: Connection, model_id: int, limit: int, now: float) -> list[QueryRecord]:
    wanted = queries.records().where(query.c.model_id == model_id, query.c.state == QueryState.OPEN)
    ordered = wanted.order_by(query.c.position, query.c.number).limit(limit)
    return [queries.record(found, now) for found in connection.execute(ordered)]


def _write_leases(connection: Connection, model_id: int, held: list[QueryRecord]) -> None:
    statement = (
        update(query)
        .where(query.c.model_id == model_id, query.c.number == bindparam("which"))
        .values(
            state=int(QueryState.LEASED),
            labeller=bindparam("holder"),
            token=bindparam("secret"),
            expires_at=bindparam("until"),
        )
    )
    rows = [{"which": h.number, "holder": h.labeller, "secret": h.token, "until": h.expires_at} for h in held]
    connection.execute(statement, rows)
    given = [
        {
            "model_id": model_id,
            "number": h.number,
            "token": h.token,
            "labeller": h.labeller,
            "expires_at": h.expires_at,
            "released": False,
        }
        for h in held
    ]
    connection.execute(insert(lease), given)
