"""The events of a log: instances as they were pushed, and what labellers say of them."""

from dataclasses import dataclass
from enum import IntEnum


class EventKind(IntEnum):
    """The kind of an event of the log."""

    INSTANCE = 1
    ANSWER = 2
    REFUSAL = 3
    SPECIFICATION = 4
    CORRECTION = 5
    """Replaces all answers to the instance; without a label it takes them back."""
    OPINION = 6
    """One of several answers to a query; the ANSWER that follows is their combination. Trees ignore it."""
    STATEMENT = 7
    """A label that was stated without a query; without a label it is retracted. Trees ignore it: the CORRECTION that
    follows, which belongs to no query, has the combined label."""


@dataclass(frozen=True, slots=True)
class Event:
    """A row of the log.

    Attributes
    ----------
    sequence : int
        1, 2, 3, ... in each model, without gaps.
    instance : int
        Sequence of the instance's INSTANCE event (for an INSTANCE its own), 0 for a SPECIFICATION.
    id : str
        The instance's id, empty for a SPECIFICATION.
    values : bytes or None
        K little-endian float64; only for an INSTANCE.
    label : bytes or None
        `belief.codec`; for an INSTANCE the source's label, for an ANSWER the labeller's.
    author : str
        "source" for an INSTANCE, else the labeller; empty for a SPECIFICATION.
    reliability : float
        Reliability of the label; 1.0 if none was given.
    asked : bytes or None
        `AgendaEntry.asked` of the query that an ANSWER or REFUSAL settles.
    conflict : bool
        Whether the answer contradicted the earlier evidence totally.
    specification : bytes or None
        Only for a SPECIFICATION.
    query : int
        Number of the query that it answers, or whose answer it corrects; 0 if there is none.
    comment : str
        Comment of the labeller, or empty.
    took_s : float or None
        Seconds that the labeller took.
    shown : str
        The client's name for the content of the labeller's screen, or empty.
    assumed : bool
        Whether the reliability was not sent with the label, but assumed to be 1 or estimated.
    """

    sequence: int
    kind: EventKind
    instance: int
    id: str
    values: bytes | None
    label: bytes | None
    author: str
    reliability: float
    asked: bytes | None
    conflict: bool
    specification: bytes | None
    created_at: float
    query: int = 0
    comment: str = ""
    took_s: float | None = None
    shown: str = ""
    assumed: bool = False
