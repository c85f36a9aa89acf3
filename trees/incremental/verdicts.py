"""Which split each of many nodes gets (ALGORITHMS §3.1, §3.2, §3.5): `dominance` and `gain` for whole levels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.dominance import TIE
from quercus.trees.incremental.arrays import NONE, Bools, Floats, Ints
from quercus.trees.incremental.layout import Layout
from quercus.trees.solver.compiled import compiled


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What was found at m nodes.

    Attributes
    ----------
    split : (m,) the best, -1 where none has two populated branches
    lower, upper : (m, T) gain ratio of each split, NaN for those with one populated branch
    rivals : (m, T) splits that may be the best
    gainless : (m,) no split can gain anything
    """

    split: Ints
    lower: Floats
    upper: Floats
    rivals: Bools
    gainless: Bools


def populated(layout: Layout, size: NDArray[np.int32]) -> Bools:
    """Tell which splits have two populated branches or more: (m, T), given the rows in each cell (m, C)."""
    branches: Ints = np.add.reduceat(size[:, 1:] > 0, layout.first_cells - 1, axis=1, dtype=np.int64)
    return branches > 1


def judge(layout: Layout, size: NDArray[np.int32], lower: Floats, upper: Floats) -> Verdicts:
    """Judge m nodes.

    Parameters
    ----------
    layout
        The cells.
    size, lower, upper
        (m, C) rows in each cell, and the ends of its entropy, in bits; 0 where there is no row.
    """
    return Verdicts(*_judge(layout.first_cells, size, lower, upper, TIE))


@compiled
def _judge(
    first: Ints, size: NDArray[np.int32], lower: Floats, upper: Floats, tie: float
) -> tuple[Ints, Floats, Floats, Bools, Bools]:
    """Return the fields of `Verdicts`; `first` are the cells with which splits begin."""
    shape = size.shape[0], first.shape[0]
    split, gainless = np.full(shape[0], NONE), np.empty(shape[0], np.bool_)
    least, most = np.full(shape, np.nan), np.full(shape, np.nan)
    rivals = np.zeros(shape, np.bool_)
    for g in range(shape[0]):
        highest, ceiling = -np.inf, -np.inf  # of the lower and of the upper ends
        for t in range(first.shape[0]):
            end = first[t + 1] if t + 1 < first.shape[0] else size.shape[1]
            branches, information, low, high = 0, 0.0, 0.0, 0.0
            for cell in range(first[t], end):
                if size[g, cell] > 0:
                    share = size[g, cell] / size[g, 0]
                    branches += 1
                    information -= share * np.log2(share)
                    low += share * lower[g, cell]
                    high += share * upper[g, cell]
            if branches > 1:
                least[g, t] = (lower[g, 0] - high) / information
                most[g, t] = (upper[g, 0] - low) / information
                highest, ceiling = max(highest, least[g, t]), max(ceiling, most[g, t])
        gainless[g] = ceiling <= tie
        best = -np.inf
        for t in range(first.shape[0]):
            if highest <= most[g, t] + tie:  # not so of NaN
                rivals[g, t] = True
                best = max(best, (least[g, t] + most[g, t]) / 2)
        for t in range(first.shape[0] - 1, -1, -1):
            if rivals[g, t] and (least[g, t] + most[g, t]) / 2 >= best - tie:
                split[g] = t
    return split, least, most, rivals, gainless
