"""Compiled kernels: the effect of rounding on a level set, and bounds of its entropy around that of the maximiser.

Notation as in `kernels`. The derivations are in theory §2.8 and §2.13. ``u = 2^-53`` is the
rounding of one operation.

*Rounding.* A term of the log-likelihood is off by ``(4 l + 12) u`` of its weight at most: `rounding`. The KKT excess is
a difference from 1 of sums over all rows, in which ``n`` roundings could hide a level near 1: there `sure_excess`
carries along what the sums lose.

*One ellipsoid.* With ``d = t - theta`` and ``d' A d <= square``, ``sum d = 0`` of `enclosure.ellipsoid`, both ends of
the entropy are ``H(theta) -+ sqrt(square q' M q)`` up to terms of the second order, with ``M`` the inverse of ``A`` on
the simplex and ``q`` the slopes of ``h(t) = -t ln t``. No search is needed, and no likelihood is evaluated.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compact, compiled
from quercus.trees.likelihood.solver.descent import entropy
from quercus.trees.likelihood.solver.enclosure import UNIT_ROUNDOFF, ellipsoid, outer_box
from quercus.trees.likelihood.solver.kernels import Array, solve, sum_of

ENTROPY_ROUNDING = 1e-14  # nats; rounding of an entropy
KNOWN_ENTROPY = 6.9e-7  # nats, 1e-6 bits; an entropy known to this is known
DEEP = 1e8  # a cut this many roundings of a plain sum below the maximum needs no better sum


@borrowing
def rounding(l: int) -> float:
    """Return a bound of the effect of rounding on the log-likelihood of ``l`` classes, relative to the weight."""
    return (4.0 * l + 12.0) * UNIT_ROUNDOFF


@borrowing
def plain_sums(n: int, l: int) -> float:
    """Return a bound of the relative effect of rounding on a plainly summed gradient of the log-likelihood."""
    return (n + 2.0 * l + 8.0) * UNIT_ROUNDOFF


@borrowing
def compensated_add(total: float, term: float) -> tuple[float, float]:
    """Return a sum and its rounding error (Knuth)."""
    result = total + term
    taken = result - total
    return result, (total - (result - taken)) + (term - taken)


@compact
def sure_excess(P: Array, w: Array, theta: Array, worst: float, c: float) -> float:
    """Return an upper bound of the true KKT excess of `theta`, given the computed one, `worst`, at the level `c`."""
    n, l = P.shape
    W = sum_of(w)
    if -c > DEEP * plain_sums(n, l) * W:
        return worst + plain_sums(n, l)
    g, lost = np.zeros(l), np.zeros(l)
    whole, lost_weight = 0.0, 0.0
    for i in range(n):
        whole, slip = compensated_add(whole, w[i])
        lost_weight += slip
        v = 0.0
        for j in range(l):
            v += P[i, j] * theta[j]
        for j in range(l):
            g[j], slip = compensated_add(g[j], P[i, j] * (w[i] / v))
            lost[j] += slip
    top = 0.0
    for j in range(l):
        top = max(top, ((g[j] - whole) + (lost[j] - lost_weight)) / W)
    return float(top + (l + 7.0) * UNIT_ROUNDOFF)


@compiled
def level_error(P: Array, w: Array, theta: Array, worst: float, c: float) -> float:
    """Return the amount, relative to the weight, by which the level of a bound must be lowered because of rounding.

    Beside `rounding`, a tangent at ``y`` has the error of its gradient times ``|t - y|``: at most 2, or the girth of a
    box around the level set. ``P @ theta`` must be 1 in every row; `worst` is a `sure_excess`.
    """
    n, l = P.shape
    span = 2.0
    if -c <= DEEP * plain_sums(n, l) * sum_of(w):
        a, b = np.empty(l), np.empty(l)
        outer_box(P, w, c, theta, worst, a, b, np.empty(n))
        girth = 0.0
        for j in range(l):
            girth += b[j] - a[j]
        span = min(span, girth)
    return float(rounding(l) + plain_sums(n, l) * span)


@borrowing
def entropy_term_range(a: float, b: float) -> tuple[float, float]:
    """Return the least and the greatest ``-t ln t`` over ``[a, b]``."""
    at_a = -a * np.log(a) if a > 0.0 else 0.0
    at_b = -b * np.log(b) if b > 0.0 else 0.0
    return min(at_a, at_b), np.exp(-1.0) if a < np.exp(-1.0) < b else max(at_a, at_b)


@compact
def entropy_error(P: Array, w: Array, theta: Array, slack: float) -> tuple[float, float]:
    """Return by how much the entropy (nats) where ``l >= l(theta) - slack`` may be below and above that of `theta`.

    ``P @ theta`` must be 1 in every row, and `slack` must include the distance of `theta` from the maximum.
    """
    n, l = P.shape
    a, b, top = np.empty(l), np.empty(l), np.empty(n)
    A = np.empty((l, l))
    outer_box(P, w, -slack, theta, 0.0, a, b, top)
    down = ENTROPY_ROUNDING
    up = ENTROPY_ROUNDING
    for j in range(l):  # bounds from the box
        here, _ = entropy_term_range(theta[j], theta[j])
        least, most = entropy_term_range(a[j], b[j])
        down += here - least
        up += most - here
    square = ellipsoid(P, w, -slack, theta, 0.0, np.empty(l), np.empty(l), top, A)
    weight, nu = 0.0, 0.0
    for j in range(l):
        if a[j] > 0.5 * theta[j]:
            weight += theta[j]
            nu -= theta[j] * (np.log(theta[j]) + 1.0)
    if square < 0.0 or weight == 0.0:
        return down, up
    nu /= weight
    q = np.zeros(l)
    low = ENTROPY_ROUNDING
    high = ENTROPY_ROUNDING
    for j in range(l):
        side = max(theta[j] - a[j], b[j] - theta[j])
        if a[j] > 0.5 * theta[j]:
            q[j] = -np.log(theta[j]) - 1.0 - nu
            low += side * side / (2.0 * a[j])
        else:
            here, _ = entropy_term_range(theta[j], theta[j])
            least, most = entropy_term_range(a[j], b[j])
            low += here - least + abs(nu) * side
            high += most - here + abs(nu) * side
    z, one = q.copy(), np.ones(l)
    solve(A, z)
    solve(A, one)
    share = sum_of(z) / sum_of(one)
    length = 0.0
    for j in range(l):
        length += q[j] * (z[j] - share * one[j])
    reach = np.sqrt(square * max(length, 0.0)) * (1.0 + 1e-6)
    return min(down, low + reach), min(up, high + reach)


@borrowing
def near_ends(P: Array, w: Array, c: float, short: float, theta: Array, ends: Array) -> None:
    """Write the ends, as `problem.solve_problem`, at a level `c` that rounding hides.

    ``l(theta)`` may be `short` of the maximum. The cut certainly contains the true maximiser, but maybe not `theta`:
    the entropy of the maximiser counts as reached, as far as it is known.
    """
    here = entropy(theta)
    down, up = entropy_error(P, w, theta, short - c)
    ends[0] = max(here - down, 0.0)
    ends[3] = min(here + up, np.log(theta.shape[0]))
    if c == 0.0 and max(down, up) <= KNOWN_ENTROPY:
        down = up = 0.0
    elif c < 0.0:
        down, up = entropy_error(P, w, theta, short)
    ends[1] = here + up
    ends[2] = here - down


@compact
def box_entropy_error(P: Array, w: Array, theta: Array, slack: float, widest: float) -> float:
    """Return `entropy_error` by the box alone, considering only its sides narrower than `widest`.

    If the maximiser is not unique, the box is wide in the free directions, which the caller must handle.
    """
    l = theta.shape[0]
    a, b = np.empty(l), np.empty(l)
    outer_box(P, w, -slack, theta, 0.0, a, b, np.empty(P.shape[0]))
    total = 0.0
    for j in range(l):
        if b[j] - a[j] < widest:
            here, _ = entropy_term_range(theta[j], theta[j])
            least, most = entropy_term_range(a[j], b[j])
            total += max(most - here, here - least)
    return total
