"""Leasing queries and settling them.

Invariants, at every moment: a query has one holder at most; answered + leased never exceeds the budget; a query is
settled once. Every function here holds the model's row while it looks and writes.
"""

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import Connection, Row, bindparam, func, insert, select, update

from quercus.storage import checks, log, queries
from quercus.storage.errors import FailedPrecondition, NotFound
from quercus.storage.models import ModelRow, count_leased, lock
from quercus.storage.records import Answered, EventKind, Idle, Leased, QueryRecord, QueryState
from quercus.storage.schema import lease, model, query
from quercus.storage.schema import log as log_table

TOKEN_BYTES = 16


def hand_out(
    connection: Connection,
    name: str,
    labeller: str,
    limit: int,
    duration_s: float,
    min_sequence: int,
    now: float,
) -> Leased:
    """Lease up to `limit` open queries in the order of the agenda."""
    checks.text("labeller", labeller)
    checks.at_least("limit", limit, 1)
    checks.duration("duration_s", duration_s)
    row = lock(connection, name)
    queries.reopen_expired(connection, row.id, now)
    leased = count_leased(connection, row.id, now)
    left = row.budget - row.queries_answered - leased
    if row.queries_answered >= row.budget:
        return Leased([], Idle.BUDGET_SPENT, left)
    if row.sequence_grown < max(min_sequence, _last_settled(connection, row.id, labeller)):
        return Leased([], Idle.GROWING, left)
    taken = _open(connection, row.id, min(limit, left), now) if left > 0 else []
    if not taken:
        return Leased([], Idle.ALL_LEASED if leased else Idle.NOTHING_TO_ASK, left)
    held = [_held(found, labeller, now + duration_s) for found in taken]
    _write_leases(connection, row.id, held)
    return Leased(held, Idle.NOT_IDLE, left - len(held))


def answer(
    connection: Connection,
    name: str,
    number: int,
    token: str,
    label: bytes,
    reliability: float,
    conflict: bool,
    now: float,
) -> Answered:
    """Settle a query with a label."""
    checks.reliability(reliability)
    row, found, held = _held_query(connection, name, number, token, now)
    if found.state in (QueryState.ANSWERED, QueryState.REFUSED):
        return _repeated(connection, row, found, token, (label, reliability))
    _check_held(found, held, token)
    if found.state == QueryState.OPEN:  # a late answer: the budget may have gone to somebody else meanwhile
        leased = count_leased(connection, row.id, now)
        if row.queries_answered + leased >= row.budget:
            raise FailedPrecondition(
                f"{_expired(held)}, and the budget of {row.budget} is used up since: "
                f"{row.queries_answered} queries are answered and {leased} leased"
            )
    sequence = _settle(
        connection, row, found, held, label=label, reliability=reliability, conflict=conflict, now=now
    )
    counts = {"queries_answered": row.queries_answered + 1, "conflicts": row.conflicts + bool(conflict)}
    connection.execute(
        update(model).where(model.c.id == row.id).values(sequence_committed=sequence, **counts)
    )
    return Answered(sequence, repeated=False, conflict=conflict)


def refuse(connection: Connection, name: str, number: int, token: str, now: float) -> Answered:
    """Settle a query without a label: nobody can tell. Costs no budget."""
    row, found, held = _held_query(connection, name, number, token, now)
    if found.state in (QueryState.ANSWERED, QueryState.REFUSED):
        return _repeated(connection, row, found, token, None)
    _check_held(found, held, token)
    sequence = _settle(connection, row, found, held, label=None, reliability=1.0, conflict=False, now=now)
    counts = {"queries_refused": row.queries_refused + 1, "sequence_committed": sequence}
    connection.execute(update(model).where(model.c.id == row.id).values(counts))
    return Answered(sequence, repeated=False)


def extend(
    connection: Connection, name: str, number: int, token: str, duration_s: float, now: float
) -> float:
    """Let a lease that is alive end `duration_s` from now."""
    checks.duration("duration_s", duration_s)
    row, found, held = _held_query(connection, name, number, token, now)
    _check_unsettled(found, token)
    _check_held(found, held, token)
    if found.state == QueryState.OPEN:
        raise FailedPrecondition(f"{_expired(held)}; it cannot be extended, but an answer is still welcome")
    change = {"expires_at": now + duration_s}
    connection.execute(update(query).where(*_is(query, row.id, number)).values(change))
    connection.execute(
        update(lease).where(*_is(lease, row.id, number), lease.c.token == token).values(change)
    )
    return now + duration_s


def release(connection: Connection, name: str, number: int, token: str, now: float) -> None:
    """Give a query back. Of a lease that has ended already, only the right to a late answer goes."""
    row, found, held = _held_query(connection, name, number, token, now)
    _check_unsettled(found, token)
    if not held.released:
        where = (*_is(lease, row.id, number), lease.c.token == token)
        connection.execute(update(lease).where(*where).values(released=True))
    if found.state == QueryState.LEASED and found.token == token:
        free = {"state": int(QueryState.OPEN), "labeller": None, "token": None, "expires_at": None}
        connection.execute(update(query).where(*_is(query, row.id, number)).values(free))


