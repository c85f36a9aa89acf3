"""Compiled kernels: local minima of the entropy over a level set of the likelihood (theory §2.7).

Notation as in `kernels`. Frank-Wolfe steps find the neighbourhood, Newton's method the minimum and its multiplier.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compact, compiled
from quercus.trees.likelihood.solver.cut import minimise_over_cut
from quercus.trees.likelihood.solver.kernels import (
    Array,
    copy_line,
    derivatives,
    factor,
    gradient,
    solve,
    sum_of,
)


@borrowing
def entropy(theta: Array) -> float:
    """Return the Shannon entropy in nats."""
    total = 0.0
    for j in range(theta.shape[0]):
        if theta[j] > 0.0:
            total -= theta[j] * np.log(theta[j])
    return total


@compact
def to_boundary(P: Array, w: Array, c: float, inner: Array, outer: Array, point: Array) -> None:
    """Write into `point` the last member of the level set on the ray from `inner` (a member) through `outer`.

    Entropy is concave, so along the ray it is least at an end. This also returns a guess that is slightly outside the
    level set into it.
    """
    n, l = P.shape
    reach = 1e6
    move = 0.0
    total = sum_of(outer)  # programs leave the simplex by their rounding, which a short ray would magnify
    direction = np.empty(l)
    for j in range(l):
        d = outer[j] / total - inner[j]
        direction[j] = d
        move = max(move, abs(d))
        if d < 0.0:
            reach = min(reach, -inner[j] / d)
    if move < 1e-14:
        copy_line(inner, point)
        return
    here = np.empty(n)
    slope = np.empty(n)
    for i in range(n):
        here[i] = 0.0
        slope[i] = 0.0
        for j in range(l):
            here[i] += P[i, j] * inner[j]
            slope[i] += P[i, j] * direction[j]
    lo = 0.0
    hi = reach
    t = reach
    back = 1e-15
    for step in range(100):  # Newton's method on a concave function, from the right; bisection if that fails
        value = -c
        rate = 0.0
        for i in range(n):
            v = here[i] + t * slope[i]
            if v <= 0.0:
                value = -np.inf
                break
            value += w[i] * np.log(v)
            rate += w[i] * slope[i] / v
        if value >= 0.0:
            lo = t
            if step == 0 or value <= 1e-12 * abs(c):
                break
        else:
            hi = t
        if hi - lo <= 2e-16 * hi:
            break
        new = t - value / rate if value > -np.inf and rate < 0.0 else hi
        if step == 0 and lo < 1.0 < hi:
            new = 1.0
        elif (
            value < 0.0 and step > 8
        ):  # only rounding keeps it outside now: step back by the error of rounding
            new = min(new, t * (1.0 - back))
            back *= 4.0
        t = new if lo < new < hi else 0.5 * (lo + hi)
    total = 0.0
    for j in range(l):
        point[j] = max(inner[j] + lo * direction[j], 0.0)
        total += point[j]
    for j in range(l):
        point[j] /= total


@borrowing
def eliminate(A: Array, y: Array) -> bool:
    """Solve ``A x = y`` in place of `y` by Gaussian elimination with partial pivoting; False if singular."""
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


@compact
def newton_stationary(P: Array, w: Array, c: float, x: Array, mu: float) -> float:
    """Find a stationary point of the entropy on ``l = c`` near `x` by Newton's method, on the face of `x`.

    Solves ``-ln x_j - 1 - mu g_j = nu`` for ``x_j > 0``, ``l(x) = c``, ``sum x = 1``. Returns the multiplier ``mu``:
    positive at a minimum, from a positive start `mu`; negative at a maximum, from a negative start; 0, with `x`
    unchanged, if the method fails.
    """
    l = x.shape[0]
    keep = np.empty(l, np.int64)
    m = 0
    for j in range(l):
        if x[j] > 1e-7:
            keep[m] = j
            m += 1
    if m < 2:
        return 0.0
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
    start = mu
    value = derivatives(P, w, y, g, H)
    for r in range(m):
        nu -= (np.log(y[keep[r]]) + 1.0 + mu * g[keep[r]]) / m
    for step in range(12):
        for r in range(m + 2):
            for s in range(m + 2):
                A[r, s] = 0.0
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
            return 0.0
        t = 1.0
        for r in range(m):
            if d[r] < 0.0:
                t = min(t, -0.9 * y[keep[r]] / d[r])
        if not t > 0.1:
            return 0.0
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
            return 0.0
    if (mu > 0.0) != (start > 0.0):
        return 0.0
    change = entropy(y) - entropy(x)
    if (change if mu > 0.0 else -change) > 1e-12:
        return 0.0
    copy_line(y, x)
    return mu


@compact
def multiplier_at(P: Array, w: Array, x: Array) -> float:
    """Return the multiplier that fits ``-ln x_j - 1 = mu g_j + nu`` best over the classes with ``x_j > 0``."""
    l = x.shape[0]
    g = np.empty(l)
    gradient(P, w, x, g)
    m = 0
    mean_q = 0.0
    mean_g = 0.0
    for j in range(l):
        if x[j] > 1e-7:
            m += 1
            mean_q -= np.log(x[j])
            mean_g += g[j]
    mean_q /= m
    mean_g /= m
    both = 0.0
    square = 0.0
    for j in range(l):
        if x[j] > 1e-7:
            both += (-np.log(x[j]) - mean_q) * (g[j] - mean_g)
            square += (g[j] - mean_g) ** 2
    return both / square if square > 0.0 else 0.0


@compiled
def guess_minimum(P: Array, w: Array, c: float, theta: Array, x: Array) -> float:
    """Guess a minimum of the entropy over a small level set in closed form; write it to `x`.

    Near its maximiser `theta` the likelihood is quadratic: the level set is an ellipsoid there, and the least value of
    the tangent of the entropy over it is explicit. That step is taken twice, then Newton's method
    (`newton_stationary`). Returns the multiplier, 0 if the method fails.
    """
    l = theta.shape[0]
    keep = np.empty(l, np.int64)
    m = 0
    for j in range(l):
        if theta[j] > 1e-7:
            keep[m] = j
            m += 1
    if m < 2:
        return 0.0
    g = np.empty(l)
    H = np.empty((l, l))
    derivatives(P, w, theta, g, H)
    A = np.empty((m, m))
    for r in range(m):
        for s in range(m):
            A[r, s] = H[keep[r], keep[s]]
    factor(A)
    for r in range(m):
        if A[r, r] > 1e60:
            return 0.0
    one = np.ones(m)
    solve(A, one)
    d = np.empty(m)
    guess = np.empty(l)
    copy_line(theta, x)
    for _ in range(2):
        for r in range(m):
            d[r] = np.log(max(x[keep[r]], 1e-12))
        solve(A, d)
        nu = sum_of(d) / sum_of(one)
        size = 0.0
        for r in range(m):
            d[r] -= nu * one[r]
            size += d[r] * np.log(max(x[keep[r]], 1e-12))
        if not size > 0.0:
            return 0.0
        scale = np.sqrt(-2.0 * c / size)
        for r in range(m):
            if d[r] < 0.0:
                scale = min(scale, -0.98 * theta[keep[r]] / d[r])
        for k in range(guess.shape[0]):
            guess[k] = 0.0
        for r in range(m):
            guess[keep[r]] = theta[keep[r]] + scale * d[r]
        to_boundary(P, w, c, theta, guess, x)
    mu = multiplier_at(P, w, x)
    return newton_stationary(P, w, c, x, mu) if mu > 0.0 else 0.0


@compact
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
            copy_line(point, theta)
        done = new >= value - 1e-12
        if done or value - new < 1e-2 * value:
            mu = newton_stationary(P, w, inner_c, theta, multiplier)
            if mu > 0.0:
                return entropy(theta), mu
        value = min(value, new)
        if done:
            break
    return value, multiplier
