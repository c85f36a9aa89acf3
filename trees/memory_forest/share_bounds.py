"""Bounds of probabilities that are taken as shares of classes among precise labels (theory §10.4)."""

import math

import numpy as np

from quercus.belief.arrays import Floats

STEPS = 50  # of Newton's method, at most; 4 to 8 are usual
STILL = 1e-13  # relative step of the log-odds after which Newton's method stops
ROUNDING = 4e-16  # by which ends are widened
NEGLIGIBLE = 1e-100  # a share below this counts as 0: it changes an end by less than rounding


def share_bounds(theta: Floats, weight: float, level: float) -> tuple[Floats, Floats]:
    """Return the least and the greatest probability of each class over a likelihood cut, each shaped like `theta`.

    The cut at `level` is that of precise labels of total weight `weight`, of which a share `theta` has the class.

    Examples
    --------
    >>> lower, upper = share_bounds(np.array([0.0, 0.5, 1.0]), 10.0, 0.15)
    >>> lower.round(4).tolist(), upper.round(4).tolist()
    ([0.0, 0.219, 0.8272], [0.1728, 0.781, 1.0])
    """
    if level == 1.0:
        return theta, theta
    ends = _greatest_shares(
        np.stack([theta, 1.0 - theta]), math.log(level) / weight if level > 0.0 else -math.inf
    )
    return np.minimum(np.maximum(1.0 - ends[1], 0.0), theta), np.maximum(ends[0], theta)


def _greatest_shares(p: Floats, depth: float) -> Floats:
    """Return the greatest ``t`` with ``p ln(t / p) + (1 - p) ln((1 - t) / (1 - p)) >= depth``, or a little more.

    The left side is concave in ``u = ln(t / (1 - t))``, so every step of Newton's method ends to the right of the root.
    """
    end = np.where(p < 1.0, min(ROUNDING - math.expm1(depth), 1.0), 1.0)
    inner = (p > NEGLIGIBLE) & (p < 1.0)
    if math.isinf(depth) or not inner.any():
        return end
    mine = p[inner]
    entropy = mine * np.log(mine) + (1.0 - mine) * np.log1p(-mine)
    u = np.log(mine) - np.log1p(-mine) + np.sqrt(-2.0 * depth / (mine * (1.0 - mine)))
    moving = np.ones(len(mine), np.bool_)
    for _ in range(STEPS):
        x = np.exp(-u)
        move = (-np.log1p(x) - (1.0 - mine) * u - entropy - depth) / (1.0 / (1.0 + x) - mine)
        u += np.where(moving, move, 0.0)  # an end does not depend on which others are computed with it
        moving &= np.abs(move) > STILL * (1.0 + np.abs(u))
        if not moving.any():
            break
    end[inner] = np.minimum(1.0 / (1.0 + np.exp(-u)) + ROUNDING, 1.0)
    return end
