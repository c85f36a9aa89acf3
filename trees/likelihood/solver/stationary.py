"""Compiled kernels: ends of the entropy over the likelihood cut of separable labels, by duality (theory §2.10).

Notation as in `separable`. With ``h(t) = -t ln t``, an end has ``h'(t_j) - mu f_j'(t_j) + nu = 0`` on its support,
``mu > 0`` where it is the least, ``mu < 0`` where it is the greatest. Newton's method finds it (`settle_separable`).
The proof is weak duality: for any ``mu > 0`` and ``nu``, with ``phi_j(t) = h(t) - mu f_j(t) + nu t``,

    ``H(t) >= sum_j min phi_j + mu c - nu``  over the cut ``{l >= c}``,

each minimum over what the cut leaves of class ``j`` (`cut_end`); the greatest entropy likewise. For the greatest all
``-phi_j`` are concave and a stationary point is the optimum. For the least ``phi_j`` is convex, then concave, then
convex; if the stationary point is the minimum of each of them, the bound is the entropy reached (`is_least`). That is
usual except with few labels and ties. Otherwise the caller searches.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing
from quercus.trees.likelihood.solver.kernels import Array, copy_line, sum_of
from quercus.trees.likelihood.solver.separable import (
    GRAIN,
    NEWTON_STEPS,
    entropy_of,
    gain,
    level,
    log_likelihood_deficit,
    point_at_level,
    pull_inside,
    slope,
    steepness,
)


@borrowing
def settle_separable(
    n: Array, m: Array, theta: Array, aim: float, t: Array, mu: float, work: Array
) -> tuple[float, float, float]:
    """Find a stationary point of the entropy on ``l = aim`` near `t` by Newton's method, see the module.

    Classes at 0 stay there; one without `n` may become 0. Returns ``mu`` (0: the method failed), ``nu`` and the errors
    of the slopes, summed over the classes.
    """
    l = n.shape[0]
    f = work[0]
    D = work[1]
    r = work[2]
    sign = 1.0 if mu > 0.0 else -1.0
    nu = np.nan
    near = 1e-12 * abs(aim) + 1e-15 * (sum_of(n) + sum_of(m))
    for _ in range(NEWTON_STEPS):
        total = 0.0
        value = 0.0
        many = 0
        mean = 0.0
        for j in range(l):
            value += gain(n[j], m[j], t[j], theta[j])
            if t[j] > 0.0:
                f[j] = slope(n[j], m[j], t[j])
                r[j] = -np.log(t[j]) - 1.0
                D[j] = mu * steepness(n[j], m[j], t[j]) - 1.0 / t[j]
                total += t[j]
                many += 1
                mean += mu * f[j] - r[j]
        if many < 2 or not value > -np.inf:
            return 0.0, 0.0, 0.0
        if np.isnan(nu):
            nu = mean / many
        missed = 0.0
        grain = 0.0
        A = B = C = u = v = 0.0
        for j in range(l):
            if t[j] > 0.0:
                grain += GRAIN * (abs(r[j]) + abs(nu) + abs(mu * f[j]))
                r[j] += nu - mu * f[j]
                missed += abs(r[j])
                A += 1.0 / D[j]
                B += f[j] / D[j]
                C += f[j] * f[j] / D[j]
                u += r[j] / D[j]
                v += f[j] * r[j] / D[j]
        if missed <= 1e-12 + grain and abs(value - aim) <= near and abs(total - 1.0) <= 2e-15:
            return mu, nu, missed + grain
        u += 1.0 - total
        v += aim - value
        det = A * C - B * B
        dmu = (A * v - B * u) / det
        dnu = (B * dmu - u) / A
        if not abs(dmu) + abs(dnu) < np.inf:
            return 0.0, 0.0, 0.0
        step = 1.0
        last = -1
        for j in range(l):
            if t[j] > 0.0:
                r[j] = (f[j] * dmu - dnu - r[j]) / D[j]
                if t[j] + step * r[j] <= 0.0:
                    step = -t[j] / r[j]
                    last = j
                elif t[j] + step * r[j] >= 1.0:
                    step = 0.9 * (1.0 - t[j]) / r[j]
                    last = -1
        drop = last >= 0 and n[last] == 0.0 and sign > 0.0 and step > 0.3
        if last >= 0 and not drop:
            step *= 0.9
        if not step > 0.02:
            return 0.0, 0.0, 0.0
        for j in range(l):
            if t[j] > 0.0:
                t[j] = 0.0 if drop and j == last else t[j] + step * r[j]
        mu += step * dmu
        nu += step * dnu
        if not mu * sign > 0.0:
            mu = 0.3 * (mu - step * dmu)
    return 0.0, 0.0, 0.0


@borrowing
def multiplier_separable(n: Array, m: Array, t: Array) -> float:
    """Return the multiplier that fits ``-ln t_j - 1 = mu f_j' - nu`` best over the classes with ``t_j > 0``."""
    many = 0
    mean_q = mean_f = 0.0
    for j in range(n.shape[0]):
        if t[j] > 0.0:
            many += 1
            mean_q -= np.log(t[j])
            mean_f += slope(n[j], m[j], t[j])
    mean_q /= many
    mean_f /= many
    both = square = 0.0
    for j in range(n.shape[0]):
        if t[j] > 0.0:
            f = slope(n[j], m[j], t[j]) - mean_f
            both += (-np.log(t[j]) - mean_q) * f
            square += f * f
    return float(both / square) if square > 0.0 else 0.0


