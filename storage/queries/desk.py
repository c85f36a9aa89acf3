"""A locked model, and the rows that the calls of labellers about it need, read together.

Calls of one transaction run one after the other. The desk notes the changes of each for the calls after it, because
they need not be written yet. A call for which that does not suffice comes to the next desk, once everything is written.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import cache
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    CTE,
    BigInteger,
    ColumnElement,
    Connection,
    Integer,
    ScalarSelect,
    Select,
    String,
    Subquery,
    Table,
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

from quercus.labelling import checks
from quercus.labelling.answers import LabelledInstance, Words, check_declared
from quercus.labelling.crowds.labellers import MAX_LABELS, Crowd, crowd_of
from quercus.labelling.event import Event
from quercus.labelling.leasing import InstanceFilter
from quercus.labelling.lifecycle import LEASED, OPEN, HeldQuery
from quercus.labelling.policy import Policy, Reliability
from quercus.storage import deferred_writes
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.driver_reads import read_each
from quercus.storage.errors import FailedPrecondition, ModelReplaced
from quercus.storage.log import event_log
from quercus.storage.log.event_log import MAX_SEQUENCE
from quercus.storage.queries import expiry, history, policies, reading
from quercus.storage.queries.query_state import lifecycle_of
from quercus.storage.rows import BY_NAME_TO_HOLD, hold_row, lock_model
from quercus.storage.schema import LIVE, AnyRow, model, policy, query, query_history

ALL_ROWS: Final = 2**31 - 1  # rows
MAX_FREE_QUERIES: Final = 1000  # free queries that are read at once, for several labellers
SPARE_QUERIES: Final = 16
"""Free queries that are read beyond those asked for, because some labellers pass some over."""
_NAMED: Final[ScalarSelect[Any]] = (
    select(model.c.id).where(model.c.name == bindparam("wanted"), LIVE).correlate(None).scalar_subquery()
)
"""The id of the model that the parameter `wanted` names."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownModel:
    """The knowledge that a caller has of a model.

    Parameters
    ----------
    size
        Number of its classes.
    key
        `ModelRecord.key`, a guard against another model of the same name; None: whichever has the name.
    crowd
        Its labellers, where its policy says that their reliability is estimated. Without one they are estimated while
        the model is locked, which takes long.
    """

    size: int
    key: int | None = None
    crowd: Crowd | None = None

    def check_key(self, row: AnyRow) -> None:
        """Raise `ModelReplaced` if the model is another one."""
        if self.key not in (None, row.id):
            raise ModelReplaced(f"model {row.name} was replaced by another of its name")


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """The claim of a labeller: query `number` of `model`, and the token of its lease."""

    model: str
    number: int
    token: str


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A labeller's request for leases, see `Store.lease`.

    Parameters
    ----------
    model, labeller
        Their names.
    limit
        Most queries.
    duration_s
        Length of the leases, in seconds.
    min_sequence
        Only queries of a tree that contains the log up to this event.
    filter
        Only queries that pass it; None: all.
    credential
        Id of the token that the caller showed, "" for none.
    """

    model: str
    labeller: str
    limit: int
    duration_s: float
    min_sequence: int = 0
    filter: InstanceFilter | None = None
    credential: str = ""

    def check(self) -> None:
        """Raise `InvalidInput` if a value is out of bounds."""
        checks.name_text("labeller", self.labeller)
        checks.at_least("limit", self.limit, 1)
        checks.duration("duration_s", self.duration_s)


@dataclass(frozen=True, slots=True)
class AnswerRequest:
    """The words of a labeller who holds a query, see `Store.answer`."""

    claim: LeaseClaim
    words: Words
    known: KnownModel

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.claim.model

    def check(self) -> None:
        """Raise `InvalidInput` if a value is out of bounds."""
        check_declared(self.words.reliability)
        checks.comment(self.words.comment)
        checks.answer_time(self.words.took_s)
        checks.shown_text(self.words.shown)


LabellerCall: TypeAlias = LeaseRequest | AnswerRequest | LeaseClaim
"""A call of a labeller; a claim alone: something else with the query that it holds."""


@dataclass(slots=True)
class Desk:
    """A locked model, and the rows that its calls need.

    Attributes
    ----------
    connection : of the transaction.
    row : the model's row, with the counts as the calls leave them.
    now : time of reading.
    policy : the policy of the model.
    leased : number of live leases.
    held : live leases by labeller, of those who ask for queries.
    last_settled : event of the last query that a labeller settled, of those who ask for queries.
    free : queries that may be leased, in order: to the labeller of a request alone, by its place among the calls.
    shared : queries that may be leased to any labeller who did not pass them over.
    passed : those of `shared` that a labeller passed over, of those who ask for queries.
    is_cut : whether there may be more than `shared`.
    claimed : the rows behind each claim.
    touched : queries that a call has changed.
    spoken_of : instances of which a call has said something.
    is_reopened : whether a query may be free that was not when the rows were read.
    """

    connection: Connection
    row: Any
    now: Timestamps
    policy: Policy
    leased: int
    held: Counter[str] = field(default_factory=Counter)
    last_settled: dict[str, int] = field(default_factory=dict)
    free: dict[int, list[AnyRow]] = field(default_factory=dict)
    shared: list[AnyRow] = field(default_factory=list)
    passed: dict[str, set[int]] = field(default_factory=dict)
    is_cut: bool = False
    claimed: Mapping[LeaseClaim, list[AnyRow]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    spoken_of: set[int] = field(default_factory=set)
    is_reopened: bool = False
    _said: dict[int, list[Event]] = field(default_factory=dict)

    def suffices_for(self, place: int, call: LabellerCall) -> bool:
        """Return whether a call can be answered by what was read, in spite of what the calls before it changed."""
        if not isinstance(call, LeaseRequest):
            found = self.claimed[_claim_of(call)][0]
            return found.number not in self.touched and found.instance not in self.spoken_of
        if self.is_reopened or (call.filter is not None and place not in self.free):
            return False
        return place in self.free or not self.is_cut or len(self.free_for(place, call)) >= call.limit

    def free_for(self, place: int, request: LeaseRequest) -> list[AnyRow]:
        """Return the queries that may be leased by a request, in order."""
        passed = self.passed.get(request.labeller, set()) if place not in self.free else set()
        without = self.touched | passed
        return [each for each in self.free.get(place, self.shared) if each.number not in without]

    def held_query(self, claim: LeaseClaim) -> HeldQuery:
        """Return the query of a claim, and its lease.

        Raises
        ------
        NotFound
            When the model has no such query.
        FailedPrecondition
            When its token was never given for it.
        """
        rows = self.claimed[claim]
        found = rows[0]
        if found.number is None:
            raise reading.query_not_found(self.row, claim.number)
        if found.given_step is None:
            raise FailedPrecondition(
                f"the lease token is not one that was given for query {claim.model}/{claim.number}"
            )
        life, given = lifecycle_of(found), history.granted_lease(rows, claim.token)
        lease = given.lease
        if life.token == claim.token and found.ends is not None:  # it may have been extended
            lease = replace(lease, ends=found.ends)
        end = datetime.fromtimestamp(round(self.now.on_wall(lease.ends)), UTC)
        expired = f"the lease expired at {end.isoformat(timespec='seconds')}"
        given = replace(given, lease=lease)
        return HeldQuery(found.number, found.instance, found.asked, life, given, expired)

    def labelled(self, instance: int, known: KnownModel, crowd: Crowd | None) -> LabelledInstance:
        """Return what is known of an instance; it is read for all claims when it is first asked."""
        if instance not in self._said:
            claimed = {rows[0].instance for rows in self.claimed.values() if rows[0].instance is not None}
            self._said |= event_log.history_of(self.connection, self.row, sorted(claimed | {instance}))
        return LabelledInstance(
            self._said[instance], known.size, self.policy, crowd, int(self.row.sequence_committed),
            self.now.clock, self.now.wall,
        )  # fmt: skip

    def write(self) -> Connection:
        """Write what the calls before have changed, and return the connection, to read by."""
        deferred_writes.send_waiting(self.connection)
        return self.connection

    def crowd(self, known: KnownModel) -> Crowd | None:
        """Return the labellers of the model, where its policy says that their reliability is estimated."""
        if self.policy.reliability is Reliability.DECLARED:
            return None
        return known.crowd or crowd_of(
            event_log.newest_opinions(self.write(), self.row.name, MAX_LABELS), known.size
        )


def read_desk(connection: Connection, name: str, calls: Sequence[LabellerCall], clock: Clock) -> Desk:
    """Lock a model, record which leases have expired, and read what the calls look at; `NotFound` if there is none.

    Parameters
    ----------
    connection
        Of a transaction that writes.
    name
        Of the model.
    calls
        One or more, in the order in which they will be answered.
    clock
        Asked when the model is locked.
    """
    # Where the clock is asked here, the model must be locked before.
    row = None if clock.clocks.is_in_database else lock_model(connection, name)
    moment = clock.clocks.moment
    named = {"wanted": name, **clock.clocks.moment_parameters()}
    asked: list[tuple[Select[Any], Mapping[str, Any]]] = [(_state(moment), named)]
    leases = [place for place, call in enumerate(calls) if isinstance(call, LeaseRequest)]
    others = leases[1:]  # who read what is left by the first one
    most = sum(call.limit for call in calls if isinstance(call, LeaseRequest)) + len(calls) + SPARE_QUERIES
    most = min(most, MAX_FREE_QUERIES)
    for place, call in enumerate(calls):
        if not isinstance(call, LeaseRequest):
            claim = _claim_of(call)
            asked.append((_claim_rows(), {"wanted": name, "number": claim.number, "token": claim.token}))
        elif place == leases[0]:
            limit = ALL_ROWS if call.filter is not None else call.limit + place
            asked.append((_free_queries(moment), {**named, "asking": call.labeller, "most": limit}))
        else:
            asked.append((_passed_queries(moment), {**named, "asking": call.labeller, "most": most}))
    if others:
        asked.append((_shared_queries(moment), {**named, "most": most}))
    if row is None:
        locked, *found = read_each(connection, (BY_NAME_TO_HOLD, named), *asked)
        row = hold_row(connection, name, locked)
    else:
        found = read_each(connection, *asked)
    (state, *_), *found = found
    now = clock.clocks.timestamps_of(state.clock, state.wall)
    if state.expired:
        expiry.write_expired(connection, row.id, now)
        return read_desk(connection, name, calls, clock)
    rule = Policy() if state.answers_per_query is None else policies.policy_from(state)
    desk = Desk(connection, SimpleNamespace(**row._asdict()), now, rule, state.leased)
    claimed: defaultdict[LeaseClaim, list[AnyRow]] = defaultdict(list)
    if others:
        desk.shared = list(found.pop())
        desk.is_cut = len(desk.shared) >= most
    for place, (call, rows) in enumerate(zip(calls, found, strict=True)):
        if isinstance(call, LeaseRequest):
            numbered = [each for each in rows if each.number is not None]
            if place == leases[0]:
                desk.free[place] = numbered
            else:
                desk.passed[call.labeller] = {each.number for each in numbered}
            desk.held[call.labeller] = rows[0].held
            desk.last_settled[call.labeller] = rows[0].last_settled or 0
        else:
            claimed[_claim_of(call)] = list(rows)
    desk.claimed = claimed
    return desk


def claim_one(connection: Connection, claim: LeaseClaim, clock: Clock) -> tuple[Desk, HeldQuery]:
    """Lock the model of a claim, record expired leases, and find the query and its lease."""
    desk = read_desk(connection, claim.model, [claim], clock)
    return desk, desk.held_query(claim)


def find_query(connection: Connection, row: AnyRow, number: int) -> AnyRow:
    """The row of a query of a model, or `NotFound`."""
    found = connection.execute(select(query).where(*is_query(query, row.id, number))).one_or_none()
    if found is None:
        raise reading.query_not_found(row, number)
    return found


def is_query(table: Table, model_id: int, number: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Condition on `query` or its history: rows of one query."""
    return table.c.model_id == model_id, table.c.number == number


