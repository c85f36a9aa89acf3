"""Compiled kernels: labels that name one class or exclude one, for which the likelihood separates (theory §2.10).

A contour that leaves one class is ``theta_j``; one that excludes one and leaves all others alike is ``1 - theta_j``.
With three classes that is every set-valued label. With ``n_j`` and ``m_j`` their weights,

    ``l(theta) = sum_j f_j(theta_j)``,  ``f_j(t) = n_j ln t + m_j ln(1 - t)``,

every ``f_j`` concave. So the Hessian is diagonal, and the maximum of ``l`` at a given price ``lambda`` of probability
has a closed form for each class: ``f_j'(t) = lambda`` is a quadratic equation (`best_share`).

*Maximiser.* ``sum_j share_j(lambda) = 1``, one falling equation in one unknown. For any point ``y`` and every ``t`` of
the simplex, ``l(t) - l(y) <= max_j f_j'(y_j) - sum_j f_j'(y_j) y_j``, which is the certificate.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing
from quercus.trees.likelihood.solver.kernels import Array

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

GRAIN = 2e-15  # rounding of a sum of logarithms or slopes, relative to the weight
NEWTON_STEPS = 30  # of Newton's method; 3 to 6 are usual
WORK_ROWS = 6  # of working space, (WORK_ROWS, l), that the kernels of separable labels share


@borrowing
def separable_counts(
    table: Array, columns: Shorts, counts: Array, first: int, last: int, n: Array, m: Array
) -> bool:
    """Write the weights of labels that name (`n`) or exclude (`m`) each class; False if there are other labels.

    False also if no label excludes a class: precise labels alone have simpler solutions (`precise`).
    """
    some = False
    l = table.shape[1]
    for c in range(l):
        n[c] = m[c] = 0.0
    for e in range(first, last):
        row = columns[e]
        ones = 0
        zeros = 0
        one = 0
        zero = 0
        for j in range(l):
            p = table[row, j]
            if p == 1.0:
                ones += 1
                one = j
            elif p == 0.0:
                zeros += 1
                zero = j
        if ones == 1 and zeros == l - 1:
            n[one] += counts[e]
        elif zeros == 1 and ones == l - 1:
            m[zero] += counts[e]
            some = True
        else:
            return False
    return some


@borrowing
def best_share(n: float, m: float, price: float) -> float:
    """Return the maximiser of ``n ln t + m ln(1 - t) - price t`` on ``[0, 1]``; `price` is not 0 if `n` and `m` are."""
    q = price + n + m
    d = price + m - n
    root = np.sqrt(d * d + 4.0 * n * m)
    return float(2.0 * n / (q + root) if q > 0.0 else (q - root) / (2.0 * price))


@borrowing
def steepness(n: float, m: float, t: float) -> float:
    """``-f''(t)``."""
    u = 1.0 - t
    return (n / (t * t) if n > 0.0 else 0.0) + (m / (u * u) if m > 0.0 else 0.0)


@borrowing
def slope(n: float, m: float, t: float) -> float:
    """``f'(t)``."""
    return (n / t if n > 0.0 else 0.0) - (m / (1.0 - t) if m > 0.0 else 0.0)


@borrowing
def gain(n: float, m: float, t: float, theta: float) -> float:
    """``f(t) - f(theta)``."""
    total = n * np.log(t / theta) if n > 0.0 else 0.0
    if m > 0.0:
        total += m * np.log((1.0 - t) / (1.0 - theta))
    return total


@borrowing
def level(n: Array, m: Array, theta: Array, t: Array) -> float:
    """``l(t) - l(theta)``."""
    total = 0.0
    for j in range(n.shape[0]):
        total += gain(n[j], m[j], t[j], theta[j])
    return total


