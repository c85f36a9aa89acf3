"""Predictions: the responses to one or several Classify requests as one result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.client import notebooks
from quercus.client.unseen import UnseenNames, UnseenTally
from quercus.client.values import Floats, Integers
from quercus.v1 import classify_pb2

if TYPE_CHECKING:
    import pyarrow as pa

MAX_CLASSIFY_ROWS: Final = 10_000
CLASSIFY_BYTES: Final = 8 * 1024 * 1024
"""Target size of a Classify request or response: half of the message limit."""


class CoverageBasis(StrEnum):
    """The rows from which the threshold of prediction sets was computed."""

    NONE = "none"
    """No rows, or the learner does not keep their predictions: every set has all classes."""
    LABELLED = "labelled"
    """Rows labelled without a query, which represent the rows to come."""
    WEIGHTED = "weighted"
    """Rows some of which were asked about, weighted by their margins to represent all rows."""


@dataclass(frozen=True, eq=False)
class PredictionSets:
    """Prediction sets of stated coverage, of n rows.

    ``class_sets`` (n,) are bit masks of the classes. ``coverage`` is the stated one; ``scores`` is the number of rows,
    predicted before their label arrived, that gave the threshold: with too few for the coverage, a set has all classes.
    ``basis`` is the kind of these rows. If several requests were needed, these values are of the oldest tree.
    """

    class_sets: NDArray[np.uint64]
    coverage: float
    scores: int
    basis: CoverageBasis


@dataclass(frozen=True)
class Classification:
    """The prediction for one row; arrays are (l,), in the order of ``classes``.

    ``label_set`` are the classes that no other class dominates: one class dominates another if its belief exceeds the
    other's plausibility. ``node`` is the leaf of the row. If the row ends in several leaves, it is their last common
    node; ``None`` if the model has several trees. ``mass`` gives each focal set its mass, if the model has mass
    functions and they were requested. ``prediction_set`` are the classes in the set of stated coverage, if one was
    stated. ``overlap`` and ``ignorance``, if requested and if the learner separates them, are the two kinds of doubt in
    bits: overlap, because rows of several classes are alike, which further labels hardly reduce; and ignorance, because
    too little is known of rows like this one, which they do. Their sum is the entropy of ``theta``.
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
    prediction_set: tuple[str, ...] | None = None
    overlap: float | None = None
    ignorance: float | None = None

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return notebooks.classification_html(self)


