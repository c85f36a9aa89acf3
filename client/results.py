"""The results of the client's calls: frozen values of plain Python and numpy types, without protobuf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.specification.algorithms import Pruning
from quercus.specification.attributes import OTHER_NAMES, Attribute
from quercus.specification.display import Display
from quercus.specification.presentation import Presentation

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Value = str | float | None


@dataclass(frozen=True)
class Between:
    """A number from ``low`` to ``high``, both included: an uncertain value of a row to classify."""

    low: float
    high: float


@dataclass(frozen=True)
class Specification:
    """The definition of a model; ``None`` leaves the default, see :mod:`quercus.specification.parameters`.

    ``algorithm`` is the learner: a name, or a mapping of a name and parameters (:mod:`quercus.client.algorithms`).
    ``presentation``: the presentation of rows to people (:mod:`quercus.specification.presentation`).
    ``prediction_level``: how cautious sets of classes are, from 1 (least) to 0 (the whole frame).

    Examples
    --------
    >>> from quercus.client import Nominal, Numeric
    >>> Specification([Nominal("X", "abc"), Numeric("age")], ["ill", "well"], budget=5).classes
    ('ill', 'well')
    """

    attributes: Sequence[Attribute]
    classes: Sequence[str]
    alpha: float | None = None
    budget: int | None = None
    min_instances: int | None = None
    max_depth: int | None = None
    warmup_rows: int | None = None
    strategy: str | None = None
    pruning: Pruning | None = None
    algorithm: str | Mapping[str, Any] | None = None
    prediction_level: float | None = None
    presentation: Presentation | None = None
    split_significance: float | None = None
    ask: str | None = None
    memory_rows: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", tuple(self.attributes))
        object.__setattr__(self, "classes", tuple(self.classes))


@dataclass(frozen=True)
class AccuracyBlock:
    """The accuracy of the predictions of some rows; ``right`` and ``expected`` are sums over the rows."""

    rows: int
    precise_rows: int
    right: int
    expected: float


@dataclass(frozen=True)
class RecentAccuracy:
    """The accuracy of predictions on the last rows whose label came after the prediction, at most 1,000.

    Queried rows are harder than others: if most labels are answers, the accuracy on all rows is higher.
    ``blocks`` have 50 rows each, the oldest first; the newest may have fewer.
    """

    blocks: tuple[AccuracyBlock, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return sum(block.rows for block in self.blocks)

    @property
    def precise_rows(self) -> int:
        """Number of rows whose label is one class."""
        return sum(block.precise_rows for block in self.blocks)

    @property
    def accuracy(self) -> float | None:
        """Share of the precise rows whose class was predicted; None if there are none."""
        right = sum(block.right for block in self.blocks)
        return right / self.precise_rows if self.precise_rows else None

    @property
    def expected(self) -> float:
        """Mean pignistic probability, under the labels of all rows, of the classes that were predicted."""
        return sum(block.expected for block in self.blocks) / self.rows if self.rows else 0.0


@dataclass(frozen=True)
class AverageConfidence:
    """The mean probability of the classes that a model predicts for its rows: how right it takes itself to be.

    It needs no labels: an estimate of the accuracy on all rows, as right as the probabilities are.
    ``rows``: number of rows; of more than 1,000, so many evenly spread ones.
    """

    rows: int
    mean: float


@dataclass(frozen=True)
class Model:
    """The current state of a model on the server.

    ``lag_s``: seconds that the oldest event that the tree does not contain has been in the log.
    ``uid``: identity of the model, which differs from that of a later model of the same name.
    ``accuracy``: accuracy of its recent predictions, None if not known.
    ``average_confidence``: how right it takes itself to be on all rows, None if not known.
    ``other_names``: rows of its tree that hold a name beyond the bound of an attribute, by attribute.
    ``settled``: no split is contested and every leaf has a labelled row; None if the model makes queries anyway, or if
    this is not known.
    ``growth_stopped``: why it is grown no further, and how it can be; empty if it is grown.
    """

    name: str
    specification: Specification
    created_at: datetime
    sequence_committed: int
    sequence_grown: int
    tree_version: int
    instance_count: int
    queries_answered: int
    queries_leased: int
    queries_refused: int
    queries_open: int
    conflicts: int
    lag_s: float = 0.0
    uid: str = ""
    accuracy: RecentAccuracy | None = None
    settled: bool | None = None
    average_confidence: AverageConfidence | None = None
    other_names: Mapping[str, int] = field(default_factory=dict)
    growth_stopped: str = ""

    @property
    def budget(self) -> int:
        """Maximum number of answered and leased queries."""
        return self.specification.budget or 0

    @property
    def lag(self) -> int:
        """Number of events that are committed but not yet in the tree."""
        return self.sequence_committed - self.sequence_grown


@dataclass(frozen=True)
class GrowerMember:
    """A grower that shares a store: its place, its number of models, and whether it belongs to this server."""

    place: str
    models: int
    own: bool


_GROWER_WORDS: Final = {
    "off": "off: this server grows no trees",
    "restarting": "restarting: it ended, and starts again soon",
    "silent": "silent: it makes no progress",
}
"""Meanings of the states of a grower whose word alone does not say it."""


@dataclass(frozen=True)
class Status:
    """The status of a server.

    ``grower``: off, running, restarting or silent; ``grower_at``: the model at which a silent one hangs;
    ``learning``: models that learn again from all evidence now, or grow in processes of their own; ``waiting``:
    models that wait for a process (the first ten of ``waiting_count``); ``lag_s``: longest time that an event of any
    model has waited to get into a tree; ``writes_waiting``: writes that wait for the writer; ``store_trouble``: the
    reason why the store cannot be used, empty if it can; ``growers``: those that share the store, if several may;
    ``restricted``: the token is for some models, only these are counted, and numbers of the whole server are 0;
    ``damaged``: models whose stored data are damaged, each with the reason; ``stopped``: models that are grown no
    further, each with the reason.
    """

    version: str
    uptime_s: float
    store_revision: str
    store_bytes: int
    store_trouble: str
    grower: str
    grower_pid: int | None
    grower_at: str
    grower_restarts: int
    learning: tuple[str, ...]
    waiting: tuple[str, ...]
    waiting_count: int
    lag_s: float
    models: int
    calls: int
    writes_waiting: int
    memory_bytes: int
    tls: bool
    tokens: bool
    log_level: str
    growers: tuple[GrowerMember, ...] = ()
    restricted: bool = False
    damaged: Mapping[str, str] = field(default_factory=dict)
    stopped: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_grower_healthy(self) -> bool:
        """True if the grower runs, or if the server runs without one."""
        return self.grower in ("off", "running")

    @property
    def grower_text(self) -> str:
        """Description of what the grower does."""
        again = f"started again {self.grower_restarts} time{'' if self.grower_restarts == 1 else 's'}"
        parts = [
            _GROWER_WORDS.get(self.grower, self.grower),
            f"at model {self.grower_at}" if self.grower_at else "",
            again if self.grower_restarts else "",
            f"{self.lag_s:.1f} s behind" if self.lag_s else "",
        ]
        return ", ".join(filter(None, parts))

    @property
    def is_healthy(self) -> bool:
        """True if the store can be used, all its models are sound and grown, and the grower is healthy."""
        return not (self.store_trouble or self.damaged or self.stopped) and self.is_grower_healthy


@dataclass(frozen=True)
class Caller:
    """The caller of a server, and its permissions.

    Attributes
    ----------
    name
        Name of the token; empty if the server requires none.
    roles
        Roles of the token; all roles if the server requires none.
    models
        Names of the models that the caller may use; ``None``: all.
    needs_token
        Whether calls need a token.
    methods
        RPCs that the caller may call, as in ``"QueryService/LeaseQueries"``.
    """

    name: str
    roles: tuple[str, ...]
    models: tuple[str, ...] | None
    needs_token: bool
    methods: frozenset[str]

    def may_call(self, method: str) -> bool:
        """Return whether the caller may call an RPC, as in ``"TreeService/GetTree"``."""
        return method in self.methods

    def may_use(self, model: str) -> bool:
        """Return whether the caller may use a model."""
        return self.models is None or model in self.models


@dataclass(frozen=True)
class UnseenNames:
    """The names of one attribute, in the rows of a call, that the model had never seen before the call.

    Attributes
    ----------
    attribute
        Name of the attribute.
    rows, of_rows
        Number of rows with such a name, and of all rows.
    names
        Number of different ones; if not ``is_exact``, there may be more.
    examples
        The first ones, at most 100.
    rows_beyond
        Number of rows whose name the model does not keep, because the attribute has all the names that it may have.
        They count as other names.
    """

    attribute: str
    rows: int
    of_rows: int
    names: int
    examples: tuple[str, ...]
    rows_beyond: int = 0
    is_exact: bool = True

    @property
    def text(self) -> str:
        """A sentence without its full stop.

        Examples
        --------
        >>> UnseenNames("machine", 399, 400, 5, ("101.0", "102.0")).text
        '399 of 400 rows: `machine` has 5 names never seen, as 101.0'
        >>> UnseenNames("ticket", 3, 9, 2, ("b7",), rows_beyond=3).text
        '3 of 9 rows: `ticket` has 2 names beyond those that the model keeps, as b7; they count as (other names)'
        """
        number = f"{'' if self.is_exact else 'at least '}{self.names:,} name{'s' * (self.names != 1)}"
        kind = "beyond those that the model keeps" if self.rows_beyond == self.rows else "never seen"
        said = f"{self.rows:,} of {self.of_rows:,} rows: `{self.attribute}` has {number} {kind}"
        if self.examples:
            said += f", as {self.examples[0]}"
        if self.rows_beyond == self.rows:
            return f"{said}; they count as {OTHER_NAMES}"
        if self.rows_beyond:
            beyond = f"those of {self.rows_beyond:,} rows are beyond what the model keeps"
            return f"{said}; {beyond}, and count as {OTHER_NAMES}"
        return said


@dataclass(frozen=True)
class PushReport:
    """The progress of a push: ``rows`` acknowledged = ``stored`` now + ``known`` before; and rows ``rejected``.

    ``unseen``: names that the model had never seen before the push, of attributes that had names, and names beyond the
    bound of an attribute.
    """

    rows: int
    stored: int
    known: int
    batches: int
    committed_sequence: int
    seconds: float
    model_uid: str = ""
    rejected: int = 0
    unseen: tuple[UnseenNames, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """One statement about an instance's label; ``label`` has the form that :meth:`Client.answer` takes.

    ``kind`` is that of its event in the log. ``"instance"``: the label that was pushed with the row; ``"answer"``;
    ``"refusal"``; ``"opinion"``: one of several answers, which count through the answer that follows them;
    ``"statement"``: a label without a query, which counts through the correction that follows it; ``"correction"``:
    replaces all earlier answers (without a label, it takes them back).
    """

    sequence: int
    author: str
    label: object
    refused: bool
    reliability: float
    created_at: datetime
    kind: str = "answer"
    query: int | None = None
    comment: str = ""
    took_s: float | None = None


@dataclass(frozen=True)
class Instance:
    """A row with the history of its label; ``display`` is its display, if the call asks for one row.

    ``values`` has every attribute of the model, None where the value is missing: it is a row to classify or to push.
    """

    id: str
    values: Mapping[str, Value]
    history: tuple[Evidence, ...]
    contour: tuple[float, ...]
    conflict: bool
    display: Display = ()


@dataclass(frozen=True)
class Classification:
    """The prediction for one row; arrays are (l,), in the order of ``classes``.

    ``label_set`` are the classes that no other class dominates: one class dominates another if its belief exceeds the
    other's plausibility. ``node`` is the leaf of the row. If the row ends in several, it is the last node on the way to
    all of them; ``None`` if the model has several trees. ``mass`` gives each focal set its mass, if the model has mass
    functions and they were asked for.
    """

    label: str
    classes: tuple[str, ...]
    theta: Floats
    pignistic: Floats
    belief: Floats
    plausibility: Floats
    node: int | None
    version: int
    path: tuple[tuple[str, str], ...] | None
    label_set: tuple[str, ...] = ()
    mass: Mapping[tuple[str, ...], float] | None = None


@dataclass(frozen=True, eq=False)
class Classifications:
    """The predictions for n rows; arrays are (n, l), in the order of ``classes``.

    A request is answered from one tree version. Very many rows travel in several requests, and the tree may
    grow in between: ``versions`` (n,) names the version for each row; ``version`` and ``as_of`` are the oldest of them.
    ``class_sets`` (n,) are bit masks of the classes that no other class dominates; ``masses`` as in `Classification`.
    ``unseen``: names in the rows that the model has never seen.
    """

    classes: tuple[str, ...]
    indices: Integers
    theta: Floats
    pignistic: Floats
    belief: Floats
    plausibility: Floats
    nodes: Integers | None
    versions: Integers
    version: int
    as_of: int
    paths: tuple[tuple[tuple[str, str], ...], ...] | None = None
    class_sets: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    masses: tuple[Mapping[tuple[str, ...], float], ...] | None = None
    unseen: tuple[UnseenNames, ...] = ()

    @property
    def labels(self) -> list[str]:
        """Names of the predicted classes of all rows."""
        return [self.classes[index] for index in self.indices]

    def label_set(self, row: int) -> tuple[str, ...]:
        """Return the classes of one row that no other class dominates."""
        if not self.class_sets.size:  # of a server before 0.3, which does not say
            return (self.classes[self.indices[row]],)
        mask = int(self.class_sets[row])
        return tuple(name for c, name in enumerate(self.classes) if mask >> c & 1)

    def __len__(self) -> int:
        return len(self.indices)

    def __getitem__(self, row: int) -> Classification:
        return Classification(
            self.classes[self.indices[row]],
            self.classes,
            self.theta[row],
            self.pignistic[row],
            self.belief[row],
            self.plausibility[row],
            None if self.nodes is None else int(self.nodes[row]),
            int(self.versions[row]),
            None if self.paths is None else self.paths[row],
            self.label_set(row),
            None if self.masses is None else self.masses[row],
        )

    def __iter__(self) -> Iterator[Classification]:
        return (self[row] for row in range(len(self)))
