"""The served form of the forest: its members as columns, and their predictions without compiled code (theory §10.4).

A process that only predicts needs neither Numba nor the rows that the members were grown from.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.kernels.forest import FARTHEST, LOG_SQRT_2PI
from quercus.specification.attributes import Attribute
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.entropy_model import MAX_ALTERNATIVES
from quercus.trees.learners.nested import log_commonalities_of
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import Predictions, first_most_likely
from quercus.trees.memory_forest.codes import Codebook
from quercus.trees.memory_forest.hashes import ATTEMPTS, LEFT, PLACES, RIGHT, coin_tosses, derived_keys
from quercus.trees.memory_forest.share_bounds import share_bounds
from quercus.trees.tree.flat import FlatTree

Keys = NDArray[np.uint64]

OPINIONS_AT_ONCE = 1 << 20  # numbers of opinions that are put together at once
POINTS = 9  # of a range of values


@dataclass(frozen=True, eq=False)
class BayesTable:
    """A naive-Bayes member.

    Parameters
    ----------
    weight
        How much its labels say together, see `quercus.trees.memory_forest.naive_bayes.NaiveBayes`.
    prior
        (l,) of the classes.
    means, deviations
        (numbers, l) of each numeric attribute.
    frequencies
        Log-frequencies (names + 1, l) of each nominal attribute: the last for a name that was not seen.
    """

    weight: float
    prior: Floats
    means: Floats
    deviations: Floats
    frequencies: tuple[Floats, ...]

    def theta(self, values: Floats, named: Bools) -> Floats:
        """Return the probabilities (m, l) of rows of values (m, K)."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.prior)[np.newaxis].repeat(len(values), axis=0)
        for column, means, deviations in zip(values[:, ~named].T, self.means, self.deviations, strict=True):
            known = np.flatnonzero(~np.isnan(column))
            with np.errstate(over="ignore"):  # beyond `FARTHEST` in any case
                z = (column[known, np.newaxis] - means) / deviations
                z *= z
            own = 0.5 * np.minimum(z, FARTHEST) + np.log(deviations) + LOG_SQRT_2PI
            logs[known] -= own - own.min(axis=1, keepdims=True)
        for column, table in zip(values[:, named].T, self.frequencies, strict=True):
            known = np.flatnonzero(~np.isnan(column))
            logs[known] += table[np.minimum(column[known].astype(np.int64), len(table) - 1)]
        logs -= np.maximum(logs.max(axis=1, keepdims=True), -np.finfo(np.float64).max)
        joint = np.exp(logs)
        total = joint.sum(axis=1, keepdims=True)
        theta: Floats = np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), self.prior)
        return theta


