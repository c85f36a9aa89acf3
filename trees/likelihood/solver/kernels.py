"""Compiled kernels: the evidential log-likelihood, its derivatives and its maximiser (theory §2.1, §2.2).

Notation, shared with `cut` and `search`: ``P`` (n, l) contours, ``w`` (n,) weights, ``W`` their sum,
``v = P @ theta``, ``l(theta) = sum_i w_i ln v_i``, level set ``{theta in the simplex: l(theta) >= c}``. In nats.

The interior-point methods here and in `cut` may stop early or diverge without harm: they return only a *guess*, and
every bound that leaves this package is recomputed from the guess by weak duality, which is valid for any guess.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing, compact, compiled

Array = NDArray[np.float64]

TO_BOUNDARY = 0.995  # fraction of the way to the boundary that a step may take
INTERIOR_STEPS = 80  # interior-point steps; 8 to 20 are usual
SUPPORT = 1e-7  # a class with less probability counts as absent


@borrowing
def loglik(P: Array, w: Array, theta: Array) -> float:
    """Return ``l(theta)``; minus infinity if some ``v_i`` is 0."""
    total = 0.0
    for i in range(P.shape[0]):
        v = 0.0
        for j in range(P.shape[1]):
            v += P[i, j] * theta[j]
        if v <= 0.0:
            return -np.inf
        total += w[i] * np.log(v)
    return total


@borrowing
def sum_of(values: Array) -> float:
    """Return the sum of an array (k,): ``values.sum()`` compiles several times as long, since it takes any layout."""
    total = 0.0
    for k in range(values.shape[0]):
        total += values[k]
    return total


@borrowing
def copy_line(source: Array, target: Array) -> None:
    """Copy an array (k,) into another: ``target[:] = source`` compiles thrice as long, since it allows for overlaps."""
    for k in range(target.shape[0]):
        target[k] = source[k]


@borrowing
def gradient(P: Array, w: Array, theta: Array, g: Array) -> float:
    """Write ``dl/dtheta`` into `g`; return ``l(theta)``."""
    n, l = P.shape
    for j in range(l):
        g[j] = 0.0
    total = 0.0
    for i in range(n):
        v = 0.0
        for j in range(l):
            v += P[i, j] * theta[j]
        total += w[i] * np.log(v)
        r = w[i] / v
        for j in range(l):
            g[j] += r * P[i, j]
    return total


@borrowing
def derivatives(P: Array, w: Array, theta: Array, g: Array, H: Array) -> float:
    """Write the gradient into `g` and *minus* the Hessian into `H`; return ``l(theta)``."""
    n, l = P.shape
    for j in range(l):
        g[j] = 0.0
        for k in range(j + 1):
            H[j, k] = 0.0
    total = 0.0
    for i in range(n):
        v = 0.0
        for j in range(l):
            v += P[i, j] * theta[j]
        total += w[i] * np.log(v)
        r = w[i] / v
        for j in range(l):
            pj = P[i, j] * r
            if pj != 0.0:
                g[j] += pj
                pj /= v
                for k in range(j + 1):
                    H[j, k] += pj * P[i, k]
    for j in range(l):
        for k in range(j):
            H[k, j] = H[j, k]
    return total


@borrowing
def factor(A: Array) -> None:
    """Compute the Cholesky factor of `A` in place (lower triangle); a zero pivot is replaced by a huge one."""
    l = A.shape[0]
    for j in range(l):
        d = A[j, j]
        floor = 1e-14 * abs(d) + 1e-300
        for k in range(j):
            d -= A[j, k] * A[j, k]
        d = np.sqrt(d) if d > floor else 1e64
        A[j, j] = d
        for i in range(j + 1, l):
            s = A[i, j]
            for k in range(j):
                s -= A[i, k] * A[j, k]
            A[i, j] = s / d


@borrowing
def solve(L: Array, b: Array) -> None:
    """Solve ``L L' x = b`` in place of `b`."""
    l = L.shape[0]
    for i in range(l):
        s = b[i]
        for k in range(i):
            s -= L[i, k] * b[k]
        b[i] = s / L[i, i]
    for i in range(l - 1, -1, -1):
        s = b[i]
        for k in range(i + 1, l):
            s -= L[k, i] * b[k]
        b[i] = s / L[i, i]


@borrowing
def longest_step(x: Array, dx: Array) -> float:
    """Return the largest step ``t <= 1 / TO_BOUNDARY`` that keeps ``x + t dx >= 0``."""
    t = 1.0 / TO_BOUNDARY
    for j in range(x.shape[0]):
        if dx[j] < 0.0 and -x[j] > t * dx[j]:
            t = -x[j] / dx[j]
    return t


