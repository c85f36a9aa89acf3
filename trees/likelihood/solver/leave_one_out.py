"""Compiled kernels: the least width of the entropy interval when one row is left out (theory §3.3).

Theory §3.3 has the proof. Notation as in `kernels`; ``P @ theta`` is 1 in every row, so that ``l(theta) = 0``.
``l_k = l - ln v_k`` is the likelihood without one row of the contour ``p_k``. The ends of the whole interval are moved
into its cut by one Newton step, without reading the rows:

    ``l_k(x + d) >= l_k(x) + g_k . d - omega*(r)``,  ``max l_k <= omega*(lambda)``,

with ``r`` the length of ``d`` in the local norm, ``lambda`` that of the Newton step, ``omega*(r) = -r - ln(1 - r)``.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing, compact, compiled
from quercus.trees.likelihood.solver.descent import entropy
from quercus.trees.likelihood.solver.kernels import SUPPORT, Array, derivatives, loglik, sum_of
from quercus.trees.likelihood.solver.rounding_bounds import plain_sums, rounding

LONGEST_STEP = 0.7  # in the local norm; self-concordance is not used for longer ones


@compiled
def invert(A: Array) -> bool:
    """Invert `A` in place (Gauss-Jordan with partial pivoting); False if singular."""
    m = A.shape[0]
    order = np.empty(m, np.int64)
    for k in range(m):
        pivot = k
        for i in range(k + 1, m):
            if abs(A[i, k]) > abs(A[pivot, k]):
                pivot = i
        order[k] = pivot
        if not abs(A[pivot, k]) > 0.0:
            return False
        if pivot != k:
            for j in range(m):
                A[k, j], A[pivot, j] = A[pivot, j], A[k, j]
        scale = 1.0 / A[k, k]
        A[k, k] = 1.0
        for j in range(m):
            A[k, j] *= scale
        for i in range(m):
            f = A[i, k]
            if i != k and f != 0.0:
                A[i, k] = 0.0
                for j in range(m):
                    A[i, j] -= f * A[k, j]
    for k in range(m - 1, -1, -1):
        if order[k] != k:
            for i in range(m):
                A[i, k], A[i, order[k]] = A[i, order[k]], A[i, k]
    return True


@compiled
def support(x: Array) -> NDArray[np.int64]:
    """Return the classes whose face contains `x`."""
    m = 0
    face = np.empty(x.shape[0], np.int64)
    for j in range(x.shape[0]):
        if x[j] > SUPPORT:
            face[m] = j
            m += 1
    return face[:m]


@borrowing
def optimality(
    P: Array, w: Array, x: Array, mu: float, face: NDArray[np.int64], K: Array, H: Array, g: Array
) -> float:
    """Write the inverse of the bordered matrix of the conditions of optimality at `x`; return ``l(x)``.

    See `move_into_cut`. The result is NaN if the matrix is singular.
    """
    m = face.shape[0]
    value = derivatives(P, w, x, g, H)
    for r in range(m):
        for s in range(m):
            K[r, s] = mu * H[face[r], face[s]]
        K[r, r] -= 1.0 / x[face[r]]
        K[r, m] = K[m, r] = -g[face[r]]
        K[r, m + 1] = K[m + 1, r] = -1.0
    for r in range(m, m + 2):
        for s in range(m, m + 2):
            K[r, s] = 0.0
    return value if invert(K) else np.nan


@compact
def highest_without(P: Array, w: Array, theta: Array, worst: float, tops: Array) -> None:
    """Write upper bounds of the maximum of each ``l_k`` into `tops` (n,); infinity if none is known.

    The step is taken on the face of `theta`; a class off the face is held at 0 by a multiplier, which must not be
    negative.
    """
    n, l = P.shape
    W = sum_of(w)
    g = np.empty(l)
    H = np.empty((l, l))
    face = support(theta)
    m = face.shape[0]
    derivatives(P, w, theta, g, H)
    K = np.zeros((m + 1, m + 1))
    for r in range(m):
        for s in range(m):
            K[r, s] = H[face[r], face[s]]
        K[r, m] = K[m, r] = 1.0
    regular = invert(K)
    d = np.empty(m)
    d_full = np.empty(l)
    for k in range(n):
        tops[k] = np.inf
        if not regular:
            continue
        q = 0.0
        for r in range(m):
            d[r] = 0.0
            for s in range(m):
                d[r] -= K[r, s] * P[k, face[s]]
            q -= d[r] * P[k, face[r]]
        if not 0.0 <= q < 0.5:
            continue
        nu = 0.0  # H_k d = -p_k + nu on the face
        for s in range(m):
            nu += K[m, s] * P[k, face[s]]
        nu /= 1.0 - q
        square = 0.0
        loose = 0.0
        held = True
        for j in range(l):
            push = -P[k, j] * -q / (1.0 - q)  # becomes (H_k d)_j
            for r in range(m):
                push += H[j, face[r]] * d[r] / (1.0 - q)
            if theta[j] > SUPPORT:
                loose += 2.0 * abs(push + P[k, j] - nu)
            else:
                hold = W - g[j] + push + P[k, j] - nu
                held = held and hold >= 0.0
                loose += hold * theta[j]
            d_full[j] = push
        for r in range(m):
            square += d_full[face[r]] * d[r] / (1.0 - q)
        if held and 0.0 <= square < 1.0:
            size = np.sqrt(square)
            tops[k] = -size - np.log1p(-size) + loose + W * (worst + plain_sums(n, l) + rounding(l))


@borrowing
def length_of_step(level: float, rise: float, slope: float, aa: float, ae: float, ee: float) -> float:
    """Return the least ``t`` found with ``rise + slope t - omega*(sqrt(aa + 2 ae t + ee t^2)) >= level``, or NaN."""
    t = 0.0
    for _ in range(8):
        r = np.sqrt(max(aa + t * (2.0 * ae + ee * t), 0.0))
        if not r < LONGEST_STEP:
            return np.nan
        room = rise + slope * t + r + np.log1p(-r) - level
        if 0.0 <= room <= 1e-9:
            return t
        rate = slope - (ae + ee * t) / (1.0 - r)
        if not rate > 0.0:
            return np.nan if room < 0.0 else t
        t += (1e-12 - room) / rate
    return t if room >= 0.0 else np.nan


@compact
def move_into_cut(
    P: Array, w: Array, c: float, x: Array, mu: float, tops: Array, highest: bool, ends: Array
) -> None:
    """Move `x`, near which the entropy is stationary on ``l = c`` with multiplier `mu`, into the cut without each row.

    `ends` (n,) keeps the greatest (`highest`) or the least entropy (nats) of the points reached so far.
    """
    n, l = P.shape
    face = support(x)
    m = face.shape[0]
    K = np.empty((m + 2, m + 2))
    H = np.empty((l, l))
    g = np.empty(l)
    value = optimality(P, w, x, mu, face, K, H, g)
    if not value > -np.inf:
        return
    a = np.empty(m)
    e = np.empty(m)
    He = np.empty(m)
    slope = 0.0
    ee = 0.0
    fault = np.empty(m)  # of -ln x_j - 1 - mu g_j = nu
    nu = 0.0
    for r in range(m):
        fault[r] = np.log(x[face[r]]) + 1.0 + mu * g[face[r]]
        nu -= fault[r] / m
    for r in range(m):
        fault[r] += nu
        e[r] = -K[r, m]
    for r in range(m):
        He[r] = 0.0
        for s in range(m):
            He[r] += H[face[r], face[s]] * e[s]
        slope += g[face[r]] * e[r]
        ee += He[r] * e[r]
    for k in range(n):
        v = 0.0
        for j in range(l):
            v += P[k, j] * x[j]
        if not tops[k] < np.inf or not v > 0.0:
            continue
        level = tops[k] + c
        here = value - np.log(v)
        aa = 0.0
        ae = 0.0
        ga = 0.0
        pa = 0.0
        pe = 0.0
        for r in range(m):
            a[r] = K[r, m] * (here - level)
            for s in range(m):
                a[r] += K[r, s] * (fault[s] - mu * P[k, face[s]] / v)
        for r in range(m):
            Ha = 0.0
            for s in range(m):
                Ha += H[face[r], face[s]] * a[s]
            aa += Ha * a[r]
            ae += He[r] * a[r]
            ga += g[face[r]] * a[r]
            pa += P[k, face[r]] * a[r] / v
            pe += P[k, face[r]] * e[r] / v
        t = length_of_step(level, here + ga - pa, slope - pe, aa - pa * pa, ae - pa * pe, ee - pe * pe)
        reached = 0.0
        for r in range(m):
            y = x[face[r]] + a[r] + t * e[r]
            if not y > 0.0:
                reached = np.nan
                break
            reached -= y * np.log(y)
        if (reached > ends[k]) if highest else (reached < ends[k]):
            ends[k] = reached


@compact
def known_ends(P: Array, w: Array, c: float, theta: Array, tops: Array, low: Array, high: Array) -> None:
    """Write the ends known without search into `low` and `high` (n,): a vertex, the uniform point or `theta`."""
    n, l = P.shape
    at_theta = entropy(theta)
    uniform = loglik(P, w, np.full(l, 1.0 / l))
    at_vertex = np.zeros(l)
    barred = np.zeros(l)
    for i in range(n):
        for j in range(l):
            if P[i, j] > 0.0:
                at_vertex[j] += w[i] * np.log(P[i, j])
            else:
                barred[j] += w[i]
    for k in range(n):
        level = tops[k] + c
        low[k] = at_theta if level <= 0.0 else np.inf
        high[k] = at_theta if level <= 0.0 else -np.inf
        v = 0.0
        for j in range(l):
            v += P[k, j] / l
            left = barred[j] if P[k, j] > 0.0 else barred[j] - 1.0
            own = np.log(P[k, j]) if P[k, j] > 0.0 else 0.0
            if left == 0.0 and at_vertex[j] - own >= level:
                low[k] = 0.0
        if uniform - np.log(v) >= level:
            high[k] = np.log(l)
