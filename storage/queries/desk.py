"""A locked model, and the rows that labellers' calls about it need, read together.

The calls of a transaction run one after the other. The desk keeps their changes for the calls that follow, and writes
them all together. If that does not suffice for a call, everything is written, and a new desk is read.
"""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Connection,
    Double,
    Integer,
    Select,
    String,
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
    update,
)

from quercus.labelling import checks
from quercus.labelling.answers import Effects, LabelledInstance, Words, check_declared
from quercus.labelling.crowds.labellers import MAX_LABELS, Crowd, crowd_of
from quercus.labelling.event import Event
from quercus.labelling.leasing import InstanceFilter
from quercus.labelling.lifecycle import LEASED, OPEN, HeldQuery, HistoryNote, QueryLifecycle
from quercus.labelling.policy import Policy, Reliability
from quercus.storage.clocks import Clock, Timestamps
from quercus.storage.errors import FailedPrecondition, ModelReplaced
from quercus.storage.json_values import json_rows, one_of
from quercus.storage.log import event_log
from quercus.storage.log.event_log import MAX_SEQUENCE
from quercus.storage.prepared import Prepared
from quercus.storage.queries import expiry, history, policies, reading
from quercus.storage.queries.query_state import LIFE, columns_of, lifecycle_of, query_update
from quercus.storage.rows import lock_model, shapes_of
from quercus.storage.schema import AnyRow, model, policy, query, query_history

ALL_ROWS: Final = 2**31 - 1
MAX_FREE_QUERIES: Final = 1000  # most free queries that are read together for several labellers
SPARE_QUERIES: Final = 16
"""Free queries that are read beyond those asked for, since some labellers may not get some of them."""
_MODEL: Final = bindparam("of", type_=BigInteger)
_NOW: Final = bindparam("now", type_=Double)
IS_READY: Final = or_(query.c.not_before.is_(None), query.c.not_before <= _NOW)
"""The condition that a query is not postponed beyond `now`."""
_LEASABLE: Final = (query.c.model_id == _MODEL, query.c.state == OPEN, IS_READY, query.c.gold.is_(False))
"""The condition that a query is open, not postponed, and not a gold question; those are mixed in later."""


@dataclass(frozen=True, slots=True, eq=False)
class KnownModel:
    """The caller's knowledge of a model.

    Parameters
    ----------
    size
        Number of classes.
    key
        `ModelRecord.key`, in case another model has the name now; None accepts any model of the name.
    crowd
        Estimates of the labellers, if the policy says that reliability is estimated. Without them, they are computed
        while the model is locked, which takes long.
    extensions
        Number of extensions that the caller's labels are encoded for; None accepts any number.
    """

    size: int
    key: int | None = None
    crowd: Crowd | None = None
    extensions: int | None = None

    def fits(self, row: AnyRow) -> bool:
        """Return whether the model is the known one, with the known classes and attributes."""
        return self.key in (None, row.id) and self.extensions in (None, shapes_of(row).extensions)

    def check_key(self, row: AnyRow) -> None:
        """Raise `ModelReplaced` if the model does not fit."""
        if not self.fits(row):
            is_same = self.key in (None, row.id)
            what = "extended" if is_same else "replaced by another of its name"
            raise ModelReplaced(f"model {row.name} was {what}")


@dataclass(frozen=True, slots=True)
class LeaseClaim:
    """A labeller's claim to hold query `number` of `model` by the lease with this token."""

    model: str
    number: int
    token: str


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A labeller's request for leases, see `Store.lease`.

    Parameters
    ----------
    model, labeller
        Names of the model and the labeller.
    limit
        Most queries to lease.
    duration_s
        Duration of the leases, in seconds.
    min_sequence
        Event that the tree must contain.
    filter
        Filter of queries; None for all.
    credential
        Id of the caller's access token; "" for none.
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
    """A labeller's answer to a query, see `Store.answer`."""

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
"""A call of a labeller; a claim alone stands for any other call about a leased query."""


