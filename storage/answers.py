"""Settling queries. A query is settled once; what is said again in the same words is acknowledged again."""

from dataclasses import dataclass

from sqlalchemy import Connection, select, update

from quercus.storage import checks, claims, log
from quercus.storage.claims import Claim, Held
from quercus.storage.errors import FailedPrecondition
from quercus.storage.expiry import count_leased
from quercus.storage.records import Answered, EventKind, QueryState
from quercus.storage.schema import log as log_table
from quercus.storage.schema import model, query


@dataclass(frozen=True, slots=True)
class Statement:
    """What the labeller says: a label, or None = "cannot tell"."""

    label: bytes | None
    reliability: float = 1.0
    conflict: bool = False


def settle(connection: Connection, claim: Claim, said: Statement, now: float) -> Answered:
    """Append the statement to the log and settle the query."""
    checks.reliability(said.reliability)
    held = claims.look_up(connection, claim, now)
    if held.settled:
        return _acknowledge_again(connection, held, said)
    claims.refuse_lost(held)
    if said.label is not None and held.query.state == QueryState.OPEN:
        _check_budget_of_late_answer(connection, held, now)
    sequence = _append(connection, held, said, now)
    _settle_query(connection, held, said, sequence)
    return Answered(sequence, repeated=False, conflict=said.conflict)


def _acknowledge_again(connection: Connection, held: Held, said: Statement) -> Answered:
    columns = (log_table.c.label, log_table.c.reliability, log_table.c.conflict)
    mine = (log_table.c.model_id == held.model.id, log_table.c.sequence == held.query.sequence)
    label, reliability, conflict = connection.execute(select(*columns).where(*mine)).one()
    if held.current and (label, reliability) == (said.label, said.reliability):
        return Answered(held.query.sequence, repeated=True, conflict=conflict)
    if held.current and None not in (label, said.label):
        raise FailedPrecondition("already answered, with another label or reliability")
    claims.refuse_settled(held)
    raise AssertionError("only a settled query comes here")


def _check_budget_of_late_answer(connection: Connection, held: Held, now: float) -> None:
    """Its own lease no longer counts, so the budget may have gone to somebody else meanwhile."""
    answered, budget = held.model.queries_answered, held.model.budget
    leased = count_leased(connection, held.model.id, now)
    if answered + leased >= budget:
        raise FailedPrecondition(
            f"{held.expired}, and the budget of {budget} is used up since: "
            f"{answered} queries are answered and {leased} leased"
        )


def _append(connection: Connection, held: Held, said: Statement, now: float) -> int:
    sequence = int(held.model.sequence_committed) + 1
    log.insert_event(
        connection,
        model_id=held.model.id,
        sequence=sequence,
        kind=int(EventKind.REFUSAL if said.label is None else EventKind.ANSWER),
        instance=held.query.instance,
        label=said.label,
        author=held.lease.labeller,
        reliability=said.reliability,
        asked=held.query.asked,
        conflict=said.conflict,
        created_at=now,
    )
    return sequence


def _settle_query(connection: Connection, held: Held, said: Statement, sequence: int) -> None:
    row = held.model
    counts = {"sequence_committed": sequence, "conflicts": row.conflicts + int(said.conflict)}
    if said.label is None:
        state = QueryState.REFUSED
        counts["queries_refused"] = row.queries_refused + 1
    else:
        state = QueryState.ANSWERED
        counts["queries_answered"] = row.queries_answered + 1
    connection.execute(update(model).where(model.c.id == row.id).values(counts))
    settled = {"state": int(state), "labeller": held.lease.labeller, "token": held.lease.token}
    where = claims.named(query, row.id, held.query.number)
    connection.execute(update(query).where(*where).values(expires_at=None, sequence=sequence, **settled))
