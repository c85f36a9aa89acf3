"""Prediction by learned models (theory §4).

A row goes down every branch that it may take. If the leaves that it reaches have mass functions, these are combined by
the disjunctive rule, because at least one of them is right. Otherwise the probabilities are averaged, weighted by the
branches, as in C4.5.

A row with an unknown value takes the branch of missing values if the node has one, that is, if such values occurred in
training; otherwise it takes all branches. If there is no branch for a value, the node itself predicts (theory §3.4).
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.mass import MassFunction
from quercus.belief.rules import disjunctive
from quercus.specification.attributes import Attribute
from quercus.trees.learners.cells import UncertainValues, Value
from quercus.trees.learners.conformal import UNKNOWN, Calibration
from quercus.trees.learners.doubt import Doubt
from quercus.trees.learners.nested import log_commonalities_of
from quercus.trees.learners.predictions import (
    NO_ROWS,
    Predictions,
    RepeatedMasses,
    RowPrediction,
    first_most_likely,
)
from quercus.trees.learners.spread import BranchValues, row_shares
from quercus.trees.tree.encoding import Edges, Encoder
from quercus.trees.tree.flat import FlatTree, nearest_speaking
from quercus.trees.tree.node import Node

_ROW = np.zeros(1, dtype=np.int64)
_ROW.setflags(write=False)


class LearnedModel(ABC):
    """A model that predicts, as `quercus.trees.learners.learner.fit` returns it.

    It is immutable, can be pickled, and can be compared through its trees.
    """

    attributes: tuple[Attribute, ...]
    size: int
    """Number of classes."""

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The trees as arrays; empty for a model without trees."""
        return ()

    @property
    def calibration(self) -> Calibration:
        """The scores for prediction sets of stated coverage; empty if the learner does not keep them."""
        return UNKNOWN

    @property
    def branches_are_classes(self) -> bool:
        """True if branches stand for classes, for every attribute."""
        return False

    @abstractmethod
    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the model's predictions for rows of cells."""

    def overlaps(self, _cells: UncertainValues) -> Floats | None:
        """Return the part of the doubt about rows of cells that is overlap, (n,) in bits; None if unknown."""
        return None

    def doubt(self, cells: UncertainValues, theta: Floats) -> Doubt | None:
        """Return the doubt about rows of cells with predicted probabilities `theta` (n, l); None: see `overlaps`."""
        overlaps = self.overlaps(cells)
        return None if overlaps is None else Doubt.of(theta, overlaps)

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass, up to a constant per row.

        If the model has no masses, its probabilities are discounted, the more, the fewer rows they come from.
        """
        raise NotImplementedError(f"the masses of {type(self).__name__} cannot be combined")

    def stored_state(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """Return the state for the learner's `restore_model`: JSON values, and arrays by name.

        Model classes that `quercus.trees.learners.stored` does not know must define it; the others are stored by their
        trees.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define how it is stored")

    @property
    def trees(self) -> tuple[Node, ...]:
        """The trees as values."""
        return tuple(flat.tree() for flat in self.flat_trees)

    def predict_row(self, row: list[float]) -> RowPrediction | None:
        """Return the prediction of `predict` for one row of known values (K,).

        None if the model has no faster method for single rows.
        """
        return None

    def predict(self, values: ArrayLike) -> Predictions:
        """Return the model's predictions for rows of values.

        Parameters
        ----------
        values
            (n, K) as in `quercus.trees.learners.table.Table`, NaN for unknown ones. A nominal value that the
            model has not seen may be any larger index.

        Raises
        ------
        InvalidInput
            If `values` has another shape or is not an array of numbers.
        """
        return self.predict_cells(UncertainValues.of_values(values, self.attributes))

    def predict_rows(self, rows: Sequence[Sequence[Value]]) -> Predictions:
        """Return the model's predictions for rows whose values may be sets, ranges or unknown.

        Parameters
        ----------
        rows
            (n, K) values, see `quercus.trees.learners.cells`.

        Raises
        ------
        InvalidInput
            If a value is impossible; the field names row and attribute.
        """
        return self.predict_cells(UncertainValues.of_rows(rows, self.attributes))


