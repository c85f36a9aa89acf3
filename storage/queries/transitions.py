"""The life of a query: which step may follow which. Pure: no clock, no store.

    step(life, event, now) -> the next lifecycle, or a RejectedStep in words

Everything that happens to a query goes through `step`; the SQL around it only reads and writes lives. The states:

    open -> leased -> answered | refused        settled by its holder (or late, while nobody else holds it)
    leased -> open                              released, skipped, postponed, expired, ended by an operator, or more
                                                answers are wanted
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
    """Where a query stands.

    Attributes
    ----------
    state : QueryState
    token : str
        Of the lease that holds or settled it, else empty.
    ends : float
        End of the lease while LEASED, on the lease clock.
    not_before : float
        Nobody gets it earlier: it was postponed.
    wanted : bool
        The newest agenda names it.
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
class Lease:
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
    """The holder shows a sign of life: the lease ends no sooner than `ends`, and never sooner than it would have."""

    lease: Lease
    ends: float


@dataclass(frozen=True, slots=True)
class ReturnLease:
    """The holder gives it up: released or skipped; postponed when `not_before` is given."""

    lease: Lease
    not_before: float = NEVER


@dataclass(frozen=True, slots=True)
class Reply:
    """Who holds or held the lease answers or refuses; `into` is the state after: OPEN when more answers are wanted."""

    lease: Lease
    into: QueryState


@dataclass(frozen=True, slots=True)
class NoLongerWanted:
    """The newest agenda does not name it."""


@dataclass(frozen=True, slots=True)
class Correct:
    """Another answer comes into the place of one that was given; `again`: of one that was taken back."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class UndoReply:
    """One of its answers is taken back, or all that was said (`every`): answers and refusals alike."""

    every: bool


@dataclass(frozen=True, slots=True)
class Evict:
    """The lease is ended by another than its holder."""


Event: TypeAlias = Take | Extend | ReturnLease | Evict | Reply | NoLongerWanted | Correct | UndoReply


@dataclass(frozen=True, slots=True)
class RejectedStep:
    """Why the step may not be; ``{expired}`` stands for when the lease ended, in words."""

    reason: str


def expire(life: QueryLifecycle, now: float) -> QueryLifecycle:
    """The life at `now`: a lease whose end has come is over, whether or not anybody wrote that down."""
    return _after_return(life) if life.state is LEASED and life.ends <= now else life


def step(life: QueryLifecycle, event: Event, now: float) -> QueryLifecycle | RejectedStep:  # noqa: PLR0911 - a table
    """The life after `event`, or why it may not be. `now` is of the lease clock, in seconds."""
    life = expire(life, now)
    match event:
        case Take(token, ends):
            if life.state is not OPEN or life.not_before > now:
                return RejectedStep("it is not to be had now")
            return replace(life, state=LEASED, token=token, ends=ends, not_before=NEVER)
        case NoLongerWanted():
            if life.state is LEASED:
                return replace(
                    life, wanted=False
                )  # its holder may go on; when it comes back, it is withdrawn
            if life.state is not OPEN:
                return life
            return replace(life, wanted=False) if life.answers else QueryLifecycle(WITHDRAWN)
        case Evict():
            return _after_return(life) if life.state is LEASED else RejectedStep("nobody holds it")
        case Correct(again):
            return _correct(life, again)
        case UndoReply(every):
            return _take_back(life, every)
        case _:
            return _by_holder(life, event)


def _correct(life: QueryLifecycle, again: bool) -> QueryLifecycle | RejectedStep:
    if life.state is QueryState.REFUSED:
        return RejectedStep(
            "it was refused, there is no answer to correct: undo the refusal, and it is asked again"
        )
    if not life.answers:
        return RejectedStep("it is not answered")
    if again and life.state is not QueryState.ANSWERED:
        return RejectedStep("that answer was taken back: answer the query again")
    return replace(life, answers=life.answers + again)


def _take_back(life: QueryLifecycle, every: bool) -> QueryLifecycle | RejectedStep:
    if life.state is not QueryState.REFUSED and not life.answers:
        return RejectedStep("it is not answered")
    left = 0 if every or life.state is QueryState.REFUSED else life.answers - 1
    if left or life.state is LEASED or (life.state is OPEN and life.wanted):
        return replace(life, answers=left)  # what the others said holds, or may still be asked
    return QueryLifecycle(WITHDRAWN)


def _by_holder(life: QueryLifecycle, event: Extend | ReturnLease | Reply) -> QueryLifecycle | RejectedStep:
    lost = _why_lost(life, event.lease)
    if lost is not None and not (isinstance(event, ReturnLease) and life.state not in SETTLED):
        return RejectedStep(lost)
    mine = life.state is LEASED and life.token == event.lease.token
    match event:
        case Extend(_, ends):
            if not mine:
                return RejectedStep("{expired}; it cannot be extended, but an answer is still welcome")
            return replace(life, ends=max(life.ends, ends))
        case ReturnLease(_, not_before):
            return (
                _after_return(life, not_before) if mine else life
            )  # what ended already needs no giving back
        case Reply(lease, into):
            if into is OPEN:
                return QueryLifecycle(OPEN, wanted=life.wanted, answers=life.answers + 1)
            return QueryLifecycle(
                into, lease.token, answers=life.answers + 1 if into is QueryState.ANSWERED else 0
            )


def _why_lost(life: QueryLifecycle, lease: Lease) -> str | None:
    if life.state in SETTLED:
        how = "answered" if life.state is QueryState.ANSWERED else "refused"
        return f"already {how}" + ("" if life.token == lease.token else " by another labeller")
    if lease.used:  # the query is open again, because it wants more answers
        return "already answered"
    if lease.given_up:
        return "the lease was released, or ended by an operator: lease the query again"
    if life.state is WITHDRAWN:
        return "withdrawn: {expired}, and growth does not want this label any more"
    if life.state is LEASED and life.token != lease.token:
        return "{expired}, and the query is now leased to another labeller"
    return None


def _after_return(life: QueryLifecycle, not_before: float = NEVER) -> QueryLifecycle:
    if life.wanted or life.answers:
        return QueryLifecycle(OPEN, not_before=not_before, wanted=life.wanted, answers=life.answers)
    return QueryLifecycle(WITHDRAWN)
