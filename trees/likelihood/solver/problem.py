"""Compiled kernels: whole entropy-interval problems, one after another, without Python in between (theory §2.3).

Notation as in `kernels`. A problem is a count vector over a table of distinct contours, scaled to maximum 1, none of
them constant. Simple cases come first: a vertex inside the level set makes the minimum 0, and the uniform point
inside it the maximum ``ln l``; precise labels have a solution with one parameter (`precise`).
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.boxes import bound_in_box, classes_by_plausibility
from quercus.trees.likelihood.solver.cells import ends_of_counts
from quercus.trees.likelihood.solver.compiled import compact, compiled
from quercus.trees.likelihood.solver.descent import entropy, guess_minimum, multiplier_at
from quercus.trees.likelihood.solver.enclosure import outer_box, tighten
from quercus.trees.likelihood.solver.kernels import Array, copy_line, factor, kkt_excess, maximise, sum_of
from quercus.trees.likelihood.solver.precise import (
    CURVE_STEPS,
    LOG_ROUNDING,
    SHARP_PRECISE,
    least_entropy_of_counts,
)
from quercus.trees.likelihood.solver.reduction import (
    Ints,
    Shorts,
    is_precise,
    precise_counts,
    rescale_rows,
    take_problem,
    without_dominated,
)
from quercus.trees.likelihood.solver.rounding_bounds import (
    KNOWN_ENTROPY,
    level_error,
    near_ends,
    rounding,
    sure_excess,
)
from quercus.trees.likelihood.solver.search import SHRINK_MARGIN, greatest_entropy, least_entropy
from quercus.trees.likelihood.solver.separable import WORK_ROWS, maximise_separable, separable_counts
from quercus.trees.likelihood.solver.sets import solve_separable

TOLERANCE = 2e-10  # nats; the proof is driven to this unless the effort is spent first
SOLVED, SEARCH, MAXIMISERS = 0, 1, 2  # states of a problem
FINE = 1e-14  # KKT excess of a maximiser in closed form that is good enough
SHARP_GENERAL = 8.0  # rounding errors; a cut nearer to the maximum is searched no further than its ellipsoid
NEAR_MAXIMUM = 1e-3  # part of the weight, nats at most; a nearer cut gets few boxes if they prove enough
BLURRED = 1e4  # rounding errors of the likelihood; a nearer cut gets no more boxes in any case
NO_SEARCH = -1  # boxes
FEW_BOXES = 100  # boxes; more of them fight rounding


@compiled
def is_certainly_unique(P: Array, w: Array, theta: Array) -> bool:
    """Return whether, in simple cases, no other maximiser exists (False: unknown)."""
    n, l = P.shape
    g = np.empty(l)
    kkt_excess(P, w, theta, g)
    m = 0
    for j in range(l):
        if g[j] >= 1.0 - 1e-6:
            m += 1
    A = np.zeros((m, m))
    r = 0
    for j in range(l):
        if g[j] < 1.0 - 1e-6:
            continue
        s = 0
        for k in range(j + 1):
            if g[k] < 1.0 - 1e-6:
                continue
            for i in range(n):
                A[r, s] += P[i, j] * P[i, k]
            A[r, s] += 1.0
            s += 1
        r += 1
    largest = 0.0
    for r in range(m):
        largest = max(largest, A[r, r])
    factor(A)
    smallest = np.inf
    for r in range(m):
        smallest = min(smallest, A[r, r])
        if A[r, r] > 1e60:  # the factor marks a zero pivot in this way
            return False
    return smallest * smallest > 1e-9 * largest


@compiled
def first_bound(
    Q: Array, w: Array, outer: float, inner: float, x: Array, worst: float, tight: bool
) -> tuple[float, float]:
    """Return a lower bound of the entropy over the level set from one box around it, and an entropy reached (nats).

    If both agree, no search is needed, as in most problems with 30 labels or more. `x` is the maximiser,
    ``Q @ x`` 1 in every row; `outer` and `inner` enclose ``ln alpha``; `worst` is the KKT excess of `x`. A guess
    that Newton's method cannot mend is used only if `tight`.
    """
    n, l = Q.shape
    for j in range(l):
        value = 0.0
        for i in range(n):
            value += w[i] * np.log(Q[i, j]) if Q[i, j] > 0.0 else -np.inf
        if value >= inner:
            return 0.0, 0.0
    a = np.empty(l)
    b = np.empty(l)
    top = np.empty(n)
    outer_box(Q, w, outer, x, worst, a, b, top)
    tighten(a, b)
    y = x.copy()
    mu = guess_minimum(Q, w, inner, x, y)
    reached = entropy(y)
    if not mu > 0.0 and tight:
        mu = multiplier_at(Q, w, y)
    if not mu > 0.0:
        return 0.0, reached
    bound, _, _, _ = bound_in_box(
        Q,
        w,
        classes_by_plausibility(Q),
        outer,
        top,
        a,
        b,
        y,
        mu,
        y.copy(),
        reached - TOLERANCE,
        reached + SHRINK_MARGIN,
    )
    return min(max(bound, 0.0), reached), reached


@compiled
def solve_problem(
    P: Array, w: Array, theta: Array, worst: float, alpha: float, tight: bool, ends: Array
) -> int:
    """Write lower bound, reached least, reached greatest entropy and upper bound (nats) into `ends`; return the state.

    The bounds are always valid. The state is `SOLVED`; or `SEARCH` if the first two are left to `search_counts`; or
    `MAXIMISERS` if there may be many maximisers and the cut is so near to them that only `maximisers` can decide.
    """
    c = np.log(alpha)
    all_precise = is_precise(P)
    if all_precise:
        n = precise_counts(P, w)
        slack = sum_of(n) * LOG_ROUNDING * (n.shape[0] + 4)
        if c == 0.0 or -c > SHARP_PRECISE * slack:
            ends_of_counts(n, P.shape[1] - n.shape[0], c - slack, c + slack, ends)
            return SOLVED
    scaled = rescale_rows(P, theta)
    W = sum_of(w)
    worst = sure_excess(scaled, w, theta, worst, c)
    error = W * (worst + rounding(P.shape[1]))
    if -c <= SHARP_GENERAL * error:
        near_ends(scaled, w, c, W * worst, theta, ends)
        return SOLVED if all_precise or is_certainly_unique(scaled, w, theta) else MAXIMISERS
    outer = c - W * level_error(scaled, w, theta, worst, c)
    inner = c + error
    ends[3], ends[2] = greatest_entropy(scaled, w, outer, inner, theta)
    ends[0] = ends[1] = 0.0
    Q, x = without_dominated(scaled, theta)
    if x.shape[0] == 1:
        return SOLVED
    if is_precise(Q):
        ends[0], ends[1] = least_entropy_of_counts(precise_counts(Q, w), outer, inner, TOLERANCE, CURVE_STEPS)
        return SOLVED
    worst = sure_excess(Q, w, x, kkt_excess(Q, w, x, np.empty(x.shape[0])), c)
    inner = max(inner, c + W * (worst + rounding(P.shape[1])))
    ends[0], ends[1] = first_bound(Q, w, outer, inner, x, worst, tight)
    return SOLVED if ends[0] >= ends[1] - TOLERANCE else SEARCH


@compiled
def cell_kkt_excess(
    table: Array, columns: Shorts, counts: Array, first: int, last: int, theta: Array
) -> float:
    """Return the KKT excess of `theta`, as `kernels.kkt_excess` does, without the likelihood itself."""
    l = theta.shape[0]
    W = 0.0
    top = 0.0
    g = np.zeros(l)
    for e in range(first, last):
        v = 0.0
        for j in range(l):
            v += table[columns[e], j] * theta[j]
        W += counts[e]
        for j in range(l):
            g[j] += table[columns[e], j] * (counts[e] / v)
    for j in range(l):
        if not g[j] < np.inf:
            return np.inf
        top = max(top, g[j] / W - 1.0)
    return top


@compact
def estimate_counts(
    table: Array, start: Ints, columns: Shorts, counts: Array, wanted: Ints, found: Array
) -> None:
    """Find the maximisers of the problems `wanted` of a sparse table of counts.

    Parameters
    ----------
    table : (d, l) distinct informative contours, scaled to maximum 1
    start, columns, counts : the rows of the table in each problem, and their counts, as in `Cells`
    found : (m, l + 2), receives theta, its KKT excess, and 1 if theta is certainly the only maximiser
    """
    l = table.shape[1]
    n, m, theta = np.empty(l), np.empty(l), np.empty(l)
    for i in range(wanted.shape[0]):
        first = start[wanted[i]]
        last = start[wanted[i] + 1]
        if separable_counts(table, columns, counts, first, last, n, m) and maximise_separable(n, m, theta):
            found[i, l] = cell_kkt_excess(table, columns, counts, first, last, theta)
            if found[i, l] <= FINE:
                copy_line(theta, found[i, :l])
                found[i, l + 1] = 1.0
                continue
        P, w = take_problem(table, start, columns, counts, wanted[i])
        if P.shape[0] == 0 or is_precise(P):
            for j in range(l + 2):
                found[i, j] = 0.0
        if P.shape[0] == 0:
            continue
        if is_precise(P):
            for k in range(P.shape[0]):
                for j in range(l):
                    if P[k, j] > 0.0:
                        found[i, j] += w[k]
            total = sum_of(w)
            for j in range(l):
                found[i, j] /= total
            found[i, l + 1] = 1.0
        else:
            theta, worst = maximise(P, w)
            copy_line(theta, found[i, :l])
            found[i, l] = worst
            found[i, l + 1] = 1.0 if is_certainly_unique(rescale_rows(P, theta), w, theta) else 0.0


@compiled
def search_counts(
    table: Array,
    start: Ints,
    columns: Shorts,
    counts: Array,
    wanted: Ints,
    estimates: Array,
    alpha: float,
    effort: int,
    ends: Array,
) -> int:
    """Write lower bound and reached least entropy of problems that `solve_counts` left; return the boxes examined."""
    l = table.shape[1]
    examined = 0
    for i in range(wanted.shape[0]):
        P, w = take_problem(table, start, columns, counts, wanted[i])
        W = sum_of(w)
        c = np.log(alpha)
        Q, x = without_dominated(rescale_rows(P, estimates[i, :l]), estimates[i, :l])
        worst = sure_excess(Q, w, x, kkt_excess(Q, w, x, np.empty(x.shape[0])), c)
        outer = c - W * level_error(Q, w, x, worst, c)
        error = W * (max(worst, estimates[i, l]) + rounding(l))
        blurred = -c <= BLURRED * error
        few = blurred or -c <= NEAR_MAXIMUM * min(W, 1.0)
        most = min(effort, FEW_BOXES) if few else effort
        low, reached, boxes = least_entropy(Q, w, outer, c + error, x, worst, TOLERANCE, most)
        examined += boxes
        if few and not blurred and reached - low > KNOWN_ENTROPY and effort > most:
            low, reached, boxes = least_entropy(Q, w, outer, c + error, x, worst, TOLERANCE, effort)
            examined += boxes
        ends[i, 0] = max(ends[i, 0], low)
        ends[i, 1] = max(reached, ends[i, 0])
    return examined


@compact
def solve_counts(
    table: Array,
    start: Ints,
    columns: Shorts,
    counts: Array,
    wanted: Ints,
    estimates: Array,
    alpha: float,
    tight: bool,
    effort: int,
    ends: Array,
    states: NDArray[np.int8],
) -> int:
    """Solve the problems `wanted` into `ends` (m, 4) and `states` (m,), see `solve_problem`, from their `estimates`.

    With an `effort` other than `NO_SEARCH`, search the remaining problems instead (`search_counts`), and return the
    boxes examined: both call the same large kernels, which are compiled once in one entry.
    """
    if effort != NO_SEARCH:
        return search_counts(table, start, columns, counts, wanted, estimates, alpha, effort, ends)
    l = table.shape[1]
    n, m, work = np.empty(l), np.empty(l), np.empty((WORK_ROWS, l))
    for i in range(wanted.shape[0]):
        first = start[wanted[i]]
        last = start[wanted[i] + 1]
        if first == last or alpha == 0.0:  # constant contours only: no information
            ends[i, 0] = ends[i, 1] = 0.0
            ends[i, 2] = ends[i, 3] = np.log(l)
            states[i] = SOLVED
        elif separable_counts(table, columns, counts, first, last, n, m) and solve_separable(
            n, m, alpha, estimates[i, :l], ends[i], work
        ):
            states[i] = SOLVED
        else:
            P, w = take_problem(table, start, columns, counts, wanted[i])
            states[i] = solve_problem(P, w, estimates[i, :l], estimates[i, l], alpha, tight, ends[i])
    return 0
