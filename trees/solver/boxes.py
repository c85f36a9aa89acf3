"""Compiled kernels: lower bounds of the entropy over the part of a level set that lies in a box.

Notation as in `kernels`. `outer_box` encloses the whole level set. `convex_bound` is exact around a local minimum,
by a Lagrangian that is convex there; `chord_bound` holds anywhere (Falk, Soland 1969).
"""

import numpy as np

from quercus.trees.solver.compiled import compiled
from quercus.trees.solver.cut import least_linear, minimise_over_cut
from quercus.trees.solver.descent import entropy
from quercus.trees.solver.kernels import Array, derivatives, factor, gradient, solve


@compiled
def outer_box(P: Array, w: Array, c: float, theta: Array, worst: float, a: Array, b: Array) -> None:
    """Write a box ``[a, b]`` that provably contains the level set; ``P @ theta`` must be 1 in every row.

    With ``u_i = p_i . (t - theta)``, ``omega(u) = u - ln(1 + u)`` and ``delta = -c``, membership of ``t`` says
    ``sum w_i omega(u_i) + W sum_j (1 - g_j) t_j <= delta``. Its first part confines ``t`` to an ellipsoid (by
    ``omega(u) >= u^2 / (2 + 4/3 max(u, 0))``), its second bounds every class with ``g_j < 1``. `worst` is the KKT
    excess of `theta`, which loosens the inequality by as much.
    """
    n, l = P.shape
    W = w.sum()
    delta = -c + W * worst
    g = np.empty(l)
    A = np.empty((l, l))
    derivatives(P, w, theta, g, A)
    largest = 0.0
    for i in range(n):
        x = delta / w[i]
        u = x + np.sqrt(2.0 * x)  # right of the root of omega(u) = x, and Newton stays there
        for _ in range(4):
            u -= (u - np.log1p(u) - x) * (1.0 + u) / u
        largest = max(largest, u)
    radius = np.sqrt(2.0 * delta * (1.0 + 2.0 / 3.0 * largest)) * (1.0 + 1e-6)
    for j in range(l):
        a[j] = 0.0
        b[j] = 1.0
        if W - g[j] > 1e-9 * W:
            b[j] = min(1.0, delta / (W - g[j]) * (1.0 + 1e-6))
    smallest = np.inf
    for j in range(l):
        smallest = min(smallest, A[j, j])
    factor(A)
    for j in range(l):
        if A[j, j] > 1e60 or A[j, j] * A[j, j] < 1e-9 * smallest:
            return
    one = np.ones(l)
    solve(A, one)
    total = one.sum()
    e = np.empty(l)
    for j in range(l):
        e[:] = 0.0
        e[j] = 1.0
        solve(A, e)
        r = radius * np.sqrt(max(e[j] - one[j] * one[j] / total, 0.0)) + 1e-12
        a[j] = max(a[j], theta[j] - r)
        b[j] = min(b[j], theta[j] + r)


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
def convex_bound(P: Array, w: Array, c: float, a: Array, b: Array, x: Array, mu: float) -> tuple[float, int]:
    """Lower bound (nats) of the entropy over the level set within a box around `x`, and the coordinate that costs most.

    For ``mu >= 0``, ``G = H - mu (l - c)`` lies below the entropy on the level set, and where the curvature of
    ``-mu l`` outweighs that of the entropy it is convex: its tangent at `x` then bounds it on the whole box. With `x`
    a local minimum and `mu` its multiplier the bound is the minimum itself. Coordinates whose curvature is not
    outweighed enter through the chord of ``-t ln t`` instead (as in `chord_bound`), exact at the ends of the box.
    """
    n, l = P.shape
    M = np.zeros((l, l))
    A = np.empty((l, l))
    left = 1.0 - a.sum()
    for i in range(n):
        low = 0.0
        high = 0.0
        top = 0.0
        for j in range(l):
            low += P[i, j] * a[j]
            high += P[i, j] * b[j]
            top = max(top, P[i, j])
        v = min(high, low + left * top)
        r = mu * w[i] / (v * v)
        for j in range(l):
            pj = P[i, j] * r
            for k in range(j + 1):
                M[j, k] += pj * P[i, k]
    free = 0.0  # the bound is wanted on the simplex only, where adding a multiple of 11' changes nothing
    for j in range(l):
        free = max(free, M[j, j])
        if a[j] > 0.0:
            free = max(free, 1.0 / a[j])
    chord = np.empty(l, np.bool_)
    for j in range(l):
        chord[j] = a[j] <= 1e-9
    for _ in range(l + 1):
        bad = False
        for j in range(l):
            for k in range(j + 1):
                A[j, k] = M[j, k] + 10.0 * free
            if not chord[j]:
                A[j, j] -= 1.0 / a[j]
        for j in range(l):
            d = A[j, j]
            for k in range(j):
                d -= A[j, k] * A[j, k]
            if d <= 1e-9 * free:
                if chord[j] and d > -1e-9 * free:
                    d = 1e64
                else:
                    bad = True
                    break
            d = np.sqrt(d)
            A[j, j] = d
            for i in range(j + 1, l):
                s = A[i, j]
                for k in range(j):
                    s -= A[i, k] * A[j, k]
                A[i, j] = s / d
        if not bad:
            break
        worst = -1
        for j in range(l):
            if not chord[j] and (worst < 0 or a[j] < a[worst]):
                worst = j
        if worst < 0:
            break
        chord[worst] = True
    g = np.empty(l)
    bound = -mu * (gradient(P, w, x, g) - c)
    loss = np.zeros(l)
    nu = 0.0
    for j in range(l):
        slope = 0.0
        here = -x[j] * np.log(x[j]) if x[j] > 0.0 else 0.0
        if chord[j]:
            ha = -a[j] * np.log(a[j]) if a[j] > 0.0 else 0.0
            slope = (-b[j] * np.log(b[j]) - ha) / (b[j] - a[j])
            line = ha + slope * (x[j] - a[j])
            loss[j] = here - line
            here = line
        else:
            slope = -np.log(x[j]) - 1.0
        g[j] = slope - mu * g[j]
        nu += g[j] * x[j]
        bound += here
    cut = 0
    worst_loss = -1.0
    for j in range(l):
        loss[j] += max((nu - g[j]) * (b[j] - x[j]), (g[j] - nu) * (x[j] - a[j]), 0.0)
        if loss[j] > worst_loss:
            worst_loss = loss[j]
            cut = j
    bound -= nu
    return bound + least_linear(g, a, b), cut


@compiled
def locally_convex(P: Array, w: Array, c: float, x: Array, mu: float) -> bool:
    """Tell whether `convex_bound` is exact on some box around `x`, so that cutting towards `x` pays."""
    l = x.shape[0]
    a = np.empty(l)
    b = np.empty(l)
    for j in range(l):
        a[j] = x[j] * (1.0 - 1e-3)
        b[j] = x[j] * (1.0 + 1e-3) if x[j] > 0.0 else 1e-3
    bound, _ = convex_bound(P, w, c, a, b, x, mu)
    return bound >= entropy(x) - 1e-9


@compiled
def cut_beside(a: float, b: float, x: float) -> float:
    """Where to cut ``[a, b]`` so that `x` stays well inside its half: the middle of the longer side."""
    return 0.5 * (a + x) if x - a >= b - x else 0.5 * (x + b)
