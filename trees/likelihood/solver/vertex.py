"""Least entropy over the likelihood cut of precise labels: the part of the curve towards the vertex (theory §2.9).

For ``t < 1`` the likelihood may rise again along the curve of `precise`. The roots of ``l = c`` there are enclosed by
bisection. A piece ``[a, b]`` of it needs no cutting where no point of it can lie on the edge of the cut; or where the
likelihood is monotone, so that there is one root at most. With ``r_j = theta_j / theta_1`` and ``R`` their sum, which
rise with ``t``,

    ``l = sum_(j>1) n_j ln r_j - N ln(1 + R) + constant``  and  ``dl/dt = sum_(j>1) r_j' (n_1 s_j / t - N theta_1)``,

which is above 0 on all of the piece if ``n_1 s_2(b) / b >= N theta_1(a)``.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, sum_of
from quercus.trees.likelihood.solver.roots import upper_root

SMALLEST = 1e-200  # of t: nearer to the vertex the entropy is practically 0
LIMIT = 2_000  # pieces examined at the most


@borrowing
def curve_point(n: Array, logs: Array, t: float, theta: Array) -> tuple[float, float, float]:
    """Write the point of the curve at `t` into `theta`; return ``l(theta) - l(n / N)``, ``mu`` and ``s_2``."""
    l = n.shape[0]
    N = sum_of(n)
    k = t - np.log(t) + logs[0]
    theta[0] = n[0] / t
    Z = theta[0]
    second = 1.0
    for j in range(1, l):
        s = upper_root(k - logs[j])
        if j == 1:
            second = s
        theta[j] = n[j] / s
        Z += theta[j]
    value = 0.0
    for j in range(l):
        theta[j] /= Z
        value += n[j] * np.log(theta[j] * (N / n[j]))
    return value, 1.0 / Z, second


@compiled
def entropy_of(theta: Array) -> float:
    """Return the entropy of positive probabilities, in nats."""
    total = 0.0
    for j in range(theta.shape[0]):
        total -= theta[j] * np.log(theta[j])
    return total


@compiled
def bound_beyond(
    n: Array,
    logs: Array,
    c: float,
    inner_c: float,
    tolerance: float,
    bound: float,
    reached: float,
    most: int,
) -> tuple[float, float]:
    """Return `bound` and `reached`, known so far for ``t >= 1``, updated for the part ``t < 1``."""
    l = n.shape[0]
    N = sum_of(n)
    a = np.empty(l)
    b = np.empty(l)
    # below this the likelihood is below the cut for good: l < (N - n_1) ln t + N ln(N / n_1)
    last = np.exp((c - N * np.log(N / n[0])) / (N - n[0])) * 0.99
    if last >= 1.0:
        return bound, reached
    if last < SMALLEST:
        last = SMALLEST
        value, _, _ = curve_point(n, logs, last, a)
        if value >= inner_c:
            return 0.0, entropy_of(a)
        if value >= c:
            bound = 0.0
    los = np.empty(LIMIT + 2)
    his = np.empty(LIMIT + 2)
    los[0] = last
    his[0] = 1.0
    count = 1
    limit = LIMIT if most > 20 else 10 * most
    examined = 0
    while count > 0 and examined < limit:
        examined += 1
        count -= 1
        lo = los[count]
        hi = his[count]
        l_lo, mu_lo, _ = curve_point(n, logs, lo, a)
        l_hi, mu_hi, second = curve_point(n, logs, hi, b)
        r_lo = 0.0
        r_hi = 0.0
        total = 0.0
        for j in range(1, l):
            r_lo += a[j] / a[0]
            r_hi += b[j] / b[0]
            total += n[j] * max(np.log(b[j] / b[0] * (a[0] / a[j])), 0.0)
        fall = N * max(np.log1p(r_hi) - np.log1p(r_lo), 0.0)
        h_a = entropy_of(a)
        h_b = entropy_of(b)
        if l_lo >= inner_c:
            reached = min(reached, h_a)
        if l_hi >= inner_c:
            reached = min(reached, h_b)
        # from either end one sum of the likelihood can only rise, the other only fall
        if min(l_lo + total, l_hi + fall) < c or max(l_lo - fall, l_hi - total) > inner_c:
            continue
        monotone = n[0] * second / hi >= N * a[0] * (1.0 + 1e-12)
        if monotone and (l_hi < c or l_lo > inner_c):
            continue
        # some point of the piece may lie on the cut; its entropy follows from dH = mu dl along the piece, of which
        # mu = t / (n_1 (1 + R)) does not move further than `change`
        change = (hi * (1.0 + r_hi) - lo * (1.0 + r_lo)) / (n[0] * (1.0 + r_lo) * (1.0 + r_hi))
        if monotone:  # the path to the edge of the cut is straight
            low = max(
                h_a + mu_lo * (c - l_lo) - change * abs(c - l_lo),
                h_b + mu_hi * (c - l_hi) - change * abs(c - l_hi),
            )
        else:
            low = max(h_a + mu_lo * (c - l_lo), h_b + mu_hi * (c - l_hi)) - change * (total + fall)
        if low >= reached - tolerance or hi - lo <= 1e-15 * hi:
            bound = min(bound, low)
            continue
        mid = np.sqrt(lo * hi)
        if (
            monotone and examined % 3 > 0 and l_lo < c and l_hi > inner_c
        ):  # false position, to either side of the root
            aside = 0.4 * tolerance / mu_hi
            aim = inner_c + aside if examined % 3 == 1 else c - aside
            mid = lo * (hi / lo) ** ((aim - l_lo) / (l_hi - l_lo))
            if not lo < mid < hi:
                mid = np.sqrt(lo * hi)
        los[count] = lo
        his[count] = mid
        los[count + 1] = mid
        his[count + 1] = hi
        count += 2
    for piece in range(count):  # undecided: the entropy is no less than -ln of the greatest probability
        curve_point(n, logs, los[piece], a)
        bound = min(bound, -np.log(a[0]))
    return bound, reached
