"""The served form of the forest: its members as columns, and their predictions (theory §10.4).

A process that only predicts does not need the rows that the members were grown from.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.kernels.forest import add_of_leaves, name_masks, overlaps, served_prediction, served_predictions
from quercus.specification.attributes import Attribute
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.conformal import UNKNOWN, Calibration
from quercus.trees.learners.entropy_model import MAX_ALTERNATIVES
from quercus.trees.learners.nested import log_commonalities_of
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import Predictions, RowPrediction, first_most_likely
from quercus.trees.memory_forest.codes import Codebook
from quercus.trees.rules.ties import TIE
from quercus.trees.tree.flat import FlatTree

Keys = NDArray[np.uint64]

POINTS = 9  # evenly spaced values that represent a range


@dataclass(frozen=True, eq=False)
class BayesTable:
    """A naive-Bayes member.

    Parameters
    ----------
    weight
        Weight of the labels, see `quercus.trees.memory_forest.naive_bayes.NaiveBayes`.
    prior
        (l,) probabilities of the classes.
    means, deviations
        (numbers, l) mean and standard deviation of each numeric attribute in each class.
    frequencies
        Logarithms of the frequencies (names + 1, l) of each nominal attribute; the last line is for unseen names.
    """

    weight: float
    prior: Floats
    means: Floats
    deviations: Floats
    frequencies: tuple[Floats, ...]


@dataclass(frozen=True, eq=False)
class ServedMembers:
    """The members as columns.

    Parameters
    ----------
    book
        The codebook.
    size
        Number of classes, l.
    keys, node_counts, opinion_counts
        (T,) key of the root, number of nodes, and number of opinions of each tree.
    nodes, opinions
        (nodes, 4) and (opinions, 3, l) of all trees, see `grow` in `kernels/forest/growing.hpp`.
    bayes, bayes_numbers
        The distinct naive-Bayes members, and which of them each member is.
    weights
        (members,) weight of each member; they sum to 1.
    level
        Level of the likelihood cut over which the bounds are taken.
    labelled
        Number of rows that the members learned from.
    """

    book: Codebook
    size: int
    keys: Keys
    node_counts: Ints
    opinion_counts: Ints
    nodes: NDArray[np.int32]
    opinions: Floats
    bayes: tuple[BayesTable, ...]
    bayes_numbers: Ints
    weights: Floats
    level: float
    labelled: int

    def predict(self, values: Floats) -> Predictions:
        """Return the forest's predictions for rows of values (m, K)."""
        if not self.labelled:
            predicted = np.zeros((len(values), 3, self.size))
            predicted[:, 0], predicted[:, 2] = 1.0 / self.size, 1.0
            return opinion_predictions(predicted, 0, self.size)
        rest = (*self.book.joined_cuts, np.ascontiguousarray(values, np.float64), self._reliable, TIE)
        return Predictions(*served_predictions(*(*self._prepared, *rest)))

    def predict_row(self, row: list[float]) -> tuple[int, list[float], list[float], list[float]]:
        """Return class, probabilities, beliefs and plausibilities of one row of known values, as `predict` does."""
        if not self.labelled:
            return 0, [1.0 / self.size] * self.size, [0.0] * self.size, [1.0] * self.size
        rest = (*self.book.joined_cuts, row, self._reliable, TIE)
        return served_prediction(*(*self._prepared, *rest))

    def overlaps(self, values: Floats) -> Floats:
        """Return the trees' mean overlap for rows of values (m, K): (m,) in bits (theory §10.9)."""
        sums = np.zeros(len(values))
        if self.labelled:
            trees = self.weights[: len(self.keys)]
            codes, share = self.book.codes(np.ascontiguousarray(values)), trees / trees.sum()
            add_of_leaves(
                codes, self.book.named, self.keys, self.nodes, self._counts, share, self._overlaps, sums
            )
        return sums

    @cached_property
    def _counts(self) -> Ints:
        return np.column_stack([self.node_counts, self.opinion_counts])

    @cached_property
    def _overlaps(self) -> Floats:
        return np.array(
            overlaps(self.nodes, self.opinions.reshape(len(self.opinions), 3 * self.size), self._counts)
        )

    @property
    def _reliable(self) -> float:
        return self.labelled / (self.labelled + self.size)

    @cached_property
    def _prepared(self) -> tuple[Any, ...]:
        """The members in the form that `served_predictions` takes."""
        named, trees, l = self.book.named, len(self.keys), self.size
        roots = np.cumsum(self.node_counts) - self.node_counts
        leaf_sizes = self.nodes[self.nodes[:, 0] < 0, 3]
        with np.errstate(divide="ignore"):
            doubts = 1.0 - self.level ** (1.0 / np.arange(leaf_sizes.max(initial=0) + 1.0))
        return (
            named,
            self.nodes,
            roots,
            name_masks(self.nodes, roots, self.keys) if named.any() else np.empty(0, np.uint64),
            self.opinions.reshape(len(self.opinions), 3 * l),
            np.cumsum(self.opinion_counts) - self.opinion_counts,
            self.weights[:trees],
            doubts,
            *bayes_columns(self.bayes, l),
            np.array([_cut_depth(self.level, each.weight) for each in self.bayes], np.float64),
            np.bincount(self.bayes_numbers, self.weights[trees:], len(self.bayes)),
        )


