"""The life of a query: which step may follow which.

    apply_event(life, event, now) -> the next life, or `Refused` in words

Every change of a query's state goes through `apply_event`. Each row is an event, each column the state before it, and
each cell the state after it; `-` means refused. An expired lease counts as open or withdrawn (`after_expiry`).

    =================  ============  ====================  ===========  ===========  ===========
    event              open          leased                answered     refused      withdrawn
    =================  ============  ====================  ===========  ===========  ===========
    Take               leased [1]_   -                     -            -            -
    Extend             -             leased [2]_           -            -            -
    ReturnLease        open          open [2]_ [3]_        -            -            withdrawn
    Evict              -             open [3]_             -            -            -
    Reply              settled [4]_  settled [2]_ [4]_     -            -            -
    NoLongerWanted     withdrawn     leased                answered     refused      withdrawn
    NoMoreAnswers      answered [5]_ -                     -            -            -
    Correct            open [5]_     leased [5]_           answered     -            -
    UndoReply          open [3]_     leased [5]_           answered     withdrawn    -
    =================  ============  ====================  ===========  ===========  ===========

    .. [1] unless it is postponed
    .. [2] by the lease that holds it
    .. [3] or withdrawn, where growth does not want it any more and no answer is left
    .. [4] answered or refused by a lease that is not given up or used; or open, if more answers are wanted
    .. [5] if it has some of several answers (then it is not withdrawn by NoLongerWanted either); an answered one from
       which the last is taken back is withdrawn

A late answer is a Reply by a former holder whose lease expired. Two rules decide whether it counts. The state decides
here: the query must be open, and the lease not given up, ended by an operator, or used. The budgets decide in the
transaction that takes the answer: `quercus.labelling.leasing.why_late_answer_is_beyond`, which
`quercus.storage.queries.answers.answer` calls.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeAlias

from quercus.labelling.errors import Refused


class QueryState(IntEnum):
    """Life of a query: open → leased → answered | refused | withdrawn. The numbers are the wire's.

    Live queries have numbers up to `LEASED`: comparisons here and two partial indexes of the schema rely on it.
    """

    OPEN = 1
    LEASED = 2
    ANSWERED = 3
    REFUSED = 4
    WITHDRAWN = 5


class Step(IntEnum):
    """The step of a query, a row of its history. The numbers are the wire's."""

    OPENED = 1
    LEASED = 2
    RELEASED = 3
    EXPIRED = 4
    SKIPPED = 5
    POSTPONED = 6
    ANSWERED = 7
    REFUSED = 8
    WITHDRAWN = 9
    CORRECTED = 10
    UNDONE = 11
    EVICTED = 12
    """An operator ended the lease, or the access token that took it became invalid."""
    SETTLED = 13
    """The budget is spent: the query is settled with those of several answers that it has."""


OPEN, LEASED, WITHDRAWN = QueryState.OPEN, QueryState.LEASED, QueryState.WITHDRAWN
SETTLED = (QueryState.ANSWERED, QueryState.REFUSED)
NEVER = -float("inf")


@dataclass(frozen=True, slots=True)
class QueryLifecycle:
    """The state of a query in its life cycle.

    Attributes
    ----------
    state : QueryState
    token : str
        Token of the lease that holds or settled it, else empty.
    ends : float
        End of the lease while LEASED, on the lease clock.
    not_before : float
        Time before which no labeller gets it, because it was postponed.
    wanted : bool
        Whether the newest agenda names it.
    answers : int
        How many it has and still counts with, one by one where several are wanted; an open one with some is not
        withdrawn, whatever the agenda says.
    """

    state: QueryState = OPEN
    token: str = ""
    ends: float = NEVER
    not_before: float = NEVER
    wanted: bool = True
    answers: int = 0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A lease that was given once: its token, when it ends or ended, whether its holder gave it up or has answered."""

    token: str
    ends: float
    given_up: bool = False
    used: bool = False


@dataclass(frozen=True, slots=True)
class Take:
    """Somebody leases the query."""

    token: str
    ends: float


@dataclass(frozen=True, slots=True)
class Extend:
    """The holder's heartbeat: the lease ends no sooner than `ends`, and never sooner than it would have."""

    lease: LeaseRecord
    ends: float


