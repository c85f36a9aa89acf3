"""The life of a query: which step may follow which. Pure: no clock, no store.

    apply_event(lifecycle, event, now) -> the next lifecycle, or a RejectedStep in words

Every change of a query's state goes through `apply_event`; the SQL around it only reads and writes lifecycles. States:

    open -> leased -> answered | refused        settled by its holder (or late, while nobody else holds it)
    leased -> open                              released, skipped, postponed, expired, ended by an operator, or more
                                                answers are wanted
    open -> answered                            the budget is spent: with the answers that it has
    open | leased -> withdrawn                  growth does not want it any more (a leased one: when it comes back)
    answered | refused -> withdrawn             taken back by who said it; of several answers, the last one
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from quercus.storage.queries.records import QueryState

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


@dataclass(frozen=True, slots=True)
class RejectedStep:
    """The reason why a step is not allowed; ``{expired}`` stands for the end of the lease, in words."""

    reason: str


def after_expiry(lifecycle: QueryLifecycle, now: float) -> QueryLifecycle:
    """Return the life cycle at `now`: a lease past its end is over, whether or not its expiry was recorded."""
    return _after_return(lifecycle) if lifecycle.state is LEASED and lifecycle.ends <= now else lifecycle


def apply_event(lifecycle: QueryLifecycle, event: QueryEvent, now: float) -> QueryLifecycle | RejectedStep:
    """The life after `event`, or why it may not be. `now` is of the lease clock, in seconds."""
    lifecycle = after_expiry(lifecycle, now)
    match event:
        case Take(token, ends):
            if lifecycle.state is not OPEN or lifecycle.not_before > now:
                return RejectedStep("it is not available now")
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
                return RejectedStep("it is not open with some of several answers")
            return QueryLifecycle(QueryState.ANSWERED, answers=lifecycle.answers)
        case Evict():
            return _after_return(lifecycle) if lifecycle.state is LEASED else RejectedStep("nobody holds it")
        case Correct(again):
            return _after_correction(lifecycle, again)
        case UndoReply(every):
            return _take_back(lifecycle, every)
        case _:
            return _by_holder(lifecycle, event)


def _after_correction(lifecycle: QueryLifecycle, again: bool) -> QueryLifecycle | RejectedStep:
    if lifecycle.state is QueryState.REFUSED:
        return RejectedStep(
            "it was refused, there is no answer to correct: undo the refusal, and it is asked again"
        )
    if not lifecycle.answers:
        return RejectedStep("it is not answered")
    if again and lifecycle.state is not QueryState.ANSWERED:
        return RejectedStep("that answer was taken back: answer the query again")
    return replace(lifecycle, answers=lifecycle.answers + again)


def _take_back(lifecycle: QueryLifecycle, every: bool) -> QueryLifecycle | RejectedStep:
    if lifecycle.state is not QueryState.REFUSED and not lifecycle.answers:
        return RejectedStep("it is not answered")
    left = 0 if every or lifecycle.state is QueryState.REFUSED else lifecycle.answers - 1
    if left or lifecycle.state is LEASED or (lifecycle.state is OPEN and lifecycle.wanted):
        return replace(lifecycle, answers=left)  # the other answers remain, or more may be asked for
    return QueryLifecycle(WITHDRAWN)


def _by_holder(
    lifecycle: QueryLifecycle, event: Extend | ReturnLease | Reply
) -> QueryLifecycle | RejectedStep:
    lost = _why_lost(lifecycle, event.lease)
    if lost is not None and not (isinstance(event, ReturnLease) and lifecycle.state not in SETTLED):
        return RejectedStep(lost)
    mine = lifecycle.state is LEASED and lifecycle.token == event.lease.token
    match event:
        case Extend(_, ends):
            if not mine:
                return RejectedStep("{expired}; it cannot be extended, but an answer is still welcome")
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


def _why_lost(lifecycle: QueryLifecycle, lease: LeaseRecord) -> str | None:
    if lifecycle.state in SETTLED:
        how = "answered" if lifecycle.state is QueryState.ANSWERED else "refused"
        by_another = " by another labeller" if lifecycle.token else ", when the budget was spent"
        return f"already {how}" + ("" if lifecycle.token == lease.token else by_another)
    if lease.used:  # the query is open again, because it wants more answers
        return "already answered"
    if lease.given_up:
        return "the lease was released, or ended by an operator: lease the query again"
    if lifecycle.state is WITHDRAWN:
        return "withdrawn: {expired}, and growth does not want this label any more"
    if lifecycle.state is LEASED and lifecycle.token != lease.token:
        return "{expired}, and the query is now leased to another labeller"
    return None


def _after_return(lifecycle: QueryLifecycle, not_before: float = NEVER) -> QueryLifecycle:
    if lifecycle.wanted or lifecycle.answers:
        return QueryLifecycle(OPEN, not_before=not_before, wanted=lifecycle.wanted, answers=lifecycle.answers)
    return QueryLifecycle(WITHDRAWN)
