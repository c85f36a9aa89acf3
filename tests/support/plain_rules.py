"""Gain ratio and dominance of one node, as plain as the formulas: `quercus.trees.rules` must agree with them."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtrc

from quercus.belief.arrays import Ints
from quercus.trees.growth.sample import Sample
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.gain import split_information
from quercus.trees.rules.ties import TIE, Interval
from quercus.trees.tree.splits import Splits

Floats = NDArray[np.float64]


def non_dominated(
    intervals: Mapping[int, Interval], information: Mapping[int, float] | None = None
) -> tuple[int, ...]:
    """Return the attributes that none dominates, in declared order.

    ``j`` dominates ``i`` when its lower end exceeds the upper end of ``i``, and not by a tie. The less `information` a
    split has, the less is known of its ends; without it, 1 bit each.

    Examples
    --------
    >>> non_dominated({0: (0.7, 1.2), 1: (0.5, 1.3), 2: (0.3, 0.4)})
    (0, 1)
    """
    if not intervals:
        return ()
    doubt = {k: TIE / min(1.0, 1.0 if information is None else information[k]) for k in intervals}
    bar = max(lower - doubt[k] for k, (lower, _) in intervals.items())
    return tuple(k for k in sorted(intervals) if bar <= intervals[k][1] + doubt[k])


def gain_ratio_interval(
    parent: tuple[float, float], lower: Floats, upper: Floats, sizes: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the ends of the gain ratio of a split.

    ``[(lo(T) - Σ f_h hi(T_h)) / SI, (hi(T) - Σ f_h lo(T_h)) / SI]``

    Parameters
    ----------
    parent
        Ends of the node's entropy.
    lower, upper
        Ends of each child's entropy.
    sizes
        Number of instances of each child, two or more of them populated.

    Examples
    --------
    >>> gain_ratio_interval((0.5, 1.0), np.array([0.0, 0.0]), np.array([0.5, 0.0]), np.array([4, 4]))
    (0.25, 1.0)
    """
    information = float(split_information(sizes)[0])
    share = sizes / sizes.sum()
    lo, hi = parent
    return float((lo - share @ upper) / information), float((hi - share @ lower) / information)


def chance_of_split(
    contours: Floats, solver: IntervalSolver, node: NDArray[np.int64], branches: NDArray[np.int64]
) -> float:
    """Return the chance that a split that means nothing has a deviance as large as this one; infinite without one.

    Parameters
    ----------
    contours
        (d, l) of the labels.
    solver
        Of their estimates.
    node, branches
        (d,) and (b, d): how often each contour occurs in the node, and in each populated branch.
    """
    says = contours.min(axis=1) < contours.max(axis=1)

    def summed(counts: NDArray[np.int64]) -> tuple[float, NDArray[np.bool_]]:
        theta = solver.estimate(counts).theta
        here = says & (counts > 0)
        scaled = contours[here] / contours[here].max(axis=1, keepdims=True)
        return float((counts[here] * np.log(scaled @ theta)).sum()), theta > 1e-6

    whole, occurring = summed(node)
    gain, told = -whole, branches[branches[:, says].any(axis=1)]
    for branch in told:
        value, here = summed(branch)
        gain, occurring = gain + value, occurring | here
    freedom = (len(told) - 1) * (int(occurring.sum()) - 1)
    return float(chdtrc(freedom, 2 * gain)) if freedom > 0 and gain > TIE else np.inf


def is_candidate(splits: Splits, split: int, sizes: Ints) -> bool:
    """Return whether a split is a candidate, given how many rows of a node have each code of its attribute.

    By code it is where there are rows with two codes; at a cut, see `quercus.trees.tree.splits`.
    """
    cut = int(splits.cut[split])
    if cut < 0:
        return bool(np.count_nonzero(sizes) > 1)
    known = splits.cuts[splits.attribute[split]] + 1
    populated = np.flatnonzero(sizes[:known])
    if populated.size == 1:
        return cut == 0 and bool(sizes[known:].any())
    return cut in populated[:-1]


def candidate_splits(sample: Sample, rows: Ints, splits: Iterable[int]) -> tuple[int, ...]:
    """Return those of `splits` that are candidates at a node with these rows."""
    every, sizes = sample.splits, {}
    for k in {int(every.attribute[split]) for split in splits}:
        sizes[k] = np.bincount(sample.codes[rows, k], minlength=sample.arities[k])
    return tuple(split for split in splits if is_candidate(every, split, sizes[int(every.attribute[split])]))
