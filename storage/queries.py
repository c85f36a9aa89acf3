"""Reading queries, and the states they are in; one whose lease has expired is open (see `expiry`)."""

from collections.abc import Collection
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, func, select

from quercus.storage import checks
from quercus.storage.errors import NotFound
from quercus.storage.models import find
from quercus.storage.records import QueryRecord, QueryState
from quercus.storage.schema import AnyRow, log, query


def get(connection: Connection, name: str, number: int, now: float) -> QueryRecord:
    """One query."""
    row = find(connection, name)
    mine = (query.c.model_id == row.id, query.c.number == number)
    found = connection.execute(records().where(*mine)).one_or_none()
    if found is None:
        raise missing(row, number)
    return record(found, now)


def missing(row: AnyRow, number: int) -> NotFound:
    """The error for a query that is not there; of a model's numbers, only withdrawn queries are ever removed."""
    gone = 1 <= number <= row.query_count
    return NotFound("query", f"{row.name}/{number}", "any more: it was withdrawn" if gone else "")


def page(  # noqa: PLR0917 - a filter, a page, a time
    connection: Connection, name: str, states: Collection[QueryState], after: int, limit: int, now: float
) -> list[QueryRecord]:
    """Queries in order of number, behind `after`, in some of the states (none named: all)."""
    checks.at_least("limit", limit, 1)
    row = find(connection, name)
    wanted = records().where(query.c.model_id == row.id, query.c.number > after)
    if states:
        wanted = wanted.where(_in_states(states, now))
    return [record(found, now) for found in connection.execute(wanted.order_by(query.c.number).limit(limit))]


def next_expiry(connection: Connection, name: str | None, now: float) -> float | None:
    """When the first of the leases that are alive ends."""
    # Only a leased query has an end.
    wanted = select(func.min(query.c.expires_at)).where(query.c.expires_at > now)
    if name is not None:
        wanted = wanted.where(query.c.model_id == find(connection, name).id)
    found = connection.execute(wanted).scalar()
    return None if found is None else float(found)


def records() -> Select[Any]:
    """All columns of queries, with the id of the instance."""
    same = (log.c.model_id == query.c.model_id) & (log.c.sequence == query.c.instance)
    return select(query, log.c.id.label("instance_id")).select_from(query.join(log, same))


def record(row: AnyRow, now: float) -> QueryRecord:
    """The record of a row of `records`, as it stands at `now`; the token stays inside."""
    state = QueryState(row.state)
    expired = state is QueryState.LEASED and row.expires_at <= now
    if expired:
        state = QueryState.OPEN
    return QueryRecord(
        number=row.number,
        instance=row.instance,
        instance_id=row.instance_id,
        state=state,
        position=row.position,
        asked=row.asked,
        reason=row.reason,
        tree_version=row.tree_version,
        labeller="" if state is QueryState.OPEN else row.labeller or "",
        token="",
        expires_at=row.expires_at if state is QueryState.LEASED else None,
        sequence=row.sequence or 0,
        created_at=row.created_at,
    )


def _in_states(states: Collection[QueryState], now: float) -> ColumnElement[bool]:
    plain = [int(state) for state in states if state is not QueryState.LEASED]
    chosen: ColumnElement[bool] = query.c.state.in_(plain)
    if QueryState.OPEN in states:
        chosen |= (query.c.state == QueryState.LEASED) & (query.c.expires_at <= now)
    if QueryState.LEASED in states:
        chosen |= (query.c.state == QueryState.LEASED) & (query.c.expires_at > now)
    return chosen