@dataclass(frozen=True, eq=False)
class TreeModel(LearnedModel):
    """A tree of splits by value and by threshold.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    flat
        The tree.
    edges
        Inner edges of the bins of numeric attributes, if the tree has such codes; empty for splits at thresholds.
    """

    attributes: tuple[Attribute, ...]
    size: int
    flat: FlatTree
    edges: Edges = ()

    @classmethod
    def of(cls, root: Node, attributes: Sequence[Attribute]) -> "TreeModel":
        """Return the model of a tree without bins."""
        return cls(tuple(attributes), len(root.theta), FlatTree.of(root))

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The tree as arrays."""
        return (self.flat,)

    @cached_property
    def encoder(self) -> Encoder:
        """The encoder of values into codes of branches."""
        return Encoder(self.attributes, self.edges or ((),) * len(self.attributes))

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the tree's predictions for rows of cells."""
        flat = self.flat
        nodes, open_rows = self._end_nodes(cells)
        theta, belief = flat.theta.take(nodes, axis=0), flat.belief.take(nodes, axis=0)
        plausibility, klass = flat.plausibility.take(nodes, axis=0), flat.klass.take(nodes)
        conflict = np.zeros(len(nodes), dtype=bool)
        masses: RepeatedMasses | None = None
        if flat.has_masses:
            conflict, masses = flat.conflict.take(nodes), RepeatedMasses(flat.masses, nodes)
        if open_rows.size:
            rows, ends, shares = row_shares(self.branch_values, cells.take(open_rows))
            nodes[open_rows] = last_common_node(flat, rows, ends, len(open_rows))
            conflict[open_rows] = np.bincount(rows, flat.conflict[ends], len(open_rows)) > 0
            if masses is None:
                means = [
                    _averaged_ends(part, rows, ends, shares, len(open_rows))
                    for part in (flat.theta, flat.belief, flat.plausibility)
                ]
                of_open = Predictions(first_most_likely(means[0]), means[0], means[1], means[2])
            else:
                distinct, index = disjunction_of_ends(flat.masses, rows, ends, len(open_rows))
                of_open = Predictions.of_masses(self.size, distinct, index)
                which = nodes.copy()
                which[open_rows] = index + flat.size
                masses = RepeatedMasses((*flat.masses, *distinct), which)
            klass[open_rows], theta[open_rows] = of_open.klass, of_open.theta
            belief[open_rows], plausibility[open_rows] = of_open.belief, of_open.plausibility
        return Predictions(klass, theta, belief, plausibility, masses, nodes, open_rows, conflict)

    def end_of_row(self, row: Sequence[float]) -> int:
        """Return the node where a row of values (K,) ends; unknown values follow only the branch of missing values."""
        code = self.encoder.code
        return self.flat.end_of_row(lambda k: code(k, row[k]), row)

    def nodes_of(self, cells: UncertainValues) -> tuple[Ints, Ints]:
        """Return the node where each row ends, (n,), or the last common node of several, and the rows with several."""
        nodes, open_rows = self._end_nodes(cells)
        if open_rows.size:
            rows, ends, _ = row_shares(self.branch_values, cells.take(open_rows))
            nodes[open_rows] = last_common_node(self.flat, rows, ends, len(open_rows))
        return nodes, open_rows

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass; at most 16 classes."""
        if self.flat.has_masses:
            return _commonalities_of(self.predict_cells(cells).masses)
        nodes, open_rows = self._end_nodes(cells)
        found = _commonalities_of(RepeatedMasses(self._node_masses, nodes))
        if open_rows.size:
            rows, ends, shares = row_shares(self.branch_values, cells.take(open_rows))
            order = np.argsort(rows, kind="stable")
            bounds = np.searchsorted(rows[order], np.arange(len(open_rows) + 1))
            for at, row in enumerate(open_rows.tolist()):
                here = order[bounds[at] : bounds[at + 1]]
                some = [(self._node_masses[ends[i]], float(shares[i])) for i in here]
                found[row] = log_commonalities_of(_weighted_mean(some))
        return found

    @cached_property
    def _node_masses(self) -> tuple[MassFunction, ...]:
        return to_mass_function(self.flat)

    @cached_property
    def branch_values(self) -> BranchValues:
        """The values that lead to each node."""
        return BranchValues.of(self.flat, self.encoder)

    def _end_nodes(self, cells: UncertainValues) -> tuple[Ints, Ints]:
        """Return the node where each row ends, (n,), and the rows that may end at several; theirs is arbitrary."""
        values, flat = cells.values, self.flat
        if len(values) == 1 and not cells.parts:
            row = values[0].tolist()
            node = self.end_of_row(row)
            column = flat.attribute.item(node)
            return np.array([node]), _ROW if column >= 0 and math.isnan(row[column]) else NO_ROWS
        nodes = flat.route(self.encoder.codes(values), values)
        attribute = flat.attribute.take(nodes)
        stuck = np.flatnonzero(attribute >= 0)
        may = np.zeros(len(nodes), dtype=bool)
        may[stuck] = np.isnan(values[stuck, attribute[stuck]])
        if cells.parts:
            may |= cells.uncertain
        return nodes, np.flatnonzero(may)


def to_mass_function(flat: FlatTree) -> tuple[MassFunction, ...]:
    """Return the probabilities of each node as a mass function (theory §5).

    ``m({c}) = n θ_c / (n + 1)``, ``m(Ω) = 1 / (n + 1)`` for a node of weight n: the credal inference of
    total-uncertainty trees. With a Bayesian mass, one small leaf could veto a class. A node that predicts as its parent
    does has the weight of the parent.
    """
    size = flat.theta.shape[1]
    weight = flat.weight[nearest_speaking(flat.parent, flat.as_parent)][:, np.newaxis]
    masses = (flat.theta * weight / (weight + 1.0)).tolist()
    return tuple(
        MassFunction.of(
            size, [*((1 << c, m) for c, m in enumerate(row)), ((1 << size) - 1, max(0.0, 1.0 - sum(row)))]
        )
        for row in masses
    )


def mean_mass(masses: Sequence[MassFunction]) -> MassFunction:
    """Return the mean of mass functions on one frame."""
    return _weighted_mean([(mass, 1.0 / len(masses)) for mass in masses])


def distinct_rows(columns: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of integers (n, m), and the index of each row among these, (n,)."""
    rows, index = np.unique(columns, axis=0, return_inverse=True)
    return rows, index.ravel()


