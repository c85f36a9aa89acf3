"""The values of the client's calls: frozen values with plain Python and numpy inside, no protobuf."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.specification.algorithms import Pruning
from quercus.specification.attributes import Attribute
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
    ``presentation``: how rows are shown to people (:mod:`quercus.specification.presentation`).
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

    Rows that were asked about are harder than others: if most labels are answers, the accuracy on all rows is higher.
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
class Model:
    """A model as the server sees it now.

    ``lag_s``: how long the oldest event that the tree does not know yet has been in the log, in seconds.
    ``uid``: tells the model from a later one of its name.
    ``accuracy``: how right its predictions were lately, None where nothing is known of it.
    ``settled``: whether no split is contested and every leaf has a told row; None where it asks even so, or where that
    is not known.
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

    @property
    def budget(self) -> int:
        """Most queries ever answered or leased."""
        return self.specification.budget or 0

    @property
    def lag(self) -> int:
        """Events that are committed but not yet in the tree."""
        return self.sequence_committed - self.sequence_grown


@dataclass(frozen=True)
class GrowerMember:
    """A grower that shares a store: where it runs, how many models it has taken, whether it is this server's."""

    place: str
    models: int
    own: bool


@dataclass(frozen=True)
class Status:
    """The status of a server.

    ``grower``: off, running, restarting, silent or compiling; ``grower_at``: the model at which a silent one hangs;
    ``kernels_ready`` of ``kernels`` steps of compiling are done, both 0 when nothing is compiled; ``learning``: models
    that learn again from all evidence now; ``waiting``: those that wait for it (the first ten of ``waiting_count``);
    ``lag_s``: the longest that an event of any model has waited to get into a tree; ``writes_waiting``: of the writer;
    ``store_trouble``: why the store cannot be used, empty when it can; ``growers``: those that share the store, where
    several may.
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
    kernels_ready: int = 0
    kernels: int = 0
    growers: tuple[GrowerMember, ...] = ()

    @property
    def grower_well(self) -> bool:
        """Whether the grower runs, or none is wanted."""
        return self.grower in ("off", "running")

    @property
    def well(self) -> bool:
        """Whether the store can be used and the grower is well."""
        return not self.store_trouble and self.grower_well


@dataclass(frozen=True)
class Caller:
    """The caller of a server, and its permissions.

    Attributes
    ----------
    name
        Name of the token; empty if the server asks for none.
    roles
        Roles of the token; all roles if the server asks for none.
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
        """Whether the caller may call an RPC, as in ``"TreeService/GetTree"``."""
        return method in self.methods

    def may_use(self, model: str) -> bool:
        """Whether the caller may use a model."""
        return self.models is None or model in self.models


@dataclass(frozen=True)
class PushReport:
    """The progress of a push: ``rows`` acknowledged = ``stored`` now + ``known`` before; and rows ``rejected``."""

    rows: int
    stored: int
    known: int
    batches: int
    committed_sequence: int
    seconds: float
    model_uid: str = ""
    rejected: int = 0


@dataclass(frozen=True)
class Evidence:
    """One statement about an instance's label; ``label`` in the form :meth:`Client.answer` takes.

    ``kind``: ``"statement"``; ``"opinion"``: one of several answers, which count by the answer that follows them;
    ``"correction"``: takes the place of all answers before (without a label they are taken back).
    """

    sequence: int
    author: str
    label: object
    refused: bool
    reliability: float
    created_at: datetime
    kind: str = "statement"
    query: int | None = None
    comment: str = ""
    took_s: float | None = None


@dataclass(frozen=True)
class Instance:
    """A row with the history of its label; ``display`` is what was pushed beside it, where one row is asked for."""

    id: str
    values: Mapping[str, Value]
    history: tuple[Evidence, ...]
    contour: tuple[float, ...]
    conflict: bool
    display: Display = ()


@dataclass(frozen=True)
class Classification:
    """One row's answer; arrays are (l,), in the order of ``classes``.

    ``label_set`` are the classes that none dominates: one's belief exceeds another's plausibility. ``node`` is where
    the row ends: of several, the last on the way to all of them; ``None`` where the model has several trees. ``mass``
    gives each focal set its mass, where the model has mass functions and they were asked for.
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
    """Answers for n rows; arrays are (n, l), in the order of ``classes``.

    A request is answered from one tree version. Very many rows travel in several requests, and the tree may
    grow in between: ``versions`` (n,) names each row's; ``version`` and ``as_of`` are the oldest of them.
    ``class_sets`` (n,) are bit masks of the classes that none dominates; ``masses`` as of `Classification`.
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

    @property
    def labels(self) -> list[str]:
        """Name of the predicted class of each row."""
        return [self.classes[index] for index in self.indices]

    def label_set(self, row: int) -> tuple[str, ...]:
        """The classes of one row that none dominates."""
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
