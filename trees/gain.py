"""Gain ratio of a split, as an interval (ALGORITHMS §3.1).

Notation: ``f_h = |T_h| / |T|`` is the share of child ``h``; ``lo`` and ``hi`` are the ends of an entropy
interval, in bits.
"""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def split_information(sizes: NDArray[np.int64]) -> float:
    """Return ``SI``, the entropy in bits of how a split shares out the instances; 0 for one populated child.

    Parameters
    ----------
    sizes
        Number of instances of each child; not all 0.

    Examples
    --------
    >>> split_information(np.array([8, 0, 8]))
    1.0
    """
    populated = sizes[sizes > 0]
    if populated.size < 2:
        return 0.0
    share = populated / populated.sum()
    return float(-(share * np.log2(share)).sum())


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
