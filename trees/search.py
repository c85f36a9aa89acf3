"""Compiled kernels: least and greatest entropy over a level set of the evidential likelihood, with proof.

Notation as in `kernels`. The greatest entropy is one convex program. The least is a concave minimisation, solved
globally by branch and bound over boxes with chords as underestimators (Falk, Soland 1969), helped by a box that
provably holds the level set and by descents that find the minimum early.
"""

import numpy as np

from quercus.trees.compiled import compiled
from quercus.trees.cut import minimise_over_cut
from quercus.trees.kernels import Array, derivatives, factor, loglik, solve


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
        if W + (W - g[j]) > W + 1e-9 * W:
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
    bound, _ = minimise_over_cut(P, w, c, q, False, a, b, theta, enough - offset)
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
def descend(
    P: Array, w: Array, c: float, inner_c: float, centre: Array, a: Array, b: Array, theta: Array
) -> float:
    """Walk `theta` down to a local minimum of the entropy over the level set; return its value (nats).

    Each step minimises the tangent of the entropy over the level set (Frank-Wolfe); for a concave function that
    never climbs.
    """
    l = theta.shape[0]
    q = np.empty(l)
    guess = np.empty(l)
    point = np.empty(l)
    value = entropy(theta)
    t = (1.0 - a.sum()) / (b.sum() - a.sum())
    for _ in range(30):
        for j in range(l):
            q[j] = -np.log(max(theta[j], 1e-12))
            guess[j] = a[j] + t * (b[j] - a[j])
        minimise_over_cut(P, w, c, q, False, a, b, guess, np.inf)
        to_boundary(P, w, inner_c, centre, guess, point)
        new = entropy(point)
        if new >= value - 1e-13:
            if new < value:
                theta[:] = point
                value = new
            break
        theta[:] = point
        value = new
    return value


@compiled
def least_entropy(
    P: Array, w: Array, c: float, inner_c: float, theta: Array, worst: float, tolerance: float, effort: int
) -> tuple[float, float, int]:
    """Global minimum of the entropy over the level set, in nats: proven bound, reached value, boxes examined.

    Branch and bound over boxes with `chord_bound`; best bound first; stops when bound and reached value are within
    `tolerance`, or after `effort` boxes. ``P @ theta`` must be 1 in every row (`theta` the maximiser, `worst` its
    KKT excess). `c` defines the level set that the bound holds for, `inner_c >= c` the one that the reached point lies
    in: rounding in the maximum likelihood is accounted for between them.
    """
    l = P.shape[1]
    for j in range(l):
        total = 0.0
        for i in range(P.shape[0]):
            if P[i, j] <= 0.0:
                total = -np.inf
                break
            total += w[i] * np.log(P[i, j])
        if total >= inner_c:
            return 0.0, 0.0, 0
    A = np.empty((effort + 2, l))
    B = np.empty((effort + 2, l))
    bounds = np.empty(effort + 2)
    cuts = np.empty(effort + 2, np.int64)
    points = np.empty(effort + 2)
    a = np.empty(l)
    b = np.empty(l)
    outer_box(P, w, c, theta, worst, a, b)
    tighten(a, b)
    zeros = np.zeros(l)
    ones = np.ones(l)
    best_theta = theta.copy()
    reached = descend(P, w, c, inner_c, theta, a, b, best_theta)
    guess = np.empty(l)
    point = np.empty(l)
    bound, cut, at = chord_bound(P, w, c, a, b, guess, reached - tolerance)
    A[0] = a
    B[0] = b
    bounds[0] = bound
    cuts[0] = cut
    points[0] = at
    count = 1
    examined = 1
    while count > 0:
        first = 0
        for k in range(1, count):
            if bounds[k] < bounds[first]:
                first = k
        if bounds[first] >= reached - tolerance or examined + 2 > effort:
            return min(bounds[first], reached), reached, examined
        a0 = A[first].copy()
        b0 = B[first].copy()
        parent = bounds[first]
        j = cuts[first]
        at = points[first]
        count -= 1
        A[first] = A[count]
        B[first] = B[count]
        bounds[first] = bounds[count]
        cuts[first] = cuts[count]
        points[first] = points[count]
        for side in range(2):
            a[:] = a0
            b[:] = b0
            if side == 0:
                b[j] = at
            else:
                a[j] = at
            if not tighten(a, b):
                continue
            examined += 1
            bound, cut, at_next = chord_bound(P, w, c, a, b, guess, reached - tolerance)
            if bound == np.inf:
                continue
            to_boundary(P, w, inner_c, theta, guess, point)
            value = entropy(point)
            if value < reached - 1e-9:
                reached = descend(P, w, c, inner_c, theta, zeros, ones, point)
                best_theta[:] = point
            elif value < reached:
                reached = value
            if bound < reached - tolerance:
                A[count] = a
                B[count] = b
                bounds[count] = max(bound, parent)
                cuts[count] = cut
                points[count] = at_next
                count += 1
    return reached - tolerance, reached, examined


@compiled
def greatest_entropy(P: Array, w: Array, c: float, inner_c: float, theta: Array) -> tuple[float, float]:
    """Greatest entropy over the level set, in nats: proven bound and reached value (parameters as `least_entropy`)."""
    l = P.shape[1]
    uniform = np.full(l, 1.0 / l)
    if loglik(P, w, uniform) >= inner_c:
        return np.log(l), np.log(l)
    point = np.empty(l)
    to_boundary(P, w, inner_c, theta, uniform, point)
    start = 0.5 * theta + 0.5 * point
    bound, _ = minimise_over_cut(P, w, c, uniform, True, np.zeros(l), np.ones(l), start, np.inf)
    to_boundary(P, w, inner_c, theta, start, point)
    # the guess already lies on the boundary; the ray only repairs rounding, and may not lower the entropy
    reached = max(entropy(point), entropy(start) if loglik(P, w, start) >= inner_c else 0.0)
    return min(-bound, np.log(l)), reached
