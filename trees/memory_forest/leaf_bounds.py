"""Bounds of the classes in the leaves of trees, over the likelihood cut of their labels (theory §10.4).

They are solved on demand: once for a leaf as long as it does not change, and once for all leaves with the same labels.
The solver is that of single trees (theory §2.12). Labels reach it in lexicographic order, so that a bound is a function
of the labels of its leaf, to the last bit.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.memory_forest.evidence import DistinctContours
from quercus.trees.memory_forest.groves import Grove

Kinds = NDArray[np.int32]


def with_bounds(
    groves: Sequence[Grove], kinds: Kinds, contours: DistinctContours, level: float
) -> list[Grove]:
    """Return trees with the bounds of all their leaves, for the cut at `level`.

    Parameters
    ----------
    groves
        The trees of each memory.
    kinds
        (rows,) number of each row's contour, up to the last row that a tree has.
    contours
        The contours by number.
    level
        Level of the cut, in [0, 1].
    """
    opinions: list[Floats] = []
    wanted: list[Ints] = []
    for grove in groves:
        known = grove.opinions
        if grove.level != level:
            known = known.copy()
            known[:, 1:] = np.nan
        opinions.append(known)
        wanted.append(np.flatnonzero(np.isnan(known[:, 1, 0])))
    if not any(map(len, wanted)):
        return list(groves)
    leaves = [_rows_of_leaves(grove, some) for grove, some in zip(groves, wanted, strict=True)]
    rows, size = (np.concatenate(parts) for parts in zip(*leaves, strict=True))
    theta = np.concatenate([known[some, 0] for known, some in zip(opinions, wanted, strict=True)])
    bounds = _bound_leaves(kinds[rows], size, contours, theta, level)
    ends = np.cumsum([len(some) for some in wanted])[:-1]
    bounded = []
    for grove, known, some, here in zip(groves, opinions, wanted, np.split(bounds, ends), strict=True):
        fresh = known.copy() if known is grove.opinions else known
        fresh[some, 1:] = here
        bounded.append(replace(grove, opinions=fresh, level=level))
    return bounded


def _rows_of_leaves(grove: Grove, opinions: Ints) -> tuple[NDArray[np.int32], Ints]:
    """Return the rows of the leaves with these opinions, leaf by leaf, and the number of rows of each leaf."""
    leaf = grove.nodes[:, 0] < 0
    size = grove.nodes[leaf, 3].astype(np.int64)
    mine = np.flatnonzero(grove.nodes[leaf, 2] >= grove.opinions.shape[2])[opinions]
    count = size[mine]
    first = (np.cumsum(size) - size)[mine]
    offset = np.arange(int(count.sum())) - np.repeat(np.cumsum(count) - count, count)
    return grove.rows[np.repeat(first, count) + offset], count


def _bound_leaves(
    kinds: Kinds, size: Ints, contours: DistinctContours, theta: Floats, level: float
) -> Floats:
    """Return belief and plausibility (leaves, 2, l) of leaves, given the contours of their rows and their sizes.

    The bounds are widened to contain the estimates `theta` (leaves, l), which E2M leaves a little below the maximum.
    """
    rank = contours.lexicographic_rank[kinds]
    _, one, column = np.unique(rank, return_index=True, return_inverse=True)
    labels = len(one)
    pairs, count = np.unique(
        np.repeat(np.arange(len(size)), size) * labels + column.ravel(), return_counts=True
    )
    start = np.searchsorted(pairs, np.arange(len(size) + 1) * labels)
    cells = Cells(start.astype(np.int64), (pairs % labels).astype(np.int32), count.astype(np.int64))
    belief, plausibility = IntervalSolver(contours.values[kinds[one]], level).bound_classes_cells(cells)
    return np.stack([np.minimum(belief, theta), np.maximum(plausibility, theta)], axis=1)
