"""A lease token is shown: which query and which lease it belongs to, and whether the next step may be."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, Table, select

from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.errors import FailedPrecondition
from quercus.storage.queries import expiry, history, reading
from quercus.storage.queries.history import GrantedLease
from quercus.storage.queries.query_state import lifecycle_of
from quercus.storage.queries.transitions import Event, Lease, QueryLifecycle, RejectedStep, step
from quercus.storage.rows import lock
from quercus.storage.schema import AnyRow, query


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """The claim of a labeller: query `number` of `model`, and the token of its lease."""

    model: str
    number: int
    token: str


@dataclass(frozen=True, slots=True)
class ClaimedQuery:
    """The rows behind a claim: the model (locked), the query, and the lease."""

    model: AnyRow
    query: AnyRow
    given: GrantedLease
    now: Timestamps

    @property
    def lifecycle(self) -> QueryLifecycle:
        """Where the query stands."""
        return lifecycle_of(self.query)

    @property
    def lease(self) -> Lease:
        """The lease, as it ended or will."""
        mine = self.lifecycle.token == self.given.lease.token and self.query.ends is not None
        lease = self.given.lease
        return Lease(lease.token, self.query.ends, lease.given_up, lease.used) if mine else lease

    @property
    def expired(self) -> str:
        """When the lease ended, in words, by the wall clock."""
        end = datetime.fromtimestamp(round(self.now.on_wall(self.lease.ends)), UTC)
        return f"the lease expired at {end.isoformat(timespec='seconds')}"

    def after(self, event: Event) -> QueryLifecycle:
        """The life after a step; `FailedPrecondition` when it may not be."""
        return lifecycle_after(self.lifecycle, event, self.now, self.expired)


def look_up(connection: Connection, claim: LeaseClaim, clock: Clock) -> ClaimedQuery:
    """Lock the model, write down what has expired, and find query and lease."""
    row = lock(connection, claim.model)
    now = clock()
    expiry.write_expired(connection, row.id, now)
    found = find_query(connection, row, claim.number)
    given = history.granted_lease(connection, row.id, claim.number, claim.token)
    if given is None:
        raise FailedPrecondition(
            f"the lease token is not one that was given for query {claim.model}/{claim.number}"
        )
    return ClaimedQuery(row, found, given, now)


def find_query(connection: Connection, row: AnyRow, number: int) -> AnyRow:
    """The row of a query of a model, or `NotFound`."""
    found = connection.execute(select(query).where(*is_query(query, row.id, number))).one_or_none()
    if found is None:
        raise reading.query_not_found(row, number)
    return found


def lifecycle_after(
    lifecycle: QueryLifecycle, event: Event, now: Timestamps, expired: str = ""
) -> QueryLifecycle:
    """The life after a step; `FailedPrecondition` when it may not be."""
    outcome = step(lifecycle, event, now.clock)
    if isinstance(outcome, RejectedStep):
        raise FailedPrecondition(outcome.reason.format(expired=expired))
    return outcome


def is_query(table: Table, model_id: int, number: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Condition on `query` or its history: rows of one query."""
    return table.c.model_id == model_id, table.c.number == number