@dataclass(frozen=True, eq=False)
class ServedMembers:
    """The members.

    Parameters
    ----------
    book
        The codes of values.
    size
        Number of classes, l.
    keys, node_counts, opinion_counts
        (T,) of each tree the key of its root, and how many nodes and opinions it has.
    nodes, opinions
        (4, nodes), (opinions, 3, l) of all trees, see `grow` in `kernels/forest/growing.hpp`.
    bayes, bayes_numbers
        Naive-Bayes members that differ, and which of these each one is.
    weights
        (members,) with sum 1.
    level
        Level of the likelihood cut that bounds are over.
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
        predicted = np.zeros((len(values), 3, self.size))
        if not self.labelled:
            predicted[:, 0], predicted[:, 2] = 1.0 / self.size, 1.0
            return opinion_predictions(predicted, 0, self.size)
        codes = self.book.codes(values)
        step = max(1, OPINIONS_AT_ONCE // (len(self.keys) * 3 * self.size))
        for start in range(0, len(values), step):
            predicted[start : start + step] = self._of_trees(codes[start : start + step])
        shares = np.bincount(self.bayes_numbers, self.weights[len(self.keys) :], len(self.bayes))
        for each, share in zip(self.bayes, shares, strict=True):
            theta = each.theta(values, self.book.named)
            predicted += share * np.stack([theta, *share_bounds(theta, each.weight, self.level)], axis=1)
        return opinion_predictions(predicted, self.labelled, self.size)

    def _of_trees(self, codes: NDArray[np.uint16]) -> Floats:
        leaves = self._row_leaves(codes)
        opinions = self._opinion_table[self._opinion_numbers[leaves]]  # (T, m, 3, l)
        weights, doubt = self.weights[: len(self.keys)], self._doubts[leaves]
        means: Floats = np.einsum("t,tmkc->mkc", weights, opinions)
        means[:, 1] -= np.einsum("t,tm,tmc->mc", weights, doubt, opinions[:, :, 0])
        means[:, 2] += np.einsum("t,tm,tmc->mc", weights, doubt, 1.0 - opinions[:, :, 0])
        return means

    def _row_leaves(self, codes: NDArray[np.uint16]) -> Ints:
        """Return the leaf (T, m) of each row in each tree."""
        attribute, test, skip, _ = self.nodes
        at = np.repeat(self._tree_roots, len(codes))
        row = np.tile(np.arange(len(codes)), len(self._tree_roots))
        going = np.flatnonzero(attribute[at] >= 0)
        while going.size:
            node = at[going]
            k = attribute[node]
            code = codes[row[going], k].astype(np.int64)
            left = np.where(code == 0, (test[node] & 1) == 1, code <= test[node] >> 1)
            by_name = np.flatnonzero(self.book.named[k])
            left[by_name] = coin_tosses(derived_keys(self._name_masks[node[by_name]], code[by_name]))
            node = node + np.where(left, 1, skip[node])
            at[going] = node
            going = going[attribute[node] >= 0]
        return at.reshape(len(self._tree_roots), len(codes))

    @cached_property
    def _tree_roots(self) -> Ints:
        roots: Ints = np.cumsum(self.node_counts) - self.node_counts
        return roots

    @cached_property
    def _name_masks(self) -> Keys:
        """(nodes,) keys of the names that go left, where names do."""
        attribute, test, skip, _ = self.nodes
        key = np.zeros(attribute.size, np.uint64)
        key[self._tree_roots] = self.keys
        level = self._tree_roots[attribute[self._tree_roots] >= 0]
        while level.size:
            left, right = level + 1, level + skip[level]
            key[left], key[right] = derived_keys(key[level], LEFT), derived_keys(key[level], RIGHT)
            level = np.concatenate([left, right])
            level = level[attribute[level] >= 0]
        return derived_keys(derived_keys(key, PLACES + test // ATTEMPTS), test % ATTEMPTS)

    @cached_property
    def _opinion_numbers(self) -> Ints:
        """(nodes,) number in the table of the opinion of a leaf; of others no matter."""
        before = np.cumsum(self.opinion_counts) - self.opinion_counts
        own = self.nodes[2].astype(np.int64)
        opinion: Ints = np.where(own < self.size, own, own + np.repeat(before, self.node_counts))
        return np.where(self.nodes[0] < 0, opinion, 0)

    @cached_property
    def _doubts(self) -> Floats:
        """(nodes,) what the cut of a leaf of one class leaves to the other classes at most; 0 of others."""
        attribute, _, own, size = self.nodes
        doubt: Floats = np.where((attribute < 0) & (own < self.size), 1.0 - self.level ** (1.0 / size), 0.0)
        return doubt

    @cached_property
    def _opinion_table(self) -> Floats:
        return np.concatenate([np.repeat(np.eye(self.size)[:, np.newaxis], 3, axis=1), self.opinions])


def opinion_predictions(opinions: Floats, labelled: int, size: int) -> Predictions:
    """Return as predictions the members' mean opinion (m, 3, l) after `labelled` rows.

    The bounds are discounted to the reliability ``T / (T + l)``: a forest with few labels has seen few classes.
    """
    reliable = labelled / (labelled + size)
    theta, belief = opinions[:, 0], reliable * opinions[:, 1]
    plausibility = np.minimum(1.0 - reliable + reliable * opinions[:, 2], 1.0)
    return Predictions(first_most_likely(theta), theta, belief, plausibility)


@dataclass(frozen=True, eq=False)
class ServedForest(LearnedModel):
    """The forest, and the tree beside it for people to read.

    Parameters
    ----------
    attributes
        Declarations of the columns.
    size
        Number of classes.
    tree
        The active tree of the same log: where rows end in it is part of their predictions, the rest is by the members.
    members
        The members.
    """

    attributes: tuple[Attribute, ...]
    size: int
    tree: TreeModel
    members: ServedMembers

    @property
    def flat_trees(self) -> tuple[FlatTree, ...]:
        """The tree beside the forest as arrays."""
        return self.tree.flat_trees

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the forest's predictions for rows of cells, and the leaves of the tree beside it in which they end.

        A row with a set of values gets the mean over them; a range stands for nine evenly spaced points of it.

        Raises
        ------
        InvalidInput
            When a row has more than 4,096 combinations of values.
        """
        predicted = predict_possible(self.members.predict, cells, self.members.book.cuts)
        in_tree = self.tree.predict_cells(cells)
        return replace(predicted, nodes=in_tree.nodes, several=in_tree.several)

    def log_commonalities(self, cells: UncertainValues) -> Floats:
        """Return the log commonality of every set, (n, 2^l), of each row's mass; at most 16 classes."""
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

    A row with a set of values gets the mean over them; a range stands for nine evenly spaced points of it.

    Parameters
    ----------
    predict
        Returns the predictions for rows of values (m, K).
    cells
        The rows.
    cuts
        Of each attribute, see `quercus.trees.memory_forest.codes`.

    Raises
    ------
    InvalidInput
        When a row has more than 4,096 combinations of values.
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


def _possible_rows(cells: UncertainValues, row: int, cuts: Sequence[Floats]) -> Floats:
    """Return the rows of known values that a row may be."""
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
    """Return evenly spaced values of a range. Values far outside of all cuts count as values beside them.

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
