"""Compiled kernels: cells rewritten over another table, and a hash table of cells (`cell_cache`)."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.likelihood.solver.kernels import Array

Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]


@borrowing
def merge_cells(
    start: Ints,
    ids: Shorts,
    counts: Ints,
    wanted: Ints,
    column: Shorts,
    out_start: Ints,
    out_columns: Shorts,
    out_counts: Array,
) -> None:
    """Rewrite the cells `wanted` over the table of informative contours: numbers rising, each once.

    `column` has the number there of each contour, -1 for constant ones. The output has room for as many entries.
    """
    end = 0
    for w in range(wanted.shape[0]):
        begin = end
        out_start[w] = begin
        risen = True
        for e in range(start[wanted[w]], start[wanted[w] + 1]):
            k = column[ids[e]]
            if k >= 0:
                risen = risen and (end == begin or out_columns[end - 1] < k)
                out_columns[end] = k
                out_counts[end] = counts[e]
                end += 1
        if not risen:
            sort_entries(out_columns[begin:end], out_counts[begin:end])
            last = begin
            for e in range(begin + 1, end):
                if out_columns[e] == out_columns[last]:
                    out_counts[last] += out_counts[e]
                else:
                    last += 1
                    out_columns[last] = out_columns[e]
                    out_counts[last] = out_counts[e]
            end = last + 1
    out_start[wanted.shape[0]] = end


@borrowing
def sort_entries(columns: Shorts, counts: Array) -> None:
    """Sort entries by column in place (heap sort: no bad worst case, and quickly compiled)."""
    size = columns.shape[0]
    left = size // 2
    while size > 1:
        if left > 0:
            left -= 1
        else:
            size -= 1
            columns[0], columns[size] = columns[size], columns[0]
            counts[0], counts[size] = counts[size], counts[0]
        root = left
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and columns[child] < columns[child + 1]:
                child += 1
            if columns[root] >= columns[child]:
                break
            columns[root], columns[child] = columns[child], columns[root]
            counts[root], counts[child] = counts[child], counts[root]
            root = child


@borrowing
def enter_cells(
    start: Ints,
    columns: Shorts,
    counts: Array,
    slots: Shorts,
    hashes: NDArray[np.uint64],
    pool_start: Ints,
    pool_columns: Shorts,
    pool_counts: Array,
    size: int,
    entries: Ints,
) -> int:
    """Find or add cells in a hash table of `size` cells; write their numbers to `entries`, return the new size.

    `slots` (their number is a power of 2; -1: free) hold numbers of cells, which are consecutive in the pool.
    """
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(start.shape[0] - 1):
        first = start[i]
        length = start[i + 1] - first
        h = np.uint64(length)
        for e in range(first, first + length):
            h = (h ^ np.uint64(columns[e])) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
            h = (h ^ np.uint64(np.int64(counts[e]))) * np.uint64(0xBF58476D1CE4E5B9)
            h ^= h >> np.uint64(32)
        slot = h & mask
        found = -1
        while slots[slot] >= 0 and found < 0:
            other = slots[slot]
            begin = pool_start[other]
            if hashes[other] == h and pool_start[other + 1] - begin == length:
                found = other
                for e in range(length):
                    if (
                        pool_columns[begin + e] != columns[first + e]
                        or pool_counts[begin + e] != counts[first + e]
                    ):
                        found = -1
                        break
            if found < 0:
                slot = (slot + np.uint64(1)) & mask
        if found < 0:
            found = size
            slots[slot] = size
            hashes[size] = h
            begin = pool_start[size]
            for e in range(length):
                pool_columns[begin + e] = columns[first + e]
                pool_counts[begin + e] = counts[first + e]
            size += 1
            pool_start[size] = begin + length
        entries[i] = found
    return size


@borrowing
def place_hashes(hashes: NDArray[np.uint64], slots: Shorts) -> None:
    """Fill the free `slots` of a larger hash table with the cells that have these hashes."""
    mask = np.uint64(slots.shape[0] - 1)
    for i in range(hashes.shape[0]):
        slot = hashes[i] & mask
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & mask
        slots[slot] = i


@borrowing
def compare(P: Array, a: int, b: int) -> int:
    """Return the order of two rows: -1, 0 or 1."""
    for j in range(P.shape[1]):
        if P[a, j] < P[b, j]:
            return -1
        if P[a, j] > P[b, j]:
            return 1
    return 0


@borrowing
def sort_rows(P: Array, order: Ints) -> None:
    """Sort numbers of rows by the rows, in place (heap sort)."""
    size = order.shape[0]
    left = size // 2
    while size > 1:
        if left > 0:
            left -= 1
        else:
            size -= 1
            order[0], order[size] = order[size], order[0]
        root = left
        while 2 * root + 1 < size:
            child = 2 * root + 1
            if child + 1 < size and compare(P, order[child], order[child + 1]) < 0:
                child += 1
            if compare(P, order[root], order[child]) >= 0:
                break
            order[root], order[child] = order[child], order[root]
            root = child


@compiled
def reduce_rows(
    P: Array,
    w: Array,
    first: Ints,
    out_P: Array,
    out_w: Array,
    out_start: Ints,
    empty: NDArray[np.bool_],
) -> None:
    """Reduce many problems to their distinct informative contours, as `maximiser.distinct_contours` does for one.

    Problem ``i`` has the rows ``first[i] .. first[i + 1] - 1`` of `P` and `w`; the output has room for as many. `P` is
    overwritten. `empty` marks the problems in which no row has weight.
    """
    l = P.shape[1]
    numbers = np.empty(P.shape[0], np.int64)
    end = 0
    for i in range(first.shape[0] - 1):
        out_start[i] = end
        empty[i] = True
        n = 0
        for row in range(first[i], first[i + 1]):
            if w[row] <= 0.0:
                continue
            empty[i] = False
            low = P[row, 0]
            high = low
            for j in range(1, l):
                low = min(low, P[row, j])
                high = max(high, P[row, j])
            if low < high:
                for j in range(l):
                    P[row, j] /= high
                numbers[n] = row
                n += 1
        order = numbers[:n]
        sort_rows(P, order)
        for k in range(n):
            if k > 0 and compare(P, order[k - 1], order[k]) == 0:
                out_w[end - 1] += w[order[k]]
            else:
                for j in range(l):
                    out_P[end, j] = P[order[k], j]
                out_w[end] = w[order[k]]
                end += 1
    out_start[first.shape[0] - 1] = end