@dataclass(frozen=True, slots=True)
class ReturnLease:
    """The holder gives it up: released or skipped; postponed when `not_before` is given."""

    lease: LeaseRecord
    not_before: float = NEVER


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer or a refusal by a present or past holder; `into` is the next state, OPEN if more answers are wanted."""

    lease: LeaseRecord
    into: QueryState


@dataclass(frozen=True, slots=True)
class NoLongerWanted:
    """The newest agenda does not name the query."""


@dataclass(frozen=True, slots=True)
class NoMoreAnswers:
    """The budget is spent, so the answers that the query has are all that it gets."""


@dataclass(frozen=True, slots=True)
class Correct:
    """Another answer comes into the place of one that was given; `again`: of one that was taken back."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class UndoReply:
    """One of its answers is taken back, or all answers and refusals (`every`)."""

    every: bool


@dataclass(frozen=True, slots=True)
class Evict:
    """The lease is ended by another than its holder."""


QueryEvent: TypeAlias = (
    Take | Extend | ReturnLease | Evict | Reply | NoLongerWanted | NoMoreAnswers | Correct | UndoReply
)


def after_expiry(lifecycle: QueryLifecycle, now: float) -> QueryLifecycle:
    """Return the life cycle at `now`: a lease past its end is over, whether or not its expiry was recorded."""
    return _after_return(lifecycle) if lifecycle.state is LEASED and lifecycle.ends <= now else lifecycle


def apply_event(
    lifecycle: QueryLifecycle, event: QueryEvent, now: float, expired: str = "it is not yours any more"
) -> QueryLifecycle:
    """The life after `event`; `Refused` if it may not be.

    Parameters
    ----------
    lifecycle, event
        The life before, and what happens.
    now
        Of the lease clock, in seconds.
    expired
        Until when the lease lasted, in words that a labeller understands.
    """
    lifecycle = after_expiry(lifecycle, now)
    match event:
        case Take(token, ends):
            if lifecycle.state is not OPEN or lifecycle.not_before > now:
                raise Refused("it is not available now")
            return QueryLifecycle(LEASED, token, ends, wanted=lifecycle.wanted, answers=lifecycle.answers)
        case NoLongerWanted():
            if lifecycle.state is LEASED:
                return replace(
                    lifecycle, wanted=False
                )  # its holder may continue; when it is returned, it is withdrawn
            if lifecycle.state is not OPEN:
                return lifecycle
            return replace(lifecycle, wanted=False) if lifecycle.answers else QueryLifecycle(WITHDRAWN)
        case NoMoreAnswers():
            if lifecycle.state is not OPEN or not lifecycle.answers:
                raise Refused("it is not open with some of several answers")
            return QueryLifecycle(QueryState.ANSWERED, answers=lifecycle.answers)
        case Evict():
            if lifecycle.state is not LEASED:
                raise Refused("nobody holds it")
            return _after_return(lifecycle)
        case Correct(again):
            return _after_correction(lifecycle, again)
        case UndoReply(every):
            return _take_back(lifecycle, every)
        case _:
            return _by_holder(lifecycle, event, expired)


def _after_correction(lifecycle: QueryLifecycle, again: bool) -> QueryLifecycle:
    if lifecycle.state is QueryState.REFUSED:
        raise Refused(
            "it was refused, there is no answer to correct: undo the refusal, and it is asked again"
        )
    if not lifecycle.answers:
        raise Refused("it is not answered")
    if again and lifecycle.state is not QueryState.ANSWERED:
        raise Refused("that answer was taken back: answer the query again")
    return replace(lifecycle, answers=lifecycle.answers + again)


def _take_back(lifecycle: QueryLifecycle, every: bool) -> QueryLifecycle:
    if lifecycle.state is not QueryState.REFUSED and not lifecycle.answers:
        raise Refused("it is not answered")
    left = 0 if every or lifecycle.state is QueryState.REFUSED else lifecycle.answers - 1
    if left or lifecycle.state is LEASED or (lifecycle.state is OPEN and lifecycle.wanted):
        return replace(lifecycle, answers=left)  # the other answers remain, or more may be asked for
    return QueryLifecycle(WITHDRAWN)


