"""Compiled kernels: least and greatest entropy over a level set of the evidential likelihood, with proof.

Notation as in `kernels`. The greatest entropy is one convex program. The least is a concave minimisation, solved
globally by branch and bound over boxes. A descent finds the minimum early; on a box around it a Lagrangian that is
convex there proves it at once (`convex_bound`: most problems end with this, in one box that provably holds the whole
level set); elsewhere chords are the underestimators (Falk, Soland 1969).
"""

import numpy as np

from quercus.trees.solver.boxes import (
    chord_bound,
    contains,
    convex_bound,
    cut_beside,
    locally_convex,
    nearest,
    outer_box,
    tighten,
)
from quercus.trees.solver.compiled import compiled
from quercus.trees.solver.cut import entropy_bound, minimise_over_cut
from quercus.trees.solver.descent import descend, entropy, leap, multiplier_at, settle, to_boundary
from quercus.trees.solver.kernels import Array, loglik

ROUNDING = 5e-7  # nats; the most that rounding in the likelihood may loosen the tolerance


@compiled
def least_entropy(
    P: Array, w: Array, c: float, inner_c: float, theta: Array, worst: float, tolerance: float, effort: int
) -> tuple[float, float, int]:
    """Global minimum of the entropy over the level set, in nats: proven bound, reached value, boxes examined.

    Branch and bound over boxes: the box around the best local minimum by `convex_bound`, the others by `chord_bound`;
    best bound first; stops when bound and reached value are within `tolerance`, or after `effort` boxes.
    ``P @ theta`` must be 1 in every row (`theta` the maximiser, `worst` its KKT excess). `c` defines the level set that
    the bound holds for, `inner_c >= c` the one that the reached point lies in: rounding in the maximum likelihood is
    accounted for between them.
    """
    l = P.shape[1]
    for j in range(l):
        total = 0.0
        for i in range(P.shape[0]):
            if P[i, j] <= 0.0:
                total = -np.inf
                break
            total += w[i] * np.log(P[i, j])
        if total >= inner_c:
            return 0.0, 0.0, 0
    a = np.empty(l)
    b = np.empty(l)
    top = np.empty(P.shape[0])
    outer_box(P, w, c, theta, worst, a, b, top)
    tighten(a, b)
    x = theta.copy()
    mu = leap(P, w, inner_c, theta, x)
    if mu > 0.0:  # whatever way it was found: if it can be proved, that is it
        reached = entropy(x)
        bound, cut = convex_bound(P, w, c, a, b, top, x, mu, x.copy())
        if bound >= reached - tolerance:
            return min(max(bound, 0.0), reached), reached, 1
    x[:] = theta
    reached, mu = descend(P, w, c, inner_c, theta, x)
    # between both levels the entropy differs by mu (inner_c - c): no effort proves more than that
    tolerance = max(tolerance, min(2.0 * mu * (inner_c - c), ROUNDING))
    bound, cut = convex_bound(P, w, c, a, b, top, x, mu, x.copy())
    if bound >= reached - tolerance or effort < 3:
        return min(max(bound, 0.0), reached), reached, 1
    A = np.empty((effort + 2, l))
    B = np.empty((effort + 2, l))
    bounds = np.empty(effort + 2)
    cuts = np.empty(effort + 2, np.int64)
    points = np.empty(effort + 2)
    guess = np.empty(l)
    point = np.empty(l)
    A[0] = a
    B[0] = b
    convex = locally_convex(P, w, c, x, mu)
    at = cut_beside(a[cut], b[cut], x[cut])
    if not convex:
        other, cut, at = chord_bound(P, w, c, a, b, guess, reached - tolerance)
        bound = max(bound, other)
    bounds[0] = max(bound, 0.0)
    cuts[0] = cut
    points[0] = at
    count = 1
    examined = 1
    while count > 0:
        first = 0
        for k in range(1, count):
            if bounds[k] < bounds[first]:
                first = k
        if bounds[first] >= reached - tolerance or examined + 2 > effort:
            return min(bounds[first], reached), reached, examined
        a0 = A[first].copy()
        b0 = B[first].copy()
        parent = bounds[first]
        j = cuts[first]
        at = points[first]
        count -= 1
        A[first] = A[count]
        B[first] = B[count]
        bounds[first] = bounds[count]
        cuts[first] = cuts[count]
        points[first] = points[count]
        for side in range(2):
            a[:] = a0
            b[:] = b0
            if side == 0:
                b[j] = at
            else:
                a[j] = at
            if not tighten(a, b):
                continue
            examined += 1
            if contains(a, b, x):
                bound, cut = convex_bound(P, w, c, a, b, top, x, mu, x.copy())
                at_next = cut_beside(a[cut], b[cut], x[cut])
            else:
                nearest(a, b, x, guess)
                bound, cut = convex_bound(P, w, c, a, b, top, x, mu, guess)
                at_next = 0.5 * (a[cut] + b[cut])
            if bound < reached - tolerance:
                other, cut_chord, at_chord = chord_bound(P, w, c, a, b, guess, reached - tolerance)
                if not (convex and contains(a, b, x)) or other > bound:
                    cut = cut_chord
                    at_next = at_chord
                bound = max(bound, other)
                if bound == np.inf:
                    continue
                to_boundary(P, w, inner_c, theta, guess, point)
                if entropy(point) < reached - 1e-9:
                    value, multiplier = descend(P, w, c, inner_c, theta, point)
                    if value < reached:
                        reached = value
                        mu = multiplier
                        x[:] = point
                        convex = locally_convex(P, w, c, x, mu)
                if bound < reached - tolerance:
                    other, cut_local = local_bound(P, w, c, inner_c, a, b, top, point, guess)
                    if other > bound:
                        bound = other
                        cut = cut_local
                        at_next = cut_beside(a[cut], b[cut], guess[cut])
            bound = max(bound, parent)
            if bound < reached - tolerance:
                A[count] = a
                B[count] = b
                bounds[count] = bound
                cuts[count] = cut
                points[count] = at_next
                count += 1
    return reached - tolerance, reached, examined


