"""A lease token is shown: which query and which lease it belongs to, and whether the next step may be."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    String,
    Table,
    Text,
    and_,
    bindparam,
    exists,
    select,
)

from quercus.labelling.event import EventKind
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.driver_reads import read_each
from quercus.storage.errors import FailedPrecondition
from quercus.storage.queries import expiry, history, reading
from quercus.storage.queries.choosing import NAMED
from quercus.storage.queries.history import GrantedLease
from quercus.storage.queries.query_state import lifecycle_of
from quercus.storage.queries.records import QueryState
from quercus.storage.queries.transitions import (
    LeaseRecord,
    QueryEvent,
    QueryLifecycle,
    RejectedStep,
    apply_event,
)
from quercus.storage.row_writes import sent_rows
from quercus.storage.rows import lock_model
from quercus.storage.schema import AnyRow, each_of, log, query, query_history


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """The claim of a labeller: query `number` of `model`, and the token of its lease."""

    model: str
    number: int
    token: str


@dataclass(frozen=True, slots=True)
class ClaimedQuery:
    """The rows of a claim: the model (locked), the query with its state, and the lease."""

    model: AnyRow
    query: AnyRow
    given: GrantedLease
    now: Timestamps
    lifecycle: QueryLifecycle = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "lifecycle", lifecycle_of(self.query))

    @property
    def lease(self) -> LeaseRecord:
        """The lease, with its actual or future end."""
        mine = self.lifecycle.token == self.given.lease.token and self.query.ends is not None
        lease = self.given.lease
        return LeaseRecord(lease.token, self.query.ends, lease.given_up, lease.used) if mine else lease

    @property
    def expiry_text(self) -> str:
        """End of the lease in words, by the wall clock."""
        end = datetime.fromtimestamp(round(self.now.on_wall(self.lease.ends)), UTC)
        return f"the lease expired at {end.isoformat(timespec='seconds')}"

    def lifecycle_after(self, event: QueryEvent) -> QueryLifecycle:
        """The life after a step; `FailedPrecondition` when it may not be."""
        outcome = apply_event(self.lifecycle, event, self.now.clock)
        if isinstance(outcome, RejectedStep):
            raise FailedPrecondition(outcome.reason.format(expired=self.expiry_text))
        return outcome


def look_up(connection: Connection, claim: LeaseClaim, clock: Clock) -> ClaimedQuery:
    """Lock the model, record expired leases, and find query and lease."""
    row = lock_model(connection, claim.model)
    asked = {"model": row.id, "number": claim.number, "token": claim.token}
    wanted = _claim_query(clock.clocks.moment)
    told = wanted, {**asked, **clock.clocks.moment_parameters()}
    (found,) = read_each(connection, told)
    first = found[0]
    if first.expired:
        expiry.write_expired(connection, row.id, clock.clocks.timestamps_of(first.clock, first.wall))
        (found,) = read_each(connection, told)
        first = found[0]
    if first.number is None:
        raise reading.query_not_found(row, claim.number)
    if first.given_step is None:
        raise FailedPrecondition(
            f"the lease token is not one that was given for query {claim.model}/{claim.number}"
        )
    now = clock.clocks.timestamps_of(first.clock, first.wall)
    return ClaimedQuery(row, first, history.granted_lease(found, claim.token), now)


@cache  # to make it takes longer than to run it
def _claim_query(moment: Select[Any]) -> Select[Any]:
    """The query, and a row for each step by the token; no step, or no query: nulls."""
    asked, told, other = bindparam("model", type_=BigInteger), moment.cte("moment"), query.alias("other")
    over = (other.c.model_id == asked, other.c.state == QueryState.LEASED, other.c.ends <= told.c.clock)
    number, token = bindparam("number", type_=BigInteger), bindparam("token", type_=String)
    expired = exists(select(1).where(*over)).label("expired")
    return _with_steps(told, asked, number, token).add_columns(expired)


@cache
def look_for_all() -> Select[Any]:
    """The rows behind several claims, arrays `sent_number` and `sent_token`, of the model `wanted`.

    As those of one claim, but they do not tell whether leases have expired.
    """
    sent = sent_rows("sent", {"sent_number": BigInteger(), "sent_token": Text()})
    return _with_steps(sent, NAMED, sent.c.sent_number, sent.c.sent_token)


def _with_steps(
    source: FromClause, asked: ColumnElement[int], number: ColumnElement[int], token: ColumnElement[str]
) -> Select[Any]:
    given = query_history.alias("given")
    said = (
        log.c.model_id == asked,
        log.c.instance == query.c.instance,
        each_of(log.c.kind) == EventKind.STATEMENT,
    )
    names = ("step", "until", "sequence", "labeller", "clock")
    of_query = and_(query.c.model_id == asked, query.c.number == number)
    by_token = and_(given.c.model_id == asked, given.c.number == number, given.c.token == token)
    return (
        select(
            *source.c,
            *query.c,
            *(given.c[name].label(f"given_{name}") for name in names),
            exists(select(1).where(*said)).label("is_spoken_of"),
            history.answered_by_another_lease(given).label("has_answered"),
        )
        .select_from(source.outerjoin(query, of_query).outerjoin(given, by_token))
        .order_by(given.c.id)
    )


def find_query(connection: Connection, row: AnyRow, number: int) -> AnyRow:
    """The row of a query of a model, or `NotFound`."""
    found = connection.execute(select(query).where(*is_query(query, row.id, number))).one_or_none()
    if found is None:
        raise reading.query_not_found(row, number)
    return found


def lifecycle_after(lifecycle: QueryLifecycle, event: QueryEvent, now: Timestamps) -> QueryLifecycle:
    """The life after a step that no lease is needed for; `FailedPrecondition` when it may not be."""
    outcome = apply_event(lifecycle, event, now.clock)
    if isinstance(outcome, RejectedStep):
        raise FailedPrecondition(outcome.reason)
    return outcome


def is_query(table: Table, model_id: int, number: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Condition on `query` or its history: rows of one query."""
    return table.c.model_id == model_id, table.c.number == number
