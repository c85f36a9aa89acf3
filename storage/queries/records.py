"""Queries as they go into the store and come out of it: frozen values, times in seconds."""

from dataclasses import dataclass
from enum import IntEnum


class QueryState(IntEnum):
    """Life of a query: open → leased → answered | refused | withdrawn. The numbers are the wire's.

    Live queries have numbers up to `LEASED`: comparisons here and two partial indexes of the schema rely on it.
    """

    OPEN = 1
    LEASED = 2
    ANSWERED = 3
    REFUSED = 4
    WITHDRAWN = 5


class Idle(IntEnum):
    """The reason why nothing was leased. The numbers are the wire's; 0 = something was leased."""

    NOT_IDLE = 0
    NOTHING_TO_ASK = 1
    ALL_LEASED = 2
    BUDGET_SPENT = 3
    GROWING = 4
    NOT_FOR_YOU = 5
    """The open queries were skipped or answered by this labeller, are postponed, or do not pass the filter."""
    SHARE_SPENT = 6
    """This labeller has given all answers that the policy allows one labeller."""
    HOUR_SPENT = 7
    """The policy allows no more answers within this hour."""
    HANDS_FULL = 8
    """This labeller holds as many queries as the policy allows one labeller."""


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


class Corrections(IntEnum):
    """The labellers who may correct or take back an answer. The numbers are the wire's."""

    OWN = 1
    ANYONE = 2
    NOBODY = 3


class Reliability(IntEnum):
    """The source of the reliability of an answer that was sent without one. The numbers are the wire's."""

    DECLARED = 1
    """It is 1."""
    ESTIMATED = 2
    """It is estimated from the agreement of the labellers."""


@dataclass(frozen=True, slots=True)
class Policy:
    """The labelling policy of a model.

    Attributes
    ----------
    answers_per_query : int
        Number of different labellers who answer before their answers are combined; 1 to 20.
    max_conflict : float
        Answers in more conflict than this ask for one more; in [0, 1].
    reliability : Reliability
    per_labeller, per_hour : int or None
        Most answers of one labeller, and of all within an hour; None: no bound but the budget.
    max_held : int
        Most queries that one labeller holds at once; 1 to 100.
    corrections : Corrections
    tags : tuple of str
        Tags by which labellers who answer for any model may choose.
    """

    answers_per_query: int = 1
    max_conflict: float = 0.5
    reliability: Reliability = Reliability.DECLARED
    per_labeller: int | None = None
    per_hour: int | None = None
    max_held: int = 20
    corrections: Corrections = Corrections.OWN
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryRecord:
    """A query and its state.

    Attributes
    ----------
    number : int
        1, 2, ... in each model.
    instance, instance_id : int, str
        Sequence of the INSTANCE event, and the instance's id.
    state : QueryState
        State of the query; OPEN if the lease has expired.
    position : int
        Place in the newest agenda that named it.
    tree_version : int
        The tree that asks, the newest whose agenda gave this reason.
    labeller : str
        Labeller who holds or settled it, else empty.
    token : str
        Token of the lease, only from `Store.lease`, else empty.
    left_s : float or None
        Rest of the lease in seconds, while LEASED.
    expires_at : float or None
        End of the lease by the wall clock, while LEASED: only to be shown.
    sequence : int
        Event that settled it, 0 before.
    answers : int
        Number of answers given, if several are wanted.
    """

    number: int
    instance: int
    instance_id: str
    state: QueryState
    position: int
    asked: bytes
    reason: bytes
    tree_version: int
    labeller: str
    token: str
    left_s: float | None
    expires_at: float | None
    sequence: int
    created_at: float
    answers: int = 0


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A step of a query; rows are only ever added.

    Attributes
    ----------
    id : int
        Grows with time, over all models.
    query, instance : int
        Number of the query, sequence of its INSTANCE event.
    step : Step
    state : QueryState
        State after the step.
    labeller : str
        Labeller who took the step; empty for steps of the store itself.
    lease : str
        A name of the lease, which is not its token; empty if there is none.
    clock, at : float
        Time of the step on the lease clock, which never goes back, and on the wall clock.
    until : float or None
        End of the lease (LEASED, EXPIRED) or of the postponement, on the lease clock.
    sequence : int
        Event of the log that the step brought, or 0.
    why : str
        Reason in words; empty if the step needs none.
    """

    id: int
    query: int
    instance: int
    step: Step
    state: QueryState
    labeller: str
    lease: str
    clock: float
    at: float
    until: float | None
    sequence: int
    why: str


@dataclass(frozen=True, slots=True)
class LabellerCounts:
    """The counts of a labeller for a model.

    Attributes
    ----------
    answered, refused, skipped, postponed, expired, corrected, undone : int
        Numbers of steps of that kind.
    held : int
        Number of queries leased now.
    times_s : tuple of float
        Seconds that the newest answers took (at most 1,000 answers).
    """

    labeller: str
    answered: int = 0
    refused: int = 0
    skipped: int = 0
    postponed: int = 0
    expired: int = 0
    corrected: int = 0
    undone: int = 0
    held: int = 0
    times_s: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class Leased:
    """Leased queries; if there are none, `idle` is the reason.

    Attributes
    ----------
    queries : list of QueryRecord
        Queries in the order of the agenda, each with its token.
    idle : Idle
        NOT_IDLE if there are queries.
    budget_left : int
        budget - answered - leased, after this lease.
    again_s : float or None
        Seconds after which another attempt may succeed even if nobody does anything.
    """

    queries: list[QueryRecord]
    idle: Idle
    budget_left: int
    again_s: float | None = None


@dataclass(frozen=True, slots=True)
class AnswerOutcome:
    """The outcome of an answer or a refusal.

    Attributes
    ----------
    sequence : int
        Number of its event.
    repeated : bool
        Whether it was stored before, by the same call of the same holder.
    conflict : bool
        As stored with the answer.
    settled : bool
        Whether the query is answered or refused; False if it wants more answers.
    """

    sequence: int
    repeated: bool
    conflict: bool = False
    settled: bool = True