def _last_settled(connection: Connection, model_id: int, labeller: str) -> int:
    mine = (query.c.model_id == model_id, query.c.labeller == labeller, query.c.sequence.is_not(None))
    return connection.execute(select(func.max(query.c.sequence)).where(*mine)).scalar() or 0


def _open(connection: Connection, model_id: int, limit: int, now: float) -> list[QueryRecord]:
    wanted = queries.records().where(query.c.model_id == model_id, query.c.state == QueryState.OPEN)
    ordered = wanted.order_by(query.c.position, query.c.number).limit(limit)
    return [queries.record(found, now) for found in connection.execute(ordered)]


def _held(found: QueryRecord, labeller: str, expires_at: float) -> QueryRecord:
    token = secrets.token_urlsafe(TOKEN_BYTES)
    return replace(found, state=QueryState.LEASED, labeller=labeller, token=token, expires_at=expires_at)


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
    connection.execute(
        insert(lease),
        [
            {
                "model_id": model_id,
                "number": h.number,
                "token": h.token,
                "labeller": h.labeller,
                "expires_at": h.expires_at,
                "released": False,
            }
            for h in held
        ],
    )


def _held_query(
    connection: Connection, name: str, number: int, token: str, now: float
) -> tuple[ModelRow, Row[Any], Row[Any]]:
    """The model, the query as it stands now, and the lease the token was given with."""
    row = lock(connection, name)
    queries.reopen_expired(connection, row.id, now)
    found = connection.execute(select(query).where(*_is(query, row.id, number))).one_or_none()
    if found is None:
        raise NotFound("query", f"{name}/{number}")
    mine = (*_is(lease, row.id, number), lease.c.token == token)
    held = connection.execute(select(lease).where(*mine)).one_or_none()
    if held is None:
        raise FailedPrecondition(f"the lease token is not one that was given for query {name}/{number}")
    return row, found, held


def _is(table: Any, model_id: int, number: int) -> tuple[Any, Any]:
    return table.c.model_id == model_id, table.c.number == number


def _repeated(
    connection: Connection, row: ModelRow, found: Row[Any], token: str, said: tuple[bytes, float] | None
) -> Answered:
    """A settled query is settled again: fine when the same holder says the same (`said` None: a refusal)."""
    columns = (log_table.c.kind, log_table.c.label, log_table.c.reliability, log_table.c.conflict)
    mine = (log_table.c.model_id == row.id, log_table.c.sequence == found.sequence)
    kind, label, reliability, conflict = connection.execute(select(*columns).where(*mine)).one()
    if found.token == token:
        before = None if kind == EventKind.REFUSAL else (label, reliability)
        if before == said:
            return Answered(found.sequence, repeated=True, conflict=conflict)
        if before is not None and said is not None:
            raise FailedPrecondition("already answered, with another label or reliability")
    _check_unsettled(found, token)
    raise AssertionError("a settled query")  # pragma: no cover - the line above raised


def _check_unsettled(found: Row[Any], token: str) -> None:
    if found.state not in (QueryState.ANSWERED, QueryState.REFUSED):
        return
    how = "answered" if found.state == QueryState.ANSWERED else "refused"
    raise FailedPrecondition(f"already {how}" + ("" if found.token == token else " by another labeller"))


def _check_held(found: Row[Any], held: Row[Any], token: str) -> None:
    """Nobody else has the query, and this lease was not given up."""
    if held.released:
        raise FailedPrecondition("the lease was released: lease the query again")
    if found.state == QueryState.WITHDRAWN:
        raise FailedPrecondition(f"withdrawn: {_expired(held)}, and growth does not want this label any more")
    if found.state == QueryState.LEASED and found.token != token:
        raise FailedPrecondition(f"{_expired(held)}, and the query is now leased to another labeller")


def _expired(held: Row[Any]) -> str:
    return (
        f"the lease expired at {datetime.fromtimestamp(held.expires_at, UTC).isoformat(timespec='seconds')}"
    )


def _settle(
    connection: Connection,
    row: ModelRow,
    found: Row[Any],
    held: Row[Any],
    *,
    label: bytes | None,
    reliability: float,
    conflict: bool,
    now: float,
) -> int:
    kind, state = (
        (EventKind.REFUSAL, QueryState.REFUSED) if label is None else (EventKind.ANSWER, QueryState.ANSWERED)
    )
    sequence = log.settle(
        connection,
        row,
        kind=kind,
        instance=found.instance,
        label=label,
        author=held.labeller,
        reliability=reliability,
        asked=found.asked,
        conflict=conflict,
        now=now,
    )
    settled = {"state": int(state), "labeller": held.labeller, "token": held.token, "sequence": sequence}
    where = _is(query, row.id, found.number)
    connection.execute(update(query).where(*where).values(expires_at=None, **settled))
    return sequence
