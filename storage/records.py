"""The records of the store: frozen values, times in seconds since 1970 (UTC)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import partial
from typing import Annotated, Any, Final, TypeAlias, get_type_hints

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import BigInteger, Boolean, Double, LargeBinary, SmallInteger
from sqlalchemy.types import TypeEngine

from quercus.storage import checks
from quercus.storage.column_types import text_type
from quercus.storage.errors import AlreadyExists

Float64: TypeAlias = NDArray[np.float64]


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
class ModelRecord:
    """A model and its state.

    Attributes
    ----------
    key : int
        Key of the model, never used again, even if the model is deleted and another gets its name.
    initial_specification, specification : bytes
        The specification at creation, and the present one; the log's SPECIFICATION events lead from one to the other.
    budget : int
        Most queries ever answered or leased.
    sequence_committed, sequence_grown : int
        Newest event of the log, and the one up to which the newest tree was grown.
    sequence_asked : int
        The event up to which the newest queries were selected.
    tree_version : int
        0 before the first tree.
    queries_leased, queries_open : int
        A lease that has expired counts as open.
    conflicts : int
        Number of answers that contradicted the earlier evidence totally.
    times_opened : int
        Counter that grows when a labeller may get a query that was not free before: a query opened or came back, or a
        budget or the policy changed.
    uid : str
        Identity for clients: like `key`, but unique among all stores.
    lag_s : float
        Seconds that the oldest event that the newest tree does not contain has been in the log; 0 if it contains all.
    report : bytes
        The grower's report with the newest tree; empty if there is none.
    """

    key: int
    name: str
    initial_specification: bytes
    specification: bytes
    budget: int
    created_at: float
    sequence_committed: int
    sequence_grown: int
    sequence_asked: int
    tree_version: int
    instance_count: int
    queries_answered: int
    queries_leased: int
    queries_refused: int
    queries_open: int
    conflicts: int
    times_opened: int
    lag_s: float
    uid: str
    report: bytes


@dataclass(frozen=True, slots=True)
class NewValue:
    """A nominal value met for the first time.

    Attributes
    ----------
    attribute : int
        Position of the attribute in the specification.
    index : int
        0, 1, ... among the *learned* values of the attribute: place in `Store.vocabulary(model)[attribute]`.
        Declared values are not counted, because the store does not look into specifications.
    value : str
    """

    attribute: int
    index: int
    value: str


@dataclass(frozen=True, slots=True)
class Push:
    """One batch of instances, stored whole or not at all; see `Store.append_instances`.

    If `row_by_row`, rows whose id is stored with other content are refused, and the others are stored.
    `key` is the `ModelRecord.key` of the intended model: a guard against another model of the same name.
    """

    model: str
    ids: Sequence[str]
    values: Float64
    labels: Sequence[bytes]
    new_values: Sequence[NewValue] = ()
    key: int | None = None
    displays: Sequence[bytes] = ()
    """Displays of the rows, one per row, empty if it has none; or no displays at all. Not part of the evidence."""
    row_by_row: bool = False


@dataclass(frozen=True, slots=True)
class AppendedBatch:
    """The outcome of a batch.

    Attributes
    ----------
    committed_sequence : int
        Newest event of the model's log after the batch.
    stored, known : int
        Numbers of rows written, and of rows stored before with the same content.
    uid : str
        Uid of the model.
    refused : AlreadyExists
        One for each row that was not stored; only if the push is `row_by_row`.
    """

    committed_sequence: int
    stored: int
    known: int
    uid: str = field(default="", compare=False)
    refused: Sequence[AlreadyExists] = ()


SOURCE: Final = "source"
"""Author of an INSTANCE."""
SAID: Final = frozenset(EventKind) - {EventKind.INSTANCE, EventKind.SPECIFICATION}
"""Kinds of events that say something of an instance."""
REPLIES: Final = SAID - {EventKind.STATEMENT}
"""Kinds of events that belong to a query."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The column of a field of an event; its forms in exported lines and in archives follow from it.

    Attributes
    ----------
    type : TypeEngine
        Its type in the database, from which those in JSON and in Parquet follow.
    needed, allowed : frozenset of EventKind
        Kinds of events that always have it, and those that may have it; in others it is NULL. All have a field that
        has neither.
    bounds : tuple of float or None
        Least and greatest number.
    check : callable or None
        Raises `InvalidInput` for other values that are refused.
    """

    type: TypeEngine[Any]
    needed: frozenset[EventKind] = frozenset()
    allowed: frozenset[EventKind] = frozenset()
    bounds: tuple[float, float] | None = None
    check: Callable[[Any], None] | None = None

    @property
    def may_be_null(self) -> bool:
        """True if some events do not have it."""
        return bool(self.needed or self.allowed)


_INSTANCE: Final = frozenset({EventKind.INSTANCE})
_LABELLED: Final = frozenset({EventKind.INSTANCE, EventKind.ANSWER})


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a model's log, and the declaration of the log's columns.

    The table, its exported and archived forms, and their checks follow from it. To add a column, add a field and a
    migration.

    Attributes
    ----------
    sequence : int
        1, 2, 3, ... in each model, without gaps.
    instance : int
        Sequence of the instance's INSTANCE event (for an INSTANCE its own), 0 for a SPECIFICATION.
    id : str
        The instance's id, empty for a SPECIFICATION. Stored only in INSTANCE rows, so that the unique index needs no
        condition on the kind.
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
    request : str
        The request that brought a STATEMENT, so that it counts once.
    """

    sequence: Annotated[int, Stored(BigInteger())]
    kind: Annotated[EventKind, Stored(SmallInteger())]
    instance: Annotated[int, Stored(BigInteger(), needed=SAID)]
    id: Annotated[str, Stored(text_type(200), needed=_INSTANCE, check=partial(checks.name_text, "id"))]
    values: Annotated[bytes | None, Stored(LargeBinary(), needed=_INSTANCE)]
    label: Annotated[bytes | None, Stored(LargeBinary(), _LABELLED, SAID - _LABELLED - {EventKind.REFUSAL})]
    author: Annotated[str, Stored(text_type(200), check=partial(checks.storable_text, "author"))]
    reliability: Annotated[float, Stored(Double(), bounds=(0.0, 1.0), check=checks.reliability)]
    asked: Annotated[bytes | None, Stored(LargeBinary(), frozenset({EventKind.ANSWER, EventKind.REFUSAL}))]
    conflict: Annotated[bool, Stored(Boolean())]
    specification: Annotated[bytes | None, Stored(LargeBinary(), frozenset({EventKind.SPECIFICATION}))]
    created_at: Annotated[float, Stored(Double(), bounds=(0.0, checks.MAX_TIME))]
    query: Annotated[int, Stored(BigInteger(), allowed=REPLIES, bounds=(1, checks.MAX_COUNT))] = 0
    comment: Annotated[str, Stored(text_type(), allowed=SAID, check=checks.comment)] = ""
    took_s: Annotated[
        float | None,
        Stored(Double(), allowed=REPLIES, bounds=(0.0, checks.MAX_STORED_TOOK_S), check=checks.answer_time),
    ] = None
    shown: Annotated[str, Stored(text_type(200), allowed=REPLIES, check=checks.shown_text)] = ""
    assumed: Annotated[bool, Stored(Boolean(), allowed=SAID - {EventKind.REFUSAL})] = False
    request: Annotated[
        str,
        Stored(text_type(200), frozenset({EventKind.STATEMENT}), check=partial(checks.name_text, "request")),
    ] = ""


