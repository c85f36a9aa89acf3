"""Compiled kernels: least and greatest entropy over a level set of the likelihood, with proof (theory §2.7).

Notation as in `kernels`. The greatest entropy is one convex program. The least is a concave minimisation, solved
globally by branch and bound over boxes: Newton's method finds a local minimum, and a quadratic underestimator that is
exact there (`boxes`) mostly proves it at once, in one box that provably holds the whole level set; where it does not,
the box is shrunk to what may hold less, and cut.
"""

import numpy as np

from quercus.trees.likelihood.solver.boxes import Bytes, bound_in_box, classes_by_plausibility
from quercus.trees.likelihood.solver.compiled import borrowing, compact, compiled
from quercus.trees.likelihood.solver.cut import entropy_bound, minimise_over_cut
from quercus.trees.likelihood.solver.descent import (
    descend,
    entropy,
    guess_minimum,
    multiplier_at,
    newton_stationary,
    to_boundary,
)
from quercus.trees.likelihood.solver.enclosure import contains, nearest, outer_box, tighten
from quercus.trees.likelihood.solver.kernels import Array, copy_line, loglik

ROUNDING_TOLERANCE = 5e-7  # nats; greatest increase of the tolerance because of rounding in the likelihood
SHRINK_MARGIN = 1e-9  # nats above the reached value that shrinking a box must leave in it
THIN_SIDE = 1e-6  # part of the widest side: a side this short is not cut again after a cut without gain


@borrowing
def has_vertex(P: Array, w: Array, c: float) -> bool:
    """Return whether the level set contains a vertex of the simplex."""
    n, l = P.shape
    for j in range(l):
        total = 0.0
        for i in range(n):
            if P[i, j] <= 0.0:
                total = -np.inf
                break
            total += w[i] * np.log(P[i, j])
        if total >= c:
            return True
    return False


