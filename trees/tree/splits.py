"""The numbered splits of a growing tree.

An attribute is either split by its codes, a branch each, or at one of its *cuts*. Then its codes count the bins
between neighbouring cuts: bin ``b`` holds the values with ``b`` cuts at or below them, and a split at cut ``c`` has
the branches `BELOW`, `ABOVE` and `NO_NUMBER`. Of cuts that part the rows of a node alike the lowest stands for all of
them; where none parts the rows with a value and some have none, the lowest cut of all separates the two.
These are the *candidates*. One of them stands for the attribute at a node: that of largest gain
(`quercus.trees.rules.gain`).

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
        Number of codes of each attribute; of one with ``c`` cuts ``c + 1``, and one more for missing values.
    cuts
        Number of cuts of each attribute, 0 where every code is a branch; empty where that is so of all.
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
        """Cut of each split, counted from 0 in its attribute; `BY_CODE` where there is none: (T,)."""
        at_cut = np.array(self.cuts, dtype=np.int64)[self.attribute] > 0
        return np.where(at_cut, np.arange(self.attribute.size) - self.first_splits[self.attribute], BY_CODE)

    @cached_property
    def branches(self) -> Ints:
        """Number of branches of each split: (T,)."""
        arity = np.array(self.arities, dtype=np.int64)
        lost = arity - np.array(self.cuts, dtype=np.int64) > 1  # there is a code for missing values
        return np.where(self.cut < 0, arity[self.attribute], 2 + lost[self.attribute])

    @property
    def split_count(self) -> int:
        """Number of splits, ``T``."""
        return int(self.attribute.size)

    def branches_of(self, split: int, codes: NDArray[np.integer]) -> Ints:
        """Return the branch of each row, given the codes of the split's attribute (n,)."""
        cut = int(self.cut[split])
        if cut < 0:
            return codes.astype(np.int64)
        lost = codes > self.cuts[self.attribute[split]]
        return np.where(lost, NO_NUMBER, codes > cut).astype(np.int64)


def midpoints(column: Floats, max_cuts: int | None = None, weights: Floats | None = None) -> Floats:
    """Return the midpoints between neighbouring distinct values, ascending.

    Parameters
    ----------
    column
        (n,) values; missing ones (NaN) are left out.
    max_cuts
        Most thresholds. When there are more, those nearest to the quantiles ``j / (max_cuts + 1)`` of the values
        are kept, of two equally near the lower; None for no limit.
    weights
        (n,) how much each value counts for the quantiles; None: 1 each.

    Returns
    -------
    (t,) thresholds, ``a < t <= b`` for the neighbours ``a < b`` whatever the rounding.

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
    """Return the threshold ``t``, ``below < t <= above``, halfway between neighbours; `above` where they are equal."""
    middle = below / 2 + above / 2  # the sum of huge numbers may overflow
    return np.where((below < middle) & (middle <= above), middle, above)


def near_quantiles(passed: Ints | Floats, count: float, most: int) -> Ints:
    """Return which cuts are kept where there are too many: those nearest to the quantiles ``j / (most + 1)``.

    Parameters
    ----------
    passed
        (t,) how many values are below each cut, or what these weigh, ascending.
    count
        Number of values, or their weight.
    most
        Maximum number of cuts, at least 1.
    """
    if most < 1:
        raise InvalidInput("max_cuts", f"is {most}, must be at least 1")
    targets = count * np.arange(1, most + 1) / (most + 1)
    above = np.minimum(np.searchsorted(passed, targets), len(passed) - 1)
    below = np.maximum(above - 1, 0)
    nearest = np.where(np.abs(passed[below] - targets) <= np.abs(passed[above] - targets), below, above)
    return np.unique(np.searchsorted(passed, passed[nearest]))  # of equal ones, the first