@borrowing
def dual_value(n: Array, m: Array, theta: Array, c: float, t: Array, mu: float, nu: float) -> float:
    """``sum_j phi_j(t_j) + mu c - nu``, see the module."""
    return float(entropy_of(t) - mu * (level(n, m, theta, t) - c) + nu * (sum_of(t) - 1.0))


@borrowing
def greatest_separable(
    n: Array, m: Array, theta: Array, outer: float, inner: float, work: Array
) -> tuple[float, float]:
    """Return upper bound and reached greatest entropy (nats) over the cut; the bound is infinite if Newton fails."""
    l = n.shape[0]
    uniform = work[3]
    t = work[4]
    for k in range(l):
        uniform[k] = 1.0 / l
    if level(n, m, theta, uniform) >= inner:
        return np.log(l), np.log(l)
    aim = min(
        inner + GRAIN * (sum_of(n) + sum_of(m)), 0.5 * inner
    )  # so that rounding does not leave it outside
    point_at_level(n, m, theta, aim, uniform, -1e-2 * aim, t)
    mu, nu, missed = settle_separable(n, m, theta, aim, t, min(multiplier_separable(n, m, t), -1e-12), work)
    if mu == 0.0:
        return np.inf, 0.0
    bound = dual_value(n, m, theta, outer, t, mu, nu) + missed
    if not pull_inside(n, m, theta, inner, t):
        return np.inf, 0.0
    reached = entropy_of(t)
    return max(min(bound, np.log(l)), reached), reached


@borrowing
def cut_end(n: float, m: float, theta: float, price: float, rest: float, c: float, t: float) -> float:
    """Return an end of the cut's range of a class, from a guess `t` on that side of the maximiser.

    ``f(t) - f(theta) + price (1 - t) - rest >= c`` holds on the cut, where `price` is no less than any slope at the
    maximiser and `rest` the sum of slope times share of the other classes. It is concave in ``t``, so its tangent
    bounds it.
    """
    value = gain(n, m, t, theta) + price * (1.0 - t) - rest - c
    rate = slope(n, m, t) - price
    if not value > -np.inf or not rate * (t - theta) < 0.0:
        return np.nan
    end = t - value / rate
    return float(end * (1.0 + 1e-12) + 1e-15 if rate < 0.0 else end * (1.0 - 1e-12) - 1e-15)


@borrowing
def is_least(n: float, m: float, t: float, mu: float, nu: float, a: float, b: float) -> bool:
    """Return whether ``phi`` is least at `t` on ``[a, b]``, where its slope is 0 (or, at ``t = 0``, that of the end).

    ``phi'' = mu (n / t^2 + m / (1 - t)^2) - 1 / t``. Of ``-mu n ln t`` and ``-mu m ln(1 - t)`` either may be replaced
    by its tangent at `t` to leave a function that changes its curvature once: convex near `t`, concave towards one end.
    """
    if t <= 0.0:
        return n == 0.0 and nu + mu * m - np.log(max(b, 1e-300)) >= 0.0
    if mu * n >= b or 4.0 * mu * mu * n * m >= 1.0:
        return True
    if mu * n >= t:  # convex, then concave: t or b
        ratio = b / t
        log = np.log(ratio)
        return bool(mu * n / t * (ratio - 1.0 - log) - ratio * log + ratio - 1.0 >= 0.0)
    u = 1.0 - t
    if mu * m * t >= u * u:  # concave, then convex: a or t
        at_a = a * np.log(a / t) if a > 0.0 else 0.0
        return bool(mu * m * ((t - a) / u - np.log((1.0 - a) / u)) - at_a + a - t >= 0.0)
    return False


