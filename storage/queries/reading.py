"""Reading queries with their present states: one whose lease has expired is open (see `expiry`)."""

from collections.abc import Collection
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, and_, bindparam, func, or_, select

from quercus.labelling import checks
from quercus.labelling.lifecycle import QueryLifecycle, QueryState, after_expiry
from quercus.storage.clocks import Timestamps
from quercus.storage.errors import NotFound
from quercus.storage.prepared import Prepared
from quercus.storage.queries.query_state import lifecycle_of
from quercus.storage.queries.records import QueryRecord
from quercus.storage.rows import find_model
from quercus.storage.schema import AnyRow, log, query


def get_query(connection: Connection, name: str, number: int, now: Timestamps) -> QueryRecord:
    """Return one query."""
    row = find_model(connection, name)
    mine = (query.c.model_id == row.id, query.c.number == number)
    found = connection.execute(select_records().where(*mine)).one_or_none()
    if found is None:
        raise query_not_found(row, number)
    return to_record(found, now)


def query_not_found(row: AnyRow, number: int) -> NotFound:
    """Return the error for a query that does not exist; only withdrawn queries are ever removed."""
    gone = 1 <= number <= row.query_count
    return NotFound("query", f"{row.name}/{number}", "any more: it was withdrawn" if gone else "")


def read_page(
    connection: Connection, name: str, states: Collection[QueryState], after: int, limit: int, now: Timestamps
) -> list[QueryRecord]:
    """Return queries in order of number, after `after`, in some states (by default, in any state)."""
    checks.at_least("limit", limit, 1)
    row = find_model(connection, name)
    wanted = select_records().where(query.c.model_id == row.id, query.c.number > after)
    if states:
        wanted = wanted.where(_in_states(states, now))
    return [
        to_record(found, now) for found in connection.execute(wanted.order_by(query.c.number).limit(limit))
    ]


def next_change_s(connection: Connection, name: str | None, now: Timestamps) -> float | None:
    """Return the seconds until a live lease ends or a postponed query comes back; None if neither will happen."""
    of = {} if name is None else {"of": find_model(connection, name).id}
    found = (each.run(connection, now=now.clock, **of).end for each in _next_ends(of_model=bool(of)))
    return min((float(end) - now.clock for end in found if end is not None), default=None)


@cache
def _next_ends(*, of_model: bool) -> list[Prepared]:
    """Return the statements for the next end of a lease and the next return of a postponed query."""
    ends = [
        select(func.min(column).label("end")).where(column > bindparam("now"))
        for column in (query.c.ends, query.c.not_before)
    ]
    return [Prepared(each.where(query.c.model_id == bindparam("of")) if of_model else each) for each in ends]


@cache
def select_records() -> Select[Any]:
    """Select all columns of queries, with the id of the instance."""
    same = (log.c.model_id == query.c.model_id) & (log.c.sequence == query.c.instance)
    return select(query, log.c.id.label("instance_id")).select_from(query.join(log, same))


def to_record(row: AnyRow, now: Timestamps) -> QueryRecord:
    """Return the record of a row of `select_records` at the time `now`, without a token."""
    lifecycle = after_expiry(lifecycle_of(row), now.clock)
    held = lifecycle.state is QueryState.LEASED
    labeller = (row.labeller or "") if lifecycle.token else ""
    return record_with(row, lifecycle, labeller, now, left_s=lifecycle.ends - now.clock if held else None)


def record_with(
    row: AnyRow,
    lifecycle: QueryLifecycle,
    labeller: str,
    now: Timestamps,
    *,
    left_s: float | None,
    token: str = "",
) -> QueryRecord:
    """Return the record of a row of `select_records` with a newer life cycle; `left_s` is the rest of its lease."""
    return QueryRecord(
        number=row.number,
        instance=row.instance,
        instance_id=row.instance_id,
        state=lifecycle.state,
        position=row.position,
        asked=row.asked,
        reason=row.reason,
        tree_version=row.tree_version,
        labeller=labeller,
        token=token,
        left_s=left_s,
        expires_at=None if left_s is None else now.on_wall(lifecycle.ends),
        sequence=row.sequence or 0,
        created_at=row.created_at,
        answers=row.answers,
        is_gold=bool(row.gold),
    )


def _in_states(states: Collection[QueryState], now: Timestamps) -> ColumnElement[bool]:
    plain = [int(state) for state in states if state is not QueryState.LEASED]
    chosen: ColumnElement[bool] = query.c.state.in_(plain)
    leased, over = query.c.state == QueryState.LEASED, query.c.ends <= now.clock
    stays = or_(query.c.wanted, query.c.answers > 0)
    if QueryState.OPEN in states:
        chosen |= and_(leased, over, stays)
    if QueryState.WITHDRAWN in states:
        chosen |= and_(leased, over, ~stays)
    if QueryState.LEASED in states:
        chosen |= and_(leased, ~over)
    return chosen
