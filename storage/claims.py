"""A lease token is shown: which query and which lease it belongs to, and whether it still holds."""

from dataclasses import dataclass
from datetime import UTC, datetime

from sqlalchemy import ColumnElement, Connection, Table, select

from quercus.storage import expiry, queries
from quercus.storage.errors import FailedPrecondition
from quercus.storage.models import lock
from quercus.storage.records import QueryState
from quercus.storage.schema import AnyRow, lease, query

SETTLED = (QueryState.ANSWERED, QueryState.REFUSED)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a labeller shows: query `number` of `model`, and the token its lease came with."""

    model: str
    number: int
    token: str


@dataclass(frozen=True, slots=True)
class Held:
    """What the store knows of a claim: rows of the model (locked), the query and the lease."""

    model: AnyRow
    query: AnyRow
    lease: AnyRow

    @property
    def settled(self) -> bool:
        """The query was answered or refused."""
        return self.query.state in SETTLED

    @property
    def current(self) -> bool:
        """The query is held, or was settled, with exactly this token."""
        return bool(self.query.token == self.lease.token)

    @property
    def expired(self) -> str:
        """When the lease ended, in words."""
        end = datetime.fromtimestamp(self.lease.expires_at, UTC)
        return f"the lease expired at {end.isoformat(timespec='seconds')}"


def look_up(connection: Connection, claim: Claim, now: float) -> Held:
    """Lock the model, write down what has expired, and find query and lease."""
    row = lock(connection, claim.model)
    expiry.reopen_expired(connection, row.id, now)
    found = connection.execute(select(query).where(*named(query, row.id, claim.number))).one_or_none()
    if found is None:
        raise queries.missing(row, claim.number)
    mine = (*named(lease, row.id, claim.number), lease.c.token == claim.token)
    held = connection.execute(select(lease).where(*mine)).one_or_none()
    if held is None:
        raise FailedPrecondition(
            f"the lease token is not one that was given for query {claim.model}/{claim.number}"
        )
    return Held(row, found, held)


def named(table: Table, model_id: int, number: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Condition on `query` or `lease`: rows of one query."""
    return table.c.model_id == model_id, table.c.number == number


def refuse_settled(held: Held) -> None:
    """Raise when the query is answered or refused already."""
    if held.settled:
        how = "answered" if held.query.state == QueryState.ANSWERED else "refused"
        raise FailedPrecondition(f"already {how}" + ("" if held.current else " by another labeller"))


def refuse_lost(held: Held) -> None:
    """Raise when the lease was given up, or its query is withdrawn or held by somebody else."""
    if held.lease.released:
        raise FailedPrecondition("the lease was released: lease the query again")
    if held.query.state == QueryState.WITHDRAWN:
        raise FailedPrecondition(f"withdrawn: {held.expired}, and growth does not want this label any more")
    if held.query.state == QueryState.LEASED and not held.current:
        raise FailedPrecondition(f"{held.expired}, and the query is now leased to another labeller")
