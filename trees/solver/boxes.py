"""Compiled kernels: lower bounds of the entropy over the part of a level set that lies in a box.

Notation as in `kernels`. `outer_box` encloses the whole level set. `convex_bound` is exact around a local minimum,
by a Lagrangian that is convex there; `chord_bound` holds anywhere (Falk, Soland 1969).
"""

import numpy as np

from quercus.trees.solver.compiled import compiled
from quercus.trees.solver.cut import least_linear, minimise_over_cut
from quercus.trees.solver.descent import entropy
from quercus.trees.solver.kernels import Array, factor, gradient, solve

ROUNDS = 4  # tangents that `convex_bound` tries


@compiled
def largest_move(p: Array, x: float) -> float:
    """Upper bound of ``u = p . t - 1`` over the points ``t`` of the simplex with ``omega(u) <= x``, see `outer_box`."""
    top = 0.0
    for j in range(p.shape[0]):
        top = max(top, p[j] - 1.0)
    if top == 0.0 or not x < 1e100:
        return top
    u = x + np.sqrt(2.0 * x)  # right of the root of omega(u) = x, and Newton stays there
    for _ in range(4):
        u -= (u - np.log1p(u) - x) * (1.0 + u) / u
    return min(u * (1.0 + 1e-6), top) if u > 0.0 else top


@compiled
def outer_box(
    P: Array, w: Array, c: float, theta: Array, worst: float, a: Array, b: Array, top: Array
) -> None:
    """Write a box ``[a, b]`` that provably contains the level set, and upper bounds `top` of ``P @ t`` over it.

    ``P @ theta`` must be 1 in every row.

    With ``u_i = p_i . (t - theta)``, ``omega(u) = u - ln(1 + u)`` and ``delta = -c``, membership of ``t`` says
    ``sum w_i omega(u_i) + W sum_j (1 - g_j) t_j <= delta``. Its second part bounds every class with ``g_j < 1`` by
    some ``b_j``, hence is at least ``sum_j W (1 - g_j) t_j^2 / b_j`` over these; with ``omega(u) >= u^2 / (2 + 4/3 U)``
    for ``u <= U``, ``U >= 0``, all of it confines ``t`` to an ellipsoid. `worst` is the KKT excess of `theta`, which
    loosens the inequality by as much.
    """
    n, l = P.shape
    W = w.sum()
    delta = -c + W * worst
    g = np.empty(l)
    gradient(P, w, theta, g)
    A = np.zeros((l, l))
    for i in range(n):
        u = largest_move(P[i], delta / w[i])
        top[i] = (1.0 + u) * (1.0 + 1e-9)
        r = w[i] / (1.0 + 2.0 / 3.0 * u)
        for j in range(l):
            pj = r * P[i, j]
            for k in range(j + 1):
                A[j, k] += pj * P[i, k]
    square = 2.0 * delta
    least = np.inf
    for j in range(l):
        a[j] = 0.0
        b[j] = 1.0
        if W - g[j] > 1e-9 * W:
            b[j] = min(1.0, delta / (W - g[j]) * (1.0 + 1e-6))
            if b[j] > 0.0:
                d = 2.0 * (W - g[j]) / max(b[j], theta[j])
                A[j, j] += d
                square += d * theta[j] * theta[j]  # (t - theta)^2 <= t^2 + theta^2
        least = min(least, A[j, j])
    for j in range(l):
        for k in range(j + 1):
            A[j, k] += least  # sum (t - theta) = 0: a multiple of 11' changes nothing
        g[j] = A[j, j]
    factor(A)
    for j in range(l):
        if A[j, j] > 1e60 or not A[j, j] * A[j, j] > 1e-9 * g[j]:
            return
    one = np.ones(l)
    solve(A, one)
    total = one.sum()
    e = np.empty(l)
    for j in range(l):
        e[:] = 0.0
        e[j] = 1.0
        solve(A, e)
        r = np.sqrt(square * max(e[j] - one[j] * one[j] / total, 0.0)) * (1.0 + 1e-6) + 1e-12
        a[j] = max(a[j], theta[j] - r)
        b[j] = min(b[j], theta[j] + r)
    for i in range(n):  # p . (t - theta) over the ellipsoid and sum (t - theta) = 0
        e[:] = P[i]
        solve(A, e)
        length = 0.0
        mean = 0.0
        for j in range(l):
            length += P[i, j] * e[j]
            mean += P[i, j] * one[j]
        r = np.sqrt(square * max(length - mean * mean / total, 0.0)) * (1.0 + 1e-6) + 1e-12
        top[i] = min(top[i], 1.0 + r)


