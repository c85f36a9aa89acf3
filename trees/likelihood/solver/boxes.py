"""Compiled kernels: a lower bound of the entropy over the part of a level set in a box (theory §2.6).

Notation as in `quadratic`. These bounds come from a sequence of quadratics, each around the minimiser of the one
before; meanwhile the box is reduced by the parts that cannot contain less than the entropy already reached.

If the box contains a local minimum `x` with its multiplier, the bound is intended to be exact. Two things prevent
this. Across the boundary of the level set, along `g(x)`, the entropy may bend more than the likelihood, by far where a
class has little probability: then slabs ``lo <= s <= hi`` of the box are bounded one by one (`bound_in_slabs`), of
which the first is as thin as the third inequality needs. Or a side of the box reaches so far below ``x_j`` that its
envelope touches ``h`` at ``x_j`` only with twice the curvature of ``h``: then it is cut there (`curvature.cut_below`).
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.curvature import (
    CUT_BELOW,
    choose_curvature,
    cut_at,
    cut_below,
    wanted_curvature,
    widest_loss,
)
from quercus.trees.likelihood.solver.cut import least_linear
from quercus.trees.likelihood.solver.enclosure import contains, greatest_linear, nearest, shrink, tighten
from quercus.trees.likelihood.solver.kernels import Array, copy_line, gradient
from quercus.trees.likelihood.solver.quadratic import (
    Workspace,
    bound_at,
    expand,
    next_multiplier,
    scratch_for,
)

Bytes = NDArray[np.int8]

ROUNDS = 4  # quadratics tried in a box, at successive minimisers and multipliers
SLABS = 10  # slabs tried,
FAILURES = 3  # of which at most this many may be halved: boxes that are proved in the end rarely need more
SHRUNK = 0.15  # a side that lost this part of its width justifies another round


@compiled
def classes_by_plausibility(P: Array) -> Bytes:
    """Return the classes of each row (n, l) in falling order of plausibility."""
    n, l = P.shape
    order = np.empty((n, l), np.int8)
    for i in range(n):
        for j in range(l):
            r = j
            while r > 0 and P[i, order[i, r - 1]] < P[i, j]:
                order[i, r] = order[i, r - 1]
                r -= 1
            order[i, r] = j
    return order


@borrowing
def ranges(
    P: Array,
    order: Bytes,
    c: float,
    at_x: float,
    x: Array,
    gx: Array,
    a: Array,
    b: Array,
    top: Array,
    V: Array,
) -> tuple[float, float, float]:
    """Write upper bounds of ``P @ t`` in the box into `V`; return ``g(x) . x``, ``s_lo`` and ``s_hi``."""
    left = 1.0
    for j in range(x.shape[0]):
        left -= a[j]
    for i in range(P.shape[0]):  # a knapsack, the most plausible first
        room = left
        total = 0.0
        for j in range(x.shape[0]):
            total += P[i, j] * a[j]
        for r in range(x.shape[0]):
            if room <= 0.0:
                break
            j = order[i, r]
            amount = min(room, b[j] - a[j])
            total += P[i, j] * amount
            room -= amount
        V[i] = min(top[i], total)
    origin = 0.0
    for j in range(x.shape[0]):
        origin += gx[j] * x[j]
    return origin, max(c - at_x, least_linear(gx, a, b) - origin), greatest_linear(gx, a, b) - origin


@borrowing
def discard(
    q: Array, above: float, g: Array, spare: float, y: Array, z: Array, limit: float, a: Array, b: Array
) -> bool:
    """Shrink the box by two inequalities that hold where the entropy is below `limit`; False if nothing is left.

    The tangent of the quadratic, ``above + q . (t - z) <= limit``, and that of the likelihood,
    ``g . (t - y) >= -spare`` with ``spare = l(y) - c``. `q` is overwritten.
    """
    for j in range(y.shape[0]):
        above -= q[j] * z[j]
        spare -= g[j] * y[j]
    if not shrink(q, limit - above, a, b):
        return False
    for j in range(y.shape[0]):
        q[j] = -g[j]
    return shrink(q, spare, a, b) and tighten(a, b)


@compiled
def bound_in_slabs(
    T: Array,
    w: Array,
    c: float,
    V: Array,
    a: Array,
    b: Array,
    x: Array,
    gx: Array,
    origin: float,
    s_lo: float,
    s_hi: float,
    m: float,
    enough: float,
    scratch: Workspace,
) -> float:
    """Return a lower bound of the entropy in a box that contains the local minimum `x`, slab by slab ``lo <= s <= hi``.

    Across the boundary of the level set the entropy may bend more than the likelihood; in a thin slab the third
    inequality makes up for that. Minus infinity where that proves less than `enough`. `T` is ``P`` transposed; on entry
    `scratch` is as `bound_at` left it at `x`.
    """
    K, M, A, e, f, g, r, z, q = scratch
    l = x.shape[0]
    width = s_hi - s_lo
    convex = False
    for _ in range(4):
        width *= 0.5
        tau, _, _ = choose_curvature(m, K, gx, width, e, a, b, True, M, f, A)
        if tau == 0.0:
            convex = True
            break
    if not convex:
        return -np.inf
    lo = s_lo
    low = np.inf
    y = x.copy()
    slab_a = np.empty(l)
    slab_b = np.empty(l)
    exact = True
    failures = 0
    for _ in range(SLABS):
        hi = min(lo + width, s_hi)
        copy_line(a, slab_a)
        copy_line(b, slab_b)
        for j in range(l):
            q[j] = gx[j]
            r[j] = -gx[j]
        met = shrink(q, hi + origin, slab_a, slab_b) and shrink(r, -lo - origin, slab_a, slab_b)
        if met and tighten(slab_a, slab_b):
            if exact and not contains(slab_a, slab_b, x):
                return -np.inf
            if not exact:
                copy_line(y, z)
                nearest(slab_a, slab_b, z, y)
            best = -np.inf
            for _ in range(1 if exact else ROUNDS - 1):
                bound, _, value = bound_at(
                    T, w, c, V, slab_a, slab_b, gx, origin, lo, hi, y, m, exact, scratch
                )
                best = max(best, bound)
                if best >= enough or exact or value == -np.inf:
                    break
                m = next_multiplier(A, r, g, K, c - value, m, slab_a, slab_b, y, z, q)
                nearest(slab_a, slab_b, z, y)
            if best < enough:
                if exact:
                    return -np.inf
                failures += 1
                if failures > FAILURES:
                    return -np.inf
                width = 0.5 * (hi - lo)
                continue
            low = min(low, best)
        if hi >= s_hi:
            return low
        lo = hi
        width *= 2.0
        exact = False
    return -np.inf


@compiled
def bound_in_box(
    P: Array,
    w: Array,
    order: Bytes,
    c: float,
    top: Array,
    a: Array,
    b: Array,
    x: Array,
    mu: float,
    y: Array,
    enough: float,
    limit: float,
) -> tuple[float, int, float, float]:
    """Return a lower bound (nats) of the entropy over the level set within a box, if below `limit`.

    Parameters
    ----------
    P, w, c : level set
    order : (n, l) classes of each row of `P` in falling order (`classes_by_plausibility`)
    top : (n,) upper bounds of ``P @ t`` on it
    a, b : the box; shrunk to the part that can contain an entropy of at most `limit`
    x, mu : (l,) a local minimum and its multiplier; if the box contains `x`, the bound is intended to be exact
    y : (l,) a point of simplex and box to start from; receives the best guess of the minimiser
    enough : a larger bound has no further value

    Returns
    -------
    bound : plus infinity if nothing is left of the box
    cut : coordinate at which to cut the box next
    at : value at which to cut it, if it contains `x`
    multiplier : multiplier of the best guess
    """
    n, l = P.shape
    own = contains(a, b, x)
    if not own:
        x = y.copy()  # origin of s: better a point of this box
    gx = np.empty(l)
    at_x = gradient(P, w, x, gx)
    if not at_x > -np.inf:
        return -np.inf, 0, 0.5 * (a[0] + b[0]), mu
    T = np.ascontiguousarray(P.T)
    V = np.empty(n)
    scratch = scratch_for(l)
    K, M, A, e, f, g, r, z, q = scratch
    width = np.empty(l)
    best_y = y.copy()
    best = -np.inf
    best_m = m = mu
    cut = 0
    at = 0.0
    exact = own
    fresh = True
    origin = s_lo = s_hi = 0.0
    left = 2 * ROUNDS
    while left > 0:
        left -= 1
        if exact:
            copy_line(x, y)
            m = mu
        if fresh:
            origin, s_lo, s_hi = ranges(P, order, c, at_x, x, gx, a, b, top, V)
            for j in range(l):
                width[j] = b[j] - a[j]
            fresh = False
        bound, above, value = bound_at(T, w, c, V, a, b, gx, origin, s_lo, s_hi, y, m, exact, scratch)
        if value == -np.inf:
            break
        if not own:
            cut = widest_loss(e, a, b)
        if exact and bound == -np.inf:  # not convex with the curvature that exactness needs: go on inexactly
            best = bound_in_slabs(T, w, c, V, a, b, x, gx, origin, s_lo, s_hi, m, enough, scratch)
            if best >= enough:
                break
            expand(T, w, y, V, g, K)
            wanted_curvature(y, a, b, m, g, exact, e)
            cut = widest_loss(e, a, b)
            at = cut_at(a[cut], b[cut], y[cut])
            for j in range(l):
                r[j] = min(e[j], 1.02 / y[j]) if y[j] > 0.0 else e[j]
            tau, _, _ = choose_curvature(
                m, K, gx, 0.1 * (s_hi - s_lo), r, a, b, True, M, f, A
            )  # slabs may be thin
            if tau == 0.0:
                lower = cut_below(M, e, y, a, b, f, A, q)
                if lower >= 0:
                    cut = lower
                    at = a[cut] + CUT_BELOW * (y[cut] - a[cut])
            exact = False
            left = min(left, ROUNDS - 2)
            continue
        gain = bound - best
        if bound > best:
            best = bound
            best_m = m
            copy_line(z, best_y)
        if best >= enough:
            break
        if not discard(q, above, g, value - c, y, z, limit, a, b):
            return np.inf, 0, at, m
        for j in range(l):
            if b[j] - a[j] < (1.0 - SHRUNK) * width[j]:
                fresh = True
        if fresh and own and contains(a, b, x):
            exact = True
            continue
        if not fresh and gain < 0.1 * (enough - best) and left < ROUNDS - 2:
            break
        m = next_multiplier(A, r, g, K, c - value, m, a, b, y, z, q)
        nearest(a, b, z, y)
    nearest(a, b, best_y, y)
    return best, cut, at, best_m
