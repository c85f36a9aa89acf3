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
def on_curve(n: Array, t: float, theta: Array) -> tuple[float, float, float]:
    """Write the point of the curve at `t` into `theta`; return its log-likelihood, ``mu`` and ``ln Z``."""
    l = n.shape[0]
    k = t - np.log(t) + np.log(n[0])
    Z = 0.0
    for j in range(l):
        s = t if j == 0 else upper_root(k - np.log(n[j]))
        theta[j] = n[j] / s
        Z += theta[j]
    value = 0.0
    for j in range(l):
        theta[j] /= Z
        value += n[j] * np.log(theta[j])
    return value, 1.0 / Z, np.log(Z)


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
    top = 0.0
    for j in range(l):
        top += n[j] * np.log(theta[j])
    reached = entropy(theta)
    bound = reached
    # part t >= 1: one root if l(1) < c, by monotonicity
    at_one, mu_one, _ = on_curve(n, 1.0, theta)
    hi = 2.0
    while on_curve(n, hi, theta)[0] < top + 0.5 * inner_c and hi < 1e15:
        hi *= 4.0
    if at_one < top + inner_c:
        t = falling_root(n, top + inner_c, 1.0, hi)
        value, mu, _ = on_curve(n, t, theta)
        reached = entropy(theta)
        # dH = mu dl from here to l = c; mu is between its value here and at t = 1
        bound = reached - max(mu, mu_one) * max(value - (top + c), 0.0) * 1.01
    # part t < 1, from 1 down to where the likelihood is below the cut for good
    last = np.exp((c - N * np.log(N / n[0])) / (N - n[0])) * 0.99
    if last >= 1.0:
        return bound, reached
    level = top + c
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
        l_lo, mu_lo, z_lo = on_curve(n, lo, a)
        l_hi, mu_hi, z_hi = on_curve(n, hi, b)
        # total variation of l on the piece: ln of each unnormalised theta_j is monotone, so is each part of Z
        total = 0.0
        z_top = abs(n[0] / lo - n[0] / hi)
        z_rest = 0.0
        for j in range(l):
            u_lo = a[j] * np.exp(z_lo)
            u_hi = b[j] * np.exp(z_hi)
            total += n[j] * abs(np.log(u_lo / u_hi))
            if j > 0:
                z_rest += abs(u_lo - u_hi)
        least_z = n[0] / hi
        for j in range(1, l):
            least_z += min(a[j] * np.exp(z_lo), b[j] * np.exp(z_hi))
        total += N * (z_top + z_rest) / least_z
        if max(l_lo, l_hi) + total < level:
            continue  # nothing here reaches the cut
        if min(l_lo, l_hi) - total > top + inner_c:
            continue
        # some point of the piece may lie on the cut; its entropy is at least:
        change = (z_top + z_rest) / (least_z * least_z)  # variation of mu = 1 / Z
        low_lo = entropy(a) + mu_lo * (level - l_lo) - change * total
        low_hi = entropy(b) + mu_hi * (level - l_hi) - change * total
        low = max(low_lo, low_hi)
        if l_lo >= top + inner_c:
            reached = min(reached, entropy(a))
        if l_hi >= top + inner_c:
            reached = min(reached, entropy(b))
        if (l_lo < top + inner_c) != (l_hi < top + inner_c) and hi - lo < 1e-3 * hi:
            t = falling_root(n, top + inner_c, lo, hi) if l_lo < l_hi else hi
            if on_curve(n, t, a)[0] >= top + inner_c:
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
    return min(bound, reached), reached
