"""Compiled kernels: the least and greatest probability of each class over the likelihood cut, many problems at once.

Theory §2.12; `class_extent` solves one problem.
"""

import numpy as np

from quercus.trees.likelihood.solver.class_extent import least_of_class
from quercus.trees.likelihood.solver.compiled import compact
from quercus.trees.likelihood.solver.kernels import Array, copy_line, sum_of
from quercus.trees.likelihood.solver.reduction import Ints, Shorts, rescale_rows, take_problem
from quercus.trees.likelihood.solver.rounding_bounds import plain_sums, rounding
from quercus.trees.likelihood.solver.separable import separable_counts
from quercus.trees.likelihood.solver.sets import bound_separable

LEAST_DEPTH = 1e-9  # nats; least depth of a cut whose extent is asked for


@compact
def bound_counts(
    table: Array,
    start: Ints,
    columns: Shorts,
    counts: Array,
    wanted: Ints,
    estimates: Array,
    alpha: float,
    bounds: Array,
) -> None:
    """Write proven lower and upper bounds (m, 2 l) of the class probabilities over the likelihood cuts of `wanted`."""
    l = table.shape[1]
    n, m, point = np.empty(l), np.empty(l), np.empty(l)
    for i in range(wanted.shape[0]):
        theta = estimates[i, :l]
        if (
            alpha < 1.0
            and separable_counts(table, columns, counts, start[wanted[i]], start[wanted[i] + 1], n, m)
            and bound_separable(n, m, alpha, theta, LEAST_DEPTH, bounds[i], point)
        ):
            continue
        P, w = take_problem(table, start, columns, counts, wanted[i])
        P = rescale_rows(P, theta)
        if alpha == 1.0 and estimates[i, l + 1] > 0.0:  # the maximiser alone
            copy_line(theta, bounds[i, :l])
            copy_line(theta, bounds[i, l:])
            continue
        # if the cut contains only the many maximisers, a slightly deeper cut keeps the programs away from rounding
        c = min(
            np.log(alpha) - sum_of(w) * (estimates[i, l] + plain_sums(w.shape[0], l) + rounding(l)),
            -LEAST_DEPTH,
        )
        for j in range(l):
            bounds[i, j] = min(max(least_of_class(P, w, c, theta, j, 1.0, point), 0.0), theta[j])
            bounds[i, l + j] = max(min(-least_of_class(P, w, c, theta, j, -1.0, point), 1.0), theta[j])