@borrowing
def guess_least(n: Array, m: Array, theta: Array, aim: float, t: Array, work: Array) -> bool:
    """Guess the point `t` of least entropy on ``l = aim``: minimise the tangent over an ellipsoid, twice."""
    l = n.shape[0]
    d = work[0]
    outer = work[3]
    copy_line(theta, t)
    for _ in range(2):
        flat = mean = 0.0
        for j in range(l):
            if theta[j] > 1e-7:
                if n[j] + m[j] == 0.0:
                    return False
                k = 1.0 / steepness(n[j], m[j], theta[j])
                d[j] = np.log(max(t[j], 1e-12))
                flat += k
                mean += k * d[j]
        mean /= flat
        size = 0.0
        for j in range(l):
            if theta[j] > 1e-7:
                d[j] -= mean
                k = 1.0 / steepness(n[j], m[j], theta[j])
                size += k * d[j] * d[j]
                d[j] *= k
            else:
                d[j] = 0.0
        if not size > 0.0 or not size < np.inf:
            return False
        scale = np.sqrt(-2.0 * aim / size)
        for j in range(l):
            if d[j] < 0.0:
                scale = min(scale, -0.98 * theta[j] / d[j])
        for j in range(l):
            outer[j] = theta[j] + scale * d[j]
        if level(n, m, theta, outer) < aim:
            point_at_level(n, m, theta, aim, outer, -1e-2 * aim, t)
        else:
            copy_line(outer, t)
    return True


@borrowing
def least_separable(
    n: Array, m: Array, theta: Array, outer: float, inner: float, work: Array
) -> tuple[float, float]:
    """Return lower bound and reached least entropy (nats) over the cut; the bound is -1 if the proof failed."""
    l = n.shape[0]
    t = work[4]
    vertex = work[3]
    for j in range(l):
        for k in range(l):
            vertex[k] = 0.0
        vertex[j] = 1.0
        if level(n, m, theta, vertex) >= inner:
            return 0.0, 0.0
    aim = min(inner + GRAIN * (sum_of(n) + sum_of(m)), 0.5 * inner)
    if not guess_least(n, m, theta, aim, t, work):
        return -1.0, 0.0
    mu = multiplier_separable(n, m, t)
    if not mu > 0.0:
        return -1.0, 0.0
    mu, nu, missed = settle_separable(n, m, theta, aim, t, mu, work)
    if not mu > 0.0:
        return -1.0, 0.0
    _, price = log_likelihood_deficit(n, m, theta)
    mean = 0.0
    W = 0.0
    for j in range(l):
        mean += slope(n[j], m[j], theta[j]) * theta[j]
        W += n[j] + m[j]
    for j in range(l):
        a = 0.0
        b = 1.0
        if is_least(n[j], m[j], t[j], mu, nu, a, b):
            continue
        rest = mean - slope(n[j], m[j], theta[j]) * theta[j]
        c = outer - GRAIN * 4.0 * W
        for sign in (-1.0, 1.0):
            far = theta[j] + sign * np.sqrt(-2.0 * outer / max(steepness(n[j], m[j], theta[j]), 1e-300))
            if 0.0 < far < 1.0:
                end = cut_end(n[j], m[j], theta[j], price, rest, c, far)
                if not np.isnan(end):
                    if sign > 0.0:
                        b = min(b, max(end, t[j]))
                    else:
                        a = max(a, min(end, t[j]))
        if not is_least(n[j], m[j], t[j], mu, nu, a, b):
            return -1.0, 0.0
    bound = dual_value(n, m, theta, outer, t, mu, nu) - missed
    if not pull_inside(n, m, theta, inner, t):
        return -1.0, 0.0
    reached = entropy_of(t)
    return min(max(bound, 0.0), reached), reached
