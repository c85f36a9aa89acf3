"""Compiled kernels: local minima of the entropy over a level set of the evidential likelihood.

Notation as in `kernels`. Frank-Wolfe steps find the neighbourhood, Newton's method the minimum and its multiplier.
"""

import numpy as np

from quercus.trees.solver.compiled import compiled
from quercus.trees.solver.cut import minimise_over_cut
from quercus.trees.solver.kernels import Array, derivatives, loglik


@compiled
def entropy(theta: Array) -> float:
    """Shannon entropy in nats."""
    total = 0.0
    for j in range(theta.shape[0]):
        if theta[j] > 0.0:
            total -= theta[j] * np.log(theta[j])
    return total


@compiled
def to_boundary(P: Array, w: Array, c: float, inner: Array, outer: Array, point: Array) -> None:
    """Write into `point` the last member of the level set on the ray from `inner` (a member) through `outer`.

    Entropy is concave, so along the ray it is least at an end; a guess a hair outside the level set is thereby
    also brought back into it.
    """
    l = inner.shape[0]
    reach = 1e6
    move = 0.0
    for j in range(l):
        d = outer[j] - inner[j]
        move = max(move, abs(d))
        if d < 0.0:
            reach = min(reach, -inner[j] / d)
    if move < 1e-14:
        point[:] = inner
        return
    lo = 0.0
    hi = reach
    for step in range(60):
        t = hi if step == 0 else 0.5 * (lo + hi)
        if step == 1 and lo < 1.0 < hi:
            t = 1.0
        total = 0.0
        for j in range(l):
            point[j] = max(inner[j] + t * (outer[j] - inner[j]), 0.0)
            total += point[j]
        for j in range(l):
            point[j] /= total
        if loglik(P, w, point) >= c:
            lo = t
            if step == 0:
                return
        else:
            hi = t
        if hi - lo <= 1e-15 * hi:
            break
    total = 0.0
    for j in range(l):
        point[j] = max(inner[j] + lo * (outer[j] - inner[j]), 0.0)
        total += point[j]
    for j in range(l):
        point[j] /= total


@compiled
def eliminate(A: Array, y: Array) -> bool:
    """Solve ``A x = y`` in place of `y` by Gaussian elimination with partial pivoting; False when singular."""
    m = y.shape[0]
    for k in range(m):
        pivot = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        if not abs(A[pivot, k]) > 0.0:
            return False
        if pivot != k:
            for j in range(m):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
            y[k], y[pivot] = y[pivot], y[k]
        for i in range(k + 1, m):
            f = A[i, k] / A[k, k]
            if f != 0.0:
                for j in range(k, m):
                    A[i, j] -= f * A[k, j]
                y[i] -= f * y[k]
    for k in range(m - 1, -1, -1):
        for j in range(k + 1, m):
            y[k] -= A[k, j] * y[j]
        y[k] /= A[k, k]
    return True


@compiled
def settle(P: Array, w: Array, c: float, x: Array, mu: float) -> float:
    """Newton's method for a stationary point of the entropy on ``l = c`` near `x`, on the face that `x` is on.

    Solves ``-ln x_j - 1 - mu g_j = nu`` for ``x_j > 0``, ``l(x) = c``, ``sum x = 1``. Returns the multiplier ``mu``,
    or -1 (and leaves `x`) where that leads nowhere.
    """
    l = x.shape[0]
    keep = np.empty(l, np.int64)
    m = 0
    for j in range(l):
        if x[j] > 1e-7:
            keep[m] = j
            m += 1
    if m < 2:
        return -1.0
    y = np.zeros(l)
    total = 0.0
    for r in range(m):
        y[keep[r]] = x[keep[r]]
        total += x[keep[r]]
    for r in range(m):
        y[keep[r]] /= total
    g = np.empty(l)
    H = np.empty((l, l))
    A = np.empty((m + 2, m + 2))
    d = np.empty(m + 2)
    nu = 0.0
    value = derivatives(P, w, y, g, H)
    for r in range(m):
        nu -= (np.log(y[keep[r]]) + 1.0 + mu * g[keep[r]]) / m
    for step in range(12):
        A[:] = 0.0
        error = 0.0
        for r in range(m):
            p = keep[r]
            for s in range(m):
                A[r, s] = mu * H[p, keep[s]]
            A[r, r] -= 1.0 / y[p]
            A[r, m] = A[m, r] = -g[p]
            A[r, m + 1] = A[m + 1, r] = -1.0
            d[r] = np.log(y[p]) + 1.0 + mu * g[p] + nu
            error = max(error, abs(d[r]) * y[p])
        d[m] = value - c
        d[m + 1] = 0.0
        if error < 1e-13 and abs(value - c) <= 1e-13 * abs(c) + 1e-16:
            break
        if not eliminate(A, d):
            return -1.0
        t = 1.0
        for r in range(m):
            if d[r] < 0.0:
                t = min(t, -0.9 * y[keep[r]] / d[r])
        if not t > 0.1:
            return -1.0
        total = 0.0
        for r in range(m):
            y[keep[r]] += t * d[r]
            total += y[keep[r]]
        for r in range(m):
            y[keep[r]] /= total
        mu += t * d[m]
        nu += t * d[m + 1]
        value = derivatives(P, w, y, g, H)
        if step == 11:
            return -1.0
    if mu > 0.0 and entropy(y) <= entropy(x) + 1e-12:
        x[:] = y
        return mu
    return -1.0


@compiled
def descend(P: Array, w: Array, c: float, inner_c: float, centre: Array, theta: Array) -> tuple[float, float]:
    """Walk `theta` down to a local minimum of the entropy over the level set; return its value (nats) and multiplier.

    Each step minimises the tangent of the entropy over the level set (Frank-Wolfe); for a concave function that
    never climbs. Newton's method finishes.
    """
    l = theta.shape[0]
    q = np.empty(l)
    guess = np.empty(l)
    point = np.empty(l)
    zeros = np.zeros(l)
    ones = np.ones(l)
    value = entropy(theta)
    multiplier = 0.0
    for _ in range(30):
        for j in range(l):
            q[j] = -np.log(max(theta[j], 1e-12))
            guess[j] = 0.9 * centre[j] + 0.1 / l
        _, multiplier = minimise_over_cut(P, w, c, q, zeros, ones, guess, np.inf)
        to_boundary(P, w, inner_c, centre, guess, point)
        new = entropy(point)
        if new < value:
            theta[:] = point
        done = new >= value - 1e-12
        if done or value - new < 1e-2 * value:
            mu = settle(P, w, inner_c, theta, multiplier)
            if mu > 0.0:
                return entropy(theta), mu
        value = min(value, new)
        if done:
            break
    return value, multiplier
