"""Gain ratio and dominance of one node, as plain as the formulas: `quercus.trees.rules` must agree with them."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from quercus.trees.rules.dominance import TIE, Interval
from quercus.trees.rules.gain import split_information

Floats = NDArray[np.float64]


def non_dominated(intervals: Mapping[int, Interval]) -> tuple[int, ...]:
    """Return the attributes that none dominates, in declared order.

    ``j`` dominates ``i`` when its lower end exceeds the upper end of ``i``, and not by a tie.

    Examples
    --------
    >>> non_dominated({0: (0.7, 1.2), 1: (0.5, 1.3), 2: (0.3, 0.4)})
    (0, 1)
    """
    if not intervals:
        return ()
    bar = max(lower for lower, _ in intervals.values())
    return tuple(attribute for attribute in sorted(intervals) if bar <= intervals[attribute][1] + TIE)


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
    information = split_information(sizes)
    share = sizes / sizes.sum()
    lo, hi = parent
    return float((lo - share @ upper) / information), float((hi - share @ lower) / information)