@borrowing
def maximise_separable(n: Array, m: Array, theta: Array) -> bool:
    """Write the only maximiser into `theta`; False if there may be more than one, or rounding prevents it."""
    l = n.shape[0]
    W = 0.0
    said = 0.0
    mute = -1
    mutes = 0
    at_rest = 0.0  # the sum at price 0
    for j in range(l):
        W += n[j] + m[j]
        said += n[j]
        if n[j] + m[j] > 0.0:
            at_rest += n[j] / (n[j] + m[j])
        else:
            mutes += 1
            mute = j
    lo = -2.0 * W  # there, two classes with labels have 1/2 or more each
    hi = said  # there, no class has more than its part of these
    if mutes > 0:
        if at_rest <= 1.0:
            if mutes > 1:
                return False
            for j in range(l):
                theta[j] = n[j] / (n[j] + m[j]) if j != mute else 1.0 - at_rest
            return True
        lo = 0.0
    price = said
    for j in range(l):
        even = (n[j] + (W - said - m[j]) / (l - 1.0)) / W
        price -= m[j] * min(even / (1.0 - even), 2.0) if m[j] > 0.0 else 0.0
    price = min(price, hi)
    for _ in range(2 * NEWTON_STEPS):
        if not lo < price <= hi:
            price = 0.5 * (lo + hi)
        total = 0.0
        rate = 0.0
        for j in range(l):
            theta[j] = best_share(n[j], m[j], price) if n[j] + m[j] > 0.0 else 0.0
            total += theta[j]
            k = steepness(n[j], m[j], theta[j])
            if 0.0 < theta[j] < 1.0:  # at 0 and 1 the price moves nothing
                rate += 1.0 / k
        if abs(total - 1.0) <= 4e-16 or hi - lo <= 4e-16 * abs(price):
            break
        if total > 1.0:
            lo = price
        else:
            hi = price
        price -= total * (1.0 - total) / rate if rate > 0.0 else np.inf  # in 1 / total: exact if all m are 0
    for j in range(l):
        theta[j] /= total
    return True


@borrowing
def log_likelihood_deficit(n: Array, m: Array, theta: Array) -> tuple[float, float]:
    """Bound ``l(maximiser) - l(theta)``; the other number is the greatest slope ``f_j'(theta_j)``."""
    top = -np.inf
    mean = 0.0
    for j in range(n.shape[0]):
        if (n[j] > 0.0 and not theta[j] > 0.0) or (m[j] > 0.0 and not theta[j] < 1.0):
            return np.inf, np.inf
        f = slope(n[j], m[j], theta[j])
        top = max(top, f)
        mean += f * theta[j]
    return max(top - mean, 0.0), top


@borrowing
def pull_inside(n: Array, m: Array, theta: Array, inner: float, t: Array) -> bool:
    """Move `t` towards the maximiser until ``l >= inner``, by concavity; False if rounding forbids."""
    for _ in range(3):
        value = level(n, m, theta, t)
        if value >= inner:
            return True
        if not value > -np.inf:
            return False
        part = (1.0 - inner / value) * (1.0 + 1e-9) + 1e-15
        for j in range(n.shape[0]):
            t[j] += part * (theta[j] - t[j])
    return False


@borrowing
def point_at_level(
    n: Array, m: Array, theta: Array, aim: float, outer: Array, close: float, t: Array
) -> None:
    """Write into `t` the point between the maximiser and `outer` (beyond it) where ``l`` is `aim`, within `close`."""
    l = n.shape[0]
    first = second = 0.0
    for j in range(l):
        d = outer[j] - theta[j]
        if d != 0.0:
            first += d * slope(n[j], m[j], theta[j])
            second += d * d * steepness(n[j], m[j], theta[j])
    first = min(first, 0.0)
    part = 1.0
    if second > 0.0:
        part = min((first + np.sqrt(first * first - 2.0 * second * aim)) / second, 0.95)
    for _ in range(NEWTON_STEPS):
        value = -aim
        rate = 0.0
        for j in range(l):
            d = outer[j] - theta[j]
            t[j] = theta[j] + part * d
            if d != 0.0:
                value += gain(n[j], m[j], t[j], theta[j])
                rate += d * slope(n[j], m[j], t[j])
        if abs(value) <= close:
            return
        if value > -np.inf and rate < 0.0:
            part = min(part - value / rate, 0.99 + 0.01 * part)
        else:
            part *= 0.7


@borrowing
def entropy_of(t: Array) -> float:
    """Return the entropy in nats."""
    total = 0.0
    for j in range(t.shape[0]):
        if t[j] > 0.0:
            total -= t[j] * np.log(t[j])
    return total
