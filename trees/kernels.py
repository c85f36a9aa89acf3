"""Compiled kernels of the evidential likelihood: its maximiser, and convex programs over its level sets.

Notation (ALGORITHMS §2): ``P`` (n, l) contours, ``w`` (n,) weights, ``W`` their sum, ``v = P @ theta``,
``l(theta) = sum_i w_i ln v_i``, ``L = {theta in the simplex: l(theta) >= c}``. Everything is in nats here.

The kernels of `maximise` and `minimise_over_cut` are primal-dual interior-point methods with Mehrotra's
predictor-corrector steps. They may stop early or wander off without harm: what they return is only a *guess*
(theta, multiplier), and every number that leaves this package as a bound is recomputed from the guess by weak
duality (`linear_bound`, `entropy_bound`), which holds for any guess whatsoever.

All kernels live in this one module because Numba's on-disk cache does not see changes in other files.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.compiled import compiled

Array = NDArray[np.float64]

TO_BOUNDARY = 0.995  # fraction of the way to the boundary that a step may take
KAPPA = 10.0  # the barrier problem counts as solved when its error is below KAPPA mu
SHRINK = 0.1  # then mu falls by this factor
MAX_STEPS = 80  # interior-point steps; 8 to 20 are usual


@compiled
def loglik(P: Array, w: Array, theta: Array) -> float:
    """``l(theta)``; minus infinity where some ``v_i`` is 0."""
    total = 0.0
    for i in range(P.shape[0]):
        v = 0.0
        for j in range(P.shape[1]):
            v += P[i, j] * theta[j]
        if v <= 0.0:
            return -np.inf
        total += w[i] * np.log(v)
    return total


@compiled
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


@compiled
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


@compiled
def factor(A: Array) -> None:
    """Cholesky factor of `A` in place (lower triangle); a pivot that vanishes is replaced by a huge one."""
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


@compiled
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


@compiled
def longest_step(x: Array, dx: Array) -> float:
    """Largest step ``t <= 1 / TO_BOUNDARY`` that keeps ``x + t dx >= 0``."""
    t = 1.0 / TO_BOUNDARY
    for j in range(x.shape[0]):
        if dx[j] < 0.0 and -x[j] > t * dx[j]:
            t = -x[j] / dx[j]
    return t


@compiled
def excess(P: Array, w: Array, theta: Array, g: Array) -> float:
    """KKT excess ``max_j g_j - 1`` of a point of the simplex (ALGORITHMS §2); `g` receives ``g_j``."""
    gradient(P, w, theta, g)
    W = w.sum()
    worst = 0.0
    for j in range(theta.shape[0]):
        g[j] /= W
        worst = max(worst, g[j] - 1.0)
    return worst


@compiled
def maximise(P: Array, w: Array) -> tuple[Array, float]:
    """Maximum evidential likelihood estimate and its KKT excess.

    Solves ``min_x -(1/W) l(x) + sum x, x >= 0``, whose solution sums to 1 by itself, and so needs no equality
    constraint (Kim, Carbonetto, Stephens, Anitescu 2020). Where the maximiser is not unique the path leads to the
    middle of the set of maximisers.
    """
    n, l = P.shape
    W = w.sum()
    x = np.full(l, 1.0 / l)
    z = np.ones(l)
    g = np.empty(l)
    H = np.empty((l, l))
    dx = np.empty(l)
    dz = np.empty(l)
    best = x.copy()
    best_excess = excess(P, w, best, g)
    theta = np.empty(l)
    stalled = 0
    for _ in range(MAX_STEPS):
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
        e = excess(P, w, theta, g)
        if e < best_excess:
            stalled = 0 if e < 0.9 * best_excess else stalled + 1
            best_excess = e
            best[:] = theta
        else:
            stalled += 1
        if best_excess <= 1e-15 or (stalled >= 3 and best_excess < 1e-9) or stalled >= 20:
            break
    return polish(P, w, best, best_excess)


@compiled
def polish(P: Array, w: Array, theta: Array, worst: float) -> tuple[Array, float]:
    """Drop classes that the optimum leaves at 0, then take plain Newton steps on the others while that helps."""
    l = P.shape[1]
    W = w.sum()
    g = np.empty(l)
    excess(P, w, theta, g)
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
        e = excess(P, w, trial, g)
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


@compiled
def linear_bound(
    P: Array, w: Array, c: float, q: Array, a: Array, b: Array, theta: Array, multiplier: float
) -> float:
    """Proven lower bound of ``q . theta`` over the level set within the box ``a <= theta <= b``.

    Weak duality with the tangent of the concave ``l`` at the guess: for every ``lambda >= 0`` the minimum is at least
    ``min over simplex and box of (q - lambda g) . t + lambda (c - l(theta) + g . theta)``; the inner minimum is a
    fractional knapsack. Plus infinity where box and simplex do not meet.
    """
    l = q.shape[0]
    g = np.empty(l)
    value = gradient(P, w, theta, g)
    bound = c - value
    for j in range(l):
        bound += g[j] * theta[j]
    bound *= multiplier
    left = 1.0
    cost = np.empty(l)
    for j in range(l):
        cost[j] = q[j] - multiplier * g[j]
        bound += cost[j] * a[j]
        left -= a[j]
    if left < -1e-12:
        return np.inf
    used = np.zeros(l, np.bool_)
    for _ in range(l):
        if left <= 0.0:
            break
        cheapest = -1
        for j in range(l):
            if not used[j] and (cheapest < 0 or cost[j] < cost[cheapest]):
                cheapest = j
        used[cheapest] = True
        amount = min(left, b[cheapest] - a[cheapest])
        bound += cost[cheapest] * amount
        left -= amount
    return bound if left <= 1e-12 else np.inf


@compiled
def entropy_bound(P: Array, w: Array, c: float, theta: Array, multiplier: float) -> float:
    """Proven upper bound (nats) of the entropy over the level set, from a guess (theta, multiplier).

    As `linear_bound`; the inner maximum of entropy plus a linear function over the simplex is a log-sum-exp.
    """
    l = theta.shape[0]
    g = np.empty(l)
    value = gradient(P, w, theta, g)
    top = -np.inf
    inner = 0.0
    for j in range(l):
        inner += g[j] * theta[j]
        top = max(top, multiplier * g[j])
    total = 0.0
    for j in range(l):
        total += np.exp(multiplier * g[j] - top)
    return top + np.log(total) + multiplier * (value - inner - c)


@compiled
def likelihood_bound(g: Array, value: float, theta: Array, a: Array, b: Array) -> float:
    """Proven upper bound of ``l`` over simplex and box: its tangent at `theta` (gradient `g`, value `value`)."""
    l = theta.shape[0]
    bound = value
    left = 1.0
    for j in range(l):
        bound += g[j] * (a[j] - theta[j])
        left -= a[j]
    used = np.zeros(l, np.bool_)
    for _ in range(l):
        if left <= 0.0:
            break
        best = -1
        for j in range(l):
            if not used[j] and (best < 0 or g[j] > g[best]):
                best = j
        used[best] = True
        amount = min(left, b[best] - a[best])
        bound += g[best] * amount
        left -= amount
    return bound


@compiled
def minimise_over_cut(
    P: Array,
    w: Array,
    c: float,
    q: Array,
    entropic: bool,
    a: Array,
    b: Array,
    theta: Array,
    enough: float,
) -> tuple[float, float]:
    """Guess the minimiser of ``q . theta`` (or of ``sum theta ln theta``) over the level set within a box.

    Parameters
    ----------
    P, w, c : the level set ``l(theta) >= c``
    q : (l,) costs, unused when `entropic`
    entropic : minimise the negative entropy instead; the box must then be ``[0, 1]``
    a, b : (l,) bounds of the box; ``a < b``, and the simplex must meet its interior
    theta : (l,) start, strictly inside box and simplex; receives the guess
    enough : stop as soon as the proven bound exceeds this (linear costs only)

    Returns
    -------
    bound : the best proven lower bound seen (minus the entropy bound when `entropic`); plus infinity when
        the box is proved not to meet the level set
    multiplier : Lagrange multiplier of the likelihood constraint

    Notes
    -----
    Until the iterate is strictly inside the level set the steps climb ``l`` (phase 1); from then on they keep
    ``slack = l(theta) - c`` positive, which for a concave ``l`` makes the method sure-footed.
    """
    l = P.shape[1]
    g = np.empty(l)
    H = np.empty((l, l))
    M = np.empty((l, l))
    zl = np.empty(l)
    zu = np.zeros(l)
    dzl = np.empty(l)
    dzu = np.zeros(l)
    boxed = np.empty(l, np.bool_)
    f1 = np.empty(l)
    d = np.empty(l)
    one = np.empty(l)
    ug = np.empty(l)
    trial = np.empty(l)
    best_theta = theta.copy()
    best = -np.inf
    best_objective = np.inf
    best_multiplier = 0.0
    scale = 1.0 if entropic else max(q.max() - q.min(), 1e-12)
    for j in range(l):
        boxed[j] = b[j] < 1.0
    value = derivatives(P, w, theta, g, H)
    inside = False
    fresh = True
    climbed = 0
    since = 0
    mu = 0.0
    nu = 0.0
    multiplier = 1.0
    slack = 1.0
    for _ in range(MAX_STEPS):
        if not inside:
            ceiling = likelihood_bound(g, value, theta, a, b)
            if ceiling < c:
                return np.inf, 0.0
            climbed += 1
            if value > c and (value - c > 0.3 * (ceiling - c) or climbed > 30):
                inside = True
                fresh = True
                slack = value - c
        if fresh:
            mu = (0.1 * scale if inside else max(0.1, 0.1 * abs(value - c))) / l
            multiplier = mu / slack if inside else 1.0
            for j in range(l):
                zl[j] = mu / (theta[j] - a[j])
                if boxed[j]:
                    zu[j] = mu / (b[j] - theta[j])
            fresh = False
        if inside:
            objective = 0.0
            for j in range(l):
                objective += theta[j] * (np.log(theta[j]) if entropic else q[j])
            if objective < best_objective:
                best_objective = objective
                best_theta[:] = theta
            if entropic:
                bound = -entropy_bound(P, w, c, theta, multiplier)
            else:
                bound = linear_bound(P, w, c, q, a, b, theta, multiplier)
            since = 0 if bound > best + 1e-13 * scale else since + 1
            if bound > best:
                best = bound
                best_multiplier = multiplier
            if best >= enough or best_objective - best < 1e-12 * scale or (since >= 4 and mu < 1e-9 * scale):
                break
        # error of the barrier problem for the present mu; mu falls only when the iterate has come close to it
        for _ in range(20):
            error = abs(multiplier * slack - mu) if inside else 0.0
            for j in range(l):
                f1[j] = -multiplier * g[j]
                if inside:
                    f1[j] += np.log(theta[j]) + 1.0 if entropic else q[j]
                residual = abs(f1[j] - zl[j] + zu[j] - nu) * (theta[j] - a[j])
                error = max(error, residual, abs(zl[j] * (theta[j] - a[j]) - mu))
                if boxed[j]:
                    error = max(error, abs(zu[j] * (b[j] - theta[j]) - mu))
            if error > KAPPA * mu or mu <= 1e-15 * scale:
                break
            mu *= SHRINK
        # Newton step on the perturbed optimality conditions: M d = r + g dm + nu, sum d = 0, g.d + slack/multiplier dm = ..
        for j in range(l):
            for k in range(l):
                M[j, k] = multiplier * H[j, k]
            if inside and entropic:
                M[j, j] += 1.0 / theta[j]
            M[j, j] += zl[j] / (theta[j] - a[j])
            d[j] = -f1[j] + mu / (theta[j] - a[j])
            if boxed[j]:
                M[j, j] += zu[j] / (b[j] - theta[j])
                d[j] -= mu / (b[j] - theta[j])
            ug[j] = g[j]
            one[j] = 1.0
        factor(M)
        solve(M, one)
        solve(M, d)
        one_sum = one.sum()
        d_sum = d.sum()
        dm = 0.0
        if inside:
            solve(M, ug)
            gd = 0.0
            gg = 0.0
            g1 = 0.0
            for j in range(l):
                gd += g[j] * d[j]
                gg += g[j] * ug[j]
                g1 += g[j] * one[j]
            dm = (mu / multiplier - slack - gd + g1 * d_sum / one_sum) / (
                gg + slack / multiplier - g1 * g1 / one_sum
            )
            nu = -(d_sum + dm * g1) / one_sum
        else:
            nu = -d_sum / one_sum
        ds = 0.0
        for j in range(l):
            d[j] += nu * one[j] + dm * ug[j] if inside else nu * one[j]
            ds += g[j] * d[j]
        tp = 1.0 / TO_BOUNDARY
        td = 1.0 / TO_BOUNDARY
        if inside:
            if ds < 0.0:
                tp = min(tp, -slack / ds)
            if dm < 0.0:
                td = min(td, -multiplier / dm)
        for j in range(l):
            low = theta[j] - a[j]
            dzl[j] = mu / low - zl[j] - zl[j] * d[j] / low
            if d[j] < 0.0:
                tp = min(tp, -low / d[j])
            if dzl[j] < 0.0:
                td = min(td, -zl[j] / dzl[j])
            if boxed[j]:
                high = b[j] - theta[j]
                dzu[j] = mu / high - zu[j] + zu[j] * d[j] / high
                if d[j] > 0.0:
                    tp = min(tp, high / d[j])
                if dzu[j] < 0.0:
                    td = min(td, -zu[j] / dzu[j])
        tp = min(1.0, TO_BOUNDARY * tp)
        td = min(1.0, TO_BOUNDARY * td)
        for _ in range(40):  # stay inside the level set
            for j in range(l):
                trial[j] = theta[j] + tp * d[j]
            if not inside or loglik(P, w, trial) - c >= (1.0 - TO_BOUNDARY) * slack:
                break
            tp *= 0.6
        theta[:] = trial
        for j in range(l):
            zl[j] = max(zl[j] + td * dzl[j], 1e-300)
            if boxed[j]:
                zu[j] = max(zu[j] + td * dzu[j], 1e-300)
        value = derivatives(P, w, theta, g, H)
        if inside:
            multiplier = max(multiplier + td * dm, 1e-300)
            slack = value - c
            if not slack > 0.0:
                break
    theta[:] = best_theta
    return best, best_multiplier


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
    """Maximum of the entropy over the level set, in nats: proven bound and reached value (parameters as `least_entropy`)."""
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
