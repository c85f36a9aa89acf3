"""Compiled kernels: whole entropy-interval problems, one after another, without Python in between (ALGORITHMS §2).

Notation as in `kernels`. A problem is a count vector over a table of distinct contours, scaled to maximum 1, none of
them constant. What can be told without computing is told first: a vertex inside the level set makes the minimum 0, the
uniform point inside it the maximum ``ln l``; precise labels have a solution of one parameter (`precise`).
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.solver.boxes import outer_box
from quercus.trees.solver.compiled import compiled, inlined
from quercus.trees.solver.descent import entropy
from quercus.trees.solver.kernels import Array, excess, factor, maximise
from quercus.trees.solver.precise import least_entropy_of_counts
from quercus.trees.solver.search import greatest_entropy, least_entropy

EPS = 4e-16  # rounding of one term of the log-likelihood, relative to its weight
TOLERANCE = 2e-10  # nats; the proof is driven to this unless the effort is spent first
SOLVED, SEARCH, MAXIMISERS = 0, 1, 2  # states of a problem
SHARP = 16.0  # a cut nearer to the maximum than this many rounding errors is searched no further than its box


@compiled
def undominated(P: Array) -> NDArray[np.bool_]:
    """Mark the classes that the minimum needs: no other is as plausible in every row (of equals, the first stays).

    Moving the probability of a dominated class onto the class that dominates it loses no likelihood and, since
    ``-x ln x`` is subadditive, no entropy is gained.
    """
    n, l = P.shape
    keep = np.ones(l, np.bool_)
    for j in range(l):
        for k in range(l):
            if k == j or not keep[k]:
                continue
            below = True
            equal = True
            for i in range(n):
                if P[i, j] > P[i, k]:
                    below = False
                    break
                if P[i, j] < P[i, k]:
                    equal = False
            if below and (not equal or k < j):
                keep[j] = False
                break
    return keep


@compiled
def is_precise(P: Array) -> bool:
    """Tell whether every row leaves one class."""
    n, l = P.shape
    for i in range(n):
        some = 0
        for j in range(l):
            if P[i, j] > 0.0:
                some += 1
        if some > 1:
            return False
    return True


@compiled
def sort_down(x: Array) -> None:
    """Sort a short array in place, largest first (insertion; `np.sort` would cost seconds of compilation)."""
    for i in range(1, x.shape[0]):
        value = x[i]
        k = i
        while k > 0 and x[k - 1] < value:
            x[k] = x[k - 1]
            k -= 1
        x[k] = value


@compiled
def rescale(P: Array, theta: Array) -> Array:
    """Return the rows divided by ``p . theta``, so that ``P @ theta`` is 1 and ``l(theta)`` 0."""
    n, l = P.shape
    scaled = np.empty((n, l))
    for i in range(n):
        v = 0.0
        for j in range(l):
            v += P[i, j] * theta[j]
        for j in range(l):
            scaled[i, j] = P[i, j] / v
    return scaled


@compiled
def without_dominated(P: Array, theta: Array) -> tuple[Array, Array]:
    """Return the columns of the undominated classes (n, m), and what `theta` gives them (m,)."""
    keep = undominated(P)
    n, l = P.shape
    m = 0
    for j in range(l):
        m += keep[j]
    Q = np.empty((n, m))
    x = np.empty(m)
    s = 0
    for j in range(l):
        if keep[j]:
            for i in range(n):
                Q[i, s] = P[i, j]
            x[s] = theta[j]
            s += 1
    return Q, x


@compiled
def take(table: Array, counts: Array, P: Array, w: Array) -> int:
    """Copy the contours that occur, and how often, into `P` and `w`; return how many they are."""
    n = 0
    for i in range(table.shape[0]):
        if counts[i] > 0.0:
            for j in range(table.shape[1]):
                P[n, j] = table[i, j]
            w[n] = counts[i]
            n += 1
    return n


@compiled
def is_certainly_unique(P: Array, w: Array, theta: Array) -> bool:
    """Tell, in the plain cases, that no other maximiser exists (False: not known)."""
    n, l = P.shape
    g = np.empty(l)
    excess(P, w, theta, g)
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
        if A[r, r] > 1e60:  # the factor's mark of a vanished pivot
            return False
    return smallest * smallest > 1e-9 * largest


@compiled
def wobble(P: Array, w: Array, theta: Array, slack: float, widest: float) -> float:
    """How far the entropy (nats) may move within the box that holds all points with ``l >= l(theta) - slack``.

    Only sides narrower than `widest` are counted: where the maximiser is not unique the box is wide in the free
    directions, and the caller answers for these. With `widest` above 1 the answer is a proof.
    """
    l = theta.shape[0]
    a = np.empty(l)
    b = np.empty(l)
    outer_box(P, w, -max(slack, EPS * w.sum()), theta, 0.0, a, b, np.empty(P.shape[0]))
    total = 0.0
    for j in range(l):
        if b[j] - a[j] < widest:
            here = -theta[j] * np.log(theta[j]) if theta[j] > 0.0 else 0.0
            at_a = -a[j] * np.log(a[j]) if a[j] > 0.0 else 0.0
            at_b = -b[j] * np.log(b[j]) if b[j] > 0.0 else 0.0
            peak = np.exp(-1.0) if a[j] < np.exp(-1.0) < b[j] else max(at_a, at_b)
            total += max(peak - here, here - min(at_a, at_b))
    return total


@inlined
def solve_problem(P: Array, w: Array, alpha: float, ends: Array) -> int:
    """Write lower bound, reached least, reached greatest entropy and upper bound (nats) into `ends`; return the state.

    `SOLVED`; or `SEARCH` where the first two are left to `search_counts`; or `MAXIMISERS` where the maximisers may be
    many and the cut is so near to them that only `maximisers` can tell.
    """
    theta, worst = maximise(P, w)
    scaled = rescale(P, theta)
    error = w.sum() * (worst + EPS)
    c = np.log(alpha)
    if -c <= SHARP * error:
        move = 0.0 if is_precise(P) and c == 0.0 else wobble(scaled, w, theta, error - c, 2.0)
        ends[1] = ends[2] = entropy(theta)
        ends[0] = ends[1] - move
        ends[3] = ends[2] + move
        return SOLVED if is_precise(P) or is_certainly_unique(scaled, w, theta) else MAXIMISERS
    outer = c - w.sum() * EPS
    inner = c + error
    ends[3], ends[2] = greatest_entropy(scaled, w, outer, inner, theta)
    ends[0] = ends[1] = 0.0
    Q, x = without_dominated(scaled, theta)
    if x.shape[0] == 1:
        return SOLVED
    if not is_precise(Q):
        return SEARCH
    counts = np.zeros(x.shape[0])
    for i in range(Q.shape[0]):
        for s in range(x.shape[0]):
            if Q[i, s] > 0.0:
                counts[s] += w[i]
    sort_down(counts)
    ends[0], ends[1] = least_entropy_of_counts(counts, outer, inner, TOLERANCE)
    return SOLVED


@compiled
def solve_counts(table: Array, counts: Array, alpha: float, ends: Array, states: NDArray[np.int8]) -> None:
    """Solve one problem a row of `counts` (m, d) over `table` (d, l) into `ends` (m, 4) and `states` (m,)."""
    P = np.empty(table.shape)
    w = np.empty(table.shape[0])
    for problem in range(counts.shape[0]):
        n = take(table, counts[problem], P, w)
        if n == 0 or alpha == 0.0:  # constant contours only: nothing is known
            ends[problem, 0] = ends[problem, 1] = 0.0
            ends[problem, 2] = ends[problem, 3] = np.log(table.shape[1])
            states[problem] = SOLVED
        else:
            states[problem] = solve_problem(P[:n], w[:n], alpha, ends[problem])


@compiled
def search_counts(table: Array, counts: Array, alpha: float, effort: int, ends: Array) -> None:
    """Write lower bound and reached least entropy of the problems that `solve_counts` left to search.

    A unit of its own because it takes long to compile, and precise and vacuous labels never need it.
    """
    P = np.empty(table.shape)
    w = np.empty(table.shape[0])
    for problem in range(counts.shape[0]):
        n = take(table, counts[problem], P, w)
        theta, worst = maximise(P[:n], w[:n])
        W = w[:n].sum()
        outer = np.log(alpha) - W * EPS
        inner = np.log(alpha) + W * (worst + EPS)
        Q, x = without_dominated(rescale(P[:n], theta), theta)
        if abs(x.sum() - 1.0) > 1e-15:  # a dominated class held probability
            x, worst = maximise(Q, w[:n])
            Q = rescale(Q, x)
        else:
            worst = excess(Q, w[:n], x, np.empty(x.shape[0]))
        inner = max(inner, np.log(alpha) + W * (worst + EPS))
        ends[problem, 0], ends[problem, 1], _ = least_entropy(
            Q, w[:n], outer, inner, x, worst, TOLERANCE, effort
        )
