"""Least entropy over the likelihood cut of precise labels, for any number of classes (ALGORITHMS §2).

With counts ``n_1 >= n_2 >= ... > 0`` the likelihood separates, ``l(theta) = sum_j n_j ln theta_j``. At a minimum the
constraint is active and ``-ln theta_j - mu n_j / theta_j`` is the same for all classes; with ``s_j = mu n_j / theta_j``
that says ``s_j - ln s_j = K - ln n_j``, which has one root on each side of 1. The Hessian of the Lagrangian is diagonal
with the signs of ``s_j - 1``, so a minimum has at most two classes with ``s_j < 1``; exchanging classes shows that the
order of ``theta`` is that of the counts, and that leaves one at most, the first. So all candidates lie on one curve,

    ``t = s_1 in (0, inf),  K = t - ln t + ln n_1,  s_j >= 1 for j > 1,  theta_j = (n_j / s_j) / Z``,

and along it ``dH = mu dl`` with ``mu = 1 / Z``. For ``t >= 1`` the likelihood falls all the way from its maximum
(``t = inf``). For ``t < 1``, towards the vertex, it may rise again; there the roots of ``l = c`` are enclosed by
bisection, with a bound of the entropy in each piece from the variation of ``mu`` and of ``l``.
"""

import numpy as np

from quercus.trees.solver.compiled import compiled
from quercus.trees.solver.descent import entropy
from quercus.trees.solver.kernels import Array

PIECES = 64  # first cut of the part t < 1
SMALLEST = 1e-200  # of t: nearer to the vertex the entropy is 0 to all that matters
LIMIT = 100_000  # pieces examined at the most


@compiled
def upper_root(y: float) -> float:
    """Root ``s >= 1`` of ``s - ln s = y``, ``y >= 1``."""
    if y <= 1.0:
        return 1.0
    e = y - 1.0
    s = 1.0 + e + np.sqrt(2.0 * e)  # right of the root, and Newton on a convex function stays there
    for _ in range(50):
        new = s - (s - np.log(s) - y) * s / (s - 1.0)
        if not new < s:
            break
        s = new
    return float(max(s, 1.0))


@compiled
def on_curve(n: Array, t: float, theta: Array) -> tuple[float, float]:
    """Write the point of the curve at `t` into `theta`; return ``l(theta) - l(n / N)`` and ``mu``."""
    l = n.shape[0]
    N = n.sum()
    k = t - np.log(t) + np.log(n[0])
    Z = 0.0
    for j in range(l):
        s = t if j == 0 else upper_root(k - np.log(n[j]))
        theta[j] = n[j] / s
        Z += theta[j]
    value = 0.0
    for j in range(l):
        theta[j] /= Z
        value += n[j] * np.log(theta[j] * (N / n[j]))
    return value, 1.0 / Z


@compiled
def falling_root(n: Array, level: float, lo: float, hi: float) -> float:
    """``t`` with ``l(t) = level``, a hair inside, where ``l`` is below `level` at `lo` and above it at `hi`."""
    theta = np.empty(n.shape[0])
    for _ in range(200):
        mid = np.sqrt(lo * hi)
        if mid <= lo or mid >= hi:
            break
        if on_curve(n, mid, theta)[0] >= level:
            hi = mid
        else:
            lo = mid
    return hi


@compiled
def least_entropy_of_counts(n: Array, c: float, inner_c: float, tolerance: float) -> tuple[float, float]:
    """Global minimum (nats) of the entropy over ``{l(theta) >= l(n/N) + c}``: proven bound and reached value.

    Parameters
    ----------
    n : (l,) positive counts in falling order, l >= 2
    c, inner_c : levels for the bound and for the reached point, below 0
    tolerance : nats
    """
    l = n.shape[0]
    N = n.sum()
    theta = n / N
    reached = entropy(theta)
    bound = reached
    # part t >= 1: one root if l(1) < c, by monotonicity
    at_one, mu_one = on_curve(n, 1.0, theta)
    hi = 2.0
    while on_curve(n, hi, theta)[0] < 0.5 * inner_c and hi < 1e15:
        hi *= 4.0
    if at_one < inner_c:
        t = falling_root(n, inner_c, 1.0, hi)
        value, mu = on_curve(n, t, theta)
        reached = entropy(theta)
        # dH = mu dl from here to l = c; mu is between its value here and at t = 1
        bound = reached - max(mu, mu_one) * max(value - c, 0.0) * 1.01
    # part t < 1, from 1 down to where the likelihood is below the cut for good
    last = np.exp((c - N * np.log(N / n[0])) / (N - n[0])) * 0.99
    if last >= 1.0:
        return bound, reached
    if last < SMALLEST:
        last = SMALLEST  # below it the likelihood falls towards the vertex
        value, _ = on_curve(n, last, theta)
        if value >= inner_c:
            return 0.0, entropy(theta)
        if value >= c:
            bound = 0.0
    level = c
    los = np.empty(LIMIT + PIECES)
    his = np.empty(LIMIT + PIECES)
    count = 0
    for p in range(PIECES):
        los[count] = last ** ((p + 1.0) / PIECES)
        his[count] = last ** (p / PIECES)
        count += 1
    a = np.empty(l)
    b = np.empty(l)
    examined = 0
    while count > 0 and examined < LIMIT:
        examined += 1
        count -= 1
        lo = los[count]
        hi = his[count]
        l_lo, mu_lo = on_curve(n, lo, a)
        l_hi, mu_hi = on_curve(n, hi, b)
        # l = sum_j>0 n_j ln r_j - N ln(1 + R) with r_j = theta_j / theta_1 and R their sum, which both rise with t
        r_lo = 0.0
        r_hi = 0.0
        total = 0.0
        for j in range(1, l):
            r_lo += a[j] / a[0]
            r_hi += b[j] / b[0]
            total += n[j] * max(np.log(b[j] / b[0] * (a[0] / a[j])), 0.0)
        total += N * max(np.log1p(r_hi) - np.log1p(r_lo), 0.0)  # no less than the variation of l on the piece
        if max(l_lo, l_hi) + total < level:
            continue  # nothing here reaches the cut
        if min(l_lo, l_hi) - total > inner_c:
            continue
        # some point of the piece may lie on the cut; its entropy follows from dH = mu dl along the piece,
        # of which mu = t / (n_1 (1 + R)) does not move further than
        change = (hi * (1.0 + r_hi) - lo * (1.0 + r_lo)) / (n[0] * (1.0 + r_lo) * (1.0 + r_hi))
        low_lo = entropy(a) + mu_lo * (level - l_lo) - change * total
        low_hi = entropy(b) + mu_hi * (level - l_hi) - change * total
        low = max(low_lo, low_hi)
        if l_lo >= inner_c:
            reached = min(reached, entropy(a))
        if l_hi >= inner_c:
            reached = min(reached, entropy(b))
        if (l_lo < inner_c) != (l_hi < inner_c) and hi - lo < 1e-3 * hi:
            t = falling_root(n, inner_c, lo, hi) if l_lo < l_hi else hi
            if on_curve(n, t, a)[0] >= inner_c:
                reached = min(reached, entropy(a))
        if low >= reached - tolerance or hi - lo <= 1e-15 * hi:
            bound = min(bound, low)
            continue
        mid = np.sqrt(lo * hi)
        los[count] = lo
        his[count] = mid
        los[count + 1] = mid
        his[count + 1] = hi
        count += 2
    if count > 0:
        bound = 0.0
    return max(min(bound, reached), 0.0), reached
