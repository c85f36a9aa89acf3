"""The numbered splits of a growing tree.

An attribute is split either by its codes, with one branch per code, or at one of its *cuts*. In the latter case its
codes number the bins between neighbouring cuts: bin ``b`` holds the values with ``b`` cuts at or below them, and a
split at cut ``c`` has the branches `BELOW`, `ABOVE` and `NO_NUMBER`. Of the cuts that divide the rows of a node in the
same way, only the lowest counts. If no cut divides the rows with a value, but some rows have none, the lowest cut of
all separates the two groups. At a node, the cut of largest gain among these represents the attribute
(`quercus.trees.rules.choice`).

Splits are numbered in order of attribute, then of cut. Where no attribute has cuts, the number of a split is the number
of its attribute. Paths, queries and agendas name splits by their numbers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.kernels.growth import ABOVE, BELOW, NO_NUMBER, NO_SPLIT

__all__ = [
    "ABOVE",
    "BELOW",
    "BY_CODE",
    "NO_NUMBER",
    "NO_SPLIT",
    "Splits",
    "halfway_between",
    "midpoints",
    "near_quantiles",
]

BY_CODE = -1  # in place of a cut


@dataclass(frozen=True)
class Splits:
    """The splits of a model.

    Parameters
    ----------
    arities
        Number of codes of each attribute. One with ``c`` cuts has ``c + 1``, and one more if missing values have a
        code.
    cuts
        Number of cuts of each attribute, 0 where every code is a branch. Empty: every attribute has 0.
    """

    arities: tuple[int, ...]
    cuts: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if not self.cuts:
            object.__setattr__(self, "cuts", (0,) * len(self.arities))

    @cached_property
    def first_splits(self) -> Ints:
        """First split of each attribute: (K,)."""
        return np.cumsum([0, *(max(1, cuts) for cuts in self.cuts)])[:-1]

    @cached_property
    def attribute(self) -> Ints:
        """Attribute of each split: (T,)."""
        return np.repeat(np.arange(len(self.cuts)), [max(1, cuts) for cuts in self.cuts])

    @cached_property
    def cut(self) -> Ints:
        """Cut of each split, counted from 0 within its attribute; `BY_CODE` if it has none: (T,)."""
        at_cut = np.array(self.cuts, dtype=np.int64)[self.attribute] > 0
        return np.where(at_cut, np.arange(self.attribute.size) - self.first_splits[self.attribute], BY_CODE)

    @cached_property
    def branches(self) -> Ints:
        """Number of branches of each split: (T,)."""
        arity = np.array(self.arities, dtype=np.int64)
        missing = arity - np.array(self.cuts, dtype=np.int64) > 1  # there is a code for missing values
        return np.where(self.cut < 0, arity[self.attribute], 2 + missing[self.attribute])

    @property
    def split_count(self) -> int:
        """Number of splits, ``T``."""
        return int(self.attribute.size)

    def branches_of(self, split: int, codes: NDArray[np.integer]) -> Ints:
        """Return the branch of each row, given the codes of the split's attribute (n,)."""
        cut = int(self.cut[split])
        if cut < 0:
            return codes.astype(np.int64)
        missing = codes > self.cuts[self.attribute[split]]
        return np.where(missing, NO_NUMBER, codes > cut).astype(np.int64)


def midpoints(column: Floats, max_cuts: int | None = None, weights: Floats | None = None) -> Floats:
    """Return the midpoints between neighbouring distinct values, ascending.

    Parameters
    ----------
    column
        (n,) values; missing ones (NaN) are left out.
    max_cuts
        Greatest number of thresholds. If there are more, those nearest to the quantiles ``j / (max_cuts + 1)`` of the
        values are kept; of two equally near ones, the lower. None: no limit.
    weights
        (n,) how much each value counts for the quantiles; None: 1 each.

    Returns
    -------
    (t,) thresholds, with ``a < t <= b`` for the neighbours ``a < b`` however the midpoint is rounded.

    Raises
    ------
    InvalidInput
        If `max_cuts` is below 1, and there are more thresholds.

    Examples
    --------
    >>> midpoints(np.array([3.0, 1.0, 1.0, 2.0])).tolist(), midpoints(np.arange(8.0), 3).tolist()
    ([1.5, 2.5], [1.5, 3.5, 5.5])
    """
    known = ~np.isnan(column)
    distinct, which = np.unique(column[known], return_inverse=True)
    below, above = distinct[:-1], distinct[1:]
    cuts = halfway_between(below, above)
    if max_cuts is None or len(cuts) <= max_cuts:
        return cuts
    counts = np.bincount(which, None if weights is None else weights[known])
    return cuts[near_quantiles(np.cumsum(counts)[:-1], counts.sum(), max_cuts)]


def halfway_between(below: Floats, above: Floats) -> Floats:
    """Return thresholds ``t`` halfway between neighbours, ``below < t <= above``; `above` where the two are equal."""
    middle = below / 2 + above / 2  # the sum of huge numbers may overflow
    return np.where((below < middle) & (middle <= above), middle, above)


def near_quantiles(passed: Ints | Floats, count: float, most: int) -> Ints:
    """Return which cuts are kept if there are too many: those nearest to the quantiles ``j / (most + 1)``.

    Parameters
    ----------
    passed
        (t,) number of values below each cut, or the sum of their weights, ascending.
    count
        Number of values, or the sum of their weights.
    most
        Greatest number of cuts, at least 1.

    Returns
    -------
    (k,) indices of the cuts, ascending, at most `most` of them.

    Raises
    ------
    InvalidInput
        If `most` is below 1.
    """
    if most < 1:
        raise InvalidInput("max_cuts", f"is {most}, must be at least 1")
    targets = count * np.arange(1, most + 1) / (most + 1)
    above = np.minimum(np.searchsorted(passed, targets), len(passed) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(np.abs(passed[below] - targets) <= np.abs(passed[above] - targets), below, above)
    return np.unique(np.searchsorted(passed, passed[nearest]))  # of cuts with as many values below, the first
