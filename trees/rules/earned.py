"""Earned splits: those that beat the rival "do not split" beyond chance (theory §12).

The *deviance* of a split is twice the gain of its branches' estimates ``h`` in the evidential log likelihood of the
node, ``D = 2 (Σ_h ℓ_h(θ̂_h) - ℓ(θ̂))``. If the split has no effect, ``D`` has approximately a chi-square distribution
with ``(b - 1)(c - 1)`` degrees of freedom, for ``b`` branches with an informative label and ``c`` classes that occur.
The probability that the best of ``m`` splits has a ``D`` this large by chance is at most ``m`` times the tail
probability of one (Bonferroni). In a node with n informative rows, an attribute counts as at most ``n - 1`` splits. A
split is earned if this bound is below the level, which is halved at each depth.

The deviance is a lower bound, proven up to rounding: it uses the reached likelihood of the branches and the upper bound
of the node's (`quercus.trees.likelihood.maxima`).
"""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.growth import test_splits
from quercus.trees.likelihood.maxima import LikelihoodMaxima


def earned_splits(
    first: Ints, size: Floats, maxima: LikelihoodMaxima, candidates: Bools, tried: Ints, level: Floats
) -> Bools:
    """Return which candidates are earned, (m, T).

    Parameters
    ----------
    first
        See `quercus.trees.rules.choice.SplitCells`.
    size
        (m, C) rows in each cell.
    maxima
        (m, C) maxima of the candidates' cells.
    candidates
        (m, T) at most one split of each attribute.
    tried
        (m, K) number of splits of each attribute from which these were chosen.
    level
        (m,) level of the test, above 0.
    """
    earned = np.zeros(candidates.shape, bool)
    most = np.maximum(
        maxima.weight[:, :1] - 1, 1
    )  # cuts of one attribute divide n informative rows in at most n - 1 ways
    share = level / np.maximum(np.minimum(tried, most).sum(axis=1), 1)
    test_splits(first, size, maxima.reached, maxima.bound, maxima.classes, candidates, share, earned)
    return earned


def level_at(significance: float, depth: NDArray[np.integer]) -> Floats:
    """Return the level of the test at nodes of these depths: it is halved at each depth (theory §12.1).

    Examples
    --------
    >>> level_at(10.0, np.array([0, 1, 3])).tolist()
    [10.0, 5.0, 1.25]
    """
    level: Floats = np.ldexp(significance, -depth)
    return level