def _claim_of(call: AnswerRequest | LeaseClaim) -> LeaseClaim:
    return call if isinstance(call, LeaseClaim) else call.claim


@cache  # to make it takes longer than to run it
def _state(moment: Select[Any]) -> Select[Any]:
    """The time, the number of leases that have expired and of live ones, and the policy; one row."""
    told, rule = moment.cte("moment"), policy.alias("rule")
    alive = query.c.ends > select(told.c.clock).correlate(None).scalar_subquery()
    counts = (
        select(
            func.count(case((~alive, 1))).label("expired"),
            func.count(case((alive, 1))).label("leased"),
        )
        .where(query.c.model_id == _NAMED, query.c.state == LEASED)
        .subquery("leases")
    )
    columns = [column for column in rule.c if column.name != "model_id"]
    return select(told, counts, *columns).select_from(
        told.join(counts, true()).outerjoin(rule, rule.c.model_id == _NAMED)
    )


def _leasable(now: ColumnElement[float]) -> tuple[ColumnElement[bool], ...]:
    """Condition on `query`: it is open, and not postponed."""
    ready = or_(query.c.not_before.is_(None), query.c.not_before <= now)
    return query.c.model_id == _NAMED, query.c.state == OPEN, ready


_IN_ORDER = ((query.c.answers == 0), query.c.position, query.c.number)
"""Queries that have some of their answers come first; then the agenda decides."""


