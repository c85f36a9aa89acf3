"""Compiled kernels: a convex quadratic below the entropy, over a level set in a box (theory §2.6).

Notation as in `kernels`; ``h(t) = -t ln t``, so that the entropy is ``H(t) = sum_j h(t_j)``. Around a point ``y`` of
the box, with a multiplier ``mu >= 0``, three inequalities hold on the level set within the box (``d = t - y``):

- ``-l(t) >= -l(y) - g . d + d' K d / 2`` with ``K = sum_i w_i p_i p_i' / (v_i^2 (1 + 2/3 U_i))``, where ``1 + U_i``
  bounds ``p_i . t / v_i``: because ``u - ln(1 + u) >= u^2 / (2 + 4/3 U)`` for ``u <= U``, ``U >= 0``;
- ``h(t_j) >= E_j(y_j) + E_j'(y_j) d_j - f_j d_j^2 / 2`` with ``E_j`` the convex envelope of
  ``h(t) + f_j (t - y_j)^2 / 2`` over ``[a_j, b_j]``, for any curvature ``f_j`` (a chord where ``f_j`` is small: Falk,
  Soland 1969);
- ``(s - s_lo) (s - s_hi) <= 0`` for ``s = g(x) . (t - x)`` at any ``x``, with ``s_lo >= c - l(x)`` because ``l`` is
  concave.

Together, since ``l(t) >= c``, they bound the entropy from below by

    ``sum_j h(t_j) - (1 - phi) mu (l(t) - c) + kappa (s - s_lo) (s - s_hi) >= base + r . d + d' A d / 2,``
    ``A = (1 - phi) mu K + 2 kappa g(x) g(x)' - diag(f)``,

a quadratic that is convex when ``f`` is small enough, so that its tangent at a near-minimiser is a proof. ``E_j``
touches ``h`` at ``y_j`` itself as soon as ``f_j >= least_curvature(y_j, a_j)``, which is at most ``2 / y_j`` however
near 0 the box reaches: where ``y`` is a local minimum with multiplier ``mu`` and A is then convex, the bound is the
minimum itself. ``phi`` moves curvature from the directions along the boundary of the level set, where a minimum has it
to spare, to the one across.
"""

from typing import NamedTuple

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled, reordered
from quercus.trees.likelihood.solver.curvature import choose_curvature, envelope, wanted_curvature
from quercus.trees.likelihood.solver.cut import least_linear
from quercus.trees.likelihood.solver.kernels import Array, copy_line


class Workspace(NamedTuple):
    """Working space and results of `bound_at`, from which its callers continue.

    Attributes
    ----------
    K, M, A : (l, l) curvature of the likelihood; of the quadratic before ``diag(f)``; of the quadratic
    e, f : (l,) wanted and affordable curvature of each class
    g, r : (l,) gradient of the likelihood, and of the quadratic, at ``y``
    z, q : (l,) minimiser of the quadratic, and its gradient there
    """

    K: Array
    M: Array
    A: Array
    e: Array
    f: Array
    g: Array
    r: Array
    z: Array
    q: Array


@compiled
def scratch_for(l: int) -> Workspace:
    """Return the working space for `l` classes."""
    square = np.empty((3, l, l))
    line = np.empty((6, l))
    return Workspace(square[0], square[1], square[2], line[0], line[1], line[2], line[3], line[4], line[5])


@reordered
def expand(T: Array, w: Array, y: Array, V: Array, g: Array, K: Array) -> float:
    """Write gradient `g` and curvature `K` (lower triangle) of the first inequality above; return ``l(y)``.

    `T` (l, n) is ``P`` transposed, `V` (n,) bounds ``P @ t``. Minus infinity where some ``p_i . y`` is 0.
    """
    l, n = T.shape
    v = np.zeros(n)
    s = np.empty(n)
    for j in range(l):
        for i in range(n):
            v[i] += T[j, i] * y[j]
    value = 0.0
    for i in range(n):
        if not v[i] > 0.0:
            return -np.inf
        value += w[i] * np.log(v[i])
    for i in range(n):
        r = w[i] / v[i]
        s[i] = r / (v[i] + 2.0 / 3.0 * max(V[i] - v[i], 0.0))
        v[i] = r
    for j in range(l):
        total = 0.0
        for i in range(n):
            total += v[i] * T[j, i]
        g[j] = total
    for j in range(l):
        for i in range(n):
            v[i] = s[i] * T[j, i]
        for k in range(j + 1):
            total = 0.0
            for i in range(n):
                total += v[i] * T[k, i]
            K[j, k] = total
    return value


@borrowing
def settle_in_box(A: Array, g: Array, a: Array, b: Array, y: Array) -> None:
    """Move `y` towards the minimum, over simplex and box, of the quadratic with gradient `g` there and curvature `A`.

    Pairs of coordinates exchange probability, the pair with the largest gain first.
    """
    l = g.shape[0]
    for _ in range(8 * l):
        up = -1
        down = -1
        for j in range(l):
            if y[j] < b[j] and (up < 0 or g[j] < g[up]):
                up = j
            if y[j] > a[j] and (down < 0 or g[j] > g[down]):
                down = j
        if up < 0 or down < 0 or not g[down] - g[up] > 1e-12:
            return
        curvature = A[up, up] + A[down, down] - 2.0 * A[up, down]
        t = min(b[up] - y[up], y[down] - a[down])
        if curvature * t > g[down] - g[up]:
            t = (g[down] - g[up]) / curvature
            y[up] += t
            y[down] -= t
        elif b[up] - y[up] < y[down] - a[down]:
            y[up] = b[up]
            y[down] -= t
        else:
            y[up] += t
            y[down] = a[down]
        for j in range(l):
            g[j] += t * (A[j, up] - A[j, down])


