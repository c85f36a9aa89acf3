"""Entropy interval of the maximisers of the evidential likelihood: the case ``alpha = 1`` (theory §2.11).

Either the maximiser is unique, and the interval a point; or the maximisers form a polytope
``{theta >= 0 : P theta = v, zero off the active classes}``, whose least entropy is at a vertex and whose greatest is
a smooth convex program in as many variables as the polytope has dimensions.
"""

from collections.abc import Iterator
from itertools import combinations, islice
from math import comb

import numpy as np
from numpy.typing import NDArray

from quercus.kernels.likelihood import box_entropy_error, entropy, entropy_error, largest_move, least_entropy
from quercus.trees.likelihood.maximiser import RANK, Array, active_classes

VERTEX_LIMIT = 20_000  # with more bases than this, branch and bound replaces the enumeration of vertices
BASES_AT_ONCE = 2_000
FLAT_DEPTH = 1e-9  # nats below the maximum of the level set for branch and bound, unless rounding is larger
NARROW = 0.1  # sides of the box around the maximisers that are wider than this belong to free directions


def maximiser_entropies(P: Array, w: Array, theta: Array, slack: float) -> tuple[float, float, float]:
    """Least and greatest entropy (nats) over the maximisers, and a bound of their error.

    The bound is valid if the rank of the equations is decided correctly (`maximiser.RANK`). It covers the rounding of
    ``v`` and of the inactive classes.

    Parameters
    ----------
    P, w : (n, l), (n,) with ``P @ theta = 1`` in every row
    theta : (l,) a maximiser up to rounding
    slack : nats by which ``theta`` may fall short of the maximum, and the cut below it
    """
    classes = active_classes(P, w, theta)
    # every maximiser t has sum_i r_i (p_i . t - 1)^2 <= 2 slack (see `outer_box`), with these weights r_i of the rows
    weights = w / (
        1.0 + 2.0 / 3.0 * np.array([largest_move(p, slack / each) for p, each in zip(P, w, strict=True)])
    )
    A = np.vstack([np.sqrt(weights / w.sum())[:, None] * P[:, classes], np.ones(len(classes))])
    _, values, rows = np.linalg.svd(A, full_matrices=True)
    rank = int((values > RANK * values[0]).sum())
    if rank == len(classes):
        value = entropy(theta)
        return value, value, max(entropy_error(P, w, theta, slack))
    error = box_entropy_error(P, w, theta, slack, NARROW)
    centre = theta[classes] / theta[classes].sum()
    off = np.sqrt(2.0 * slack / w.sum()) + 1.0 - theta[classes].sum()  # how far A t may be from A centre
    upper, upper_gap = greatest_entropy(A, centre, rows[rank:].T, off)
    lower, lower_gap = least_entropy_vertex(A, centre, rank, off)
    if lower_gap < 0.0:
        lower, lower_gap = searched_minimum(P, w, theta, A, centre, slack)
    return min(lower, upper), upper, error + max(upper_gap, lower_gap)


def entropy_term(x: Array) -> Array:
    """``-x ln x``, 0 at 0."""
    x = np.maximum(x, 0.0)
    return np.asarray(-x * np.log(np.where(x > 0.0, x, 1.0)))


def greatest_entropy(A: Array, centre: Array, null: Array, off: float) -> tuple[float, float]:
    """Maximise the entropy over ``{centre + null y >= 0}`` by damped Newton steps; value and proven gap (nats).

    The gap is that of the dual: for every ``u = A' y``, entropy is at most ``ln sum exp(u) - u . t``, and ``u . t`` is
    within ``|y| off`` of ``u . centre``.
    """
    x = np.maximum(centre, 1e-300)
    for _ in range(100):
        gradient = -null.T @ (np.log(x) + 1.0)
        hessian = (null / x[:, None]).T @ null
        step = null @ np.linalg.lstsq(hessian, gradient, rcond=None)[0]
        shrinking = step < 0.0
        with np.errstate(over="ignore"):  # the ratio overflows where a coordinate hardly shrinks: no limit
            longest = 0.95 * float(np.min(-x[shrinking] / step[shrinking])) if shrinking.any() else 1.0
        t = min(1.0, longest)
        while t > 1e-12 and entropy_term(x + t * step).sum() < entropy_term(x).sum():
            t *= 0.5
        if t <= 1e-12 or np.abs(step).max() < 1e-15:
            break
        x = np.maximum(x + t * step, 1e-300)
    value = float(entropy_term(x).sum())
    y = np.linalg.lstsq(A.T, np.log(np.maximum(x, 1e-12)), rcond=RANK)[0]
    u = A.T @ y
    bound = float(np.log(np.exp(u - u.max()).sum()) + u.max() - u @ centre + np.linalg.norm(y[:-1]) * off)
    return value, max(bound - value, 0.0)


