"""Entropy over the likelihood cut of precise labels, for any number of classes (theory §2.9).

With counts ``n_1 >= n_2 >= ... > 0`` of ``N`` labels the likelihood separates, ``l(theta) = sum_j n_j ln theta_j``. All
candidates for an end lie on a curve of one parameter, of the form ``theta_j = (n_j / s_j) / Z``.

*Least entropy.* At a minimum the constraint is active and ``-ln theta_j - mu n_j / theta_j`` is the same for all
classes; with ``s_j = mu n_j / theta_j`` that says ``s_j - ln s_j = K - ln n_j``, which has one root on each side of 1.
The Hessian of the Lagrangian is diagonal with the signs of ``s_j - 1``, so a minimum has at most two classes with
``s_j < 1``; exchanging classes shows that the order of ``theta`` is that of the counts, and that leaves one at most,
the first. So the curve is

    ``t = s_1 in (0, inf),  K = t - ln t + ln n_1,  s_j >= 1 for j > 1``,

and along it ``dH = mu dl`` with ``mu = 1 / Z``, which rises with ``t``. For ``t >= 1`` the likelihood falls all the way
from its maximum (``t = inf``), so there is one root of ``l = c`` at most. What lies beyond ``t = 1``, towards the
vertex, has ``theta_1 >= theta_1(1)``: the cut holds none of it when the profile likelihood of ``theta_1`` says so,
which it does but for small counts and ties (otherwise: `vertex`).

*Greatest entropy.* The same with the opposite sign of the multiplier ``lambda``: ``s_j + ln s_j = kappa + ln n_j``,
where classes without labels have ``theta_j = exp(-kappa) / Z``, ``lambda = 1 / Z``. The point of the curve maximises
the Lagrangian ``H + lambda l`` over the simplex, so ``H + lambda (l - c)`` is an upper bound wherever it is taken.

Far out both curves are straight in ``1 / sqrt(-l)``, which is therefore what Newton's method works on.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, sum_of
from quercus.trees.likelihood.solver.roots import binary_entropy, class_end, product_root, upper_root
from quercus.trees.likelihood.solver.vertex import bound_beyond

CURVE_STEPS = 100  # evaluations of a curve, at most; 3 to 6 are usual
LOG_ROUNDING = 2.3e-16  # of one logarithm of the likelihood, times k + 4 for k classes; part of its weight
SHARP_PRECISE = 32.0  # rounding errors; the curves are not used for a level nearer to 1
FLATTEST = -40.0  # kappa; there the point is uniform to the last digit


@borrowing
def low_point(n: Array, logs: Array, N: float, t: float, s: Array) -> tuple[float, float, float]:
    """Write ``s`` of the curve of least entropy at `t`; return ``l - l(n / N)``, its slope in `t`, and ``Z``.

    `logs` are those of `n`.
    """
    k = t - np.log(t) + logs[0]
    s[0] = t
    Z = n[0] / t
    rates = -n[0] / t
    pull = Z / t
    for j in range(1, n.shape[0]):
        root = t if n[j] == n[0] and t >= 1.0 else upper_root(k - logs[j])
        s[j] = root
        y = n[j] / root
        rate = (t - 1.0) / (t * (root - 1.0)) if root != t and root > 1.0 else 1.0 / t
        Z += y
        rates -= n[j] * rate
        pull += y * rate
    value = 0.0
    for j in range(n.shape[0]):
        value += n[j] * np.log(N / (s[j] * Z))
    return value, rates + N * pull / Z, Z


@borrowing
def high_point(
    n: Array, logs: Array, N: float, free: int, kappa: float, s: Array
) -> tuple[float, float, float]:
    """Do the same as `low_point` on the curve of greatest entropy; `free` classes have no label."""
    empty = free * np.exp(-kappa) if free > 0 else 0.0
    Z = empty
    rates = 0.0
    pull = empty
    for j in range(n.shape[0]):
        root = product_root(kappa + logs[j])
        s[j] = root
        y = n[j] / root
        rate = 1.0 / (1.0 + root)
        Z += y
        rates -= n[j] * rate
        pull += y * rate
    value = 0.0
    for j in range(n.shape[0]):
        value += n[j] * np.log(N / (s[j] * Z))
    return value, rates + N * pull / Z, Z


@borrowing
def entropy_at(n: Array, s: Array, Z: float) -> float:
    """Return the entropy of the classes with labels at a point of either curve, in nats."""
    total = 0.0
    for j in range(n.shape[0]):
        theta = n[j] / (s[j] * Z)
        total -= theta * np.log(theta)
    return total


@borrowing
def distance(n: Array, logs: Array, N: float, c: float) -> tuple[float, float]:
    """Return a guess of the mean ``s`` for ``l = c``, by the curvature of ``l`` at its maximum, and the mean log."""
    mean = 0.0
    for j in range(n.shape[0]):
        mean += n[j] * logs[j]
    mean /= N
    square = 0.0
    for j in range(n.shape[0]):
        square += n[j] * (logs[j] - mean) ** 2
    return np.sqrt(square / (-2.0 * c)), mean


@borrowing
def next_place(x: float, value: float, slope: float, aim: float, lo: float, hi: float) -> float:
    """Take Newton's step for ``l(x) = aim`` in ``1 / sqrt(-l)``, between the points known to be below and above."""
    new = np.nan
    if value < 0.0 and slope > 0.0:
        q = -value
        new = x + 2.0 * q / slope * (np.sqrt(q / -aim) - 1.0)
    if not lo < new < hi:
        new = 0.5 * (lo + hi) if hi < np.inf else 2.0 * max(x, 1.0)
    return new


