"""What a lease depends on, in one look: the moment, the leases that are alive, the policy, and what may be leased."""

from dataclasses import dataclass
from functools import cache
from typing import Any

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    Select,
    String,
    and_,
    bindparam,
    case,
    func,
    or_,
    select,
    true,
)

from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.queries import expiry, history, policies, reading
from quercus.storage.queries.expiry import LeaseCounts
from quercus.storage.queries.records import Policy, QueryState
from quercus.storage.schema import AnyRow, policy, query

ALL = 2**31 - 1  # rows


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What a labeller who asks for queries of a model meets; the model is held.

    Attributes
    ----------
    now : Timestamps
    policy : Policy
    leases : LeaseCounts
    last_settled : int
        The event of the last query that this labeller settled, or 0.
    free : list of rows
        Of queries that this labeller may have, with the id of the instance; those that have some of their answers come
        first, then the agenda decides.
    """

    now: Timestamps
    policy: Policy
    leases: LeaseCounts
    last_settled: int
    free: list[AnyRow]


def look(connection: Connection, model_id: int, labeller: str, limit: int, clock: Clock) -> LeaseView:
    """Write down what has expired, and look at up to `limit` free queries and all they depend on."""
    asked = {"model": model_id, "asking": labeller, "most": limit}
    wanted = _wanted(clock.clocks.moment)
    rows = connection.execute(wanted, {**asked, **clock.clocks.given()}).all()
    if rows[0].expired:
        expiry.write_expired(connection, model_id, clock.clocks.stamps(rows[0].clock, rows[0].wall))
        rows = connection.execute(wanted, {**asked, **clock.clocks.given()}).all()
    first = rows[0]
    return LeaseView(
        clock.clocks.stamps(first.clock, first.wall),
        Policy() if first.answers_per_query is None else policies.policy_from(first),
        LeaseCounts(first.leased, first.held),
        first.last_settled or 0,
        [row for row in rows if row.number is not None],
    )


@cache  # to make it takes longer than to run it
def _wanted(moment: Select[Any]) -> Select[Any]:
    asked, asking = bindparam("model", type_=BigInteger), bindparam("asking", type_=String)
    told = moment.cte("moment")
    now = select(told.c.clock).correlate(None).scalar_subquery()
    alive = query.c.ends > now
    leases = select(
        func.count(case((~alive, 1))).label("expired"),
        func.count(case((alive, 1))).label("leased"),
        func.count(case((and_(alive, query.c.labeller == asking), 1))).label("held"),
    )
    leases = leases.where(query.c.model_id == asked, query.c.state == QueryState.LEASED)
    settled = (query.c.model_id == asked, query.c.labeller == asking, query.c.sequence.is_not(None))
    last = select(func.max(query.c.sequence)).where(*settled).correlate(None).scalar_subquery()
    ready = or_(query.c.not_before.is_(None), query.c.not_before <= now)
    mine = and_(query.c.model_id == asked, query.c.state == QueryState.OPEN, ready)
    chosen = reading.select_records().where(mine, ~history.passed_over(asked, asking))
    in_order = chosen.order_by((query.c.answers == 0), query.c.position, query.c.number)
    free = in_order.limit(bindparam("most", type_=Integer)).subquery("free")
    counts, rule = leases.subquery("leases"), policy.alias("rule")
    columns = [column for column in rule.c if column.name != "model_id"]
    return (
        select(told, counts, last.label("last_settled"), *columns, *free.c)
        .select_from(
            told.join(counts, true()).outerjoin(rule, rule.c.model_id == asked).outerjoin(free, true())
        )
        .order_by((free.c.answers == 0), free.c.position, free.c.number)
    )
