"""Compiled loops that tell how well some rows cover others.

Distances are whole numbers, so that sums of them do not depend on the order of adding.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.solver.compiled import compiled

Codes = NDArray[np.integer]
Ints = NDArray[np.int64]

UNIT = 840  # distance of the ends of an order, and of two names; many orders divide it


@compiled
def distance(a: Codes, b: Codes, ordered: Ints) -> int:
    """Distance of two rows (K,): of codes in order by their difference, of names by whether they differ.

    A missing value, the code that comes after those in order, is as far from all others as can be.
    """
    far = 0
    for k in range(a.shape[0]):
        x, y = a[k], b[k]
        if x == y:
            continue
        if ordered[k] > 1 and x < ordered[k] and y < ordered[k]:
            far += abs(x - y) * UNIT // (ordered[k] - 1)
        else:
            far += UNIT
    return far


@compiled
def distances(rows: Codes, others: Codes, ordered: Ints) -> Ints:
    """Distances (n, m) of `rows` (n, K) from `others` (m, K)."""
    far = np.empty((rows.shape[0], others.shape[0]), np.int64)
    for i in range(rows.shape[0]):
        for j in range(others.shape[0]):
            far[i, j] = distance(rows[i], others[j], ordered)
    return far


@compiled
def nearest(rows: Codes, others: Codes, ordered: Ints) -> Ints:
    """Distance (n,) of each of `rows` (n, K) from the nearest of `others` (m, K); the largest possible where m = 0."""
    near = np.full(rows.shape[0], UNIT * rows.shape[1])
    for i in range(rows.shape[0]):
        for j in range(others.shape[0]):
            near[i] = min(near[i], distance(rows[i], others[j], ordered))
    return near


@compiled
def gains(far: Ints, near: Ints) -> Ints:
    """How much nearer each candidate would bring rows to something known: ``Σ_j max(near_j - far_ij, 0)``, (n,)."""
    gain = np.zeros(far.shape[0], np.int64)
    for i in range(far.shape[0]):
        for j in range(far.shape[1]):
            if far[i, j] < near[j]:
                gain[i] += near[j] - far[i, j]
    return gain