def _by_holder(
    lifecycle: QueryLifecycle, event: Extend | ReturnLease | Reply, expired: str
) -> QueryLifecycle:
    lost = _why_lost(lifecycle, event.lease, expired)
    if lost is not None and not (isinstance(event, ReturnLease) and lifecycle.state not in SETTLED):
        raise Refused(lost)
    mine = lifecycle.state is LEASED and lifecycle.token == event.lease.token
    match event:
        case Extend(_, ends):
            if not mine:
                raise Refused(
                    f"{expired}; it cannot be extended, but you may still answer if nobody else holds the query and "
                    "the budget allows it"
                )
            return replace(lifecycle, ends=max(lifecycle.ends, ends))
        case ReturnLease(_, not_before):
            return (
                _after_return(lifecycle, not_before) if mine else lifecycle
            )  # what ended already needs no giving back
        case Reply(lease, into):
            if into is OPEN:
                return QueryLifecycle(OPEN, wanted=lifecycle.wanted, answers=lifecycle.answers + 1)
            return QueryLifecycle(
                into, lease.token, answers=lifecycle.answers + 1 if into is QueryState.ANSWERED else 0
            )


def _why_lost(lifecycle: QueryLifecycle, lease: LeaseRecord, expired: str) -> str | None:
    if lifecycle.state in SETTLED:
        how = "answered" if lifecycle.state is QueryState.ANSWERED else "refused"
        by_another = " by another labeller" if lifecycle.token else ", when the budget was spent"
        return f"already {how}" + ("" if lifecycle.token == lease.token else by_another)
    if lease.used:  # the query is open again, because it wants more answers
        return "already answered"
    if lease.given_up:
        return "it was given back, or an operator took it back; its row may be asked again"
    if lifecycle.state is WITHDRAWN:
        return f"withdrawn: {expired}, and the model does not want this label any more"
    if lifecycle.state is LEASED and lifecycle.token != lease.token:
        return f"{expired}, and another labeller has it now"
    return None


def _after_return(lifecycle: QueryLifecycle, not_before: float = NEVER) -> QueryLifecycle:
    if lifecycle.wanted or lifecycle.answers:
        return QueryLifecycle(OPEN, not_before=not_before, wanted=lifecycle.wanted, answers=lifecycle.answers)
    return QueryLifecycle(WITHDRAWN)


@dataclass(frozen=True, slots=True)
class GrantedLease:
    """A lease that was given: to whom, when, and the event of the log that it brought (0: none)."""

    lease: LeaseRecord
    labeller: str
    since: float
    sequence: int


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """A step to be written down in the history of a query."""

    number: int
    instance: int
    step: Step
    state: QueryState
    labeller: str | None = None
    token: str | None = None
    until: float | None = None
    sequence: int | None = None
    why: str = ""


@dataclass(frozen=True, slots=True)
class HeldQuery:
    """A query before a call, and the lease that the call shows.

    Attributes
    ----------
    number, instance, asked
        Of the query.
    life : QueryLifecycle
        Before the call.
    given : GrantedLease
        The lease; its end is the actual or future one.
    expired : str
        The end of the lease in words.
    is_gold : bool
        Whether it is a gold question.
    """

    number: int
    instance: int
    asked: bytes
    life: QueryLifecycle
    given: GrantedLease
    expired: str
    is_gold: bool = False

    def after(self, event: QueryEvent, now: float) -> QueryLifecycle:
        """The life after a step; `Refused` if it may not be."""
        return apply_event(self.life, event, now, self.expired)


def give_back(
    held: HeldQuery, how: Step, not_before: float, why: str, now: float
) -> tuple[QueryLifecycle, HistoryNote | None]:
    """Return a query: RELEASED to all, SKIPPED to all others, or POSTPONED until `not_before` (else `NEVER`).

    If the lease has ended already, there is nothing to return, but the query may still be skipped. Returned are its
    life, and the step for its history; None: nothing happens.
    """
    lease = held.given.lease
    life = held.after(ReturnLease(lease, not_before), now)
    if life == held.life and (how is not Step.SKIPPED or lease.given_up):
        return life, None
    until = None if life.not_before == NEVER else life.not_before
    who = (held.given.labeller, lease.token, until)
    return life, HistoryNote(held.number, held.instance, how, life.state, *who, why=why)
