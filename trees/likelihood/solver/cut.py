"""Compiled kernels: linear functions and the entropy over a level set of the likelihood, with proof (theory §2.4).

Notation as in `kernels`. `linear_bound` and `entropy_bound` are weak duality: valid for any guess (theta, multiplier).
`minimise_over_cut` is the primal-dual interior-point method that makes good guesses.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compact, compiled
from quercus.trees.likelihood.solver.kernels import (
    INTERIOR_STEPS,
    TO_BOUNDARY,
    Array,
    copy_line,
    derivatives,
    factor,
    gradient,
    loglik,
    solve,
    sum_of,
)

KAPPA = 10.0  # the barrier problem counts as solved when its error is below KAPPA mu;
SHRINK = 0.1  # then mu falls by this factor


@compiled
def least_linear(q: Array, a: Array, b: Array) -> float:
    """Return the minimum of ``q . t`` over simplex and box (a fractional knapsack); infinity if they are disjoint."""
    l = q.shape[0]
    left = 1.0
    total = 0.0
    for j in range(l):
        total += q[j] * a[j]
        left -= a[j]
    if left < -1e-12:
        return np.inf
    used = np.zeros(l, np.bool_)
    for _ in range(l):
        if left <= 0.0:
            break
        cheapest = -1
        for j in range(l):
            if not used[j] and (cheapest < 0 or q[j] < q[cheapest]):
                cheapest = j
        used[cheapest] = True
        amount = min(left, b[cheapest] - a[cheapest])
        total += q[cheapest] * amount
        left -= amount
    return total if left <= 1e-12 else np.inf


@compiled
def linear_bound(
    P: Array, w: Array, c: float, q: Array, a: Array, b: Array, theta: Array, multiplier: float
) -> float:
    """Return a proven lower bound of ``q . theta`` over the level set within the box ``a <= theta <= b``.

    Weak duality with the tangent of the concave ``l`` at the guess: for every ``lambda >= 0`` the minimum is at least
    ``min over simplex and box of (q - lambda g) . t + lambda (c - l(theta) + g . theta)``.
    """
    l = q.shape[0]
    g = np.empty(l)
    bound = c - gradient(P, w, theta, g)
    for j in range(l):
        bound += g[j] * theta[j]
        g[j] = q[j] - multiplier * g[j]
    return least_linear(g, a, b) + multiplier * bound


@compiled
def entropy_bound(P: Array, w: Array, c: float, theta: Array, multiplier: float) -> float:
    """Return a proven upper bound (nats) of the entropy over the level set, from a guess (theta, multiplier).

    See `linear_bound`; the inner maximum of entropy plus a linear function over the simplex is a log-sum-exp.
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
    return float(top + np.log(total) + multiplier * (value - inner - c))


@compiled
def likelihood_bound(g: Array, value: float, theta: Array, a: Array, b: Array) -> float:
    """Return a proven upper bound of ``l`` over simplex and box: its tangent at `theta` (gradient `g`, `value`)."""
    falling = np.empty(theta.shape[0])
    for j in range(theta.shape[0]):
        value -= g[j] * theta[j]
        falling[j] = -g[j]
    return value - least_linear(falling, a, b)


@compact
def minimise_over_cut(
    P: Array,
    w: Array,
    c: float,
    q: Array,
    a: Array,
    b: Array,
    theta: Array,
    enough: float,
) -> tuple[float, float]:
    """Guess the minimiser of ``q . theta`` (or of ``sum theta ln theta``) over the level set within a box.

    Parameters
    ----------
    P, w, c : the level set ``l(theta) >= c``
    q : (l,) costs; empty: minimise the negative entropy instead; the box must then be ``[0, 1]``
    a, b : (l,) bounds of the box; ``a < b``, and the simplex must meet its interior
    theta : (l,) start, strictly inside box and simplex; receives the guess
    enough : stop as soon as the proven bound exceeds this (linear costs only)

    Returns
    -------
    bound : the best proven lower bound seen (minus the entropy bound when `q` is empty); plus infinity when
        the box is proved not to meet the level set
    multiplier : Lagrange multiplier of the likelihood constraint

    Notes
    -----
    Until the iterate is strictly inside the level set the steps climb ``l`` (phase 1); from then on they keep
    ``slack = l(theta) - c`` positive, which for a concave ``l`` makes the method sure-footed.
    """
    l = P.shape[1]
    entropic = q.shape[0] == 0
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
    scale = 1.0
    if not entropic:
        least = most = q[0]
        for j in range(l):
            least = min(least, q[j])
            most = max(most, q[j])
        scale = max(most - least, 1e-12)
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
    for _ in range(INTERIOR_STEPS):
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
                copy_line(theta, best_theta)
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
        # Newton step on the perturbed optimality conditions:
        # M d = r + g dm + nu,  sum d = 0,  g.d + slack/multiplier dm = mu/multiplier - slack
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
        one_sum = sum_of(one)
        d_sum = sum_of(d)
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
        copy_line(trial, theta)
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
    copy_line(best_theta, theta)
    return best, best_multiplier
