"""The splits that the learners choose from, and what the rows below each branch add up to.

A nominal attribute makes one split, a branch a value. A numeric one makes a split for each threshold ``t``
among the midpoints between neighbouring distinct values: code 0 is ``value < t``, code 1 ``value >= t``.
Missing values have the code after those: the number of declared values, or 2. That is a branch of its own,
unless the learner deals with them otherwise.

What a learner needs of a set of rows is the sum of some numbers of each row: its weight and its share of
every class, say. So the rows' numbers are `statistics` (n, d), column 0 their weights, and an impurity is a
function of sums of them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.trees.dominance import TIE, first_largest
from quercus.trees.growth import Branch, Place, Verdict
from quercus.trees.learners.table import Floats, Table
from quercus.trees.specification import Attribute, Nominal
from quercus.trees.splits import NO_NUMBER, thresholds

Codes = NDArray[np.int64]
Impurity = Callable[[Floats], Floats]  # sums of statistics (..., d) -> (...)


def branch_codes(attribute: Attribute, threshold: float | None, column: Floats) -> Codes:
    """Return the branch of each value of a column.

    Parameters
    ----------
    attribute
        The declaration.
    threshold
        Of the split of a numeric attribute, None for a nominal one.
    column
        (n,) values; NaN means missing.

    Examples
    --------
    >>> from quercus.trees.specification import Numeric
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
    """The splits that one attribute offers at a node.

    Parameters
    ----------
    attribute
        Its index.
    thresholds
        (s,) threshold of each split; None for a nominal attribute, which has one split (s = 1).
    sums
        (s, branches, d) sums of the statistics below each branch, the last branch that of missing values;
        an empty branch has zeros.
    """

    attribute: int
    thresholds: Floats | None
    sums: Floats

    @property
    def sizes(self) -> Floats:
        """Weight of the rows below each branch, (s, branches)."""
        sizes: Floats = self.sums[..., 0]
        return sizes

    def threshold(self, split: int) -> float | None:
        """Return the threshold of a split, None for a nominal attribute."""
        return None if self.thresholds is None else float(self.thresholds[split])


def candidates(
    table: Table, place: Place, attribute: int, statistics: Floats, max_cuts: int | None = None
) -> Candidates | None:
    """Return the splits of a node by one attribute, None when none has two populated branches.

    Parameters
    ----------
    table
        The rows.
    place
        The node.
    attribute
        Index of the attribute.
    statistics
        (m, d) of the rows of the node, in the order of ``place.rows``; column 0 is their weight.
    max_cuts
        Most thresholds of a numeric attribute, see `thresholds`.
    """
    declared = table.attributes[attribute]
    column = table.values[place.rows, attribute]
    if isinstance(declared, Nominal):
        codes = branch_codes(declared, None, column)
        sums = summed(codes, len(declared.values) + 1, statistics)
        populated = np.count_nonzero(sums[:, 0])
        return Candidates(attribute, None, sums[np.newaxis]) if populated > 1 else None
    cuts = thresholds(column, max_cuts)
    missing = np.isnan(column)
    if not len(cuts):
        if not missing.any() or missing.all():
            return None
        cuts = column[~missing][:1]  # one number, or none: all that can be told apart
    return Candidates(attribute, cuts, _threshold_sums(column, cuts, statistics))


def summed(codes: Codes, branches: int, statistics: Floats) -> Floats:
    """Return the sums of the statistics (n, d) of the rows with each code: (branches, d)."""
    columns = [np.bincount(codes, weights=column, minlength=branches) for column in statistics.T]
    return np.stack(columns, axis=1)


def _threshold_sums(column: Floats, cuts: Floats, statistics: Floats) -> Floats:
    # slot of a value: how many cuts are at or below it; what is below cut j are slots 0..j
    missing = np.isnan(column)
    slots = np.searchsorted(cuts, column[~missing], side="right")
    by_slot = summed(slots, len(cuts) + 1, statistics[~missing])
    below = np.cumsum(by_slot, axis=0)[:-1]
    above = np.cumsum(by_slot[::-1], axis=0)[::-1][1:]  # not by difference: no dust where nothing is
    lost = np.broadcast_to(statistics[missing].sum(axis=0), below.shape)
    return np.stack([below, above, lost], axis=1)


