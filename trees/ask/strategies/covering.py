"""Compiled loops that measure how well some rows cover others.

Distances are whole numbers, so that their sums do not depend on the order of addition.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import compiled

Codes = NDArray[np.integer]
Ints = NDArray[np.int64]
Steps = NDArray[np.int32]

DISTANCE_UNIT = 840  # distance of the ends of an order, and of two names; a multiple of many numbers of steps


@compiled
def distances_from(row: Codes, columns: Codes, ordered: Ints, far: Steps) -> None:
    """Write the distances of a row (K,) from those of `columns` (K, m), codes from 0 on, into `far` (m,).

    The distance of ordered codes is their difference; that of names is 0 or the maximum. A missing value, coded after
    the ordered ones, is as far from all others as possible. Attributes are taken one at a time: the compiler vectorises
    both loops over rows, which is ten times as fast as one pair of rows at a time.
    """
    for j in range(far.shape[0]):
        far[j] = 0
    for k in range(row.shape[0]):
        x, column = np.int32(row[k]), columns[k]
        missing = np.int32(ordered[k])  # the code
        if missing > 1 and x < missing:
            apart = np.empty(missing + 1, np.int32)
            for y in range(missing):
                apart[y] = abs(x - y) * DISTANCE_UNIT // (missing - 1)
            apart[missing] = DISTANCE_UNIT
            for j in range(far.shape[0]):
                far[j] += apart[min(np.int32(column[j]), missing)]
        else:
            for j in range(far.shape[0]):
                far[j] += DISTANCE_UNIT * (np.int32(column[j]) != x)


@compiled
def distances(rows: Codes, others: Codes, ordered: Ints) -> Ints:
    """Return the distances (n, m) of `rows` (n, K) from `others` (m, K)."""
    far, columns = np.empty((rows.shape[0], others.shape[0]), np.int64), np.ascontiguousarray(others.T)
    line = np.empty(others.shape[0], np.int32)
    for i in range(rows.shape[0]):
        distances_from(rows[i], columns, ordered, line)
        for j in range(others.shape[0]):
            far[i, j] = line[j]
    return far


@compiled
def nearest_distances(rows: Codes, others: Codes, ordered: Ints) -> Ints:
    """Return the distance (n,) of each of `rows` (n, K) from the nearest of `others` (m, K); the maximum if m = 0."""
    near, columns = np.full(rows.shape[0], DISTANCE_UNIT * rows.shape[1]), np.ascontiguousarray(others.T)
    line = np.empty(others.shape[0], np.int32)
    for i in range(rows.shape[0]):
        distances_from(rows[i], columns, ordered, line)
        for j in range(others.shape[0]):
            near[i] = min(near[i], line[j])
    return near


@compiled
def covering_gains(far: Ints, near: Ints) -> Ints:
    """Return each candidate's reduction of the rows' distances from known ones: ``Σ_j max(near_j - far_ij, 0)``."""
    gain = np.zeros(far.shape[0], np.int64)
    for i in range(far.shape[0]):
        for j in range(far.shape[1]):
            if far[i, j] < near[j]:
                gain[i] += near[j] - far[i, j]
    return gain