@compiled
def local_bound(
    P: Array, w: Array, c: float, inner_c: float, a: Array, b: Array, top: Array, point: Array, y: Array
) -> tuple[float, int]:
    """As `convex_bound`, from the local minimum near `point` rather than the best one: minima often come in families.

    `point` receives the local minimum, `y` the last point of the box whose tangent was taken.
    """
    mu = multiplier_at(P, w, point)
    if not mu > 0.0:
        return -np.inf, 0
    mu = max(settle(P, w, inner_c, point, mu), 0.0) or mu
    nearest(a, b, point, y)
    return convex_bound(P, w, c, a, b, top, point, mu, y)


@compiled
def greatest_entropy(P: Array, w: Array, c: float, inner_c: float, theta: Array) -> tuple[float, float]:
    """Greatest entropy over the level set, in nats: proven bound and reached value (parameters as `least_entropy`)."""
    l = P.shape[1]
    uniform = np.full(l, 1.0 / l)
    if loglik(P, w, uniform) >= inner_c:
        return np.log(l), np.log(l)
    point = np.empty(l)
    to_boundary(P, w, inner_c, theta, uniform, point)
    mu = multiplier_at(P, w, point)
    if mu < 0.0:
        mu = settle(P, w, inner_c, point, mu)
        if mu < 0.0:
            reached = entropy(point)
            bound = entropy_bound(P, w, c, point, -mu)
            if bound - reached <= 1e-11:
                return min(bound, np.log(l)), reached
    to_boundary(P, w, inner_c, theta, uniform, point)
    start = 0.5 * theta + 0.5 * point
    bound, _ = minimise_over_cut(P, w, c, np.empty(0), np.zeros(l), np.ones(l), start, np.inf)
    to_boundary(P, w, inner_c, theta, start, point)
    # the guess already lies on the boundary; the ray only repairs rounding, and may not lower the entropy
    reached = max(entropy(point), entropy(start) if loglik(P, w, start) >= inner_c else 0.0)
    return min(-bound, np.log(l)), reached
