"""One query for all that a lease depends on: the time, the live leases, the policy, and the queries that are free."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    String,
    Text,
    and_,
    bindparam,
    case,
    func,
    literal_column,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import aggregate_order_by

from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.driver_reads import read_each
from quercus.storage.log.event_log import MAX_SEQUENCE
from quercus.storage.queries import expiry, history, policies, reading
from quercus.storage.queries.expiry import LeaseCounts
from quercus.storage.queries.records import Policy, QueryState
from quercus.storage.row_writes import sent_rows
from quercus.storage.schema import LIVE, AnyRow, model, policy, query

ALL_ROWS = 2**31 - 1  # rows
NAMED: Final[ScalarSelect[Any]] = (
    select(model.c.id).where(model.c.name == bindparam("wanted"), LIVE).correlate(None).scalar_subquery()
)
"""The id of the model that the parameter `wanted` names."""


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The state of a locked model for a labeller who asks for queries.

    Attributes
    ----------
    now : Timestamps
    policy : Policy
    leases : LeaseCounts
    last_settled : int
        Event of the last query that this labeller settled, or 0.
    free : list of rows
        Queries that this labeller may lease, with the id of the instance. Those that have some of their answers come
        first; then the agenda decides.
    """

    now: Timestamps
    policy: Policy
    leases: LeaseCounts
    last_settled: int
    free: list[AnyRow]


def read_lease_view(
    connection: Connection, model_id: int, labeller: str, limit: int, clock: Clock
) -> LeaseView:
    """Record expired leases, and read up to `limit` free queries and everything that their lease depends on."""
    asked = {"model": model_id, "asking": labeller, "most": limit}
    wanted = _lease_view_query(clock.clocks.moment), {**asked, **clock.clocks.moment_parameters()}
    (rows,) = read_each(connection, wanted)
    if rows[0].expired:
        expiry.write_expired(connection, model_id, clock.clocks.timestamps_of(rows[0].clock, rows[0].wall))
        (rows,) = read_each(connection, wanted)
    now, first, free = told_by(rows, clock)
    return LeaseView(
        now, policy_in(first), LeaseCounts(first.leased, first.held), first.last_settled or 0, free
    )


def policy_in(row: AnyRow) -> Policy:
    """Return the policy in a row of `read_lease_view`."""
    return Policy() if row.answers_per_query is None else policies.policy_from(row)


def told_by(rows: Sequence[AnyRow], clock: Clock) -> tuple[Timestamps, AnyRow, list[AnyRow]]:
    """Return the moment, the first row, and the rows that have a query."""
    now = clock.clocks.timestamps_of(rows[0].clock, rows[0].wall)
    return now, rows[0], [row for row in rows if row.number is not None]


@cache  # to make it takes longer than to run it
def _lease_view_query(moment: Select[Any]) -> Select[Any]:
    asked, asking = bindparam("model", type_=BigInteger), bindparam("asking", type_=String)
    told = moment.cte("moment")
    now = select(told.c.clock).correlate(None).scalar_subquery()
    held = func.count(case((and_(query.c.ends > now, query.c.labeller == asking), 1))).label("held")
    last = last_settled(asked, asking).correlate(None).scalar_subquery()
    chosen = reading.select_records().where(_is_leasable(asked, now), ~history.passed_over(asked, asking))
    return _look_of(told, asked, _lease_counts(asked, now, held), chosen, last.label("last_settled"))


@cache
def look_for_all(moment: Select[Any]) -> Select[Any]:
    """Return the statement of `read_lease_view` for several labellers (`asking`) of the model `wanted`.

    It has up to `most` queries.

    Each query has the column `passed`: those of the labellers who may not have it. There is one row at least, and each
    has the columns `holders`, who holds the leases that are alive, once for each, and `settled`, the event of the last
    query that each of the labellers settled, or 0.
    """
    asked, asking = NAMED, bindparam("asking", type_=ARRAY(Text))
    told = moment.cte("moment")
    now = select(told.c.clock).correlate(None).scalar_subquery()
    passed = history.who_pass_over(asked, asking).label("passed")
    chosen = reading.select_records().add_columns(passed).where(_is_leasable(asked, now))
    holders = func.array_agg(query.c.labeller).filter(query.c.ends > now).label("holders")
    sent = sent_rows("sent", {"asking": Text()})
    last = func.coalesce(last_settled(asked, sent.c.asking).correlate(sent).scalar_subquery(), 0)
    each = select(func.array_agg(aggregate_order_by(last, sent.c.place))).select_from(sent)
    settled = each.correlate(None).scalar_subquery().label("settled")
    return _look_of(told, asked, _lease_counts(asked, now, holders), chosen, settled)


def last_settled(asked: ColumnElement[int], labeller: ColumnElement[str]) -> Select[Any]:
    """The event of the last query of a model that a labeller settled; nothing, or null, where there is none.

    It is the last entry of the labeller in the index of labellers. For the greatest of the labeller's numbers a planner
    may take the index of all numbers, and read it from its end until this labeller comes.
    """
    place = tuple_(query.c.labeller, query.c.sequence)
    before = select(case((query.c.labeller == labeller, query.c.sequence))).where(
        query.c.model_id == asked, place <= tuple_(labeller, literal_column(str(MAX_SEQUENCE)))
    )
    return before.order_by(query.c.labeller.desc(), query.c.sequence.desc()).limit(1)


def _is_leasable(asked: ColumnElement[int], now: ColumnElement[float]) -> ColumnElement[bool]:
    """Condition on `query`: it is open, and not postponed."""
    ready = or_(query.c.not_before.is_(None), query.c.not_before <= now)
    return and_(query.c.model_id == asked, query.c.state == QueryState.OPEN, ready)


def _lease_counts(
    asked: ColumnElement[int], now: ColumnElement[float], *more: ColumnElement[Any]
) -> Select[Any]:
    alive = query.c.ends > now
    counts = (func.count(case((~alive, 1))).label("expired"), func.count(case((alive, 1))).label("leased"))
    return select(*counts, *more).where(query.c.model_id == asked, query.c.state == QueryState.LEASED)


def _look_of(
    told: CTE, asked: ColumnElement[int], leases: Select[Any], chosen: Select[Any], *more: ColumnElement[Any]
) -> Select[Any]:
    """The moment, leases, policy, and as many of the chosen queries as are wanted, in order; at least one row."""
    in_order = chosen.order_by((query.c.answers == 0), query.c.position, query.c.number)
    free = in_order.limit(bindparam("most", type_=Integer)).subquery("free")
    counts, rule = leases.subquery("leases"), policy.alias("rule")
    columns = [column for column in rule.c if column.name != "model_id"]
    return (
        select(told, counts, *more, *columns, *free.c)
        .select_from(
            told.join(counts, true()).outerjoin(rule, rule.c.model_id == asked).outerjoin(free, true())
        )
        .order_by((free.c.answers == 0), free.c.position, free.c.number)
    )