@borrowing
def minimise_quadratic(
    A: Array, r: Array, push: float, g: Array, a: Array, b: Array, y: Array, z: Array, q: Array
) -> None:
    """Move `z` to the minimum of ``(r - push g) . d + d' A d / 2``, ``d = z - y``, over simplex and box.

    `q` receives the gradient there.
    """
    l = r.shape[0]
    for j in range(l):
        q[j] = r[j] - push * g[j]
        for k in range(l):
            q[j] += A[j, k] * (z[k] - y[k])
    settle_in_box(A, q, a, b, z)
    for j in range(l):  # computed anew: the exchanges accumulate rounding
        q[j] = r[j] - push * g[j]
        for k in range(l):
            q[j] += A[j, k] * (z[k] - y[k])


@borrowing
def next_multiplier(
    A: Array,
    r: Array,
    g: Array,
    K: Array,
    short: float,
    mu: float,
    a: Array,
    b: Array,
    y: Array,
    z: Array,
    q: Array,
) -> float:
    """Return the multiplier that may put the quadratic's minimiser on the level set, by one step of the secant method.

    `z` moves from the minimiser of the quadratic to that with another multiplier. `short` is ``c - l(y)``; ``l`` is
    approximated by its expansion at `y`. This is only a guess: any multiplier gives a bound, and further steps gain
    little.
    """
    l = r.shape[0]
    gain = 0.0
    target = short
    for j in range(l):
        gain += g[j] * (z[j] - y[j])
        for k in range(l):
            target += 0.5 * K[max(j, k), min(j, k)] * (z[j] - y[j]) * (z[k] - y[k])
    missed = gain - target
    m = mu * (1.3 if missed < 0.0 else 0.75)
    minimise_quadratic(A, r, m - mu, g, a, b, y, z, q)
    gain = -target
    for j in range(l):
        gain += g[j] * (z[j] - y[j])
    if gain == missed:
        return m * (1.5 if gain < 0.0 else 0.6)
    return min(max(m - gain * (m - mu) / (gain - missed), 0.2 * mu), 5.0 * mu)


@borrowing
def underestimate(
    y: Array,
    a: Array,
    b: Array,
    f: Array,
    M: Array,
    slope: float,
    g: Array,
    push: float,
    gx: Array,
    A: Array,
    r: Array,
) -> float:
    """Write curvature `A` and gradient `r` at `y` of the quadratic; return the sum of the envelopes at `y`.

    `slope` and `push` are the factors of ``g(y)`` and ``g(x)`` in the gradient, `M` the curvature without ``diag(f)``.
    """
    total = 0.0
    for j in range(y.shape[0]):
        here, rise = envelope(f[j], y[j], a[j], b[j])
        total += here
        r[j] = rise + slope * g[j] + push * gx[j]
        for k in range(j + 1):
            A[j, k] = A[k, j] = M[j, k]
        A[j, j] -= f[j]
    return total


@borrowing
def bound_at(
    T: Array,
    w: Array,
    c: float,
    V: Array,
    a: Array,
    b: Array,
    gx: Array,
    origin: float,
    s_lo: float,
    s_hi: float,
    y: Array,
    m: float,
    exact: bool,
    scratch: Workspace,
) -> tuple[float, float, float]:
    """Bound the entropy by one quadratic, around `y` and with multiplier `m`.

    Returns the bound, the quadratic at its minimiser, and ``l(y)``. With `exact` the bound must not lose anything at
    `y`: it is minus infinity if no convex quadratic allows that.
    """
    K, M, A, e, f, g, r, z, q = scratch
    l = y.shape[0]
    value = expand(T, w, y, V, g, K)
    if value == -np.inf:
        return -np.inf, -np.inf, value
    wanted_curvature(y, a, b, m, g, exact, e)
    tau, phi, kappa = choose_curvature(m, K, gx, s_hi - s_lo, e, a, b, exact, M, f, A)
    if tau == np.inf:
        return -np.inf, -np.inf, value
    s = -origin
    for j in range(l):
        s += gx[j] * y[j]
    push = kappa * (2.0 * s - s_lo - s_hi)
    above = underestimate(y, a, b, f, M, -(1.0 - phi) * m, g, push, gx, A, r)
    above += kappa * (s - s_lo) * (s - s_hi) - (1.0 - phi) * m * (value - c)
    copy_line(y, z)
    minimise_quadratic(A, r, 0.0, g, a, b, y, z, q)
    bound = least_linear(q, a, b)
    for j in range(l):
        above += 0.5 * (r[j] + q[j]) * (z[j] - y[j])  # now at z
        bound -= q[j] * z[j]
    return bound + above, above, value
