"""Compiled kernels: boxes that provably contain the relevant part of a level set of the likelihood (theory §2.5).

Notation as in `kernels`. `outer_box` encloses the whole level set; `shrink` cuts from a box what a linear inequality
excludes.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, copy_line, factor, gradient, solve, sum_of

UNIT_ROUNDOFF = 1.2e-16  # slightly more than 2^-53, the rounding of one operation


@borrowing
def largest_move(p: Array, x: float) -> float:
    """Return an upper bound of ``u = p . t - 1`` over the simplex where ``omega(u) <= x``: see `outer_box`."""
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

    ``P @ theta`` must be 1 in every row. The box is that of `ellipsoid`.
    """
    n, l = P.shape
    A = np.empty((l, l))
    square = ellipsoid(P, w, c, theta, worst, a, b, top, A)
    if square < 0.0:
        return
    one = np.ones(l)
    solve(A, one)
    total = sum_of(one)
    e = np.empty(l)
    for j in range(l):
        for k in range(l):
            e[k] = 0.0
        e[j] = 1.0
        solve(A, e)
        r = np.sqrt(square * max(e[j] - one[j] * one[j] / total, 0.0)) * (1.0 + 1e-6) + 1e-12
        a[j] = max(a[j], theta[j] - r)
        b[j] = min(b[j], theta[j] + r)
    for i in range(n):  # p . (t - theta) over the ellipsoid and sum (t - theta) = 0
        copy_line(P[i], e)
        solve(A, e)
        length = 0.0
        mean = 0.0
        for j in range(l):
            length += P[i, j] * e[j]
            mean += P[i, j] * one[j]
        r = np.sqrt(square * max(length - mean * mean / total, 0.0)) * (1.0 + 1e-6) + 1e-12
        top[i] = min(top[i], 1.0 + r)


@compiled
def ellipsoid(
    P: Array, w: Array, c: float, theta: Array, worst: float, a: Array, b: Array, top: Array, A: Array
) -> float:
    """Confine the level set to ``(t - theta)' A (t - theta) <= square`` and to a first box; return ``square``.

    Theory §2.5 has the proof. Every point ``t`` of the level set satisfies

        ``sum_i w_i omega(u_i) + sum_j (W - g_j) t_j <= delta``,  ``delta = -c + W worst``,

    with ``u_i = p_i . t - 1``, ``omega(u) = u - ln(1 + u)``, ``g`` the gradient at `theta`, and the sum over the
    classes with ``g_j < W``. `worst` is the KKT excess of `theta`.

    `A` receives the Cholesky factor of ``A`` plus a multiple of ``11'``, which changes nothing on the simplex. If
    ``A`` is too flat to be factored, the result is -1, and only the box is valid.

    Rounding (theory §2.8), with ``u = 2^-53``: ``g_j`` is a sum of ``n`` positive terms with ``l + 3`` roundings each.
    Its relative error is at most ``(n + l + 3) u``, and ``W - g_j`` is taken for smaller by as much. The form
    ``d' A d``, computed with the factor, has the relative error ``l (n + 6 l + 3) u / rho``, where ``rho`` is the least
    pivot divided by its diagonal entry. ``square`` is enlarged by as much.

    Parameters
    ----------
    P, w : (n, l), (n,) contours and weights; ``P @ theta`` must be 1 in every row
    c : the level, at most 0
    theta : (l,) estimate, where the likelihood is 0
    worst : its KKT excess
    a, b : (l,) written: the first box
    top : (n,) written: upper bounds of ``P @ t``
    A : (l, l) written
    """
    n, l = P.shape
    W = sum_of(w)
    delta = -c + W * worst
    g = np.empty(l)
    gradient(P, w, theta, g)
    slip = (n + l + 3) * UNIT_ROUNDOFF * W
    for j in range(l):
        for k in range(l):
            A[j, k] = 0.0
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
        short = W - g[j] - slip
        if short > 1e-9 * W:
            b[j] = min(1.0, delta / short * (1.0 + 1e-6))
            if b[j] > 0.0:
                d = 2.0 * short / max(b[j], theta[j])
                A[j, j] += d
                square += d * theta[j] * theta[j]  # (t - theta)^2 <= t^2 + theta^2
        least = min(least, A[j, j])
    for j in range(l):
        for k in range(j + 1):
            A[j, k] += least  # sum (t - theta) = 0: a multiple of 11' changes nothing
        g[j] = A[j, j]
    factor(A)
    rho = 1.0
    for j in range(l):
        if A[j, j] > 1e60 or not A[j, j] * A[j, j] > 1e-9 * g[j]:
            return -1.0
        rho = min(rho, A[j, j] * A[j, j] / g[j])
    return float(square / (1.0 - min(l * (n + 6.0 * l + 3.0) * UNIT_ROUNDOFF / rho, 0.5)))


