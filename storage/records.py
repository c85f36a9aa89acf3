"""The records of the store: frozen values, times in seconds since 1970 (UTC)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from quercus.labelling.event import Event
from quercus.labelling.row_values import Parts
from quercus.labelling.shapes import NEVER_EXTENDED, Shapes
from quercus.storage.errors import AlreadyExists
from quercus.storage.schema import AnyRow

Float64: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ModelRecord:
    """A model and its state.

    Attributes
    ----------
    key : int
        Key of the model; never used again, even if the model is deleted and another gets its name.
    initial_specification, specification : bytes
        The specification at creation, and the present one; the log's SPECIFICATION events lead from one to the other.
    budget : int
        Most queries that may be answered or leased.
    sequence_committed, sequence_grown : int
        Newest event of the log, and last event that the newest tree contains.
    sequence_asked : int
        Last event considered when the newest queries were chosen.
    tree_version : int
        0 before the first tree.
    queries_leased, queries_open : int
        A lease that has expired counts as open.
    conflicts : int
        Number of answers that totally contradicted the earlier evidence.
    times_opened : int
        Counter that grows when a labeller may get a query that was not free before: a query was opened or given back,
        or a budget or the policy changed.
    uid : str
        Identity for clients: like `key`, but unique among all stores.
    lag_s : float
        Age in seconds of the oldest event that the newest tree does not contain; 0 if it contains all.
    report : bytes
        The grower's report with the newest tree; empty if there is none.
    shapes : Shapes
        Shapes of the log.
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
    shapes: Shapes = NEVER_EXTENDED


def growth_mark(model: ModelRecord | AnyRow) -> tuple[int, ...]:
    """Return a mark that changes when the tree grows, when a query opens again, and when the budget is spent."""
    is_spent = model.queries_answered >= model.budget
    return (model.sequence_grown, model.sequence_asked, model.times_opened, int(is_spent))


@dataclass(frozen=True, slots=True)
class NewValue:
    """A nominal value met for the first time.

    Attributes
    ----------
    attribute : int
        Position of the attribute in the specification.
    index : int
        0, 1, ... among the *learned* values of the attribute: position in `Store.vocabulary(model)[attribute]`.
        Declared values are not counted, because the store does not interpret specifications.
    value : str
    """

    attribute: int
    index: int
    value: str


@dataclass(frozen=True, slots=True)
class Push:
    """One batch of instances, stored completely or not at all; see `Store.append_instances`.

    If `row_by_row`, rows whose id is stored with other content are refused, and the others are stored.
    `key` is the `ModelRecord.key` of the intended model, in case another model has its name now. `extensions` is the
    number of extensions of the model that the rows are encoded for; None accepts any number.
    """

    model: str
    ids: Sequence[str]
    values: Float64
    labels: Sequence[bytes]
    new_values: Sequence[NewValue] = ()
    key: int | None = None
    displays: Sequence[bytes] = ()
    """Displays, one per row, empty if the row has none; or no displays at all. Not part of the evidence."""
    row_by_row: bool = False
    extensions: int | None = None
    parts: Parts = field(default_factory=dict)
    """Ranges of uncertain values, by row and attribute; `values` has NaN there."""


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
    refused : sequence of AlreadyExists
        One for each row that was not stored; only if the push is `row_by_row`.
    """

    committed_sequence: int
    stored: int
    known: int
    uid: str = field(default="", compare=False)
    refused: Sequence[AlreadyExists] = ()


@dataclass(frozen=True, slots=True)
class EventSelection:
    """A selection of labellers' events.

    Attributes
    ----------
    after : int
        Only events after this sequence number; if `newest_first`, only events before it (0 for all).
    limit : int
    newest_first : bool
    authors : tuple of str
        Authors of the events; empty for all.
    since, until : float or None
        Only events from `since` on, and before `until`, in seconds since 1970.
    instances : tuple of int or None
        Sequences of INSTANCE events; None for all.
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
    """Consecutive INSTANCE events of the log, as columns.

    Attributes
    ----------
    first : int
        Sequence of the first event.
    values : float64 (n, K)
        NaN where a value is missing or uncertain.
    labels : list of bytes
        The source's labels, one per row, encoded by `belief.codec`.
    parts : mapping of (int, int) to tuple of ranges
        Ranges of uncertain values, by row and attribute.
    """

    first: int
    values: Float64
    labels: list[bytes]
    parts: Parts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LogSegment:
    """A piece of the log, in order.

    Attributes
    ----------
    parts : list of InstanceColumns or Event
        Events are of the other kinds.
    last : int
        Sequence of the last event.
    extensions : int
        Number of extensions of the model when this was read; the events have the shape of that time.
    """

    parts: list[InstanceColumns | Event]
    last: int
    extensions: int = 0


@dataclass(frozen=True, slots=True)
class AgendaEntry:
    """An instance whose label growth wants.

    Attributes
    ----------
    instance : int
        Sequence of its INSTANCE event.
    asked : bytes
        Position of the query in its round; copied into the event that settles it.
    reason : bytes
        Why the query is asked, as a message for the labeller.
    """

    instance: int
    asked: bytes
    reason: bytes


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A published tree; `as_of` is the sequence number of the last event that it contains."""

    version: int
    as_of: int
    data: bytes
    created_at: float
