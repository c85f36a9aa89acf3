"""Compiled kernels: least entropy over the likelihood cut of three classes by a shrinking polygon (theory §2.10).

Labels are separable (`separable`). The cut is a convex set of the plane, so tangents of ``l`` leave a polygon around
it; entropy is concave, so over a polygon it is least at a corner, and the least corner bounds it from below. That
corner is cut off by the tangent where the way to it from the maximiser leaves the cut, which is a point reached. Where
the least entropy lies on a side of the simplex the corner there comes to it as in Newton's method; where it lies on the
smooth part of the border, every second cut or so quarters the gap.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, copy_line, sum_of
from quercus.trees.likelihood.solver.separable import (
    GRAIN,
    entropy_of,
    level,
    point_at_level,
    pull_inside,
    slope,
)

POLYGON_CORNERS = 48  # at the most
POLYGON_CUTS = 120  # at the most


@borrowing
def clip(corners: Array, count: int, f: Array, rhs: float, over: Array, spare: Array) -> int:
    """Clip a convex polygon to ``f . t >= rhs``; its corners (in columns 1-3, entropy in column 0) are in order.

    `over` (POLYGON_CORNERS,) and `spare` (POLYGON_CORNERS, 4) are working space. Returns the new number of corners: 0,
    with nothing changed, if nothing or everything would be cut off, or rounding leaves no clear piece to cut.
    """
    first = -1  # the first corner to remove, whose predecessor stays
    gone = 0
    for k in range(count):
        over[k] = f[0] * corners[k, 1] + f[1] * corners[k, 2] + f[2] * corners[k, 3] - rhs
    for k in range(count):
        if over[k] < 0.0:
            gone += 1
            if over[k - 1 if k > 0 else count - 1] >= 0.0:
                first = k
    if first < 0 or count - gone + 2 > POLYGON_CORNERS:
        return 0
    for k in range(gone):
        if not over[(first + k) % count] < 0.0:
            return 0
    last = (first + gone - 1) % count
    size = count - gone
    for k in range(size):
        copy_line(corners[(last + 1 + k) % count], spare[k])
    for e in range(2):
        out = first if e == 0 else last
        stay = (first - 1) % count if e == 0 else (last + 1) % count
        part = over[stay] / (over[stay] - over[out])
        for j in range(1, 4):
            spare[size + e, j] = max(corners[stay, j] + part * (corners[out, j] - corners[stay, j]), 0.0)
        spare[size + e, 0] = entropy_of(spare[size + e, 1:])
    for k in range(size + 2):
        copy_line(spare[k], corners[k])
    return size + 2


@compiled
def least_in_polygon(
    n: Array, m: Array, theta: Array, outer: float, inner: float, tolerance: float, work: Array
) -> tuple[float, float, int]:
    """Return lower bound and reached least entropy (nats) over the cut, which the caller compares, and the cuts made.

    Parameters
    ----------
    n, m, theta : (3,) see `separable`; `theta` a maximiser
    outer, inner : level of the cut for which the bound is valid, and of the one that contains the reached point
    tolerance : sufficient distance in nats between bound and reached entropy
    work : (WORK_ROWS, 3)
    """
    W = sum_of(n) + sum_of(m)
    aim = min(inner + GRAIN * W, 0.5 * inner)
    corners = np.empty((POLYGON_CORNERS, 4))
    spare = np.empty((POLYGON_CORNERS, 4))
    over = np.empty(POLYGON_CORNERS)
    for j in range(3):
        for k in range(4):
            corners[j, k] = 0.0
        corners[j, 1 + j] = 1.0
    count = 3
    y = work[4]
    f = work[5]
    reached = np.inf
    for cuts in range(POLYGON_CUTS):
        least = 0
        for k in range(1, count):
            if corners[k, 0] < corners[least, 0]:
                least = k
        if corners[least, 0] >= reached - tolerance:
            return min(corners[least, 0], reached), reached, cuts
        corner = corners[least, 1:]
        if level(n, m, theta, corner) >= inner:
            return corners[least, 0], corners[least, 0], cuts
        point_at_level(n, m, theta, aim, corner, 1e-13 * abs(aim) + 0.5 * GRAIN * W, y)
        rhs = outer - level(n, m, theta, y) - 4.0 * GRAIN * W
        if not rhs < np.inf:
            break
        for j in range(3):
            f[j] = slope(n[j], m[j], y[j])
            rhs += f[j] * y[j] - GRAIN * abs(f[j])
        if pull_inside(n, m, theta, inner, y):
            reached = min(reached, entropy_of(y))
        size = clip(corners, count, f, rhs, over, spare)
        if size == 0:
            break
        count = size
    low = reached
    for k in range(count):
        low = min(low, corners[k, 0])
    return low, reached, POLYGON_CUTS
