"""Compiled kernels: one problem of a table, and the smaller ones with the same solutions (theory §2.3).

Notation as in `kernels`. Rows may be scaled, classes that another one dominates may be left out, and rows that leave
one class are counts.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.cells import sort_positive
from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, sum_of

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


@compiled
def dominating_classes(P: Array) -> Ints:
    """Return for each class the one that may replace it at a minimum: itself, unless another dominates it.

    Moving the probability of a class to one that is as plausible in every row (of equals, the first stays) does not
    reduce the likelihood and, since ``-x ln x`` is subadditive, does not raise the entropy.
    """
    n, l = P.shape
    heir = np.arange(l)
    for j in range(l):
        for k in range(l):
            if k == j or heir[k] != k:
                continue
            below = True
            equal = True
            for i in range(n):
                if P[i, j] > P[i, k]:
                    below = False
                    break
                if P[i, j] < P[i, k]:
                    equal = False
            if below and (not equal or k < j):
                heir[j] = k
                break
    for j in range(l):
        while heir[heir[j]] != heir[j]:
            heir[j] = heir[heir[j]]
    return heir


@borrowing
def is_precise(P: Array) -> bool:
    """Return whether every row leaves one class."""
    n, l = P.shape
    for i in range(n):
        some = 0
        for j in range(l):
            if P[i, j] > 0.0:
                some += 1
        if some > 1:
            return False
    return True


@compiled
def rescale_rows(P: Array, theta: Array) -> Array:
    """Return the rows divided by ``p . theta``, so that ``P @ theta`` is 1 and ``l(theta)`` 0."""
    n, l = P.shape
    scaled = np.empty((n, l))
    for i in range(n):
        v = 0.0
        for j in range(l):
            v += P[i, j] * theta[j]
        for j in range(l):
            scaled[i, j] = P[i, j] / v
    return scaled


@compiled
def without_dominated(P: Array, theta: Array) -> tuple[Array, Array]:
    """Return the columns of the undominated classes (n, m), rescaled, and a maximiser over these (m,)."""
    n, l = P.shape
    heir = dominating_classes(P)
    place = np.zeros(l, np.int64)
    m = 0
    for j in range(l):
        if heir[j] == j:
            place[j] = m
            m += 1
    Q = np.empty((n, m))
    x = np.zeros(m)
    total = sum_of(theta)
    for j in range(l):
        s = place[heir[j]]
        x[s] += theta[j] / total
        if heir[j] == j:
            for i in range(n):
                Q[i, s] = P[i, j]
    return rescale_rows(Q, x), x


@compiled
def take_problem(
    table: Array, start: Ints, columns: Shorts, counts: Array, problem: int
) -> tuple[Array, Array]:
    """Return the contours of one problem (n, l) and their counts (n,)."""
    first = start[problem]
    n = start[problem + 1] - first
    P = np.empty((n, table.shape[1]))
    w = np.empty(n)
    for i in range(n):
        for j in range(table.shape[1]):
            P[i, j] = table[columns[first + i], j]
        w[i] = counts[first + i]
    return P, w


@compiled
def precise_counts(P: Array, w: Array) -> Array:
    """Return the positive weights of the classes, largest first, if every row leaves one class."""
    totals = np.zeros(P.shape[1])
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            if P[i, j] > 0.0:
                totals[j] += w[i]
    sorted_totals = np.empty(P.shape[1])
    return sorted_totals[: sort_positive(totals, sorted_totals)]
