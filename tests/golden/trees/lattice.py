"""Entropy intervals by looking at every point of the simplex whose coordinates are multiples of 0.01.

That is how the paper's Table 2 was computed: a lattice point inside the cut is a point of the cut, so the
intervals lie inside the true ones.
"""

from itertools import product
from math import log, log2

import numpy as np

STEPS = 100
_POINTS = np.array([(i, j, STEPS - i - j) for i, j in product(range(STEPS + 1), repeat=2) if i + j <= STEPS])
POINTS = _POINTS / STEPS
ENTROPY = np.array([-sum(p * log2(p) for p in point if p > 0) for point in POINTS])


def log_likelihood(contours: list[tuple[float, ...]]) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(POINTS @ np.array(contours).T).sum(axis=1)


def entropy(contours: list[tuple[float, ...]], alpha: float) -> tuple[float, float]:
    if not contours:
        return 0.0, 0.0
    values = log_likelihood(contours)
    inside = ENTROPY[values >= values.max() + log(alpha) - 1e-9]
    return float(inside.min()), float(inside.max())


def estimate(contours: list[tuple[float, ...]]) -> tuple[tuple[float, ...], bool]:
    """The most likely point, and whether it is the only one."""
    values = log_likelihood(contours)
    best = np.flatnonzero(values >= values.max() - 1e-9)
    return tuple(POINTS[best].mean(axis=0)), len(best) == 1
