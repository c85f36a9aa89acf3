"""The events of a model's log: pushed instances, and what labellers said about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Annotated, Any, Final, get_type_hints

from quercus.labelling import checks


class EventKind(IntEnum):
    """The kind of an event of the log."""

    INSTANCE = 1
    ANSWER = 2
    REFUSAL = 3
    SPECIFICATION = 4
    CORRECTION = 5
    """Replaces all answers to the instance; without a label, it takes them back."""
    OPINION = 6
    """One of several answers to a query; the ANSWER that follows is their combination. Trees ignore opinions."""
    STATEMENT = 7
    """A label that was stated without a query; without a label, it retracts the earlier one. Trees ignore statements:
    the CORRECTION that follows, which belongs to no query, has the combined label."""
    ADJUDICATION = 8
    """The decision of somebody between an instance's labellers. It overrules their labels until an ADJUDICATION without
    a label takes it back. Trees ignore it: the CORRECTION that follows, which belongs to no query, has the label that
    counts."""


SOURCE: Final = "source"
"""Author of an INSTANCE."""
SAID: Final = frozenset(EventKind) - {EventKind.INSTANCE, EventKind.SPECIFICATION}
"""Kinds of events that say something about an instance."""
UNASKED: Final = frozenset({EventKind.STATEMENT, EventKind.ADJUDICATION})
"""Kinds of events that belong to no query, and count through the CORRECTION that follows them."""
SHARED: Final = frozenset({EventKind.OPINION, EventKind.STATEMENT})
"""Kinds of events that an instance must have before labels of two labellers can hold at once."""
REPLIES: Final = SAID - UNASKED
"""Kinds of events that belong to a query."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The storage of a field of an event, from which its database column, exported and archived forms are derived.

    Attributes
    ----------
    needed, allowed : frozenset of EventKind
        The kinds of event that must have the field, and those that may; in all other kinds it is NULL. If both sets are
        empty, every event has the field.
    most : int or None
        Greatest number of characters; None sets no bound.
    bounds : tuple of float or None
        Least and greatest value.
    check : callable or None
        Raises `InvalidInput` for values that the other bounds do not exclude.
    """

    needed: frozenset[EventKind] = frozenset()
    allowed: frozenset[EventKind] = frozenset()
    most: int | None = None
    bounds: tuple[float, float] | None = None
    check: Callable[[Any], None] | None = None

    @property
    def may_be_null(self) -> bool:
        """True if some events do not have the field."""
        return bool(self.needed or self.allowed)


_INSTANCE: Final = frozenset({EventKind.INSTANCE})
_LABELLED: Final = frozenset({EventKind.INSTANCE, EventKind.ANSWER})


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a model's log, and the declaration of the log's columns.

    The table, its exported and archived forms, and their checks are derived from it: in storage, a new column takes a
    field here and a migration. CONTRIBUTING.md says what else a field of an answer needs, from wire to screen.

    Attributes
    ----------
    sequence : int
        1, 2, 3, ... in each model, without gaps.
    instance : int
        Sequence of the instance's INSTANCE event (for an INSTANCE, its own); 0 for a SPECIFICATION.
    id : str
        The instance's id; empty for a SPECIFICATION. Stored only in INSTANCE rows, so that the unique index needs no
        condition on the kind.
    values : bytes or None
        Values of the row, see `quercus.labelling.row_values`; only for an INSTANCE.
    label : bytes or None
        Encoded by `belief.codec`: for an INSTANCE the source's label, for an ANSWER the labeller's.
    author : str
        "source" for an INSTANCE, else the labeller; empty for a SPECIFICATION.
    reliability : float
        Reliability of the label in (0, 1]; 1.0 if none was given.
    asked : bytes or None
        `AgendaEntry.asked` of the query that an ANSWER or REFUSAL settles.
    conflict : bool
        Whether the answer totally contradicted the earlier evidence.
    specification : bytes or None
        Only for a SPECIFICATION.
    created_at : float
        Time of the event, in seconds since 1970.
    query : int
        Number of the query that the event answers, or whose answer it corrects; 0 if there is none.
    comment : str
        Comment of the labeller, or empty.
    took_s : float or None
        Seconds that the labeller took.
    shown : str
        The client's name for the content of the labeller's screen, or empty.
    assumed : bool
        True if no reliability was sent with the label, so that it is 1 or estimated.
    gold : bool
        Whether the event belongs to a gold question: an ADJUDICATION that marks the instance as one (without a label,
        takes the mark back), or an answer to one. Trees do not learn from such answers (`quercus.labelling.gold`).
    request : str
        The request that sent a STATEMENT, or a SPECIFICATION that extends the model, so that it is stored only once.
    """

    sequence: Annotated[int, Stored()]
    kind: Annotated[EventKind, Stored()]
    instance: Annotated[int, Stored(needed=SAID)]
    id: Annotated[str, Stored(_INSTANCE, most=checks.MAX_TEXT, check=partial(checks.name_text, "id"))]
    values: Annotated[bytes | None, Stored(_INSTANCE)]
    label: Annotated[bytes | None, Stored(_LABELLED, SAID - _LABELLED - {EventKind.REFUSAL})]
    author: Annotated[str, Stored(most=checks.MAX_TEXT, check=partial(checks.storable_text, "author"))]
    reliability: Annotated[float, Stored(bounds=(0.0, 1.0), check=checks.reliability)]
    asked: Annotated[bytes | None, Stored(frozenset({EventKind.ANSWER, EventKind.REFUSAL}))]
    conflict: Annotated[bool, Stored()]
    specification: Annotated[bytes | None, Stored(frozenset({EventKind.SPECIFICATION}))]
    created_at: Annotated[float, Stored(bounds=(0.0, checks.MAX_TIME))]
    query: Annotated[int, Stored(allowed=REPLIES, bounds=(1, checks.MAX_COUNT))] = 0
    comment: Annotated[str, Stored(allowed=SAID, check=checks.comment)] = ""
    took_s: Annotated[
        float | None,
        Stored(allowed=REPLIES, bounds=(0.0, checks.MAX_STORED_TOOK_S), check=checks.answer_time),
    ] = None
    shown: Annotated[str, Stored(allowed=REPLIES, most=checks.MAX_TEXT, check=checks.shown_text)] = ""
    assumed: Annotated[bool, Stored(allowed=SAID - {EventKind.REFUSAL})] = False
    gold: Annotated[bool, Stored(allowed=SAID - {EventKind.STATEMENT})] = False
    request: Annotated[
        str,
        Stored(
            frozenset({EventKind.STATEMENT}),
            frozenset({EventKind.SPECIFICATION}),
            most=checks.MAX_TEXT,
            check=partial(checks.name_text, "request"),
        ),
    ] = ""


_HINTS: Final = get_type_hints(Event, include_extras=True)
EVENT_FIELDS: Final[Mapping[str, Stored]] = {name: hint.__metadata__[0] for name, hint in _HINTS.items()}
"""The storage of each field of an event, in order."""
EVENT_TYPES: Final[Mapping[str, type]] = {
    name: (getattr(hint.__origin__, "__args__", None) or (hint.__origin__,))[0]
    for name, hint in _HINTS.items()
}
"""The type of each field, without None."""