@compiled
def tighten(a: Array, b: Array) -> bool:
    """Shrink a box to what the simplex leaves of it; False when nothing is left. The interior stays non-empty."""
    l = a.shape[0]
    for _ in range(2):
        sa = a.sum()
        sb = b.sum()
        if sa > 1.0 + 1e-12 or sb < 1.0 - 1e-12:
            return False
        for j in range(l):
            b[j] = min(b[j], 1.0 - (sa - a[j]))
            a[j] = max(a[j], 1.0 - (sb - b[j]))
            if a[j] > b[j] + 1e-12:
                return False
            sa = a.sum()
            sb = b.sum()
    for j in range(l):
        if b[j] - a[j] < 1e-11:
            b[j] = min(1.0, b[j] + 1e-11)
            a[j] = max(0.0, a[j] - 1e-11)
    if a.sum() > 1.0 - 1e-11 or b.sum() < 1.0 + 1e-11:
        for j in range(l):
            a[j] = max(0.0, a[j] - 1e-11)
            b[j] = min(1.0, b[j] + 1e-11)
    return True


@compiled
def contains(a: Array, b: Array, x: Array) -> bool:
    """Tell whether the box holds `x`."""
    for j in range(x.shape[0]):  # noqa: SIM110 - Numba compiles no generator
        if x[j] < a[j] or x[j] > b[j]:
            return False
    return True


@compiled
def chord_bound(
    P: Array, w: Array, c: float, a: Array, b: Array, theta: Array, enough: float
) -> tuple[float, int, float]:
    """Lower bound (nats) of the entropy over the level set within a box, and where to cut the box next.

    On ``[a_j, b_j]`` the concave ``-x ln x`` lies above its chord, so the entropy lies above a linear function
    (Falk, Soland 1969). `theta` receives the minimiser of that function.
    """
    l = a.shape[0]
    q = np.empty(l)
    offset = 0.0
    t = (1.0 - a.sum()) / (b.sum() - a.sum())
    for j in range(l):
        ha = -a[j] * np.log(a[j]) if a[j] > 0.0 else 0.0
        hb = -b[j] * np.log(b[j])
        q[j] = (hb - ha) / (b[j] - a[j])
        offset += ha - q[j] * a[j]
        theta[j] = a[j] + t * (b[j] - a[j])
    bound, _ = minimise_over_cut(P, w, c, q, a, b, theta, enough - offset)
    cut = 0
    worst = -1.0
    for j in range(l):
        ha = -a[j] * np.log(a[j]) if a[j] > 0.0 else 0.0
        loss = (-theta[j] * np.log(theta[j]) if theta[j] > 0.0 else 0.0) - ha - q[j] * (theta[j] - a[j])
        if loss > worst:
            worst = loss
            cut = j
    width = b[cut] - a[cut]
    at = min(max(theta[cut], a[cut] + 0.1 * width), b[cut] - 0.1 * width)
    return bound + offset, cut, at


@compiled
def greatest_linear(p: Array, a: Array, b: Array) -> float:
    """Maximum of ``p . t`` over simplex and box, which meet."""
    l = p.shape[0]
    left = 1.0
    total = 0.0
    for j in range(l):
        total += p[j] * a[j]
        left -= a[j]
    cap = np.inf
    while left > 0.0:
        best = -1.0
        for j in range(l):  # all classes of the next largest value at once
            if best < p[j] < cap:
                best = p[j]
        if best < 0.0:
            break
        room = 0.0
        for j in range(l):
            if p[j] == best:
                room += b[j] - a[j]
        total += best * min(left, room)
        left -= room
        cap = best
    return total


@compiled
def is_convex(M: Array, a: Array, cap: float) -> bool:
    """Tell whether ``M - diag(min(1 / a_j, cap))`` is positive definite for ``sum d = 0``; no term where a is 0."""
    l = a.shape[0]
    A = np.empty((l, l))
    free = 0.0  # on the simplex, adding a multiple of 11' changes nothing
    for j in range(l):
        free = max(free, M[j, j])
        if a[j] > 1e-9:
            free = max(free, min(1.0 / a[j], cap))
    for j in range(l):
        for k in range(j + 1):
            A[j, k] = M[j, k] + 10.0 * free
        if a[j] > 1e-9:
            A[j, j] -= min(1.0 / a[j], cap)
        for k in range(j):
            s = A[j, k]
            for i in range(k):
                s -= A[j, i] * A[k, i]
            A[j, k] = s / A[k, k]
            A[j, j] -= A[j, k] * A[j, k]
        if A[j, j] <= 1e-9 * free:
            return False
        A[j, j] = np.sqrt(A[j, j])
    return True


