"""The stages in which many problems are solved: estimate, enclose by one box, finish by a search (theory §2.7).

All problems share one table (d, l) of distinct informative contours, scaled to maximum 1. They are given in compressed
rows (see `quercus.trees.likelihood.cells`): where each problem begins, its rows of the table, and their weights.
`wanted` (k,) has the numbers of the problems to solve.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.likelihood import (
    MAXIMISERS,
    SEARCH,
    estimate_counts,
    maximise,
    search_counts,
    solve_counts,
    sure_excess,
    take_problem,
)
from quercus.trees.likelihood.solver.maximisers import maximiser_entropies

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Sparse = tuple[Ints, Shorts, Array]

# The search examines at most EFFORT boxes with up to LIGHT classes, at tens of microseconds each. The cost of a box
# grows with the cube of the number of classes, so with more classes it examines fewer.
EFFORT = 40_000
LIGHT = 7


def estimate(table: Array, problems: Sparse, wanted: Ints) -> Array:
    """Maximisers of the `wanted` problems, (k, l + 2): theta, its KKT excess, and 1 if it is provably the only one.

    Parameters
    ----------
    table : (d, l) distinct informative contours, scaled to maximum 1
    problems : start, rows of the table, and weights, in compressed rows (see `Cells`)
    """
    found = np.empty((len(wanted), table.shape[1] + 2))
    estimate_counts(table, *problems, wanted, found)
    return found


def enclose(
    table: Array, problems: Sparse, wanted: Ints, estimates: Array, alpha: float, *, tight: bool
) -> Array:
    """Ends and state of the `wanted` problems, (k, 5).

    The ends are, in nats: lower bound, least and greatest entropy reached, upper bound. If not `tight`, the lower bound
    of a problem that is left to the search may be 0.
    """
    ends, states = np.zeros((len(wanted), 4)), np.zeros(len(wanted), np.int8)
    solve_counts(table, *problems, wanted, estimates, alpha, tight, ends, states)
    return np.concatenate([ends, states[:, np.newaxis]], axis=1)


def finish(
    table: Array,
    problems: Sparse,
    wanted: Ints,
    estimates: Array,
    alpha: float,
    effort: int | None,
    found: Array,
) -> Array:
    """Ends (k, 4) of the `wanted` problems: completes `found`, the result of `enclose`."""
    if effort is None:
        effort = int(EFFORT * min(1.0, LIGHT / table.shape[1]) ** 3)
    ends = np.ascontiguousarray(found[:, :4])
    hard = np.flatnonzero(found[:, 4] == SEARCH)
    if hard.size:
        searched = ends[hard]
        search_counts(table, *problems, wanted[hard], estimates[hard], alpha, effort, searched)
        ends[hard] = searched
    for row in np.flatnonzero(found[:, 4] == MAXIMISERS):
        ends[row] = of_maximisers(*take_problem(table, *problems, wanted[row]), alpha)
    return ends


def of_maximisers(P: Array, w: Array, alpha: float) -> tuple[float, float, float, float]:
    """Ends, as in `enclose`, if the cut is the set of maximisers, of which there may be many."""
    theta, excess = maximise(P, w)
    scaled = np.ascontiguousarray(P / (P * theta).sum(axis=1)[:, None])
    excess = sure_excess(scaled, w, theta, excess, np.log(alpha))
    slack = float(w.sum() * excess - np.log(alpha))
    lower, upper, gap = maximiser_entropies(scaled, w, theta, slack)
    return lower - gap, lower, upper, upper + gap