@cache
def _free_queries(moment: Select[Any]) -> Select[Any]:
    """The queries that the labeller `asking` may lease, `most` of them, in order; see `_with_labeller`."""
    told = moment.cte("moment")
    now = select(told.c.clock).correlate(None).scalar_subquery()
    free = reading.select_records().where(*_leasable(now), ~history.passed_over(_NAMED, bindparam("asking")))
    chosen = free.order_by(*_IN_ORDER).limit(bindparam("most", type_=Integer)).subquery("free")
    return _with_labeller(told, now, chosen).order_by(
        (chosen.c.answers == 0), chosen.c.position, chosen.c.number
    )


@cache
def _shared_queries(moment: Select[Any]) -> Select[Any]:
    """The first `most` queries that may be leased, whoever asks, in order."""
    told = moment.cte("moment")
    now = select(told.c.clock).correlate(None).scalar_subquery()
    return (
        reading.select_records()
        .where(*_leasable(now))
        .order_by(*_IN_ORDER)
        .limit(bindparam("most", type_=Integer))
    )


@cache
def _passed_queries(moment: Select[Any]) -> Select[Any]:
    """Those of `_shared_queries` that the labeller `asking` passed over; see `_with_labeller`."""
    told = moment.cte("moment")
    now = select(told.c.clock).correlate(None).scalar_subquery()
    first = (
        select(query)
        .where(*_leasable(now))
        .order_by(*_IN_ORDER)
        .limit(bindparam("most", type_=Integer))
        .subquery("first")
    )
    passed = select(first.c.number).where(history.passed_over(_NAMED, bindparam("asking"), first))
    return _with_labeller(told, now, passed.subquery("passed"))