@compiled
def kept_curvature(M: Array, a: Array) -> float:
    """Largest cap with which `is_convex` holds, up to a few per cent; infinity when nothing needs to be capped."""
    high = 0.0
    for j in range(a.shape[0]):
        if a[j] > 1e-9:
            high = max(high, 1.0 / a[j])
    if is_convex(M, a, high):
        return np.inf
    low = 1e-3
    if not is_convex(M, a, low):
        return 0.0
    for _ in range(10):
        middle = np.sqrt(low * high)
        if is_convex(M, a, middle):
            low = middle
        else:
            high = middle
    return low


@compiled
def convex_bound(
    P: Array, w: Array, c: float, a: Array, b: Array, top: Array, x: Array, mu: float, y: Array
) -> tuple[float, int]:
    """Lower bound (nats) of the entropy over the level set within a box, and the coordinate that costs most.

    Parameters
    ----------
    P, w, c, a, b : level set and box
    top : (n,) upper bounds of ``P @ t`` on the level set
    x, mu : (l,) a local minimum and its multiplier
    y : (l,) the point of the box whose tangent is taken; `x` itself where the box holds it. It may lie outside the
        level set: G is then convex on a set that holds both

    Notes
    -----
    On the level set ``mu' (l - c) >= 0``, and ``s = g(x) . (t - x)`` is at least ``c - l(x)`` because ``l`` is concave,
    so that within the box ``(s - s_lo) (s - s_hi) <= 0``. Hence, with ``mu' = (1 - phi) mu``,

        ``G = H - mu' (l - c) + kappa (s - s_lo) (s - s_hi) <= H``.

    Where G is convex its tangent at `y` bounds it on the whole box. With ``kappa (s_lo + s_hi) = phi mu`` the gradient
    at `x` is that of the Lagrangian, and the bound the minimum itself. ``phi`` moves curvature from the directions
    along the boundary, where a minimum has it to spare, to the one across, where it may lack. What curvature of
    ``-t ln t`` is still too much gives way in part to its chord, an underestimator without curvature.
    """
    n, l = P.shape
    M = np.zeros((l, l))
    V = np.empty(n)
    for i in range(n):
        v = 0.0
        for j in range(l):
            v += P[i, j] * y[j]
        if v <= 0.0:
            return -np.inf, 0  # no tangent there
        v = max(v, min(top[i], greatest_linear(P[i], a, b)))
        V[i] = v
        r = mu * w[i] / (v * v)
        for j in range(l):
            pj = P[i, j] * r
            for k in range(j + 1):
                M[j, k] += pj * P[i, k]
    gx = np.empty(l)
    at_x = gradient(P, w, x, gx)
    origin = 0.0
    for j in range(l):
        origin += gx[j] * x[j]
    s_hi = greatest_linear(gx, a, b) - origin
    s_lo = max(c - at_x, least_linear(gx, a, b) - origin)
    phi = 0.0
    cap = kept_curvature(M, a)
    A = M.copy()
    if cap < np.inf and s_hi + s_lo > 1e-12 * origin and s_hi > s_lo:
        for trial in (0.4, 0.8):
            across = 2.0 * trial * mu / (s_hi + s_lo)
            for j in range(l):
                for k in range(j + 1):
                    A[j, k] = (1.0 - trial) * M[j, k] + across * gx[j] * gx[k]
            kept = kept_curvature(A, a)
            if kept > cap:
                cap = kept
                phi = trial
    kappa = phi * mu / (s_hi + s_lo) if phi > 0.0 else 0.0
    for j in range(l):  # the least curvature of G
        for k in range(j + 1):
            A[j, k] = (1.0 - phi) * M[j, k] + 2.0 * kappa * gx[j] * gx[k]
        if a[j] > 1e-9:
            A[j, j] -= min(1.0 / a[j], cap)
    best = -np.inf
    best_cut = 0
    loss = np.empty(l)
    g = np.empty(l)
    for _ in range(ROUNDS):
        bound = -(1.0 - phi) * mu * (gradient(P, w, y, g) - c)
        s = -origin
        for j in range(l):
            s += gx[j] * y[j]
        bound += kappa * (s - s_lo) * (s - s_hi)
        push = kappa * (2.0 * s - s_lo - s_hi)
        nu = 0.0
        for j in range(l):
            here = -y[j] * np.log(y[j]) if y[j] > 0.0 else 0.0
            slope = -np.log(y[j]) - 1.0 if y[j] > 0.0 else 0.0
            part = max(0.0, 1.0 - cap * a[j]) if a[j] > 1e-9 else 1.0  # of the chord
            loss[j] = 0.0
            if part > 0.0:
                ha = -a[j] * np.log(a[j]) if a[j] > 0.0 else 0.0
                rise = (-b[j] * np.log(b[j]) - ha) / (b[j] - a[j])
                loss[j] = part * (here - ha - rise * (y[j] - a[j]))
                slope += part * (rise - slope)
                here -= loss[j]
            g[j] = slope - (1.0 - phi) * mu * g[j] + push * gx[j]
            nu += g[j] * y[j]
            bound += here
        rest = nu - least_linear(g, a, b)  # what the tangent may fall below y
        if bound - rest > best:
            best = bound - rest
            best_cut = 0
            worst_loss = -1.0
            for j in range(l):
                loss[j] += max((nu - g[j]) * (b[j] - y[j]), (g[j] - nu) * (y[j] - a[j]), 0.0)
                if loss[j] > worst_loss:
                    worst_loss = loss[j]
                    best_cut = j
        if not rest > 1e-11:
            break
        settle_in_box(A, g, a, b, y)
        for i in range(n):
            v = 0.0
            for j in range(l):
                v += P[i, j] * y[j]
            if not 0.0 < v <= V[i]:  # there G need not be convex
                return best, best_cut
    return best, best_cut


