"""Which split each of many nodes gets (ALGORITHMS §3.1, §3.2, §3.5): `dominance` and `gain` for whole levels."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.dominance import TIE
from quercus.trees.incremental.arrays import Bools, Floats, Ints
from quercus.trees.incremental.layout import Layout


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
    share = size[:, 1:] / size[:, :1]
    information = -_sums(layout, share * np.log2(np.where(share > 0, share, 1.0)))
    can_split = populated(layout, size)
    with np.errstate(divide="ignore", invalid="ignore"):
        least = (lower[:, :1] - _sums(layout, share * upper[:, 1:])) / information
        most = (upper[:, :1] - _sums(layout, share * lower[:, 1:])) / information
    least, most = np.where(can_split, least, np.nan), np.where(can_split, most, np.nan)
    floor = np.where(can_split, least, -np.inf)
    ceiling = np.where(can_split, most, -np.inf)
    rivals = can_split & (floor.max(axis=1, keepdims=True) <= ceiling + TIE)
    mid = np.where(rivals, (floor + ceiling) / 2, -np.inf)
    chosen = (mid >= mid.max(axis=1, keepdims=True) - TIE).argmax(axis=1)
    return Verdicts(
        split=np.where(can_split.any(axis=1), chosen, -1),
        lower=least,
        upper=most,
        rivals=rivals,
        gainless=ceiling.max(axis=1) <= TIE,
    )


def _sums(layout: Layout, values: Floats) -> Floats:
    """Sum over the branches of each split: (m, C - 1) to (m, T)."""
    sums: Floats = np.add.reduceat(values, layout.first_cells - 1, axis=1)
    return sums
