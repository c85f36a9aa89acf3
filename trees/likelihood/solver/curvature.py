"""Compiled kernels: the entropy's curvature that an underestimator in a box keeps (theory §2.6).

Notation as in `boxes`: ``f_j`` is the curvature that the underestimator of ``h(t) = -t ln t`` keeps for class ``j``.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, copy_line, solve

CUT_BELOW = 0.5  # of the way from the side of a box to a minimum: where to cut below it
NEAR_MINIMUM = 0.8  # of a minimum; a nearer side needs little more curvature than one at the minimum
LEAST_CONCESSION = 1e-2  # least part tried of the concession that is certainly enough,
HALVINGS = 5  # with this many halvings (of ratios) in between
NEWTON = 30  # steps to where the line from a touches, at the most; 3 to 5 are usual
STEEPEST = 4.0  # over b_j: greatest curvature wanted away from a local minimum; touches h at half of [0, b_j]


@borrowing
def least_curvature(y: float, a: float) -> float:
    """Return the least ``f`` for which ``h(t) + f (t - y)^2 / 2`` is above its tangent at `y` for all ``t >= a``.

    With ``a <= y`` it is ``2 (a ln(a / y) + y - a) / (y - a)^2``, rounded up: between ``1 / y`` (a near y) and
    ``2 / y`` (``a = 0``).
    """
    if a <= 0.0:
        return 2.0 / y
    d = (y - a) / y
    if d <= 1e-3:
        return (1.0 + 0.34 * d) / y  # the series is 1 + d / 3 + d^2 / 6 + ...
    return float(2.0 * (1.0 + 1e-9) * (a * np.log(a / y) + y - a) / ((y - a) * (y - a)))


@borrowing
def envelope(f: float, y: float, a: float, b: float) -> tuple[float, float]:
    """Return value and slope at `y` of the convex envelope of ``h(t) + f (t - y)^2 / 2`` on ``[a, b]``."""
    here = -y * np.log(y) if y > 0.0 else 0.0
    if y > 0.0 and f >= least_curvature(y, min(a, y)):
        return here, -np.log(y) - 1.0
    t = b  # where the line from a touches
    if f * b > 1.0:
        t = min(b, 2.0 / f)
        if (
            a > 0.0
        ):  # right of 1 / f the excess is concave and falls: Newton's steps from the right stay there
            for _ in range(NEWTON):
                excess = 2.0 * (a * np.log(a / t) + t - a) - f * (t - a) * (t - a)
                step = excess / (2.0 * (t - a) * (1.0 / t - f))
                if not step > 1e-7 * t:
                    break
                t -= step
    at_a = (-a * np.log(a) if a > 0.0 else 0.0) + 0.5 * f * (a - y) * (a - y)
    at_t = -t * np.log(t) + 0.5 * f * (t - y) * (t - y)
    slope = (at_t - at_a) / (t - a)
    return min(at_a + slope * (y - a) - 1e-13, here), slope


@borrowing
def is_convex(M: Array, f: Array, A: Array) -> bool:
    """Return whether ``M - diag(f)`` is positive definite for ``sum d = 0`` (lower triangle; `A` is working space)."""
    l = f.shape[0]
    free = 0.0  # on the simplex, adding a multiple of 11' changes nothing
    for j in range(l):
        free = max(free, M[j, j], abs(f[j]))
    for j in range(l):
        for k in range(j + 1):
            A[j, k] = M[j, k] + 10.0 * free
        A[j, j] -= f[j]
        for k in range(j):
            s = A[j, k]
            for i in range(k):
                s -= A[j, i] * A[k, i]
            A[j, k] = s / A[k, k]
            A[j, j] -= A[j, k] * A[j, k]
        if A[j, j] <= 1e-9 * free:
            return False
        A[j, j] = np.sqrt(A[j, j])
    return True


@borrowing
def give_way(e: Array, tau: float, a: Array, b: Array, f: Array) -> None:
    """Write ``e_j - tau / (b_j - a_j)^2`` into `f`, but no less than 0 if ``e_j`` is above 0.

    Each class then loses the same against `e` within its side of the box.
    """
    for j in range(e.shape[0]):
        width = b[j] - a[j]
        f[j] = max(e[j] - tau / (width * width), min(e[j], 0.0))


@borrowing
def affordable_curvature(
    M: Array, e: Array, a: Array, b: Array, exact: bool, most: float, f: Array, A: Array
) -> float:
    """Write into `f` the curvatures nearest to the wanted `e` that `M` can afford; return the concession.

    The concession is 0 if ``M - diag(e)`` is convex; else the least ``tau`` of `give_way`, found by bisection; infinity
    if that exceeds `most`, or if none is allowed (`exact`).
    """
    l = e.shape[0]
    if most < np.inf and not exact:
        give_way(e, most, a, b, f)
        if not is_convex(M, f, A):
            return np.inf
    copy_line(e, f)
    if is_convex(M, f, A):
        return 0.0
    if exact:
        return np.inf
    high = 0.0
    for j in range(l):
        high = max(high, 1.01 * e[j] * (b[j] - a[j]) * (b[j] - a[j]))
    high = min(high, most)
    low = LEAST_CONCESSION * high
    for _ in range(HALVINGS):
        middle = np.sqrt(low * high)
        give_way(e, middle, a, b, f)
        if is_convex(M, f, A):
            high = middle
        else:
            low = middle
    give_way(e, high, a, b, f)
    return high


@borrowing
def wanted_curvature(y: Array, a: Array, b: Array, mu: float, g: Array, exact: bool, e: Array) -> None:
    """Write into `e` the curvatures with which the envelopes touch at `y`, or nearly.

    At a local minimum (`exact`) a class without probability needs what makes the slope of its envelope at 0 no less
    than the common slope of the others, ``h(t) + e t^2 / 2 >= slope t`` on ``[0, b]``.
    """
    l = y.shape[0]
    slope = 0.0
    for j in range(l):
        if y[j] > 0.0:
            slope -= (np.log(y[j]) + 1.0 + mu * g[j]) * y[j]
    for j in range(l):
        if y[j] > 0.0:
            e[j] = least_curvature(y[j], min(a[j], y[j]))
        else:
            short = slope + mu * g[j] + np.log(b[j])
            e[j] = 2.0 / b[j] * (short if short <= 1.0 else np.exp(min(short, 50.0) - 1.0))
        if not exact:
            e[j] = min(e[j], STEEPEST / b[j])


@compiled
def choose_curvature(
    mu: float,
    K: Array,
    gx: Array,
    width: float,
    e: Array,
    a: Array,
    b: Array,
    exact: bool,
    M: Array,
    f: Array,
    A: Array,
) -> tuple[float, float, float]:
    """Choose ``phi`` and ``kappa``: write the curvature before ``diag(f)`` into `M`, and `f`.

    `width` is ``s_hi - s_lo``. Returns what `f` gives way (`affordable_curvature`), phi and kappa; where nothing
    may give way (`exact`) it is infinity if something must.
    """
    l = e.shape[0]
    best = np.inf
    best_phi = 0.0
    best_kappa = 0.0
    T = np.empty((l, l))
    trial_f = np.empty(l)
    for trial in (0.0, 0.4, 0.1, 0.02, 0.8):
        if trial > 0.0 and not width > 1e-300:
            break
        push = 2.0 * trial * mu / width if trial > 0.0 else 0.0
        for j in range(l):
            for k in range(j + 1):
                T[j, k] = (1.0 - trial) * mu * K[j, k] + push * gx[j] * gx[k]
        tau = affordable_curvature(T, e, a, b, exact, 0.95 * best, trial_f, A)
        if tau <= 0.95 * best:
            best = tau
            best_phi = trial
            best_kappa = 0.5 * push
            copy_line(trial_f, f)
            for j in range(l):
                copy_line(T[j], M[j])
        if best == 0.0:
            break
    return best, best_phi, best_kappa


@borrowing
def cut_below(M: Array, e: Array, y: Array, a: Array, b: Array, f: Array, A: Array, v: Array) -> int:
    """Return the class at which to cut the box below its probability in `y`; -1 for none.

    This applies if it suffices that the envelopes touch near the local minimum `y`, which ``M`` allows: in the
    direction `v` in which ``M - diag(e)`` is least convex one class needs too much curvature, because its side reaches
    too far down.
    """
    l = e.shape[0]
    affordable_curvature(M, e, a, b, False, np.inf, f, A)
    is_convex(M, f, A)
    for j in range(l):
        v[j] = (b[j] - a[j]) * (1.0 if j % 2 == 0 else -1.0)
    for _ in range(3):
        size = 0.0
        solve(A, v)
        for j in range(l):
            size += abs(v[j])
        for j in range(l):
            v[j] /= size
    worst = -1
    most = 0.0
    for j in range(l):
        if y[j] > 0.0 and a[j] < NEAR_MINIMUM * y[j] and (e[j] - 1.0 / y[j]) * v[j] * v[j] > most:
            most = (e[j] - 1.0 / y[j]) * v[j] * v[j]
            worst = j
    return worst


@borrowing
def cut_at(a: float, b: float, x: float) -> float:
    """Return the point at which to cut ``[a, b]`` around a minimum at `x`: near 0, curvature depends on ratios."""
    if x > 0.0 and b > 3.0 * x and b - x >= x - a:
        return max(float(np.sqrt(x * b)), 1.5 * x)
    return 0.5 * (a + x) if x - a >= b - x else 0.5 * (x + b)


@borrowing
def widest_loss(f: Array, a: Array, b: Array) -> int:
    """Return the coordinate whose entropy term costs most in the box: wanted curvature times squared width."""
    worst = 0
    for j in range(f.shape[0]):
        if f[j] * (b[j] - a[j]) ** 2 > f[worst] * (b[worst] - a[worst]) ** 2:
            worst = j
    return worst