@borrowing
def kkt_excess(P: Array, w: Array, theta: Array, g: Array) -> float:
    """Return the KKT excess ``max_j g_j - 1`` of a point of the simplex (theory §2.2); `g` receives ``g_j``.

    It is infinite where some ``v_i`` is 0: such a point is near no maximiser.
    """
    gradient(P, w, theta, g)
    W = sum_of(w)
    worst = 0.0
    for j in range(theta.shape[0]):
        g[j] /= W
        if not g[j] < np.inf:  # of some class that its label allows; 0 times infinity is NaN for the others
            return np.inf
        worst = max(worst, g[j] - 1.0)
    return worst


@compact
def maximise(P: Array, w: Array) -> tuple[Array, float]:
    """Return the maximum evidential likelihood estimate and its KKT excess.

    Solves ``min_x -(1/W) l(x) + sum x, x >= 0``, whose solution sums to 1 by itself, and so needs no equality
    constraint (Kim, Carbonetto, Stephens, Anitescu 2020). If the maximiser is not unique, the path leads to the middle
    of the set of maximisers.
    """
    l = P.shape[1]
    W = sum_of(w)
    x = np.full(l, 1.0 / l)
    z = np.ones(l)
    g = np.empty(l)
    H = np.empty((l, l))
    dx = np.empty(l)
    dz = np.empty(l)
    best = x.copy()
    best_excess = kkt_excess(P, w, best, g)
    theta = np.empty(l)
    stalled = 0
    for _ in range(INTERIOR_STEPS):
        derivatives(P, w, x, g, H)
        mu = 0.0
        for j in range(l):
            g[j] /= W
            mu += x[j] * z[j]
            for k in range(l):
                H[j, k] /= W
        mu /= l
        for j in range(l):
            H[j, j] += z[j] / x[j]
        factor(H)
        for j in range(l):
            dx[j] = g[j] - 1.0
        solve(H, dx)
        for j in range(l):
            dz[j] = -z[j] - z[j] * dx[j] / x[j]
        tx = min(1.0, longest_step(x, dx))
        tz = min(1.0, longest_step(z, dz))
        affine = 0.0
        for j in range(l):
            affine += (x[j] + tx * dx[j]) * (z[j] + tz * dz[j])
        sigma = (affine / l / mu) ** 3
        for j in range(l):
            correction = sigma * mu - dx[j] * dz[j]
            dz[j] = correction  # kept until the corrected dx is known
            dx[j] = g[j] - 1.0 + correction / x[j]
        solve(H, dx)
        for j in range(l):
            dz[j] = -z[j] + (dz[j] - z[j] * dx[j]) / x[j]
        tx = min(1.0, TO_BOUNDARY * longest_step(x, dx))
        tz = min(1.0, TO_BOUNDARY * longest_step(z, dz))
        total = 0.0
        for j in range(l):
            x[j] = max(x[j] + tx * dx[j], 1e-300)
            z[j] = max(z[j] + tz * dz[j], 1e-300)
            total += x[j]
        for j in range(l):
            theta[j] = x[j] / total
        e = kkt_excess(P, w, theta, g)
        if e < best_excess:
            stalled = 0 if e < 0.9 * best_excess else stalled + 1
            best_excess = e
            copy_line(theta, best)
        else:
            stalled += 1
        if best_excess <= 1e-15 or (stalled >= 3 and best_excess < 1e-9) or stalled >= 20:
            break
    return polish(P, w, best, best_excess)


@compiled
def polish(P: Array, w: Array, theta: Array, worst: float) -> tuple[Array, float]:
    """Remove the classes that are 0 at the optimum, then take plain Newton steps on the others while these improve."""
    l = P.shape[1]
    W = sum_of(w)
    g = np.empty(l)
    kkt_excess(P, w, theta, g)
    keep = np.empty(l, np.int64)
    m = 0
    for j in range(l):
        if theta[j] > 1.0 - g[j] or theta[j] > 1e-3:
            keep[m] = j
            m += 1
    full_g = np.empty(l)
    full_H = np.empty((l, l))
    trial = np.zeros(l)
    total = 0.0
    for a in range(m):
        total += theta[keep[a]]
    for a in range(m):
        trial[keep[a]] = theta[keep[a]] / total
    A = np.empty((m, m))
    step = np.empty(m)
    for _ in range(4):
        e = kkt_excess(P, w, trial, g)
        if e < worst or (e <= 1e-15 and worst <= 1e-15):
            worst = e
            theta = trial.copy()
        derivatives(P, w, trial, full_g, full_H)
        for a in range(m):
            step[a] = full_g[keep[a]] / W - 1.0
            for b in range(m):
                A[a, b] = full_H[keep[a], keep[b]] / W
        factor(A)
        solve(A, step)
        total = 0.0
        for a in range(m):
            value = trial[keep[a]] + step[a]
            if not value > 0.0:
                return theta, worst
            trial[keep[a]] = value
            total += value
        for a in range(m):
            trial[keep[a]] /= total
    return theta, worst
