"""The records of queries: frozen values, times in seconds."""

from dataclasses import dataclass

from quercus.labelling.leasing import Idle
from quercus.labelling.lifecycle import QueryState, Step


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
    asked, reason : bytes
        See `AgendaEntry`.
    tree_version : int
        The newest tree whose agenda gave this reason.
    labeller : str
        Labeller who holds or settled it, else empty.
    token : str
        Token of the lease; empty unless the record comes from `Store.lease`.
    left_s : float or None
        Rest of the lease in seconds, while LEASED.
    expires_at : float or None
        End of the lease by the wall clock, while LEASED; only for display.
    sequence : int
        Number of the event that settled it, 0 before.
    answers : int
        Number of answers given, if several are wanted.
    is_gold : bool
        Whether it is a gold question.
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
    is_gold: bool = False


@dataclass(frozen=True, slots=True)
class HistoryRow:
    """A step of a query; such rows are never changed.

    Attributes
    ----------
    id : int
        Grows with time, across all models.
    query, instance : int
        Number of the query, sequence of its INSTANCE event.
    step : Step
    state : QueryState
        State after the step.
    labeller : str
        Labeller who took the step; empty for steps of the store itself.
    lease : str
        Name of the lease (not its token); empty if there is none.
    clock, at : float
        Time of the step on the lease clock, which never goes back, and on the wall clock.
    until : float or None
        End of the lease (LEASED, EXPIRED) or of the postponement, on the lease clock.
    sequence : int
        Number of the event that the step added to the log, or 0.
    why : str
        Reason; empty if there is none.
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
        Seconds that the newest answers took, at most 1,000 of them.
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
        Seconds after which another attempt may succeed, even if nothing else happens.
    awaits_growth : tuple of int
        `growth_mark` of the model if the tree does not contain the required events yet: another attempt cannot succeed
        before the mark changes.
    """

    queries: list[QueryRecord]
    idle: Idle
    budget_left: int
    again_s: float | None = None
    awaits_growth: tuple[int, ...] = ()