@dataclass(slots=True)
class Desk:
    """A locked model, and the rows that its calls need.

    Attributes
    ----------
    connection : connection of the transaction.
    row : the model's row, with the counts after the calls so far.
    now : time of reading.
    policy : policy of the model.
    leased : number of live leases.
    held : number of live leases of each labeller who asks for queries.
    last_settled : event of the last query that each of these labellers settled.
    shared : queries that may be leased, in order, except to labellers who skipped or answered them.
    passed : those of `shared` that each of these labellers skipped or answered.
    is_cut : whether there may be more than `shared`.
    first : queries that may be leased to the labeller of the first call, if `shared` does not suffice for it.
    claimed : rows of each claim.
    touched : queries that a call has changed.
    spoken_of : instances that a call has added events about.
    is_reopened : whether a query may be free now that was not free when the rows were read.
    """

    connection: Connection
    row: Any
    now: Timestamps
    policy: Policy
    leased: int
    held: Counter[str] = field(default_factory=Counter)
    last_settled: dict[str, int] = field(default_factory=dict)
    shared: Sequence[AnyRow] = ()
    passed: dict[str, set[int]] = field(default_factory=dict)
    is_cut: bool = False
    first: Sequence[AnyRow] | None = None
    claimed: dict[LeaseClaim, Sequence[AnyRow]] = field(default_factory=dict)
    touched: set[int] = field(default_factory=set)
    spoken_of: set[int] = field(default_factory=set)
    is_reopened: bool = False
    _said: dict[int, list[Event]] = field(default_factory=dict)
    _taken: list[dict[str, Any]] = field(default_factory=list)
    _settled: list[dict[str, Any]] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _notes: list[HistoryNote] = field(default_factory=list)
    _counted: Counter[str] = field(default_factory=Counter)

    def suffices_for(self, place: int, call: LabellerCall) -> bool:
        """Return whether the rows still suffice for a call, after the changes of the calls before it."""
        if not isinstance(call, LeaseRequest):
            found = self.claimed[_claim_of(call)]
            return not found or (
                found[0].number not in self.touched and found[0].instance not in self.spoken_of
            )
        if self.is_reopened or call.filter is not None:
            return False
        return not self.is_cut or len(self.free_for(place, call)) >= call.limit

    def free_for(self, place: int, request: LeaseRequest) -> list[AnyRow]:
        """Return the queries that may be leased to a request, in order."""
        if place == 0 and self.first is not None:
            return list(self.first)
        without = self.touched | self.passed.get(request.labeller, set())
        return [each for each in self.shared if each.number not in without]

    def held_query(self, claim: LeaseClaim) -> HeldQuery:
        """Return the query of a claim, and its lease.

        Raises
        ------
        NotFound
            If the model has no such query.
        FailedPrecondition
            If the token was never given for it.
        """
        rows = self.claimed[claim]
        if not rows:
            raise reading.query_not_found(self.row, claim.number)
        found = rows[0]
        if found.given_token != claim.token:
            raise FailedPrecondition(
                f"the lease token is not one that was given for query {claim.model}/{claim.number}"
            )
        life, given = lifecycle_of(found), history.granted_lease(rows, claim.token)
        lease = given.lease
        if life.token == claim.token and found.ends is not None:  # it may have been extended
            lease = replace(lease, ends=found.ends)
        end = datetime.fromtimestamp(round(self.now.on_wall(lease.ends)), UTC)
        expired = f"it was yours until {end.isoformat(timespec='seconds')}"
        given = replace(given, lease=lease)
        return HeldQuery(
            found.number, found.instance, found.asked, life, given, expired, is_gold=bool(found.gold)
        )

    def labelled(self, instance: int, known: KnownModel, crowd: Crowd | None) -> LabelledInstance:
        """Return an instance with its events, which are read for all claims the first time."""
        if instance not in self._said:
            claimed = {rows[0].instance for rows in self.claimed.values() if rows}
            self._said |= event_log.history_of(self.connection, self.row, sorted(claimed | {instance}))
        return LabelledInstance(
            self._said[instance], known.size, self.policy, crowd, int(self.row.sequence_committed),
            self.now.clock, self.now.wall,
        )  # fmt: skip

    def note_lease(self, note: HistoryNote, life: QueryLifecycle, labeller: str, credential: str) -> None:
        """Note that a query is leased; `write` writes it."""
        columns = {**columns_of(life, labeller), "credential": credential or None}
        self._taken.append({"of": self.row.id, "which": note.number, **columns})
        self._notes.append(note)
        self.touched.add(note.number)
        self.leased += 1
        self.held[labeller] += 1

    def note_effects(self, number: int, effects: Effects) -> None:
        """Note the effects of a call on a query; `write` writes them."""
        columns = {**columns_of(effects.life, effects.labeller), "sequence": effects.settled_by}
        self._settled.append({"of": self.row.id, "which": number, **columns})
        self._events += effects.events
        self._notes.append(effects.note)
        self._counted.update(
            events=len(effects.events), more_conflicts=effects.conflicts, refused=effects.refused,
            answered=effects.answered, opened=int(effects.note.state is OPEN),
        )  # fmt: skip
        self.row.sequence_committed += len(effects.events)
        self.row.queries_refused += effects.refused
        self.row.queries_answered += effects.answered
        self.touched.add(number)
        self.spoken_of.add(effects.note.instance)

    def write(self) -> Connection:
        """Write the changes of the calls, and return the connection for reading."""
        _TAKE.run_for_each(self.connection, self._taken)
        _SETTLE.run_for_each(self.connection, self._settled)
        event_log.add_events(self.connection, self.row.id, self._events, self.now)
        history.add_steps(self.connection, self.row.id, self._notes, self.now)
        if self._counted:
            _COUNT.run(self.connection, of=self.row.id, **self._counted)
        for noted in (self._taken, self._settled, self._events, self._notes, self._counted):
            noted.clear()
        return self.connection

    def crowd(self, known: KnownModel) -> Crowd | None:
        """Return the estimates of the model's labellers; None if its policy does not ask for them."""
        if self.policy.reliability is Reliability.DECLARED:
            return None
        return known.crowd or crowd_of(
            event_log.newest_opinions(self.write(), self.row.name, MAX_LABELS), known.size
        )


