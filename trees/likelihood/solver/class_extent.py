"""Proven bounds of the probability of one class over the likelihood cut (theory §2.12).

The least value of ``q . theta`` over ``{theta in the simplex : l(theta) >= c}`` has ``q = mu g + nu`` on its support,
``g`` the gradient of ``l``. Newton's method finds it from the quadratic model of ``l`` at its maximiser. At any
point, the tangent of ``l`` proves a bound: ``l(t) <= l(y) + g . t - W``, so for every ``mu >= 0``

    ``q . t >= min_k (q_k - mu g_k) + mu (W + c - l(y))``  on the whole cut.

If both agree, that is the result; otherwise (rarely) the interior-point method of `cut` finishes. Where the
maximiser is a vertex ``e_a``, the guess is the end of an edge ``(1 - t) e_a + t e_k``, one equation in one unknown.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.cut import minimise_over_cut
from quercus.trees.likelihood.solver.descent import eliminate
from quercus.trees.likelihood.solver.kernels import SUPPORT, Array, derivatives, factor, loglik, solve, sum_of

EXTENT_GAP = 1e-10  # between the value found and its proof, for both to be the answer
EXTENT_STEPS = 20  # of Newton's method, at most
EDGE_STEPS = 60  # on an edge, at most; 4 to 8 are usual
EDGE_TOLERANCE = 1e-14  # of the end of an edge, relative
NO_CLASS = -1
DUST = 4e-16  # rounding of a proof, relative to its terms


@borrowing
def project(A: Array, one: Array, x: Array) -> float:
    """Solve ``A y = x - nu 1`` with ``sum y = 0`` in place of `x`, given the factor of `A` and ``A^-1 1``."""
    solve(A, x)
    nu = sum_of(x) / sum_of(one)
    for r in range(x.shape[0]):
        x[r] -= nu * one[r]
    return float(nu)


@compiled
def quadratic_start(P: Array, w: Array, c: float, theta: Array, j: int, sign: float, y: Array) -> float:
    """Write the least point of ``sign theta_j`` in the quadratic model of the cut at its maximiser into `y`.

    With ``a = W - g`` and ``H`` the negative Hessian, both at `theta`, the model is ``a . d + d' H d / 2 <= -c``.
    Returns the multiplier ``mu``, 0 if the model has none.
    """
    l = theta.shape[0]
    keep = np.empty(l, np.int64)
    m = 0
    for k in range(l):
        if theta[k] > SUPPORT or k == j:
            keep[m] = k
            m += 1
    g = np.empty(l)
    H = np.empty((l, l))
    derivatives(P, w, theta, g, H)
    W = sum_of(w)
    A = np.empty((m, m))
    one = np.ones(m)
    q = np.zeros(m)
    a = np.empty(m)
    for r in range(m):
        for s in range(m):
            A[r, s] = H[keep[r], keep[s]]
        a[r] = max(W - g[keep[r]], 0.0)
        if keep[r] == j:
            q[r] = sign
    factor(A)
    for r in range(m):
        if A[r, r] > 1e60:
            return 0.0
    solve(A, one)
    down = q.copy()
    away = a.copy()
    project(A, one, down)
    project(A, one, away)
    size = 0.0
    rest = 0.0
    for r in range(m):
        size += q[r] * down[r]
        rest += a[r] * away[r]
    if not size > 0.0:
        return 0.0
    scale = np.sqrt((rest - 2.0 * c) / size)
    t = 1.0
    for r in range(m):
        d = -scale * down[r] - away[r]
        if d < 0.0:
            t = min(t, -0.95 * theta[keep[r]] / d)
    for k in range(y.shape[0]):
        y[k] = 0.0
    total = 0.0
    for r in range(m):
        y[keep[r]] = theta[keep[r]] + t * (-scale * down[r] - away[r])
        total += y[keep[r]]
    if not y[j] > 0.0:
        return 0.0
    for k in range(l):
        y[k] /= total
    return float(1.0 / scale)


@compiled
def newton(P: Array, w: Array, c: float, j: int, sign: float, y: Array, mu: float) -> float:
    """Return a proven lower bound of ``sign theta_j`` over the cut, from a start `y` with multiplier `mu`, or -inf."""
    l = y.shape[0]
    W = sum_of(w)
    g = np.empty(l)
    H = np.empty((l, l))
    keep = np.empty(l, np.int64)
    matrix = np.empty((l + 2, l + 2))
    right = np.empty(l + 2)
    nu = np.inf
    for _ in range(EXTENT_STEPS):
        value = derivatives(P, w, y, g, H)
        if not np.isfinite(value):
            return -np.inf
        low = np.inf
        for k in range(l):
            low = min(low, (sign if k == j else 0.0) - mu * g[k])
        low += mu * (W + c - value)
        low -= DUST * (1.0 + mu * (W + abs(c) + abs(value)))
        if abs(sign * y[j] - low) <= EXTENT_GAP:
            return float(low)
        m = 0
        for k in range(l):
            if y[k] > 0.0:
                keep[m] = k
                m += 1
        if m < 2:
            return -np.inf
        if nu == np.inf:
            nu = 0.0
            for r in range(m):
                nu += ((sign if keep[r] == j else 0.0) - mu * g[keep[r]]) / m
        A = matrix[: m + 2, : m + 2]
        d = right[: m + 2]
        for r in range(m + 2):
            for s in range(m + 2):
                A[r, s] = 0.0
        for r in range(m):
            p = keep[r]
            for s in range(m):
                A[r, s] = mu * H[p, keep[s]]
            A[r, m] = A[m, r] = -g[p]
            A[r, m + 1] = A[m + 1, r] = -1.0
            d[r] = mu * g[p] + nu - (sign if p == j else 0.0)
        d[m] = value - c
        d[m + 1] = 0.0
        if not eliminate(A, d):
            return -np.inf
        t = 1.0
        last = NO_CLASS
        for r in range(m):
            if y[keep[r]] + t * d[r] <= 0.0:
                t = -y[keep[r]] / d[r]
                last = keep[r]
        if last >= 0 and t > 0.5:  # nearly 0: it belongs at 0
            if last == j:
                return -np.inf
        else:
            last = NO_CLASS
            t = min(1.0, 0.9 * t) if t < 1.0 else 1.0
        total = 0.0
        for r in range(m):
            y[keep[r]] = 0.0 if keep[r] == last else y[keep[r]] + t * d[r]
            total += y[keep[r]]
        for r in range(m):
            y[keep[r]] /= total
        mu = max(mu + t * d[m], 0.2 * mu)
        nu += t * d[m + 1]
    return -np.inf


@borrowing
def vertex_of(theta: Array) -> int:
    """Return the class that has all the probability, or `NO_CLASS`."""
    for k in range(theta.shape[0]):
        if theta[k] == 1.0:
            return k
    return NO_CLASS


@borrowing
def may_be_alone(P: Array, w: Array, c: float, k: int) -> bool:
    """Return whether the cut holds the vertex of class `k`."""
    value = 0.0
    for i in range(P.shape[0]):
        if not P[i, k] > 0.0:
            return False
        value += w[i] * np.log(P[i, k])
    return value >= c


@borrowing
def edge_end(P: Array, w: Array, c: float, k: int) -> float:
    """Return the greatest ``t`` with ``l((1 - t) e_a + t e_k) >= c``, but for rounding.

    ``e_a`` is the maximiser, ``P[:, a]`` is 1, and ``e_k`` is beyond the cut. Newton's method, within a bracket.
    """
    slope = bend = 0.0
    for i in range(P.shape[0]):
        slope += w[i] * (P[i, k] - 1.0)
        bend += w[i] * (P[i, k] - 1.0) ** 2
    low, high = 0.0, 1.0
    t = min(-2.0 * c / (np.sqrt(slope * slope - 2.0 * bend * c) - slope), 0.9)
    for _ in range(EDGE_STEPS):
        value, rate = -c, 0.0
        for i in range(P.shape[0]):
            v = 1.0 + t * (P[i, k] - 1.0)
            value += w[i] * np.log(v) if v > 0.0 else -np.inf
            rate += w[i] * (P[i, k] - 1.0) / v if v > 0.0 else 0.0
        if value >= 0.0:
            low = t
        else:
            high = t
        new = t - value / rate if value > -np.inf and rate < 0.0 else low
        if abs(new - t) <= EDGE_TOLERANCE * t and new < 1.0:
            return float(new)
        t = new if low < new < high else 0.5 * (low + high)
    return float(t)


@borrowing
def proven_at_edge(
    P: Array, w: Array, c: float, a: int, k: int, t: float, j: int, sign: float, g: Array
) -> float:
    """Return the bound of ``sign theta_j`` that the tangent at ``(1 - t) e_a + t e_k`` proves; `g` (l,) is scratch."""
    l = P.shape[1]
    W = value = 0.0
    for m in range(l):
        g[m] = 0.0
    for i in range(P.shape[0]):
        v = P[i, a] + t * (P[i, k] - P[i, a])
        if not v > 0.0:
            return -np.inf
        W += w[i]
        value += w[i] * np.log(v)
        for m in range(l):
            g[m] += w[i] / v * P[i, m]
    if not g[a] > g[k]:
        return -np.inf
    mu = 1.0 / (g[a] - g[k])
    low = np.inf
    for m in range(l):
        low = min(low, (sign if m == j else 0.0) - mu * g[m])
    return float(low + mu * (W + c - value) - DUST * (1.0 + mu * (W + abs(c) + abs(value))))


@borrowing
def least_at_vertex(P: Array, w: Array, c: float, a: int, j: int, sign: float, g: Array) -> float:
    """Return a proven lower bound of ``sign theta_j`` where ``e_a`` is the maximiser, or -inf.

    The greatest probability of another class lies at the end of its edge, unless a third class helps. The least one of
    class ``a`` lies at the end of the longest edge, unless classes together take more from it. Then the proof fails.
    """
    best, longest = j, 0.0
    if sign > 0.0:
        for k in range(P.shape[1]):
            if k == a:
                continue
            if may_be_alone(P, w, c, k):
                return 0.0
            t = edge_end(P, w, c, k)
            if t > longest:
                best, longest = k, t
    else:
        longest = edge_end(P, w, c, j)
    bound = proven_at_edge(P, w, c, a, best, longest, j, sign, g)
    reached = 1.0 - longest if sign > 0.0 else -longest
    return bound if abs(reached - bound) <= EXTENT_GAP else -np.inf


@compiled
def least_of_class(P: Array, w: Array, c: float, theta: Array, j: int, sign: float, y: Array) -> float:
    """Return a proven lower bound of ``sign theta_j`` over the cut (`sign` 1: the least, -1: the greatest probability).

    ``P @ theta`` must be 1 in every row, `theta` the maximiser; `y` is scratch (l,).
    """
    l = theta.shape[0]
    if sign > 0.0:
        if theta[j] <= 0.0:
            return 0.0
        if theta[j] < 1.0:  # test whether the class may have probability 0
            for k in range(l):
                y[k] = 0.0 if k == j else theta[k] / (1.0 - theta[j])
            if loglik(P, w, y) >= c:
                return 0.0
    else:
        for k in range(l):
            y[k] = 1.0 if k == j else 0.0
        if loglik(P, w, y) >= c:
            return -1.0
    a = vertex_of(theta)
    if a != NO_CLASS:
        bound = least_at_vertex(P, w, c, a, j, sign, y)
        if bound > -np.inf:
            return bound
    mu = quadratic_start(P, w, c, theta, j, sign, y)
    if mu > 0.0:
        bound = newton(P, w, c, j, sign, y, mu)
        if bound > -np.inf:
            return bound
    cost = np.zeros(l)
    cost[j] = sign
    for k in range(l):
        y[k] = 0.9 * theta[k] + 0.1 / l
    bound, _ = minimise_over_cut(P, w, c, cost, np.zeros(l), np.ones(l), y, np.inf)
    return float(bound)