@compiled
def settle_in_box(A: Array, g: Array, a: Array, b: Array, y: Array) -> None:
    """Move `y` towards the minimum, over simplex and box, of the quadratic with gradient `g` there and curvature `A`.

    Pairs of coordinates exchange probability, the most profitable pair first. `A` needs its lower triangle only.
    """
    l = g.shape[0]
    for _ in range(8 * l):
        up = -1
        down = -1
        for j in range(l):
            if y[j] < b[j] and (up < 0 or g[j] < g[up]):
                up = j
            if y[j] > a[j] and (down < 0 or g[j] > g[down]):
                down = j
        if up < 0 or down < 0 or not g[down] - g[up] > 1e-12:
            return
        both = A[max(up, down), min(up, down)]
        curvature = A[up, up] + A[down, down] - 2.0 * both
        t = min(b[up] - y[up], y[down] - a[down])
        if curvature * t > g[down] - g[up]:
            t = (g[down] - g[up]) / curvature
            y[up] += t
            y[down] -= t
        elif b[up] - y[up] < y[down] - a[down]:
            y[up] = b[up]
            y[down] -= t
        else:
            y[up] += t
            y[down] = a[down]
        for j in range(l):
            g[j] += t * (A[max(j, up), min(j, up)] - A[max(j, down), min(j, down)])


@compiled
def locally_convex(P: Array, w: Array, c: float, x: Array, mu: float) -> bool:
    """Tell whether `convex_bound` is exact on some box around `x`, so that cutting towards `x` pays."""
    l = x.shape[0]
    a = np.empty(l)
    b = np.empty(l)
    for j in range(l):
        a[j] = x[j] * (1.0 - 1e-3)
        b[j] = x[j] * (1.0 + 1e-3) if x[j] > 0.0 else 1e-3
    top = np.full(P.shape[0], np.inf)
    bound, _ = convex_bound(P, w, c, a, b, top, x, mu, x.copy())
    return bound >= entropy(x) - 1e-9


@compiled
def nearest(a: Array, b: Array, x: Array, y: Array) -> None:
    """Write into `y` a point of simplex and box near `x`; both must meet."""
    l = x.shape[0]
    left = 1.0
    for j in range(l):
        y[j] = min(max(x[j], a[j]), b[j])
        left -= y[j]
    room = 0.0
    for j in range(l):
        room += b[j] - y[j] if left > 0.0 else y[j] - a[j]
    if room > 0.0:
        for j in range(l):
            y[j] += left * (b[j] - y[j] if left > 0.0 else y[j] - a[j]) / room


@compiled
def cut_beside(a: float, b: float, x: float) -> float:
    """Where to cut ``[a, b]`` so that `x` stays well inside its half: the middle of the longer side."""
    return 0.5 * (a + x) if x - a >= b - x else 0.5 * (x + b)