@borrowing
def take_logs(n: Array, logs: Array) -> float:
    """Write the logarithms of `n`; return the sum of ``n ln n``."""
    total = 0.0
    for j in range(n.shape[0]):
        logs[j] = np.log(n[j])
        total += n[j] * logs[j]
    return total


@compiled
def least_entropy_of_counts(
    n: Array, c: float, inner_c: float, tolerance: float, most: int
) -> tuple[float, float]:
    """Return proven bound and reached value (nats) of the least entropy over ``{l(theta) >= l(n/N) + c}``.

    Parameters
    ----------
    n : (l,) positive counts in falling order, l >= 2
    c, inner_c : levels for the bound and for the reached point, below 0
    tolerance : nats
    most : evaluations of the curve; with few of them the bound is valid but the reached value may be the start
    """
    N = sum_of(n)
    if n.shape[0] == 2:  # the cut is an interval, and its end by the greater count is the farther from 1/2
        return binary_entropy(class_end(n[0], N, c)), binary_entropy(class_end(n[0], N, inner_c))
    s, logs = np.empty(n.shape[0]), np.empty(n.shape[0])
    reached = np.log(N) - take_logs(n, logs) / N
    bound = reached
    at_one, _, Z_one = low_point(n, logs, N, 1.0, s)
    if at_one < inner_c:
        lo = 1.0
        hi = np.inf
        bound = -np.inf
        mean_s, mean = distance(n, logs, N, inner_c)
        t = max(mean_s + mean - logs[0], 1.0 + 0.1 * mean_s)
        for _ in range(most):
            value, slope, Z = low_point(n, logs, N, t, s)
            here = entropy_at(n, s, Z)
            bound = max(bound, here + (c - value) / Z)  # dH = mu dl, and mu rises with t
            if value >= inner_c:
                reached = min(reached, here)
                hi = t
            else:
                lo = t
            if reached - bound <= tolerance or hi - lo <= 4e-16 * lo:
                break
            t = next_place(t, value, slope, inner_c + 0.4 * tolerance * Z, lo, hi)
    first = n[0] / Z_one
    rest = N - n[0]
    profile = n[0] * np.log(first * (N / n[0])) + rest * np.log((1.0 - first) * (N / rest))
    if not (first > n[0] / N and profile < c):
        bound, reached = bound_beyond(n, logs, c, inner_c, tolerance, bound, reached, most)
    return max(min(bound, reached), 0.0), reached


@compiled
def greatest_entropy_of_counts(
    n: Array, free: int, c: float, inner_c: float, tolerance: float, most: int
) -> tuple[float, float]:
    """Return proven bound and reached value (nats) of the greatest entropy over ``{l(theta) >= l(n/N) + c}``.

    Parameters
    ----------
    n : (l,) positive counts, l >= 1
    free : number of further classes, without labels
    c, inner_c, tolerance, most : see `least_entropy_of_counts`
    """
    l = n.shape[0]
    N = sum_of(n)
    top = np.log(l + free)
    logs = np.empty(l)
    spread = take_logs(n, logs)
    flat = N * np.log(N) - spread - N * top  # l of the uniform point
    reached = np.log(N) - spread / N
    if flat >= inner_c:
        return top, top
    if l == 1:
        outer = np.exp(c / N)
        inner = np.exp(inner_c / N)
        scale = np.log(free)
        return (
            min(binary_entropy(outer) + (1.0 - outer) * scale, top),
            binary_entropy(inner) + (1.0 - inner) * scale,
        )
    s = np.empty(l)
    lo = FLATTEST
    hi = np.inf
    bound = top
    mean_s, mean = distance(n, logs, N, inner_c)
    mean_s = max(mean_s, 0.1)
    kappa = max(mean_s + np.log(mean_s) - mean, lo)
    for _ in range(most):
        value, slope, Z = high_point(n, logs, N, free, kappa, s)
        here = entropy_at(n, s, Z)
        if free > 0:
            theta = np.exp(-kappa) / Z
            here += free * theta * (kappa + np.log(Z))
        bound = min(bound, here + (value - c) / Z)
        if value >= inner_c:
            reached = max(reached, here)
            hi = kappa
        else:
            lo = kappa
        if bound - reached <= tolerance or hi - lo <= 4e-16 * max(abs(lo), 1.0):
            break
        kappa = next_place(kappa, value, slope, inner_c + 0.4 * tolerance * Z, lo, hi)
    return max(bound, reached), reached
