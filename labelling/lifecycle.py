"""The life cycle of a query: its states, and the events that change them.

    apply_event(lifecycle, event, now) -> the next life cycle, or `Refused`

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
    .. [3] or withdrawn, if the newest agenda does not name it and no answer is left
    .. [4] answered or refused, by a lease that is not given up or used; or open, if more answers are wanted
    .. [5] if it has some of several answers (then NoLongerWanted does not withdraw it either); an answered query whose
       last answer is taken back is withdrawn

A late answer is a Reply by a former holder whose lease expired. Two rules decide whether it counts. The first is
`_why_lost`: the query must be open, and the lease not given up, ended by an operator, or used. The second concerns the
budgets (`quercus.labelling.leasing.why_late_answer_is_beyond`), in the transaction that takes the answer
(`quercus.storage.queries.answers.answer`).
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TypeAlias

from quercus.labelling.errors import Refused


class QueryState(IntEnum):
    """The state of a query: open → leased → answered | refused | withdrawn. The numbers are those of the wire.

    Unfinished queries have numbers up to `LEASED`: comparisons and two partial indexes of the schema rely on it.
    """

    OPEN = 1
    LEASED = 2
    ANSWERED = 3
    REFUSED = 4
    WITHDRAWN = 5


class Step(IntEnum):
    """A step in the history of a query. The numbers are those of the wire."""

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
    """The budget is spent, so the query was settled with the answers that it had."""


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
        Token of the lease that holds or settled the query, else empty.
    ends : float
        End of the lease while LEASED, in seconds of the lease clock.
    not_before : float
        Time before which no labeller gets the query, because it was postponed.
    wanted : bool
        Whether the newest agenda names the query.
    answers : int
        Number of answers that count. An open query that has some is not withdrawn, whatever the agenda says.
    """

    state: QueryState = OPEN
    token: str = ""
    ends: float = NEVER
    not_before: float = NEVER
    wanted: bool = True
    answers: int = 0


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """A present or past lease: its token, its end, and whether its holder gave it up or used it to answer."""

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
    """The holder extends the lease until `ends`; an earlier time does not shorten it."""

    lease: LeaseRecord
    ends: float


@dataclass(frozen=True, slots=True)
class ReturnLease:
    """The holder gives the lease up (releases or skips the query), or postpones the query until `not_before`."""

    lease: LeaseRecord
    not_before: float = NEVER


@dataclass(frozen=True, slots=True)
class Reply:
    """A present or past holder answers or refuses; `into` is the next state, OPEN if more answers are wanted."""

    lease: LeaseRecord
    into: QueryState


@dataclass(frozen=True, slots=True)
class NoLongerWanted:
    """The newest agenda does not name the query."""


@dataclass(frozen=True, slots=True)
class NoMoreAnswers:
    """The budget is spent, so the query gets no more answers."""


@dataclass(frozen=True, slots=True)
class Correct:
    """A new answer replaces an earlier one; `again` is true if that had been taken back."""

    again: bool = False


@dataclass(frozen=True, slots=True)
class UndoReply:
    """One answer is taken back, or (`every`) all answers and refusals."""

    every: bool


@dataclass(frozen=True, slots=True)
class Evict:
    """Somebody other than the holder ends the lease."""


QueryEvent: TypeAlias = (
    Take | Extend | ReturnLease | Evict | Reply | NoLongerWanted | NoMoreAnswers | Correct | UndoReply
)


def after_expiry(lifecycle: QueryLifecycle, now: float) -> QueryLifecycle:
    """Return the life cycle at `now`: a lease past its end is over, even if its expiry is not recorded yet."""
    return _after_return(lifecycle) if lifecycle.state is LEASED and lifecycle.ends <= now else lifecycle


def apply_event(
    lifecycle: QueryLifecycle, event: QueryEvent, now: float, expired: str = "it is not yours any more"
) -> QueryLifecycle:
    """Return the life cycle after an event.

    Parameters
    ----------
    lifecycle, event
        The life cycle before, and the event.
    now
        Time of the lease clock, in seconds.
    expired
        The end of the lease, in words for the labeller; messages of `Refused` contain it.

    Raises
    ------
    Refused
        If the event may not happen in this state.
    """
    lifecycle = after_expiry(lifecycle, now)
    match event:
        case Take(token, ends):
            if lifecycle.state is not OPEN or lifecycle.not_before > now:
                raise Refused("it is not available now")
            return QueryLifecycle(LEASED, token, ends, wanted=lifecycle.wanted, answers=lifecycle.answers)
        case NoLongerWanted():
            if lifecycle.state is LEASED:
                # the holder may still answer; the query is withdrawn when the lease ends
                return replace(lifecycle, wanted=False)
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
            # a lease that has ended changes nothing
            return _after_return(lifecycle, not_before) if mine else lifecycle
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
    """A lease, with its holder, the time it was given, and the number of the event that it led to (0: none)."""

    lease: LeaseRecord
    labeller: str
    since: float
    sequence: int


@dataclass(frozen=True, slots=True)
class HistoryNote:
    """A step to add to the history of a query."""

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
    """A query before a call, and the lease that the call presents.

    Attributes
    ----------
    number, instance, asked
        The query's number, instance, and stored reason.
    life : QueryLifecycle
        Its life cycle before the call.
    given : GrantedLease
        The lease.
    expired : str
        The end of the lease, in words for the labeller.
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
        """Return the life cycle after an event, see `apply_event`."""
        return apply_event(self.life, event, now, self.expired)


def give_back(
    held: HeldQuery, how: Step, not_before: float, why: str, now: float
) -> tuple[QueryLifecycle, HistoryNote | None]:
    """Give a leased query back: RELEASED to everybody, SKIPPED to everybody else, or POSTPONED until `not_before`.

    A lease that has ended leaves nothing to give back, but the query can still be skipped.

    Parameters
    ----------
    held : the query and the lease.
    how : RELEASED, SKIPPED or POSTPONED.
    not_before : in seconds of the lease clock; `NEVER` unless POSTPONED.
    why : reason for the history.
    now : time of the lease clock, in seconds.

    Returns
    -------
    tuple
        The next life cycle, and the step for the history; None in its place if nothing changes.
    """
    lease = held.given.lease
    life = held.after(ReturnLease(lease, not_before), now)
    if life == held.life and (how is not Step.SKIPPED or lease.given_up):
        return life, None
    until = None if life.not_before == NEVER else life.not_before
    who = (held.given.labeller, lease.token, until)
    return life, HistoryNote(held.number, held.instance, how, life.state, *who, why=why)