@dataclass(frozen=True, eq=False)
class Classifications:
    """The predictions for n rows; arrays are (n, l), in the order of ``classes``.

    A request is answered from one tree version. Many rows need several requests, between which the tree may grow:
    ``versions`` (n,) has the version for each row; ``version`` and ``as_of`` are those of the oldest tree.
    ``class_sets`` (n,) are bit masks of the classes that no other class dominates; ``masses`` as in `Classification`.
    ``unseen``: names in the rows that the model has never seen. ``prediction_sets``: those of the stated coverage, if
    one was stated. ``overlap`` and ``ignorance`` (n,) as in `Classification`.
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
    prediction_sets: PredictionSets | None = None
    overlap: Floats | None = None
    ignorance: Floats | None = None

    @property
    def labels(self) -> list[str]:
        """Names of the predicted classes of all rows."""
        return [self.classes[index] for index in self.indices]

    def label_set(self, row: int) -> tuple[str, ...]:
        """Return the classes of one row that no other class dominates."""
        return self._names_in(self.class_sets[row])

    def prediction_set(self, row: int) -> tuple[str, ...] | None:
        """Return the classes in the set of stated coverage of one row; ``None`` if no coverage was stated."""
        return None if self.prediction_sets is None else self._names_in(self.prediction_sets.class_sets[row])

    def _names_in(self, mask: np.uint64) -> tuple[str, ...]:
        return tuple(name for c, name in enumerate(self.classes) if int(mask) >> c & 1)

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
            self.prediction_set(row),
            None if self.overlap is None else float(self.overlap[row]),
            None if self.ignorance is None else float(self.ignorance[row]),
        )

    def __iter__(self) -> Iterator[Classification]:
        return (self[row] for row in range(len(self)))

    def to_arrow(self) -> pa.Table:
        """Return the predictions as an Arrow table, one row each.

        Returns
        -------
        pyarrow.Table
            With the columns ``class``; ``theta:NAME``, ``pignistic:NAME``, ``belief:NAME`` and ``plausibility:NAME`` of
            each class; ``classes``, those that no other class dominates; ``set``, if a coverage was stated; ``overlap``
            and ``ignorance``, if they are known; ``node``, if the model has one tree; ``version``. Polars, DuckDB and
            others read this object directly (``polars.DataFrame(found)``), by Arrow's C interface.

        Raises
        ------
        ModuleNotFoundError
            If pyarrow is not installed.
        """
        import pyarrow as pa  # noqa: PLC0415 - an optional package

        names = pa.DictionaryArray.from_arrays(
            pa.array(self.indices, pa.int32()), pa.array(self.classes, pa.string())
        )
        columns: dict[str, Any] = {"class": names}
        for kind in ("theta", "pignistic", "belief", "plausibility"):
            for name, column in zip(self.classes, getattr(self, kind).T, strict=True):
                columns[f"{kind}:{name}"] = pa.array(column, pa.float64())
        masks = {"classes": self.class_sets}
        if self.prediction_sets is not None:
            masks["set"] = self.prediction_sets.class_sets
        for key, sets in masks.items():
            columns[key] = pa.array(map(self._names_in, sets), pa.list_(pa.string()))
        for key, bits in (("overlap", self.overlap), ("ignorance", self.ignorance)):
            if bits is not None:
                columns[key] = pa.array(bits, pa.float64())
        if self.nodes is not None:
            columns["node"] = pa.array(self.nodes, pa.int64())
        columns["version"] = pa.array(self.versions, pa.int64())
        return pa.table(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table of `to_arrow` for other libraries."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return notebooks.classifications_html(self)


def classify_rows(attributes: int, classes: int, *, want_masses: bool = False) -> int:
    """Return the number of rows per Classify request that keeps request and response below the message limit."""
    rows = min(MAX_CLASSIFY_ROWS, CLASSIFY_BYTES // (8 * max(attributes, 4 * classes + 2)))
    if want_masses:  # every set of classes may have a mass, of 16 bytes
        rows = min(rows, CLASSIFY_BYTES // (16 << min(classes, 16)))
    return max(1, rows)


def merged(
    messages: Sequence[classify_pb2.ClassifyResponse], classes: tuple[str, ...], want_paths: bool
) -> Classifications:
    """Return the responses to one or several requests as one result, in order.

    No responses make a result without rows and with version 0, since no tree was used.
    """
    if not messages:
        none, empty = np.empty(0, dtype=np.int64), np.empty((0, len(classes)))
        paths = () if want_paths else None
        return Classifications(classes, none, empty, empty, empty, empty, none, none, 0, 0, paths)
    # trees that grew between two requests may have more classes
    classes = max((tuple(message.classes) for message in messages), key=len)
    rows = [len(m.class_indices) for m in messages]

    def column(name: str, kind: type[np.generic]) -> NDArray[Any]:
        return np.concatenate([np.array(getattr(m, name), dtype=kind) for m in messages])

    def by_class(name: str) -> Floats:
        parts = [np.array(getattr(m, name), np.float64).reshape(-1, len(m.classes)) for m in messages]
        return np.concatenate([np.pad(part, ((0, 0), (0, len(classes) - part.shape[1]))) for part in parts])

    def doubt(name: str) -> Floats | None:
        if not all(message.HasField("doubt") for message in messages):
            return None
        return np.concatenate([np.array(getattr(m.doubt, name), np.float64) for m in messages])

    steps = (tuple((s.attribute, s.value) for s in path.steps) for m in messages for path in m.paths)
    masses = [mass for m in messages for mass in _row_masses(m)]
    unseen = UnseenTally()
    for message in messages:
        unseen.add_names(message.unseen)
    one_tree = all(len(m.nodes) == n for m, n in zip(messages, rows, strict=True))
    return Classifications(
        classes=classes,
        indices=column("class_indices", np.int64),
        theta=by_class("theta"),
        pignistic=by_class("pignistic"),
        belief=by_class("belief"),
        plausibility=by_class("plausibility"),
        nodes=column("nodes", np.int64) if one_tree else None,
        versions=np.repeat(np.array([m.tree_version for m in messages], dtype=np.int64), rows),
        version=min(m.tree_version for m in messages),
        as_of=min(m.as_of for m in messages),
        paths=tuple(steps) if want_paths else None,
        class_sets=column("class_sets", np.uint64),
        masses=tuple(masses) if len(masses) == sum(rows) else None,
        unseen=unseen.results(sum(rows)),
        prediction_sets=_merged_sets(messages),
        overlap=doubt("overlap"),
        ignorance=doubt("ignorance"),
    )


def _merged_sets(messages: Sequence[classify_pb2.ClassifyResponse]) -> PredictionSets | None:
    if not all(message.HasField("prediction_sets") for message in messages):
        return None
    found = [message.prediction_sets for message in messages]
    oldest = min(messages, key=lambda message: message.tree_version).prediction_sets
    masks = np.concatenate([np.array(each.class_sets, dtype=np.uint64) for each in found])
    return PredictionSets(masks, oldest.coverage, oldest.scores, list(CoverageBasis)[oldest.basis])


def _row_masses(message: classify_pb2.ClassifyResponse) -> Iterator[Mapping[tuple[str, ...], float]]:
    """Yield the mass function of each row; equal ones are shared."""
    different = [
        {
            tuple(name for c, name in enumerate(message.classes) if mask >> c & 1): value
            for mask, value in zip(mass.focal_sets, mass.masses, strict=True)
        }
        for mass in message.masses
    ]
    return (different[at] for at in message.mass_indices)
