"""The stages in which many problems are solved: maximisers, what one box proves, the search (theory §2.7).

A table (d, l) of distinct informative contours, scaled to maximum 1, is shared by problems in compressed rows: where
each begins, rows of the table, and weights (see `quercus.trees.likelihood.cells`). `wanted` (k,) are the numbers
of those to solve.
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

# Most boxes that the search examines with up to LIGHT classes; a box costs tens of microseconds. With more classes it
# examines fewer, since a box costs as the cube of their number.
EFFORT = 40_000
LIGHT = 7


def estimate(table: Array, problems: Sparse, wanted: Ints) -> Array:
    """Maximisers of the problems `wanted`: theta, its KKT excess, and 1 if it is certainly the only one (k, l + 2).

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
    """Ends (lower bound, reached least, reached greatest entropy, upper bound; nats) and state (k, 5) of `wanted`.

    If not `tight`, the lower bound of a problem that is left to the search may be 0.
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
    """Ends (k, 4) of the problems `wanted`, of which `enclose` has `found` what it can."""
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
    """Ends (as `enclose` returns them) where the cut is the set of maximisers, and they may be many."""
    theta, excess = maximise(P, w)
    scaled = np.ascontiguousarray(P / (P * theta).sum(axis=1)[:, None])
    excess = sure_excess(scaled, w, theta, excess, np.log(alpha))
    slack = float(w.sum() * excess - np.log(alpha))
    lower, upper, gap = maximiser_entropies(scaled, w, theta, slack)
    return lower - gap, lower, upper, upper + gap
