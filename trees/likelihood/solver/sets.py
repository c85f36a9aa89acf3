"""Compiled kernels: whole problems of separable labels, as set-valued ones of three classes are (theory §2.10).

Notation as in `separable`. Each result is either proved or refused; refused problems are solved by the general
method (`problem`).
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing
from quercus.trees.likelihood.solver.kernels import Array, sum_of
from quercus.trees.likelihood.solver.polygon import least_in_polygon
from quercus.trees.likelihood.solver.separable import (
    GRAIN,
    NEWTON_STEPS,
    best_share,
    level,
    log_likelihood_deficit,
    slope,
    steepness,
)
from quercus.trees.likelihood.solver.stationary import greatest_separable, least_separable

ENTROPY_GAP = 2e-10  # nats between an entropy reached and its bound, for both to be the answer
END_TOLERANCE = 1e-10  # between the ends of a class in two steps, for the second to be the answer
SHARP_SEPARABLE = 16.0  # rounding errors; these methods are not used for a cut nearer to the maximum


@borrowing
def solve_separable(n: Array, m: Array, alpha: float, theta: Array, ends: Array, work: Array) -> bool:
    """Write lower bound, reached least, reached greatest entropy and upper bound (nats) into `ends`; False: not proved.

    Parameters
    ----------
    n, m : (l,) weights of labels, see `separable`
    theta : (l,) a maximiser, up to rounding
    work : (WORK_ROWS, l)
    """
    W = sum_of(n) + sum_of(m)
    c = np.log(alpha)
    error = log_likelihood_deficit(n, m, theta)[0] + W * GRAIN
    if not -c > SHARP_SEPARABLE * error:
        return False
    outer = c - W * GRAIN
    inner = c + error
    ends[3], ends[2] = greatest_separable(n, m, theta, outer, inner, work)
    if not ends[3] - ends[2] <= ENTROPY_GAP:
        return False
    plane = n.shape[0] == 3
    silent = False  # then the least entropy is often at a side of the simplex, where the polygon works well
    for j in range(n.shape[0]):
        silent = silent or n[j] == 0.0
    low = reached = -1.0
    if plane and silent:
        low, reached, _ = least_in_polygon(n, m, theta, outer, inner, 0.5 * ENTROPY_GAP, work)
    if not 0.0 <= reached - low <= ENTROPY_GAP or low < 0.0:
        low, reached = least_separable(n, m, theta, outer, inner, work)
    if plane and not silent and (low < 0.0 or not reached - low <= ENTROPY_GAP):
        low, reached, _ = least_in_polygon(n, m, theta, outer, inner, 0.5 * ENTROPY_GAP, work)
    if low < 0.0 or not reached - low <= ENTROPY_GAP:
        return False
    ends[0] = low
    ends[1] = reached
    return True


@borrowing
def shares_at_price(n: Array, m: Array, price: float, j: int, target: float, y: Array) -> tuple[float, float]:
    """Write the shares at `price` of all classes but `j`, and the rest of 1 for `j`; return their sum and its decrease.

    A class without labels takes, at price 0, the remainder of `target`.
    """
    rest = 0.0
    give = 0.0
    mute = -1
    for k in range(n.shape[0]):
        if k == j:
            continue
        if n[k] + m[k] > 0.0:
            y[k] = best_share(n[k], m[k], price)
            rest += y[k]
            if y[k] > 0.0:
                give += 1.0 / steepness(n[k], m[k], y[k])
        else:
            y[k] = 0.0
            mute = k
    if mute >= 0 and price == 0.0:
        y[mute] = max(target - rest, 0.0)
        rest += y[mute]
        give = np.inf
    y[j] = 1.0 - rest
    return rest, give


@borrowing
def first_step(n: Array, m: Array, c: float, theta: Array, j: int, sign: float) -> tuple[float, float, float]:
    """Return the other classes' price at the maximiser, their decrease per price, and a guess of class `j`'s move."""
    price = -np.inf
    give = 0.0
    for k in range(n.shape[0]):
        if k != j:
            price = max(price, slope(n[k], m[k], theta[k]))
            if theta[k] > 0.0 and n[k] + m[k] > 0.0:
                give += 1.0 / steepness(n[k], m[k], theta[k])
    if give == 0.0:
        for k in range(n.shape[0]):
            if k != j and n[k] + m[k] > 0.0 and slope(n[k], m[k], theta[k]) == price:
                give += 1.0 / steepness(n[k], m[k], theta[k])
    bend = steepness(n[j], m[j], theta[j]) + (1.0 / give if give > 0.0 else 0.0)
    tilt = max(sign * (price - slope(n[j], m[j], theta[j])), 0.0)
    move = -c / tilt if bend == 0.0 else (np.sqrt(tilt * tilt - 2.0 * bend * c) - tilt) / bend
    return price, give, move


@borrowing
def end_of_class(n: Array, m: Array, c: float, theta: Array, j: int, sign: float, y: Array) -> float:
    """Return the proven greatest (`sign` 1) or least (-1) ``theta_j`` where ``l >= l(theta) + c``; NaN: not found.

    At the end ``f_k' = rho`` for all other classes, which are then shares at that price, and class ``j`` has the rest.
    For any ``y``, with ``p = max f_k'(y_k)`` over the others, concavity gives for all ``t`` of the cut

        ``l(y) + p (1 - t_j) - sum_(k != j) f_k'(y_k) y_k + f_j'(y_j) (t_j - y_j) >= c``,

    which bounds ``t_j``, and is Newton's step for ``rho`` as well.
    """
    l = n.shape[0]
    if sign < 0.0 and theta[j] <= 0.0:
        return 0.0
    if sign > 0.0:
        for k in range(l):
            y[k] = 0.0
        y[j] = 1.0
        if level(n, m, theta, y) >= c:
            return 1.0
    W = sum_of(n) + sum_of(m)
    speechless = False
    for k in range(l):
        speechless = speechless or (k != j and n[k] + m[k] == 0.0)
    price, give, move = first_step(n, m, c, theta, j, sign)
    rest = 1.0 - theta[j]
    target = rest - sign * move
    near = price  # within the cut
    far = sign * np.inf  # beyond it
    for _ in range(NEWTON_STEPS):
        target = max(target, 0.25 * rest)
        target = min(target, 1.0 - 0.0625 * (1.0 - rest))
        step = (rest - target) / give if give > 0.0 else sign * np.inf
        new = (
            price + step * rest / target
            if price > 0.0 and price + step * rest / target > 0.0
            else price + step
        )
        if speechless and not new > 0.0:
            new = 0.0
        elif not (new - near) * sign > 0.0 or not (far - new) * sign > 0.0:
            if abs(far) == np.inf:
                return np.nan
            new = 0.5 * (near + far)
        price = new
        rest, give = shares_at_price(n, m, price, j, target, y)
        if not y[j] > 0.0:
            far = price
            continue
        f = slope(n[j], m[j], y[j])
        top = -np.inf
        paid = 0.0
        for k in range(l):
            if k != j:
                other = slope(n[k], m[k], y[k])
                top = max(top, other)
                paid += other * y[k]
        value = level(n, m, theta, y) - c
        rate = top - f
        if not value > -np.inf or not rate * sign > 0.0:
            far = price
            continue
        end = (value + top - paid - f * y[j]) / rate + sign * (GRAIN * W / abs(rate) + 1e-15)
        if abs(end - y[j]) <= END_TOLERANCE or (sign < 0.0 and y[j] <= END_TOLERANCE):
            return float(end)
        if value >= 0.0:
            near = price
        else:
            far = price
        target = 1.0 - end
    return np.nan


@borrowing
def bound_separable(
    n: Array, m: Array, alpha: float, theta: Array, hair: float, bounds: Array, y: Array
) -> bool:
    """Write proven lower and upper bounds (2 l,) of the class probabilities over the cut; False if not found.

    `hair` is the least depth of the cut.
    """
    l = n.shape[0]
    c = min(np.log(alpha) - GRAIN * (sum_of(n) + sum_of(m)), -hair)
    if not log_likelihood_deficit(n, m, theta)[0] <= -c:
        return False
    for j in range(l):
        low = end_of_class(n, m, c, theta, j, -1.0, y)
        high = end_of_class(n, m, c, theta, j, 1.0, y)
        if np.isnan(low) or np.isnan(high):
            return False
        bounds[j] = min(max(low, 0.0), theta[j])
        bounds[l + j] = max(min(high, 1.0), theta[j])
    return True