def bayes_columns(bayes: Sequence[BayesTable], l: int) -> tuple[NDArray[Any], ...]:
    """Return naive-Bayes members as columns.

    Returns
    -------
    Priors and their logarithms, (members, l) each; means, deviations and the logarithms of the deviations,
    (members × numbers, l) each; logarithms of frequencies (names, l), table by table; and the number of names in each
    table.
    """
    priors = np.array([each.prior for each in bayes], np.float64).reshape(-1, l)
    deviations = np.concatenate([np.empty((0, l)), *(each.deviations for each in bayes)])
    tables = [table for each in bayes for table in each.frequencies]
    with np.errstate(divide="ignore"):
        log_priors = np.log(priors)
    return (
        priors,
        log_priors,
        np.concatenate([np.empty((0, l)), *(each.means for each in bayes)]),
        deviations,
        np.log(deviations),
        np.concatenate([np.empty((0, l)), *tables]),
        np.array([len(table) for table in tables], np.int64),
    )


def _cut_depth(level: float, weight: float) -> float:
    """Return the log-likelihood of the cut relative to the maximum, per unit of the labels' weight; at most 0."""
    return math.log(level) / weight if level > 0.0 else -math.inf


def opinion_predictions(opinions: Floats, labelled: int, size: int) -> Predictions:
    """Return the members' mean opinion (m, 3, l), after `labelled` labelled rows, as predictions.

    The bounds are discounted to the reliability ``T / (T + l)``: a forest with few labels has seen few classes.
    """
    reliable = labelled / (labelled + size)
    theta, belief = opinions[:, 0], reliable * opinions[:, 1]
    plausibility = np.minimum(1.0 - reliable + reliable * opinions[:, 2], 1.0)
    return Predictions(first_most_likely(theta), theta, belief, plausibility)


