"""Earned splits: those that beat the rival "do not split" beyond chance (theory §12).

The *deviance* of a split is twice the gain of its branches' estimates ``h`` in the evidential log likelihood of the
node, ``D = 2 (Σ_h ℓ_h(θ̂_h) - ℓ(θ̂))``. If the split means nothing, ``D`` is distributed like chi-square with
``(b - 1)(c - 1)`` degrees of freedom, for ``b`` branches with an informative label and ``c`` classes that occur.
The best of ``m`` candidates has so large a ``D`` by chance with a probability of at most ``m`` times the tail of one
(Bonferroni); an attribute with n informative rows counts as ``n - 1`` candidates at most. A split is earned where this
is below the level, which is halved at each depth.

The deviance is a lower bound, proven up to rounding: it uses the reached likelihood of the branches and the upper bound
of the node's (`quercus.trees.likelihood.maxima`).
"""

import math

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.trees.likelihood.maxima import LikelihoodMaxima
from quercus.trees.likelihood.solver.compiled import borrowing
from quercus.trees.rules.ties import TIE

Masks = NDArray[np.uint64]


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
    )  # ways to divide the informative rows by cuts of one attribute
    share = level / np.maximum(np.minimum(tried, most).sum(axis=1), 1)
    _test_splits(first, size, maxima.reached, maxima.bound, maxima.classes, candidates, share, earned)
    return earned


def level_at(significance: float, depth: NDArray[np.integer]) -> Floats:
    """Return the level of the test at nodes of these depths: it is divided among the nodes that a depth may have.

    Examples
    --------
    >>> level_at(10.0, np.array([0, 1, 3])).tolist()
    [10.0, 5.0, 1.25]
    """
    level: Floats = np.ldexp(significance, -depth)
    return level


@borrowing
def _test_splits(
    first: Ints,
    size: Floats,
    reached: Floats,
    bound: Floats,
    classes: Masks,
    candidates: Bools,
    share: Floats,
    earned: Bools,
) -> None:
    for g in range(size.shape[0]):
        for t in range(first.shape[0]):
            if not candidates[g, t]:
                continue
            end = first[t + 1] if t + 1 < first.shape[0] else size.shape[1]
            gain, branches, occurring = -bound[g, 0], 0, classes[g, 0]
            for cell in range(first[t], end):
                if size[g, cell] > 0 and classes[g, cell] > 0:
                    gain += reached[g, cell]
                    branches += 1
                    occurring |= classes[g, cell]
            freedom = (branches - 1) * (_count_bits(occurring) - 1)
            earned[g, t] = freedom > 0 and gain > TIE and chi_square_tail(2 * gain, freedom) < share[g]


@borrowing
def _count_bits(mask: int) -> int:
    count, left = 0, np.uint64(mask)
    while left > 0:
        left &= left - np.uint64(1)
        count += 1
    return count


@borrowing
def chi_square_tail(value: float, freedom: int) -> float:
    """Return the probability that chi-square with a whole number of degrees of freedom, 1 or more, exceeds a value.

    A finite sum of positive terms suffices; SciPy would cost a grower 11 MB.

    Examples
    --------
    >>> round(chi_square_tail(3.841459, 1), 6), round(chi_square_tail(5.991465, 2), 6)
    (0.05, 0.05)
    """
    half = value / 2
    if half <= 0.0:
        return 1.0
    power = freedom % 2 / 2  # terms are exp(-half) half^power / Γ(power + 1), in logarithms: large ones fit
    total = math.erfc(math.sqrt(half)) if power > 0.0 else 0.0
    term = power * math.log(half) - half - math.lgamma(power + 1)
    for _ in range(freedom // 2):
        total += math.exp(term)
        power += 1.0
        term += math.log(half / power)
    return min(total, 1.0)
