"""Entropy interval of the maximisers of the evidential likelihood: the case ``alpha = 1`` (ALGORITHMS §2).

Either the maximiser is unique, and the interval a point; or the maximisers form a polytope
``{theta >= 0 : P theta = v, zero off the active classes}``, whose least entropy is at a vertex and whose greatest is
a smooth convex program in as many variables as the polytope has dimensions.
"""

from itertools import combinations
from math import comb

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood import RANK, Array, active
from quercus.trees.solver import descent, search
from quercus.trees.solver.problem import wobble

VERTEX_LIMIT = 20_000  # bases tried before the search for the least vertex falls back to branch and bound
FLAT = 1e-9  # the thin level set searched then: l >= maximum - FLAT


def maximiser_entropies(P: Array, w: Array, theta: Array, slack: float) -> tuple[float, float, float]:
    """Least and greatest entropy (nats) over the maximisers, and a bound of their error.

    Parameters
    ----------
    P, w : (n, l), (n,) with ``P @ theta = 1`` in every row
    theta : (l,) a maximiser up to rounding
    slack : nats by which ``theta`` may fall short of the maximum, and the cut below it
    """
    classes = active(P, w, theta)
    A = np.vstack([P[:, classes], np.ones(len(classes))])
    _, values, rows = np.linalg.svd(A, full_matrices=True)
    rank = int((values > RANK * values[0]).sum())
    error = float(wobble(P, w, theta, slack))
    if rank == len(classes):
        value = descent.entropy(theta)
        return value, value, error
    centre = theta[classes] / theta[classes].sum()
    null = rows[rank:].T
    upper, upper_gap = greatest(centre, null)
    lower, lower_gap = least(P, w, theta, classes, centre)
    return min(lower, upper), upper, max(error, upper_gap, lower_gap)


def h(x: Array) -> Array:
    """``-x ln x``, 0 at 0."""
    x = np.maximum(x, 0.0)
    return np.asarray(-x * np.log(np.where(x > 0.0, x, 1.0)))


def greatest(centre: Array, null: Array) -> tuple[float, float]:
    """Maximise the entropy over ``{centre + null y >= 0}`` by damped Newton steps; value and proven gap (nats).

    The gap is that of the dual: for every ``u`` in the row space, entropy is at most ``ln sum exp(u) - u . centre``.
    """
    x = np.maximum(centre, 1e-300)
    for _ in range(100):
        gradient = -null.T @ (np.log(x) + 1.0)
        hessian = (null / x[:, None]).T @ null
        step = null @ np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        shrinking = step < 0.0
        longest = 0.95 * float(np.min(-x[shrinking] / step[shrinking])) if shrinking.any() else 1.0
        t = min(1.0, longest)
        while t > 1e-12 and h(x + t * step).sum() < h(x).sum():
            t *= 0.5
        if t <= 1e-12 or np.abs(step).max() < 1e-15:
            break
        x = np.maximum(x + t * step, 1e-300)
    value = float(h(x).sum())
    u = np.log(np.maximum(x, 1e-12))
    u -= null @ (null.T @ u)
    bound = float(np.log(np.exp(u - u.max()).sum()) + u.max() - u @ centre)
    return value, max(bound - value, 0.0)


def least(P: Array, w: Array, theta: Array, classes: NDArray[np.intp], centre: Array) -> tuple[float, float]:
    """Least entropy over the polytope of maximisers, at a vertex; value and proven gap (nats)."""
    Q = P[:, classes]
    _, first = np.unique(Q, axis=1, return_index=True)  # of identical classes one carries it all
    columns = np.sort(first)
    A = np.vstack([Q[:, columns], np.ones(len(columns))])
    rank = int(np.linalg.matrix_rank(A, tol=RANK * np.linalg.norm(A, 2)))
    target = np.append(np.ones(len(Q)), 1.0)
    if comb(len(columns), rank) > VERTEX_LIMIT:
        full = np.ascontiguousarray(P)
        low, reached, _ = search.least_entropy(full, w, -FLAT, -0.5 * FLAT, theta, 0.0, 1e-7, 2_000)
        return low, reached - low
    best = float(h(centre).sum())
    for basis in combinations(range(len(columns)), rank):
        x, *_ = np.linalg.lstsq(A[:, basis], target, rcond=RANK)
        if x.min() > -1e-9 and np.abs(A[:, basis] @ x - target).max() < 1e-7:
            best = min(best, float(h(x / x.sum()).sum()))
    return best, 0.0
