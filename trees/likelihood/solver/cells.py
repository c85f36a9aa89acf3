"""Compiled kernels: whole cells, as they come, and those of precise labels solved at once (theory §2.9).

A cell is a sparse vector of counts over a table of contours (`quercus.trees.likelihood.cells`). `klass` has
for each contour the one class that it leaves (precise), or `CONSTANT` (vacuous), or `GENERAL`. Cells that need more
than the class counts are marked in `kinds` and left to the caller.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array, sum_of
from quercus.trees.likelihood.solver.precise import (
    CURVE_STEPS,
    LOG_ROUNDING,
    SHARP_PRECISE,
    greatest_entropy_of_counts,
    least_entropy_of_counts,
)
from quercus.trees.likelihood.solver.roots import class_end

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]
Bytes = NDArray[np.int8]

CONSTANT, OTHER = -1, -2  # of a contour that leaves more than one class
EMPTY, VACUOUS, PRECISE, GENERAL = 0, 1, 2, 3  # kinds of cells, by the most informative of their labels
TIGHT = 1e-11  # nats; the gap of precise labels


@borrowing
def tally(first: int, last: int, ids: Shorts, counts: Ints, klass: Bytes, n: Array) -> int:
    """Write the class counts of the precise labels among entries ``first .. last - 1`` into `n`; return the kind.

    -1 if a number is out of range or not above the one before, or a count is not above 0.
    """
    for j in range(n.shape[0]):
        n[j] = 0.0
    kind = EMPTY
    before = -1
    for e in range(first, last):
        number = ids[e]
        if number <= before or number >= klass.shape[0] or counts[e] <= 0:
            return -1
        before = number
        k = klass[number]
        if k >= 0:
            n[k] += counts[e]
            kind = max(kind, PRECISE)
        else:
            kind = max(kind, VACUOUS if k == CONSTANT else GENERAL)
    return kind


@borrowing
def sort_positive(n: Array, x: Array) -> int:
    """Write the positive values of `n` into `x`, largest first; return their number."""
    m = 0
    for j in range(n.shape[0]):
        value = n[j]
        if value > 0.0:
            k = m
            while k > 0 and x[k - 1] < value:
                x[k] = x[k - 1]
                k -= 1
            x[k] = value
            m += 1
    return m


@borrowing
def slot_of(x: Array, k: int, size: int) -> int:
    """Return the place of counts in a cache of `size` rows, a power of 2."""
    h = np.uint64(k)
    for j in range(k):
        h = (h ^ np.uint64(np.int64(x[j]))) * np.uint64(0x9E3779B97F4A7C15)
        h ^= h >> np.uint64(29)
    return int(h & np.uint64(size - 1))


@borrowing
def ends_of_counts(n: Array, free: int, outer: float, inner: float, ends: Array) -> None:
    """Write lower bound, reached least, reached greatest entropy and upper bound (nats) for counts in falling order.

    `free` further classes have no label; `outer` and `inner` enclose ``ln alpha``, which may be 0.
    """
    if inner >= 0.0:
        N = sum_of(n)
        total = 0.0
        for j in range(n.shape[0]):
            total += n[j] * np.log(n[j])
        value = np.log(N) - total / N if n.shape[0] > 1 else 0.0
        ends[0] = ends[1] = ends[2] = ends[3] = max(value, 0.0)
        return
    ends[0] = ends[1] = 0.0
    if n.shape[0] > 1:
        ends[0], ends[1] = least_entropy_of_counts(n, outer, inner, TIGHT, CURVE_STEPS)
    ends[3], ends[2] = greatest_entropy_of_counts(n, free, outer, inner, TIGHT, CURVE_STEPS)


@borrowing
def interval_of_counts(n: Array, free: int, c: float, ends: Array, found: Array) -> bool:
    """Write lower end, upper end and gap (bits) for counts in falling order; False if rounding forbids.

    See `ends_of_counts`, here at the level ``c = ln alpha``; `ends` (4,) is scratch.
    """
    slack = sum_of(n) * LOG_ROUNDING * (n.shape[0] + 4)
    if c < 0.0 and -c <= SHARP_PRECISE * slack:
        return False
    ends_of_counts(n, free, c - slack, c + slack if c < 0.0 else 0.0, ends)
    bit = np.log(2.0)
    gap = max(ends[1] - ends[0], ends[3] - ends[2], 0.0)
    settled = gap <= 2.0 * TIGHT
    found[0] = (ends[1] if settled else ends[0]) / bit
    found[1] = max(found[0], min((ends[2] if settled else ends[3]) / bit, np.log2(n.shape[0] + free)))
    found[2] = gap / bit
    return True


@compiled
def solve_precise(
    start: Ints,
    ids: Shorts,
    counts: Ints,
    klass: Bytes,
    l: int,
    alpha: float,
    keys: Array,
    values: Array,
    kinds: Bytes,
    ends: Array,
) -> int:
    """Write kinds (m,), and lower end, upper end and gap in bits (3, m) of all cells but the general ones.

    `keys` (e, l) and `values` (e, 3) are a cache of solutions; each row keeps the last. Returns the number of a
    malformed cell, or -1.
    """
    n = np.empty(l)
    x = np.empty(l)
    scribble = np.empty(4)
    bit = np.log(2.0)
    top = np.log2(l)
    c = np.log(alpha) if alpha > 0.0 else -np.inf
    for i in range(start.shape[0] - 1):
        kind = tally(start[i], start[i + 1], ids, counts, klass, n)
        kinds[i] = kind
        if kind < 0:
            return i
        if kind == EMPTY:
            ends[0, i] = ends[1, i] = ends[2, i] = 0.0
        elif kind == VACUOUS or alpha == 0.0:
            kinds[i] = VACUOUS
            ends[0, i] = ends[2, i] = 0.0
            ends[1, i] = top
        elif (
            kind == PRECISE and alpha == 1.0
        ):  # at most this many are solved without the cache: solving is cheaper than a look-up
            k = sort_positive(n, x)
            ends_of_counts(x[:k], l - k, 0.0, 0.0, scribble)
            ends[0, i] = ends[1, i] = min(scribble[0] / bit, top)
            ends[2, i] = 0.0
        elif kind == PRECISE:
            k = sort_positive(n, x)
            slot = slot_of(x, k, keys.shape[0])
            same = k == l or keys[slot, k] == 0.0
            for j in range(k):
                if keys[slot, j] != x[j]:
                    same = False
                    break
            if not same:
                if not interval_of_counts(x[:k], l - k, c, scribble, values[slot]):
                    kinds[i] = GENERAL
                    keys[slot, 0] = -1.0
                    continue
                for j in range(l):
                    keys[slot, j] = x[j] if j < k else 0.0
            for r in range(3):
                ends[r, i] = values[slot, r]
    return -1


@compiled
def estimate_precise(
    start: Ints,
    ids: Shorts,
    counts: Ints,
    klass: Bytes,
    kinds: Bytes,
    theta: Array,
    unique: NDArray[np.bool_],
) -> int:
    """Write kinds, theta (m, l) and uniqueness (m,) of all cells but the general ones; return as `solve_precise`."""
    l = theta.shape[1]
    n = np.empty(l)
    for i in range(start.shape[0] - 1):
        kind = tally(start[i], start[i + 1], ids, counts, klass, n)
        kinds[i] = kind
        if kind < 0:
            return i
        if kind != GENERAL:
            N = sum_of(n)
            unique[i] = kind == PRECISE
            for j in range(l):
                theta[i, j] = n[j] / N if N > 0.0 else 1.0 / l
    return -1


@compiled
def bound_precise(
    start: Ints,
    ids: Shorts,
    counts: Ints,
    klass: Bytes,
    alpha: float,
    kinds: Bytes,
    lower: Array,
    upper: Array,
) -> int:
    """Write kinds (m,) and class bounds (m, l) of all cells but the general ones; return as `solve_precise`."""
    l = lower.shape[1]
    n = np.empty(l)
    for i in range(start.shape[0] - 1):
        kind = tally(start[i], start[i + 1], ids, counts, klass, n)
        kinds[i] = kind
        if kind < 0:
            return i
        if kind <= VACUOUS or alpha == 0.0:
            kinds[i] = VACUOUS
            for j in range(l):
                lower[i, j], upper[i, j] = 0.0, 1.0
        elif kind == PRECISE:
            N = sum_of(n)
            c = np.log(alpha) - N * LOG_ROUNDING * 6.0
            for j in range(l):
                p = n[j] / N
                if alpha == 1.0:  # the cut is practically the maximiser alone
                    lower[i, j] = upper[i, j] = p
                    continue
                lower[i, j] = max(min(1.0 - class_end(N - n[j], N, c) - 4e-16, p), 0.0)
                upper[i, j] = min(max(class_end(n[j], N, c) + 4e-16, p), 1.0)
    return -1