@dataclass(frozen=True, eq=False)
class ServedForest(LearnedModel):
    """The forest, with a tree beside it that people can read.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    tree
        The active tree of the same log. A prediction names the leaf of this tree in which the row ends; everything else
        comes from the members.
    members
        The members.
    scores
        Scores of rows that the forest predicted before their labels came.
    """

    attributes: tuple[Attribute, ...]
    size: int
    tree: TreeModel
    members: ServedMembers
    scores: Calibration = UNKNOWN

    @property
    def calibration(self) -> Calibration:
        """The scores for prediction sets of stated coverage."""
        return self.scores

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The tree beside the forest as arrays."""
        return self.tree.flat_trees

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the forest's predictions for rows of cells, with the leaves of the tree in which they end.

        A row with a set of values gets the mean of their predictions; a range is represented by nine evenly spaced
        values.

        Raises
        ------
        InvalidInput
            If a row has more than 4,096 combinations of values.
        """
        predicted = predict_possible(self.members.predict, cells, self.members.book.cuts)
        return predicted.ending_at(*self.tree.nodes_of(cells))

    def overlaps(self, cells: UncertainValues) -> Floats:
        """Return how much of the doubt about rows of cells is overlap, (n,) in bits (theory §10.9)."""
        return overlaps_of_possible(self.members.overlaps, cells, self.members.book.cuts)

    def predict_row(self, row: list[float]) -> RowPrediction:
        """Return the prediction for one row of known values (K,), as `predict_cells` does, but faster."""
        return RowPrediction(*self.members.predict_row(row), self.tree.end_of_row(row))

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set of classes for each row: (n, 2^l), for at most 16 classes."""
        logs = [log_commonalities_of(mass) for mass in self._theta_masses(self.predict_cells(cells).theta)]
        return np.array(logs).reshape(-1, 1 << self.size)

    def _theta_masses(self, theta: Floats) -> Iterator[MassFunction]:
        labelled = self.members.labelled
        for row in (theta * labelled / (labelled + 1.0)).tolist():
            rest = ((1 << self.size) - 1, max(0.0, 1.0 - sum(row)))
            yield MassFunction.of(self.size, [*((1 << c, m) for c, m in enumerate(row)), rest])


def predict_possible(
    predict: Callable[[Floats], Predictions], cells: UncertainValues, cuts: Sequence[Floats]
) -> Predictions:
    """Return a forest's predictions for rows of cells.

    A row with a set of values gets the mean of their predictions; a range is represented by nine evenly spaced values.

    Parameters
    ----------
    predict
        Returns the predictions for rows of values (m, K).
    cells
        The rows.
    cuts
        Cuts of each attribute, see `quercus.trees.memory_forest.codes`.

    Raises
    ------
    InvalidInput
        If a row has more than 4,096 combinations of values.
    """
    predicted = predict(cells.values)
    rows = sorted({row for row, _ in cells.parts})
    if not rows:
        return predicted
    for row in rows:
        of_row = predict(_possible_rows(cells, row, cuts))
        for mine, other in ((predicted.theta, of_row.theta), (predicted.belief, of_row.belief)):
            mine[row] = other.mean(axis=0)
        predicted.plausibility[row] = of_row.plausibility.mean(axis=0)
    return replace(predicted, klass=first_most_likely(predicted.theta))


def overlaps_of_possible(
    overlaps: Callable[[Floats], Floats], cells: UncertainValues, cuts: Sequence[Floats]
) -> Floats:
    """Return a forest's overlaps for rows of cells, (n,): means over possible values, as in `predict_possible`."""
    found = overlaps(cells.values)
    for row in {row for row, _ in cells.parts}:
        found[row] = overlaps(_possible_rows(cells, row, cuts)).mean()
    return found


def _possible_rows(cells: UncertainValues, row: int, cuts: Sequence[Floats]) -> Floats:
    """Return all rows of known values that a row of cells may stand for, ranges being represented by some values."""
    choices = []
    for k, value in enumerate(cells.values[row].tolist()):
        parts = cells.parts.get((row, k), ((value, value),))
        choices.append(np.concatenate([_range_points(low, high, cuts[k]) for low, high in parts]))
    count = math.prod(len(each) for each in choices)
    if count > MAX_ALTERNATIVES:
        reason = f"has {count:,} combinations of values, at most {MAX_ALTERNATIVES:,} are allowed"
        raise InvalidInput(f"rows[{row}]", reason)
    return np.array(list(product(*choices)))


def _range_points(low: float, high: float, cuts: Floats) -> Floats:
    """Return evenly spaced values of a range, which is clipped a little outside the cuts: beyond, nothing changes.

    Examples
    --------
    >>> cuts = np.array([0.0, 1.0])
    >>> _range_points(-math.inf, 1.0, cuts).tolist()[::4], _range_points(7.0, math.inf, cuts).tolist()
    ([-0.5, 0.25, 1.0], [7.0])
    """
    if not low < high:
        return np.array([low])
    if not len(cuts):
        ends = [end for end in (low, high) if math.isfinite(end)]
        return np.array(ends or [math.nan])
    margin = (cuts[-1] - cuts[0]) / len(cuts) or max(1.0, abs(cuts[0]))
    lowest, highest = cuts[0] - margin, cuts[-1] + margin
    if high <= lowest:
        return np.array([high])
    if low >= highest:
        return np.array([low])
    return np.linspace(max(low, lowest), min(high, highest), POINTS)