def read_desk(connection: Connection, name: str, calls: Sequence[LabellerCall], clock: Clock) -> Desk:
    """Lock a model, record expired leases, and read the rows that calls need; raise `NotFound` if there is no model.

    Parameters
    ----------
    connection
        Connection in a write transaction.
    name
        Name of the model.
    calls
        The calls, in the order in which they will be run.
    clock
        Read once the model is locked.
    """
    row = lock_model(connection, name)
    now = clock()
    known = {"of": row.id, "now": now.clock}
    requests = [call for call in calls if isinstance(call, LeaseRequest)]
    asking = json.dumps([*{call.labeller for call in requests}])
    states = _STATE.run_for_all(connection, **known, asking=asking)
    state = states[0]
    if state.expired:
        expiry.write_expired(connection, row.id, now)
    rule = Policy() if state.answers_per_query is None else policies.policy_from(state)
    desk = Desk(connection, SimpleNamespace(**row._asdict()), now, rule, state.leased)
    for each in states if requests else ():
        desk.held[each.asker] = each.held
        desk.last_settled[each.asker] = each.last_settled or 0
    first = calls[0] if calls else None
    if len(requests) > 1 or (requests and first is not requests[0]):
        most = sum(call.limit for call in requests) + len(calls) + SPARE_QUERIES
        shared = {**known, "most": min(most, MAX_FREE_QUERIES)}
        desk.shared = _SHARED.run_for_all(connection, **shared)
        desk.is_cut = len(desk.shared) >= shared["most"]
        for number, labeller in _PASSED.run_for_all(connection, **shared, asking=asking):
            desk.passed.setdefault(labeller, set()).add(number)
    if isinstance(first, LeaseRequest) and (len(requests) == 1 or not desk.suffices_for(0, first)):
        most = ALL_ROWS if first.filter is not None else first.limit
        alone = {**known, "asking": first.labeller, "most": most}
        desk.first = _FREE.run_for_all(connection, **alone)
    if claims := [_claim_of(call) for call in calls if not isinstance(call, LeaseRequest)]:
        numbers, tokens = ([getattr(each, name) for each in claims] for name in ("number", "token"))
        rows = _CLAIMED.run_for_all(
            connection, of=row.id, numbers=json.dumps(numbers), tokens=json.dumps(tokens)
        )
        for claim in claims:
            of_query = [each for each in rows if each.number == claim.number]
            by_token = [each for each in of_query if each.given_token == claim.token]
            desk.claimed[claim] = by_token or of_query[:1]
    return desk


def claim_one(connection: Connection, claim: LeaseClaim, clock: Clock) -> tuple[Desk, HeldQuery]:
    """Lock the model of a claim, record expired leases, and find the query and its lease."""
    desk = read_desk(connection, claim.model, [claim], clock)
    return desk, desk.held_query(claim)


def find_query(connection: Connection, row: AnyRow, number: int) -> AnyRow:
    """Return the row of a query; raise `NotFound` if there is none."""
    found = connection.execute(select(query).where(*is_query(query, row.id, number))).one_or_none()
    if found is None:
        raise reading.query_not_found(row, number)
    return found


def is_query(table: Table, model_id: int, number: int) -> tuple[ColumnElement[bool], ColumnElement[bool]]:
    """Return the condition that a row of `query` or of its history belongs to a query."""
    return table.c.model_id == model_id, table.c.number == number


def _claim_of(call: AnswerRequest | LeaseClaim) -> LeaseClaim:
    return call if isinstance(call, LeaseClaim) else call.claim


