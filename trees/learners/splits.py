"""The splits that the learners choose from, and the sums of statistics over the rows of each branch.

A nominal attribute has one split, with a branch per value. A numeric one has a split for each threshold ``t`` among the
midpoints between neighbouring distinct values: code 0 is ``value < t``, code 1 ``value >= t``. Missing values have the
next code: the number of declared values, or 2. They form a separate branch, unless the learner treats them differently.

A learner needs sums of some numbers per row, such as its weight and its share of every class. These are the rows'
`statistics` (n, d), with the weights in column 0; an impurity is a function of their sums.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Attribute, Nominal
from quercus.trees.growth.batch import OpenNode
from quercus.trees.learners.sharing import OpenCells
from quercus.trees.learners.table import Table
from quercus.trees.rules.gain import best_splits
from quercus.trees.tree.splits import BELOW, NO_NUMBER, halfway_between, near_quantiles

Codes = NDArray[np.int64]
Impurity = Callable[[Floats], Floats]  # sums of statistics (..., d) -> (...)

STATISTIC_CELLS = 1 << 22  # maximum number of rows times attributes times statistics held at once


def branch_codes(attribute: Attribute, threshold: float | None, column: Floats) -> Codes:
    """Return the branch of each value of a column.

    Parameters
    ----------
    attribute
        The declaration.
    threshold
        Threshold of a numeric attribute's split, None for a nominal one.
    column
        (n,) values; NaN means missing.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> branch_codes(Numeric("size"), 2.5, np.array([1.0, 2.5, np.nan])).tolist()
    [0, 1, 2]
    """
    missing = np.isnan(column)
    if threshold is not None:
        return np.where(missing, NO_NUMBER, column >= threshold).astype(np.int64)
    if not isinstance(attribute, Nominal):
        raise InvalidInput("threshold", f"is missing, the numeric attribute {attribute.name!r} needs one")
    return np.where(missing, len(attribute.values), column).astype(np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Candidates:
    """The splits of several attributes at a node, attribute by attribute.

    Parameters
    ----------
    attributes
        (s,) attribute of each split, ascending.
    thresholds
        (s,) threshold of each split, ascending in an attribute; NaN for a nominal attribute, which has one split.
    sums
        (s, branches, d) sums of the statistics below each branch, the last one being that of missing values; zeros for
        empty branches, and for those that the attribute does not have.
    """

    attributes: Ints
    thresholds: Floats
    sums: Floats

    @property
    def sizes(self) -> Floats:
        """Weight of the rows below each branch, (s, branches)."""
        sizes: Floats = self.sums[..., 0]
        return sizes

    @classmethod
    def joined(cls, some: Sequence["Candidates"], statistics: int) -> "Candidates":
        """Return the splits of all attributes together.

        Parameters
        ----------
        some
            Result of `candidate_splits`.
        statistics
            Number of statistics, ``d``.
        """
        if len(some) == 1:
            return some[0]
        attributes = np.concatenate([np.zeros(0, dtype=np.int64), *(part.attributes for part in some)])
        thresholds = np.concatenate([np.zeros(0), *(part.thresholds for part in some)])
        branches = max((part.sums.shape[1] for part in some), default=0)
        sums = np.zeros((len(attributes), branches, statistics))
        at = 0
        for part in some:
            rows = slice(at, at := at + len(part.attributes))
            sums[rows, : part.sums.shape[1]] = part.sums
        order = attributes.argsort(kind="stable")
        return cls(attributes[order], thresholds[order], sums[order])

    def take_splits(self, splits: Ints) -> "Candidates":
        """Return some of the splits."""
        return Candidates(self.attributes[splits], self.thresholds[splits], self.sums[splits])

    def threshold(self, split: int) -> float | None:
        """Return the threshold of a split, None for a nominal attribute."""
        threshold = float(self.thresholds[split])
        return None if math.isnan(threshold) else threshold

    def first_splits(self) -> Ints:
        """Return the first split of each attribute."""
        new = np.ones(len(self.attributes), dtype=bool)
        np.not_equal(self.attributes[1:], self.attributes[:-1], out=new[1:])
        return np.flatnonzero(new)

    def best_of_attributes(self, gains: Floats) -> Ints:
        """Return for each attribute the split of largest gain (..., s); the middle one if tied: (..., attributes).

        See `quercus.trees.rules.gain.best_splits`.
        """
        return best_splits(gains, self.first_splits(), self.sizes[:, BELOW])

    def lowest_best(self, gains: Floats) -> Ints:
        """Return, for each attribute, the split of largest gain (..., s); the lowest if tied: (..., attributes)."""
        return best_splits(gains, self.first_splits(), np.zeros(len(self.attributes)))


def candidate_splits(
    table: Table,
    place: OpenNode,
    statistics: Floats,
    max_cuts: int | None = None,
    *,
    divides: bool = True,
) -> Iterator[Candidates]:
    """Yield the splits of a node that have two populated branches, in batches of many attributes.

    Parameters
    ----------
    table
        The rows.
    place
        The node.
    statistics
        (m, d) statistics of the node's rows, in the order of ``place.rows``; column 0 is their weight.
    max_cuts
        Maximum number of thresholds of a numeric attribute, see `quercus.trees.tree.splits.midpoints`.
    divides
        Whether a row with an uncertain value counts in the branches that it may take, in parts
        (`quercus.trees.learners.sharing`); otherwise it counts as one with a missing value if it may take several.
    """
    opened = {k: cells for k in table.uncertain if (cells := OpenCells.of(table, place, k)) is not None}
    nominal = [k for k in place.attributes if isinstance(table.attributes[k], Nominal) and k not in opened]
    numeric = [
        k for k in place.attributes if not isinstance(table.attributes[k], Nominal) and k not in opened
    ]
    rows = place.rows[:, np.newaxis]
    at_once = max(1, STATISTIC_CELLS // max(1, statistics.size))
    for some in _attribute_pieces(nominal, at_once):
        arities = [len(cast(Nominal, table.attributes[k]).values) for k in some]
        yield _by_value(table.values[rows, some], np.array(some), arities, statistics)
    for some in _attribute_pieces(numeric, at_once):
        yield _at_thresholds(table.values[rows, some], np.array(some), statistics, max_cuts)
    for k in place.attributes:
        if k in opened:
            yield _with_open_cells(table, place, k, opened[k], statistics, max_cuts, divides)


def _with_open_cells(
    table: Table,
    place: OpenNode,
    k: int,
    cells: OpenCells,
    statistics: Floats,
    max_cuts: int | None,
    divides: bool,
) -> Candidates:
    """Return the splits of an attribute for which some rows of the node have uncertain values."""
    attribute, column = table.attributes[k], table.values[place.rows, k]
    settled = np.ones(len(column), dtype=bool)
    settled[cells.at] = False
    values, known = column[settled, np.newaxis], statistics[settled]
    if isinstance(attribute, Nominal):
        codes = np.where(np.isnan(values), len(attribute.values), values).astype(np.int64).ravel()
        sums = sums_by_code(codes, len(attribute.values) + 1, known)[np.newaxis]
        found = Candidates(np.array([k]), np.array([np.nan]), sums)
    else:
        found = _at_thresholds(values, np.array([k]), known, max_cuts)
    shares = cells.shares(attribute, column, statistics[:, 0], found.thresholds)
    if not divides:
        undecided = (shares < 1.0).all(axis=-1)
        shares[undecided] = 0.0
        found.sums[:, -1] += np.einsum("tm,ms->ts", undecided.astype(np.float64), statistics[cells.at])
    found.sums[:, :-1] += np.einsum("tmb,ms->tbs", shares, statistics[cells.at])
    return found.take_splits(np.flatnonzero(np.count_nonzero(found.sums[..., 0], axis=1) > 1))


def _attribute_pieces(attributes: list[int], most: int) -> Iterator[list[int]]:
    return (attributes[at : at + most] for at in range(0, len(attributes), most))


def _by_value(values: Floats, attributes: Ints, arities: Sequence[int], statistics: Floats) -> Candidates:
    branches = max(arities) + 1
    codes = np.where(np.isnan(values), branches - 1, values).astype(np.int64)
    count = len(attributes)
    cells = (codes + branches * np.arange(count)).ravel()
    sums = sums_by_code(cells, branches * count, np.repeat(statistics, count, axis=0)).reshape(
        count, branches, -1
    )
    informative = np.flatnonzero(np.count_nonzero(sums[..., 0], axis=1) > 1)
    return Candidates(attributes[informative], np.full(informative.size, np.nan), sums[informative])


def _at_thresholds(values: Floats, attributes: Ints, statistics: Floats, max_cuts: int | None) -> Candidates:
    """Return the splits of numeric columns, from cumulative sums over the sorted rows from both ends."""
    order = values.argsort(axis=0, kind="stable")  # missing values last
    ranked = values[order, np.arange(len(attributes))]
    here = statistics[order]  # (m, K, d)
    parts = np.zeros(values.shape, dtype=bool)  # whether there is a threshold just before a value
    parts[1:] = ranked[:-1] < ranked[1:]
    missing = np.isnan(ranked)
    lost = np.zeros(here.shape[1:])
    if missing.any():
        lost = np.where(missing[..., np.newaxis], here, 0.0).sum(axis=0)
        here[missing] = 0.0
        # equal numbers can still be separated from missing ones, by a threshold below all
        parts[0] = missing.any(axis=0) & ~missing[0] & ~parts.any(axis=0)
    below = np.zeros_like(here)
    here[:-1].cumsum(axis=0, out=below[1:])
    if max_cuts is not None:
        for k in np.flatnonzero(np.count_nonzero(parts, axis=0) > max_cuts):
            places = np.flatnonzero(parts[:, k])
            parts[:, k] = False
            passed, known = below[places, k, 0], float(here[:, k, 0].sum())
            parts[places[near_quantiles(passed, known, max_cuts)], k] = True
    column, at = np.nonzero(parts.T)
    # summed, not subtracted from the total, which would leave rounding errors in empty branches
    above = here[::-1].cumsum(axis=0)[::-1]
    sums = np.stack([below[at, column], above[at, column], lost[column]], axis=1)
    cuts = halfway_between(ranked[np.maximum(at - 1, 0), column], ranked[at, column])
    return Candidates(attributes[column], cuts, sums)


def sums_by_code(codes: Codes, branches: int, statistics: Floats) -> Floats:
    """Return the sums of the statistics (n, d) of the rows with each code: (branches, d)."""
    columns = [np.bincount(codes, weights=column, minlength=branches) for column in statistics.T]
    # without rows, np.bincount returns integers
    return np.stack(columns, axis=1).astype(np.float64, copy=False)


def share_entropy(sums: Floats) -> Floats:
    """Return the entropy in bits of rows of shares that need not sum to 1; 0 for a row of zeros.

    Examples
    --------
    >>> share_entropy(np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    total = sums.sum(axis=-1, keepdims=True)
    share = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
    logarithm = np.log2(share, out=np.zeros_like(share), where=share > 0)
    bits: Floats = -(share * logarithm).sum(axis=-1) + 0.0  # never -0.0
    return bits


def class_entropy(sums: Floats) -> Floats:
    """Return the entropy of the classes, for statistics (weight, share of class 0, share of class 1, ...)."""
    return share_entropy(sums[..., 1:])


def gains_of(found: Candidates, parent: float, impurity: Impurity) -> Floats:
    """Return the gain of each split, ``U(T) - Σ f_h U(T_h)``, (s,).

    Parameters
    ----------
    found
        The splits.
    parent
        ``U(T)``, the impurity of the node.
    impurity
        ``U`` of sums of statistics.
    """
    share = found.sizes / found.sizes.sum(axis=1, keepdims=True)
    gained: Floats = parent - (share * impurity(found.sums)).sum(axis=1)
    return gained


def weighted_statistics(table: Table, place: OpenNode, shares: Floats) -> Floats:
    """Return the statistics of a node's rows: their weights, and their shares multiplied by these; (m, d)."""
    weights = table.weights[place.rows] if place.weights is None else place.weights
    statistics = np.empty((len(weights), 1 + shares.shape[1]))
    statistics[:, 0] = weights
    np.multiply(weights[:, np.newaxis], shares[place.rows], out=statistics[:, 1:])
    return statistics


def root_node(table: Table) -> OpenNode:
    """Return the root, with all rows of positive weight and all attributes that vary in the table.

    Constant attributes cannot split any node, and a forest must not draw them instead of others.
    """
    values = table.values
    same = (values == values[:1]) | (np.isnan(values) & np.isnan(values[:1]))
    varying = ~same.all(axis=0)
    varying[list(table.uncertain)] = True
    return OpenNode((), np.flatnonzero(table.weights), tuple(np.flatnonzero(varying).tolist()))