@borrowing
def tighten(a: Array, b: Array) -> bool:
    """Shrink a box to its intersection with the simplex; False if that is empty. The interior stays non-empty."""
    l = a.shape[0]
    for _ in range(2):
        sa = sum_of(a)
        sb = sum_of(b)
        if sa > 1.0 + 1e-12 or sb < 1.0 - 1e-12:
            return False
        for j in range(l):
            b[j] = min(b[j], 1.0 - (sa - a[j]))
            a[j] = max(a[j], 1.0 - (sb - b[j]))
            if a[j] > b[j] + 1e-12:
                return False
            sa = sum_of(a)
            sb = sum_of(b)
    for j in range(l):
        if b[j] - a[j] < 1e-11:
            b[j] = min(1.0, b[j] + 1e-11)
            a[j] = max(0.0, a[j] - 1e-11)
    if sum_of(a) > 1.0 - 1e-11 or sum_of(b) < 1.0 + 1e-11:
        for j in range(l):
            a[j] = max(0.0, a[j] - 1e-11)
            b[j] = min(1.0, b[j] + 1e-11)
    return True


@borrowing
def shrink(q: Array, limit: float, a: Array, b: Array) -> bool:
    """Remove from the box what ``q . t <= limit`` excludes on the simplex; False if nothing is left.

    The minimum of ``q . t`` over simplex and box is a fractional knapsack with a price ``nu`` of probability; away from
    the vertex that attains it a coordinate costs ``|q_j - nu|``, and the slack of the limit bounds its move.
    """
    l = q.shape[0]
    left = 1.0
    slack = limit
    for j in range(l):
        left -= a[j]
        slack -= q[j] * a[j]
    nu = -np.inf
    for _ in range(l):
        price = np.inf
        for j in range(l):  # all classes of the next lowest cost at once
            if nu < q[j] < price:
                price = q[j]
        if price == np.inf:
            break
        nu = price
        for j in range(l):
            if q[j] == nu:
                amount = min(left, b[j] - a[j])
                slack -= q[j] * amount
                left -= amount
        if left <= 0.0:
            break
    rounding = 2e-15 * abs(limit) + 1e-13
    if slack < -rounding:
        return False
    slack = max(slack, 0.0) * (1.0 + 1e-9) + rounding
    for j in range(l):
        d = q[j] - nu
        if d > 0.0:
            b[j] = min(b[j], a[j] + slack / d)
        elif d < 0.0:
            a[j] = max(a[j], b[j] + slack / d)
    return True


@borrowing
def greatest_linear(p: Array, a: Array, b: Array) -> float:
    """Return the maximum of ``p . t`` over simplex and box, which must intersect."""
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


@borrowing
def contains(a: Array, b: Array, x: Array) -> bool:
    """Return whether the box contains `x` up to rounding; if so, widen the box to contain it strictly."""
    for j in range(x.shape[0]):
        if x[j] < a[j] - 1e-12 or x[j] > b[j] + 1e-12:
            return False
    for j in range(x.shape[0]):
        a[j] = min(a[j], x[j])
        b[j] = max(b[j], x[j])
    return True


@borrowing
def nearest(a: Array, b: Array, x: Array, y: Array) -> None:
    """Write into `y` a point of simplex and box near `x`; the two must intersect."""
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