def _commonalities_of(masses: Sequence[MassFunction] | None) -> Floats:
    if not isinstance(masses, RepeatedMasses):
        raise TypeError("a model with masses must provide them")
    used, index = np.unique(masses.which, return_inverse=True)
    logs = [log_commonalities_of(masses.distinct[i]) for i in used]
    size = masses.distinct[0].size
    found: Floats = np.array(logs).reshape(-1, 1 << size)[index.ravel()]
    return found


def _weighted_mean(parts: Sequence[tuple[MassFunction, float]]) -> MassFunction:
    total: dict[int, float] = {}
    for mass, share in parts:
        for mask, m in mass.focal:
            total[mask] = total.get(mask, 0.0) + share * m
    return MassFunction.of(parts[0][0].size, {mask: min(m, 1.0) for mask, m in total.items()})


def _averaged_ends(column: Floats, rows: Ints, ends: Ints, shares: Floats, count: int) -> Floats:
    """Return the mean of a column (nodes, l) over the ends of each row, weighted by their shares, (count, l)."""
    weighted = shares[:, np.newaxis] * column[ends]
    return np.stack([np.bincount(rows, part, count) for part in weighted.T], axis=1)


def disjunction_of_ends(
    masses: Sequence[MassFunction], rows: Ints, ends: Ints, count: int
) -> tuple[list[MassFunction], Ints]:
    """Return the disjunction of the masses at the ends of each row: the distinct results, and the index of each row's.

    Parameters
    ----------
    masses
        Mass function of each node.
    rows, ends
        (ends,) row and node; every row in [0, `count`) has at least one, and no node twice.
    count
        Number of rows.
    """
    number_of: dict[tuple[int, ...], int] = {}
    found: list[MassFunction] = []
    index = np.empty(count, dtype=np.int64)
    order = np.lexsort((ends, rows))
    bounds = np.searchsorted(rows[order], np.arange(count + 1))
    for row in range(count):
        here = tuple(dict.fromkeys(ends[order[bounds[row] : bounds[row + 1]]].tolist()))
        if here not in number_of:
            number_of[here] = len(found)
            found.append(reduce(disjunctive, [masses[end] for end in here]))
        index[row] = number_of[here]
    return found, index


def last_common_node(flat: FlatTree, rows: Ints, ends: Ints, count: int) -> Ints:
    """Return the last node on the paths to all ends of each row, (count,)."""
    low = np.full(count, flat.size)
    high = np.zeros(count, dtype=np.int64)
    np.minimum.at(low, rows, ends)
    np.maximum.at(high, rows, ends)
    last = flat.last_below
    while (above := last[low] < high).any():  # in pre-order, a subtree is a range of nodes
        low = np.where(above, flat.parent[low], low)
    return low