EVENT_FIELDS: Final[Mapping[str, Stored]] = {
    name: hint.__metadata__[0] for name, hint in get_type_hints(Event, include_extras=True).items()
}
"""The column of each field of an event, in order."""


@dataclass(frozen=True, slots=True)
class EventSelection:
    """The events about instances that are read.

    Attributes
    ----------
    after : int
        Only events after this sequence number, or before it if the newest come first (0: from the end).
    limit : int
    newest_first : bool
    authors : tuple of str
        Authors of the events; empty: all.
    since, until : float or None
        First time, and the time before which events came, in seconds since 1970.
    instances : tuple of int or None
        Sequences of INSTANCE events; None: all.
    """

    after: int = 0
    limit: int = 1000
    newest_first: bool = False
    authors: tuple[str, ...] = ()
    since: float | None = None
    until: float | None = None
    instances: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, eq=False)
class InstanceColumns:
    """INSTANCE events that follow each other in the log, as columns.

    Attributes
    ----------
    first : int
        Sequence of the first; the others' are the next ones.
    values : float64 (n, K)
        NaN = missing.
    labels : list of bytes
        The source's labels, one per row, encoded by `belief.codec`.
    """

    first: int
    values: Float64
    labels: list[bytes]


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A piece of the log, in order.

    Attributes
    ----------
    parts : list of InstanceColumns or Event
        Events are of the other kinds.
    last : int
        Sequence of the last event.
    """

    parts: list[InstanceColumns | Event]
    last: int


@dataclass(frozen=True, slots=True)
class AgendaEntry:
    """A label that growth wants, in the order of the agenda.

    Attributes
    ----------
    instance : int
        Sequence of its INSTANCE event.
    asked : bytes
        Position of the query in its round; copied into the event that settles it.
    reason : bytes
        The message for the labeller.
    """

    instance: int
    asked: bytes
    reason: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A published tree; `as_of` is the sequence number of the last event from which it was grown."""

    version: int
    as_of: int
    data: bytes
    created_at: float