def entropy(sums: Floats) -> Floats:
    """Return the entropy in bits of rows of shares that need not sum to 1; 0 for a row of zeros.

    Examples
    --------
    >>> entropy(np.array([[2.0, 2.0, 0.0], [0.0, 0.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    total = sums.sum(axis=-1, keepdims=True)
    share = np.divide(sums, total, out=np.zeros_like(sums), where=total > 0)
    logarithm = np.log2(share, out=np.zeros_like(share), where=share > 0)
    bits: Floats = -(share * logarithm).sum(axis=-1) + 0.0  # and no -0.0
    return bits


def class_entropy(sums: Floats) -> Floats:
    """Return the entropy of the classes, for statistics (weight, share of class 0, share of class 1, ...)."""
    return entropy(sums[..., 1:])


def gains(found: Candidates, parent: float, impurity: Impurity) -> Floats:
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


@dataclass(frozen=True, slots=True, eq=False)
class LargestGain:
    """Criterion: the split of largest gain; of tied ones the first attribute, then the lowest threshold.

    Parameters
    ----------
    table
        The rows.
    shares
        (n, d - 1) numbers of each row that are summed, weighted by the row's weight.
    impurity
        ``U`` of sums (weight, weighted shares...).
    max_cuts
        Most thresholds of a numeric attribute.
    """

    table: Table
    shares: Floats
    impurity: Impurity
    max_cuts: int | None = None

    def judge(self, place: Place) -> Verdict | None:
        """Return the choice, or None when no attribute can split the node."""
        statistics = weighted(self.table, place, self.shares)
        parent = float(self.impurity(statistics.sum(axis=0)))
        best: dict[int, tuple[float, float | None]] = {}
        for attribute in place.attributes:
            found = candidates(self.table, place, attribute, statistics, self.max_cuts)
            if found is not None:
                gained = gains(found, parent, self.impurity)
                split = first_best(gained)
                best[attribute] = float(gained[split]), found.threshold(split)
        return chosen(best)


def weighted(table: Table, place: Place, shares: Floats) -> Floats:
    """Return the statistics of a node's rows: their weights, and their shares times these; (m, d)."""
    weights = table.weights[place.rows] if place.weights is None else place.weights
    return np.column_stack([weights, weights[:, np.newaxis] * shares[place.rows]])


def first_best(values: Floats) -> int:
    """Return the first index whose value is tied with the largest (ALGORITHMS §3.5)."""
    return int(np.argmax(values >= values.max() - TIE))


def chosen(best: dict[int, tuple[float, float | None]]) -> Verdict | None:
    """Return the verdict for the attribute of largest gain; of tied ones, the first declared.

    Parameters
    ----------
    best
        Gain and threshold of the best split of every candidate attribute.
    """
    if not best:
        return None
    attributes: Sequence[int] = sorted(best)
    attribute = attributes[first_largest([best[k][0] for k in attributes])]
    intervals = {k: (best[k][0], best[k][0]) for k in attributes}
    return Verdict(attribute, intervals, (attribute,), threshold=best[attribute][1])


@dataclass(frozen=True, slots=True, eq=False)
class ByCode:
    """Branching: the populated branches of the split; a nominal attribute is spent, a numeric one is not."""

    table: Table

    def branches(self, place: Place, verdict: Verdict) -> list[Branch]:
        """Return the populated branches, in order of code."""
        k = verdict.attribute
        declared = self.table.attributes[k]
        codes = branch_codes(declared, verdict.threshold, self.table.values[place.rows, k])
        left = tuple(a for a in place.attributes if a != k or not isinstance(declared, Nominal))
        found = []
        for code in np.unique(codes):
            here = codes == code
            below = None if place.weights is None else place.weights[here]
            found.append(Branch(k, int(code), place.rows[here], left, below))
        return found


def root(table: Table) -> Place:
    """Return the place of all rows that count, and all attributes."""
    return Place((), np.flatnonzero(table.weights), tuple(range(len(table.attributes))))
