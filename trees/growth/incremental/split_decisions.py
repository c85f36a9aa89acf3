"""Which split each of many nodes gets (theory §3.1, §3.2, §3.5, §9): `dominance` and `gain` for whole levels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.growth.incremental.arrays import NONE, Bools, Floats, Ints
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.rules.dominance import TIE
from quercus.trees.tree.splits import BELOW


@dataclass(frozen=True, eq=False)
class SplitDecisions:
    """The decisions at m nodes.

    Attributes
    ----------
    split : (m,) the best, -1 where there is no candidate
    lower, upper : (m, T) gain ratio of each candidate, NaN for other splits
    rivals : (m, T) splits that may be the best
    gainless : (m,) no split can gain anything
    """

    split: Ints
    lower: Floats
    upper: Floats
    rivals: Bools
    gainless: Bools


def populated_splits(layout: Layout, size: NDArray[np.int32]) -> Bools:
    """Tell which splits have two populated branches or more: (m, T), given the rows in each cell (m, C)."""
    branches: Ints = np.add.reduceat(size[:, 1:] > 0, layout.first_cells - 1, axis=1, dtype=np.int64)
    return branches > 1


def representative_splits(
    layout: Layout, size: NDArray[np.int32], entropy: Floats, candidates: Bools
) -> Bools:
    """Tell which split stands for each attribute: of cuts that of largest gain, of tied ones the middle one: (m, T).

    Parameters
    ----------
    layout
        The cells.
    size, entropy
        (m, C) rows in each cell, and its entropy at level 1, in bits.
    candidates
        (m, T) splits with two populated branches or more.
    """
    bounds = np.append(layout.splits.first, layout.splits.count)
    standing = candidates.copy()
    _represent(layout.first_cells, bounds, size, entropy, standing)
    return standing


@compiled
def _represent(first: Ints, bounds: Ints, size: NDArray[np.int32], entropy: Floats, standing: Bools) -> None:
    """Leave in `standing` one split of each attribute; as `quercus.trees.rules.gain.best_splits` chooses.

    Parameters
    ----------
    first : (T,) cells with which splits begin
    bounds : (K + 1,) splits with which attributes begin, and how many there are
    """
    left = np.empty(first.shape[0])  # of the entropy below a cut
    for g in range(size.shape[0]):
        for k in range(bounds.shape[0] - 1):
            begin, end = bounds[k], bounds[k + 1]
            if end - begin == 1:
                continue
            least = np.inf
            for t in range(begin, end):
                if standing[g, t]:
                    left[t] = 0.0
                    for cell in range(first[t], first[t + 1] if t + 1 < first.shape[0] else size.shape[1]):
                        left[t] += size[g, cell] / size[g, 0] * entropy[g, cell]
                    least = min(least, left[t])
            lowest, highest = NONE, NONE  # rows below the first and the last of the tied cuts
            for t in range(begin, end):
                if standing[g, t] and left[t] <= least + TIE:
                    highest = size[g, first[t] + BELOW]
                    lowest = highest if lowest < 0 else lowest
            middle, nearest = NONE, 0
            for t in range(begin, end):
                if standing[g, t] and left[t] <= least + TIE:
                    off = abs(2 * size[g, first[t] + BELOW] - (lowest + highest))
                    if middle < 0 or off < nearest:
                        middle, nearest = t, off
            for t in range(begin, end):
                standing[g, t] = t == middle


def judge_splits(
    layout: Layout, size: NDArray[np.int32], lower: Floats, upper: Floats, candidates: Bools
) -> SplitDecisions:
    """Judge m nodes.

    Parameters
    ----------
    layout
        The cells.
    size, lower, upper
        (m, C) rows in each cell, and the ends of its entropy, in bits; 0 where there is no row.
    candidates
        (m, T) splits that are compared, of two populated branches or more.
    """
    return SplitDecisions(*_judge(layout.first_cells, size, lower, upper, candidates))


@compiled
def _judge(
    first: Ints, size: NDArray[np.int32], lower: Floats, upper: Floats, candidates: Bools
) -> tuple[Ints, Floats, Floats, Bools, Bools]:
    """Return the fields of `SplitDecisions`; `first` are the cells with which splits begin."""
    shape = size.shape[0], first.shape[0]
    split, gainless = np.full(shape[0], NONE), np.empty(shape[0], np.bool_)
    least, most = np.full(shape, np.nan), np.full(shape, np.nan)
    rivals = np.zeros(shape, np.bool_)
    for g in range(shape[0]):
        highest, ceiling = -np.inf, -np.inf  # of the lower and of the upper ends
        for t in range(first.shape[0]):
            if not candidates[g, t]:
                continue
            end = first[t + 1] if t + 1 < first.shape[0] else size.shape[1]
            information, low, high = 0.0, 0.0, 0.0
            for cell in range(first[t], end):
                if size[g, cell] > 0:
                    share = size[g, cell] / size[g, 0]
                    information -= share * np.log2(share)
                    low += share * lower[g, cell]
                    high += share * upper[g, cell]
            least[g, t] = (lower[g, 0] - high) / information
            most[g, t] = (upper[g, 0] - low) / information
            highest, ceiling = max(highest, least[g, t]), max(ceiling, most[g, t])
        gainless[g] = ceiling <= TIE
        best = -np.inf
        for t in range(first.shape[0]):
            if highest <= most[g, t] + TIE:  # not so of NaN
                rivals[g, t] = True
                best = max(best, (least[g, t] + most[g, t]) / 2)
        for t in range(first.shape[0] - 1, -1, -1):
            if rivals[g, t] and (least[g, t] + most[g, t]) / 2 >= best - TIE:
                split[g] = t
    return split, least, most, rivals, gainless