def _with_labeller(told: CTE, now: ScalarSelect[Any], chosen: Subquery) -> Select[Any]:
    """Rows, at least one, each with the state of the labeller `asking`.

    That is the number of queries that it holds (`held`), and the event of the last one that it settled
    (`last_settled`).
    """
    asking = bindparam("asking", type_=String)
    mine = (
        query.c.model_id == _NAMED,
        query.c.state == LEASED,
        query.c.ends > now,
        query.c.labeller == asking,
    )
    held = select(func.count()).where(*mine).correlate(None).scalar_subquery().label("held")
    last = _last_settled(_NAMED, asking).correlate(None).scalar_subquery().label("last_settled")
    return select(held, last, *chosen.c).select_from(told.outerjoin(chosen, true()))


def _last_settled(asked: ColumnElement[int], labeller: ColumnElement[str]) -> Select[Any]:
    """The event of the last query of a model that a labeller settled; nothing, or null, where there is none.

    It is the last entry of the labeller in the index of labellers. For the greatest of the labeller's numbers a planner
    may take the index of all numbers, and read it from its end until this labeller comes.
    """
    place = tuple_(query.c.labeller, query.c.sequence)
    before = select(case((query.c.labeller == labeller, query.c.sequence))).where(
        query.c.model_id == asked, place <= tuple_(labeller, literal_column(str(MAX_SEQUENCE)))
    )
    return before.order_by(query.c.labeller.desc(), query.c.sequence.desc()).limit(1)


@cache
def _claim_rows() -> Select[Any]:
    """The query `number`, and a row for each step by the lease `token`; no step, or no query: nulls."""
    given = query_history.alias("given")
    number, token = bindparam("number", type_=BigInteger), bindparam("token", type_=String)
    one = select(literal_column("1").label("one")).subquery("one")
    of_query = and_(query.c.model_id == _NAMED, query.c.number == number)
    by_token = and_(given.c.model_id == _NAMED, given.c.number == number, given.c.token == token)
    names = ("step", "until", "sequence", "labeller", "clock")
    return (
        select(
            *query.c,
            *(given.c[name].label(f"given_{name}") for name in names),
            history.answered_by_another_lease(given).label("has_answered"),
        )
        .select_from(one.outerjoin(query, of_query).outerjoin(given, by_token))
        .order_by(given.c.id)
    )