def _first(chosen: Select[Any]) -> Select[Any]:
    """Select the first `most` queries in the order of leasing: those with some of their answers come first."""
    in_order = chosen.order_by(query.c.answers == 0, query.c.position, query.c.number)
    return in_order.limit(bindparam("most", type_=Integer))


def _last_settled(labeller: ColumnElement[str]) -> Select[Any]:
    """Select the event of the last query of a model that a labeller settled; no row, or NULL, if there is none.

    It is the labeller's last entry in the index of labellers. For a plain maximum, a planner may choose the index of
    all numbers instead, and read it backwards until this labeller is found.
    """
    place = tuple_(query.c.labeller, query.c.sequence)
    before = select(case((query.c.labeller == labeller, query.c.sequence))).where(
        query.c.model_id == _MODEL, place <= tuple_(labeller, literal_column(str(MAX_SEQUENCE)))
    )
    return before.order_by(query.c.labeller.desc(), query.c.sequence.desc()).limit(1)


def _states() -> Select[Any]:
    leases = (
        select(query.c.labeller, query.c.ends)
        .where(query.c.model_id == _MODEL, query.c.state == LEASED)
        .cte("leases")
    )
    is_live = leases.c.ends > _NOW
    live, expired = (func.count(case((each, 1))) for each in (is_live, ~is_live))
    counts = select(live.label("leased"), expired.label("expired")).subquery("counts")
    asker = json_rows("asking").alias("asker")
    held = select(func.count()).select_from(leases).where(is_live, leases.c.labeller == asker.c.value)
    return select(
        counts,
        *(each for each in policy.c if each.name != "model_id"),
        asker.c.value.label("asker"),
        held.scalar_subquery().label("held"),
        _last_settled(asker.c.value).scalar_subquery().label("last_settled"),
    ).select_from(counts.outerjoin(policy, policy.c.model_id == _MODEL).outerjoin(asker, true()))


def _passed_queries() -> Select[Any]:
    first = _first(select(query).where(*_LEASABLE)).subquery("first")
    past = query_history.alias("past")
    of_model = and_(past.c.model_id == _MODEL, history.passes_over(past, first))
    asking = one_of(past.c.labeller, "asking")
    return select(first.c.number, past.c.labeller).select_from(first.join(past, of_model)).where(asking)


def _claim_rows() -> Select[Any]:
    given = query_history.alias("given")
    same = and_(
        given.c.model_id == query.c.model_id,
        given.c.number == query.c.number,
        one_of(given.c.token, "tokens"),
    )
    names = ("step", "until", "sequence", "labeller", "clock", "token")
    return (
        select(
            *query.c,
            *(given.c[name].label(f"given_{name}") for name in names),
            history.answered_by_another_lease(given).label("has_answered"),
        )
        .select_from(query.outerjoin(given, same))
        .where(query.c.model_id == _MODEL, one_of(query.c.number, "numbers"))
        .order_by(given.c.id)
    )


_STATE: Final = Prepared(_states())
"""The numbers of live and expired leases, and the policy, if there is one.

There is a row for each of the labellers `asking`, with the number of queries that the labeller holds (`held`), and the
event of the last one that the labeller settled (`last_settled`); or a single row if there are none.
"""
_FREE: Final = Prepared(
    _first(
        reading.select_records().where(
            *_LEASABLE, ~history.passed_over(_MODEL, bindparam("asking", type_=String))
        )
    )
)
"""The first `most` queries that may be leased to the labeller `asking`."""
_SHARED: Final = Prepared(_first(reading.select_records().where(*_LEASABLE)))
"""The first `most` queries that may be leased to somebody."""
_PASSED: Final = Prepared(_passed_queries())
"""Those of `_SHARED` that one of the labellers `asking` skipped or answered, with the labeller."""
_CLAIMED: Final = Prepared(_claim_rows())
"""The queries `numbers`, with a row for each step by one of the leases `tokens`, or one with NULL if there is none."""
_TAKE: Final = query_update(*LIFE, "credential")
_SETTLE: Final = query_update(*LIFE, "sequence")
_COUNT: Final = Prepared(
    update(model)
    .where(model.c.id == bindparam("of"))
    .values(
        sequence_committed=model.c.sequence_committed + bindparam("events"),
        conflicts=model.c.conflicts + bindparam("more_conflicts"),
        queries_refused=model.c.queries_refused + bindparam("refused"),
        queries_answered=model.c.queries_answered + bindparam("answered"),
        times_opened=model.c.times_opened + bindparam("opened"),
    )
)