def least_entropy_vertex(A: Array, centre: Array, rank: int, off: float) -> tuple[float, float]:
    """Least entropy over the maximisers, at a vertex: value and proven gap (nats), -1 with too many vertices."""
    _, first = np.unique(A, axis=1, return_index=True)  # at a vertex, one of identical classes has it all
    columns = np.sort(first)
    if comb(len(columns), rank) > VERTEX_LIMIT:
        return 0.0, -1.0
    q, r = np.linalg.qr(A)
    target = q.T @ (A @ centre)
    best = low = float(entropy_term(centre).sum())
    for chosen in basis_batches(combinations(columns.tolist(), rank)):
        U, values, V = np.linalg.svd(np.moveaxis(r[:, chosen], 1, 0), full_matrices=False)
        basis = values[:, -1] > RANK * np.linalg.norm(r, 2)
        U, values, V = U[basis], values[basis], V[basis]
        z = np.einsum("bij,i->bj", U, target)
        x = np.einsum("bji,bj->bi", V, z / values)
        away = np.linalg.norm(np.einsum("bij,bj->bi", U, z) - target, axis=1)
        move = (off / values[:, -1])[:, None]
        may = ((x > -move - 1e-9) & (away < off + 1e-9)[:, None]).all(axis=1)
        is_vertex = may & (x > -1e-9).all(axis=1) & (away < 1e-7)
        x, move = np.clip(x, 0.0, 1.0), np.minimum(move, 1.0)
        below = np.minimum(entropy_term(np.maximum(x - move, 0.0)), entropy_term(np.minimum(x + move, 1.0)))
        below = np.minimum(below, entropy_term(x)).sum(axis=1)
        best = min(best, float(entropy_term(x[is_vertex]).sum(axis=1).min(initial=best)))
        low = min(low, float(below[may].min(initial=low)))
    return best, best - low


def basis_batches(bases: Iterator[tuple[int, ...]]) -> Iterator[NDArray[np.intp]]:
    """Yield bases in arrays (batch, rank)."""
    while chosen := list(islice(bases, BASES_AT_ONCE)):
        yield np.array(chosen)


def searched_minimum(
    P: Array, w: Array, theta: Array, A: Array, centre: Array, slack: float
) -> tuple[float, float]:
    """Least entropy by branch and bound over a thin level set around the maximisers; value and proven gap (nats)."""
    flat = max(FLAT_DEPTH, 4.0 * slack)
    low, _, _ = least_entropy(np.ascontiguousarray(P), w, -flat, -0.5 * flat, theta, 0.0, 1e-7, 2_000)
    x, value = centre, float(entropy_term(centre).sum())
    _, r = np.linalg.qr(A)
    for _ in range(20):  # descend to a vertex, so that the value is that of a true member of the set
        from scipy.optimize import linprog  # noqa: PLC0415  (40 MB of memory that hardly any model needs)

        found = linprog(-np.log(np.maximum(x, 1e-12)), A_eq=r, b_eq=r @ centre, bounds=(0.0, 1.0))
        if not found.success or entropy_term(found.x).sum() >= value - 1e-12:
            break
        x, value = found.x, float(entropy_term(found.x).sum())
    return value, max(value - low, 0.0)