@compiled
def push_node(heap: Array, count: int, node: Array) -> Array:
    """Insert a row into a binary heap of `count` rows ordered by column 0; return the heap, grown if it was full."""
    if count == heap.shape[0]:
        larger = np.empty((2 * count, heap.shape[1]))
        for k in range(count):
            copy_line(heap[k], larger[k])
        heap = larger
    k = count
    while k > 0 and heap[(k - 1) // 2, 0] > node[0]:
        copy_line(heap[(k - 1) // 2], heap[k])
        k = (k - 1) // 2
    copy_line(node, heap[k])
    return heap


@borrowing
def pop_node(heap: Array, count: int, node: Array) -> None:
    """Move the first row of a heap of `count` rows to `node`; ``count - 1`` rows remain."""
    copy_line(heap[0], node)
    last = heap[count - 1]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= count - 1:
            break
        if child + 1 < count - 1 and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if heap[child, 0] >= last[0]:
            break
        copy_line(heap[child], heap[k])
        k = child
    copy_line(last, heap[k])


@compiled
def first_minimum(
    P: Array,
    w: Array,
    order: Bytes,
    c: float,
    inner_c: float,
    top: Array,
    a: Array,
    b: Array,
    theta: Array,
    x: Array,
) -> float:
    """Write a local minimum into `x`, and return its multiplier; shrink the box to the points that may be as good."""
    mu = guess_minimum(P, w, inner_c, theta, x)
    if mu > 0.0:
        return mu
    reached = entropy(x)
    mu = multiplier_at(P, w, x)
    y = np.empty(x.shape[0])
    nearest(a, b, x, y)
    point = np.empty(x.shape[0])
    if mu > 0.0:
        _, _, _, mu = bound_in_box(P, w, order, c, top, a, b, x, mu, y, np.inf, reached + SHRINK_MARGIN)
        to_boundary(P, w, inner_c, theta, y, point)
        if entropy(point) < reached:
            mu = newton_stationary(P, w, inner_c, point, mu)
            if mu > 0.0:
                copy_line(point, x)
                return mu
    _, mu = descend(P, w, c, inner_c, theta, x)
    return mu if mu > 0.0 else 1.0


@compiled
def examine(
    P: Array,
    w: Array,
    order: Bytes,
    c: float,
    inner_c: float,
    theta: Array,
    top: Array,
    x: Array,
    mu: float,
    reached: float,
    tolerance: float,
    node: Array,
) -> tuple[float, float]:
    """Bound the entropy in the box of `node` and look for a better minimum there; return `mu` and `reached`.

    `x`, `mu` and `reached` are the best minimum, its multiplier and its value. What is written into `node` is explained
    in `least_entropy`.
    """
    l = x.shape[0]
    a = node[3 : 3 + l]
    b = node[3 + l :]
    y = np.empty(l)
    point = np.empty(l)
    nearest(a, b, x, y)
    bound, cut, at, m = bound_in_box(
        P, w, order, c, top, a, b, x, mu, y, reached - tolerance, reached + SHRINK_MARGIN
    )
    if bound < reached - tolerance and not contains(a, b, x):
        at = min(max(y[cut], 0.8 * a[cut] + 0.2 * b[cut]), 0.2 * a[cut] + 0.8 * b[cut])
        to_boundary(P, w, inner_c, theta, y, point)
        if entropy(point) < reached - SHRINK_MARGIN:
            value, other = descend(P, w, c, inner_c, theta, point)
            if value < reached:
                reached = value
                copy_line(point, x)
                mu = other if other > 0.0 else 1.0
        elif contains(a, b, point):  # minima often come in groups: look for another one as good
            other = newton_stationary(P, w, inner_c, point, m)
            if other > 0.0 and contains(a, b, point):
                copy_line(point, y)
                new, _, _, _ = bound_in_box(
                    P, w, order, c, top, a, b, point, other, y, reached - tolerance, reached + SHRINK_MARGIN
                )
                bound = max(bound, new)
    if bound <= node[0]:  # no gain: halve the widest side rather than cut a thin one
        widest = 0
        for j in range(1, l):
            if b[j] - a[j] > b[widest] - a[widest]:
                widest = j
        if b[cut] - a[cut] < THIN_SIDE * (b[widest] - a[widest]):
            cut = widest
            at = 0.5 * (a[cut] + b[cut])
    node[0] = max(bound, node[0])
    node[1] = cut
    node[2] = at
    return mu, reached


@compact
def least_entropy(
    P: Array, w: Array, c: float, inner_c: float, theta: Array, worst: float, tolerance: float, effort: int
) -> tuple[float, float, int]:
    """Return the least entropy over the level set, in nats: proven bound, reached value, boxes examined.

    Branch and bound over boxes, best bound first; stops when bound and reached value are within `tolerance`, or after
    `effort` boxes. ``P @ theta`` must be 1 in every row (`theta` the maximiser, `worst` its KKT excess). `c` defines
    the level set of the bound, `inner_c >= c` the one that contains the reached point: rounding in the maximum
    likelihood is accounted for between them.

    A waiting box is one row of a heap: its bound, the coordinate and value to cut it at, its sides ``a`` and ``b``.
    """
    if has_vertex(P, w, inner_c):
        return 0.0, 0.0, 0
    l = P.shape[1]
    node = np.empty(3 + 2 * l)
    top = np.empty(P.shape[0])
    outer_box(P, w, c, theta, worst, node[3 : 3 + l], node[3 + l :], top)
    tighten(node[3 : 3 + l], node[3 + l :])
    x = theta.copy()
    order = classes_by_plausibility(P)
    mu = first_minimum(P, w, order, c, inner_c, top, node[3 : 3 + l], node[3 + l :], theta, x)
    reached = entropy(x)
    # between both levels the entropy differs by mu (inner_c - c): no effort proves more than that
    tolerance = max(tolerance, min(2.0 * mu * (inner_c - c), ROUNDING_TOLERANCE))
    node[0] = 0.0
    parent = node.copy()
    heap = np.empty((16, node.shape[0]))
    count = 0
    examined = 0
    finished = np.inf  # least bound of the boxes that are not cut; `reached` may have decreased since
    sides = 1  # first the whole box, then the two sides of every cut
    while True:
        cut = int(parent[1]) if sides == 2 else 0
        for side in range(sides):
            copy_line(parent, node)
            if sides == 2:
                node[3 + l + cut if side == 0 else 3 + cut] = parent[2]
                if not tighten(node[3 : 3 + l], node[3 + l :]):
                    continue
            examined += 1
            mu, reached = examine(P, w, order, c, inner_c, theta, top, x, mu, reached, tolerance, node)
            if node[0] < reached - tolerance:
                heap = push_node(heap, count, node)
                count += 1
            else:
                finished = min(finished, node[0])
        if count == 0:
            return min(finished, reached), reached, examined
        pop_node(heap, count, parent)
        count -= 1
        if parent[0] >= reached - tolerance or examined + 2 > effort:
            return min(parent[0], finished, reached), reached, examined
        sides = 2


@compiled
def greatest_entropy(P: Array, w: Array, c: float, inner_c: float, theta: Array) -> tuple[float, float]:
    """Return the greatest entropy over the level set, in nats: proven bound and reached value, see `least_entropy`."""
    l = P.shape[1]
    uniform = np.full(l, 1.0 / l)
    if loglik(P, w, uniform) >= inner_c:
        return np.log(l), np.log(l)
    point = np.empty(l)
    to_boundary(P, w, inner_c, theta, uniform, point)
    mu = multiplier_at(P, w, point)
    if mu < 0.0:
        mu = newton_stationary(P, w, inner_c, point, mu)
        if mu < 0.0:
            reached = entropy(point)
            bound = entropy_bound(P, w, c, point, -mu)
            # the part between both levels cannot be proved
            if bound - reached <= 1e-11 - 2.0 * mu * (inner_c - c):
                return min(bound, np.log(l)), reached
    to_boundary(P, w, inner_c, theta, uniform, point)
    start = np.empty(l)
    for j in range(l):
        start[j] = 0.5 * theta[j] + 0.5 * point[j]
    bound, _ = minimise_over_cut(P, w, c, np.empty(0), np.zeros(l), np.ones(l), start, np.inf)
    to_boundary(P, w, inner_c, theta, start, point)
    # the guess already lies on the boundary; the ray only repairs rounding, and may not lower the entropy
    reached = max(entropy(point), entropy(start) if loglik(P, w, start) >= inner_c else 0.0)
    return min(-bound, np.log(l)), reached
