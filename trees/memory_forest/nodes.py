"""Compiled: the statistics of a node's rows, and the draw of its test (theory §10.2).

The rows of a node are one range of an array of row numbers, in the order of their contours, so that equal contours
are adjacent: *runs*. Sums over a run are counts times shares, and the runs are ordered by contour, so a sum does not
depend on the order of the rows.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.likelihood.solver.compiled import borrowing
from quercus.trees.memory_forest.draws import (
    PLACES,
    Whole,
    derived_key,
    is_heads,
    number_below,
    number_between,
)
from quercus.trees.memory_forest.hashes import ATTEMPTS, ONE
from quercus.trees.tree.indices import NONE

Codes = NDArray[
    np.uint16
]  # (rows, K): 0 for a missing value, else a bin or the index of a name, counted from 1
Column = NDArray[np.uint16]  # codes of an attribute, of the rows of a node
Rows = NDArray[np.int32]
Kinds = NDArray[np.int32]
Labels = NDArray[np.int16]  # classes, -1 where a label is not precise
Keys = NDArray[np.uint64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

ALL_KNOWN = 0xFFFF  # cut of a test that separates known numbers from missing ones
SOLE = 1.0 - 1e-9  # a class with this much probability is the only one
PURITY_TIE = 1e-9  # nats; a gain, times the rows, must exceed the best so far by more (theory §10.2)
NODE_STEPS = 300  # of E2M at a node, at most
EXCESS = 1e-7  # KKT excess (theory §2.2) that E2M stops at
VERTEX_STEP = 4  # at which a vertex is tried
TABLED = 4_096  # whole numbers below it have n ln n in a table
FEW_CLASSES = 8  # are counted one after the other, many rows at a time,
FEW_OF_EACH = 8  # where there are that many of each
PARTED = PURITY_TIE / 4  # a purity above minus this is 0 but for rounding: the classes are separated
BITS = 64  # attributes of which a node remembers whether they are known not to vary
NO_BIT = np.uint64(0)


@borrowing
def runs_of(rows: Rows, kinds: Kinds, kind: Kinds, count: Ints) -> int:
    """Write contour and length of each run of `rows`; return the number of runs."""
    runs = 0
    for i in range(rows.shape[0]):
        here = kinds[rows[i]]
        if runs == 0 or kind[runs - 1] != here:
            kind[runs] = here
            count[runs] = 0
            runs += 1
        count[runs - 1] += 1
    return runs


@borrowing
def count_classes(rows: Rows, labels: Labels, classes: Kinds) -> bool:
    """Write the number of rows of each class; false if a label is not precise."""
    for c in range(classes.shape[0]):
        classes[c] = 0
    for i in range(rows.shape[0]):
        c = labels[np.uint32(rows[i])]
        if c == NONE:
            return False
        classes[c] += 1
    return True


@borrowing
def estimate_node(
    runs: int, kind: Kinds, count: Ints, contours: Floats, sole: Kinds, theta: Floats, share: Floats
) -> bool:
    """Write ``θ̂`` (l,) of a node and the shares of the classes in each run (theory §2.2).

    If every contour leaves one class (`sole`), θ̂ are frequencies, no shares are written, and the result is true.
    Else E2M begins with equal probabilities, so that among many maximisers it finds one that prefers no class
    without reason. E2M approaches a maximiser at a vertex ever more slowly; its KKT
    condition proves it instead.
    """
    l = contours.shape[1]
    total, precise = 0.0, True
    for d in range(runs):
        total += count[d]
        precise = precise and sole[kind[d]] != NONE
    if precise:
        for c in range(l):
            theta[c] = 0.0
        for d in range(runs):
            theta[sole[kind[d]]] = count[d] / total
        return True
    for c in range(l):
        theta[c] = 1.0 / l
    for step in range(NODE_STEPS):
        if step == VERTEX_STEP and _at_vertex(runs, kind, count, contours, theta, total):
            break
        share_out(runs, kind, contours, theta, share)
        excess = 0.0
        for c in range(l):
            if theta[c] > 0.0:
                mass = 0.0
                for d in range(runs):
                    mass += count[d] * share[d, c]
                mass /= total
                excess = max(excess, mass / theta[c] - 1.0)
                theta[c] = mass
        if excess <= EXCESS:
            break
    _at_vertex(runs, kind, count, contours, theta, total)
    share_out(runs, kind, contours, theta, share)
    return False


@borrowing
def share_out(runs: int, kind: Kinds, contours: Floats, theta: Floats, share: Floats) -> None:
    """Write ``s_ic = θ_c pl_ic / Σ_k θ_k pl_ik`` of each run, (runs, l)."""
    l = theta.shape[0]
    for d in range(runs):
        total = 0.0
        for c in range(l):
            share[d, c] = theta[c] * contours[kind[d], c]
            total += share[d, c]
        for c in range(l):
            share[d, c] /= total


@borrowing
def _at_vertex(runs: int, kind: Kinds, count: Ints, contours: Floats, theta: Floats, total: float) -> bool:
    """Give the likeliest class probability 1 if that is the only maximiser: all other ``g_c < 1``."""
    l = theta.shape[0]
    a = 0
    for c in range(l):
        if theta[c] > theta[a]:
            a = c
    for d in range(runs):
        if contours[kind[d], a] <= 0.0:
            return False
    for c in range(l):
        g = 0.0
        for d in range(runs):
            g += count[d] * contours[kind[d], c] / contours[kind[d], a]
        if c != a and g >= total * SOLE:
            return False
    for c in range(l):
        theta[c] = 0.0
    theta[a] = 1.0
    return True


@borrowing
def goes_left(code: Whole, named: bool, test: int, key: np.uint64) -> bool:
    """Return whether a code goes left. `test`: twice the cut, plus 1 if missing numbers go left; for names the attempt.

    `key` is the key of the attempt; numbers do not use it.
    """
    if named:
        return is_heads(derived_key(key, code))
    return bool((test & 1) == 1 if code == 0 else code <= test >> 1)


@borrowing
def read_column(codes: Codes, rows: Rows, k: int, column: Column) -> tuple[int, int, bool]:
    """Copy the codes of an attribute; return the lowest and the highest known value, and whether any is missing.

    If no value is known, the highest is 0.
    """
    for i in range(rows.shape[0]):
        column[i] = codes[np.uint32(rows[i]), np.uint32(k)]
    low, high, least = np.uint16(ALL_KNOWN), np.uint16(0), np.uint16(ALL_KNOWN)
    for i in range(rows.shape[0]):
        code = column[i]
        low = min(low, np.uint16(code - 1))  # a missing one is above all others
        high = max(high, code)
        least = min(least, code)
    return np.int64(low) + 1, np.int64(high), least == 0  # type: ignore[return-value]


@borrowing
def draw_cut(low: Whole, high: Whole, missing: bool, key: np.uint64) -> int:
    """Draw the test of a number with codes from `low` to `high`; `NONE` if it does not vary."""
    if low < high:
        return 2 * number_between(key, low, high) + is_heads(key)
    return 2 * ALL_KNOWN if missing and high > 0 else NONE


@borrowing
def draw_names(column: Column, n: int, key: np.uint64) -> int:
    """Draw the names that go left: the first attempt that divides the rows; `NONE` if none does."""
    first = np.int64(column[0])
    for attempt in range(ATTEMPTS):
        mask = derived_key(key, attempt)
        side = is_heads(derived_key(mask, first))
        for i in range(1, n):
            if is_heads(derived_key(mask, np.int64(column[i]))) != side:
                return attempt
    return NONE


@borrowing
def draw_test(column: Column, n: int, named: bool, low: int, high: int, missing: bool, key: np.uint64) -> int:
    """Draw the test of an attribute; `NONE` if it does not vary."""
    test = NONE
    if not named:
        test = draw_cut(low, high, missing, key)
    elif low < high or (missing and high > 0):
        test = draw_names(column, n, key)
    return test


@borrowing
def count_left(
    column: Column, runs: int, count: Ints, named: bool, test: int, key: np.uint64, left: Ints
) -> None:
    """Write the number of rows of each run that go left."""
    i = 0
    for d in range(runs):
        on_left = 0
        for _ in range(count[d]):
            on_left += goes_left(np.int64(column[i]), named, test, key)
            i += 1
        left[d] = on_left


@borrowing
def count_left_of_classes(
    column: Column, label: Labels, n: int, named: bool, test: int, key: np.uint64, left: Kinds
) -> None:
    """Write the number of rows of each class that go left; `label` (n,) are their classes."""
    l = left.shape[0]
    for c in range(l):
        left[c] = 0
    if named:
        for i in range(n):
            left[label[i]] += is_heads(derived_key(key, np.int64(column[i])))
        return
    skipped = 1 - (test & 1)  # less 1, a missing code is above all cuts
    cut = np.uint16((test >> 1) - skipped)
    if l > FEW_CLASSES or n < FEW_OF_EACH * l:
        for i in range(n):
            left[label[i]] += np.uint16(column[i] - skipped) <= cut
        return
    for c in range(l):
        on_left = np.int32(0)
        for i in range(n):
            on_left += np.int32((label[i] == c) & (np.uint16(column[i] - skipped) <= cut))
        left[c] = on_left


@borrowing
def n_log_n(x: float, table: Floats) -> float:
    """Return ``x ln x``, for small whole numbers from a table."""
    whole = np.int64(x)
    if whole == x and whole < TABLED:
        return table[whole]  # type: ignore[no-any-return]
    return x * np.log(x) if x > 0.0 else 0.0


@borrowing
def purity(runs: int, count: Ints, left: Ints, share: Floats, table: Floats) -> float:
    """Return ``-Σ_sides n H`` in nats, by the shares of the classes: it orders the tests of a node as the gain does."""
    pure = 0.0
    on_left, on_right = 0, 0
    for d in range(runs):
        on_left += left[d]
        on_right += count[d] - left[d]
    pure -= n_log_n(float(on_left), table) + n_log_n(float(on_right), table)
    for c in range(share.shape[1]):
        mine, other = 0.0, 0.0
        for d in range(runs):
            mine += left[d] * share[d, c]
            other += (count[d] - left[d]) * share[d, c]
        pure += n_log_n(mine, table) + n_log_n(other, table)
    return pure


@borrowing
def purity_of_classes(count: Kinds, left: Kinds, table: Floats) -> float:
    """Return the purity for precise labels: `count` rows of each class (l,), of which `left` go left."""
    pure = 0.0
    on_left, on_right = 0, 0
    for c in range(count.shape[0]):
        on_left += left[c]
        on_right += count[c] - left[c]
        pure += n_log_n(float(left[c]), table) + n_log_n(float(count[c] - left[c]), table)
    return pure - n_log_n(float(on_left), table) - n_log_n(float(on_right), table)


@borrowing
def tests_wanted(A: int) -> int:
    """Return how many attributes that vary in a node get a test: ``⌈√A⌉`` of the A that vary in the log."""
    return np.int64(np.ceil(np.sqrt(A)))  # type: ignore[return-value]


@borrowing
def names_key(key: np.uint64, test: int) -> np.uint64:
    """Return the key of the names of a test, of a node with this key: see `choose_test`."""
    return derived_key(derived_key(key, PLACES + test // ATTEMPTS), test % ATTEMPTS)


@borrowing
def draw_order(order: Ints, place: int, key: np.uint64) -> int:
    """Draw the one at a place of the order from those that have no place yet."""
    other = place + number_below(derived_key(key, PLACES + place), order.shape[0] - place)
    k = order[other]
    order[other], order[place] = order[place], k
    return k  # type: ignore[no-any-return]


@borrowing
def choose_test(
    codes: Codes, named: Bools, varying: Ints, rows: Rows, key: np.uint64, runs: int, count: Ints,
    share: Floats, table: Floats, order: Ints, left: Ints, column: Column,
) -> tuple[int, int]:  # fmt: skip
    """Return attribute and test of a node with labels that are not precise, ``(NONE, 0)`` if nothing varies.

    The key draws an order of the attributes that vary in the log (A of them, numbered among themselves); the first
    ``⌈√A⌉`` that vary here get a test. The first of tests with equal gains is chosen. The test of a number is as in
    `goes_left`; that of names is the attempt, plus 64 times the number of the draw, by which `names_key` finds them.
    """
    A = varying.shape[0]
    for j in range(A):
        order[j] = j
    best, attribute, chosen, drawn = -np.inf, NONE, 0, 0
    for place in range(A):
        j = draw_order(order, place, key)
        k = varying[j]
        mine = derived_key(key, PLACES + A + j)
        low, high, missing = read_column(codes, rows, k, column)
        test = draw_test(column, rows.shape[0], named[k], low, high, missing, mine)
        if test == NONE:
            continue
        count_left(column, runs, count, named[k], test, derived_key(mine, test), left)
        pure = purity(runs, count, left, share, table)
        if pure > best + PURITY_TIE:
            best, attribute, chosen = pure, k, test + ATTEMPTS * (A + j) if named[k] else test
        drawn += 1
        if drawn == tests_wanted(A):
            break
    return attribute, chosen


@borrowing
def choose_test_of_classes(
    codes: Codes, named: Bools, varying: Ints, rows: Rows, key: np.uint64, classes: Kinds, labels: Labels,
    table: Floats, same: np.uint64, order: Ints, left: Kinds, label: Labels, column: Column,
) -> tuple[int, int, np.uint64]:  # fmt: skip
    """Return the same for a node with precise labels, `classes` (l,) rows of each class, and the updated `same`.

    `same` has a bit for each of the first 64 attributes that is known not to vary; more are known then. No test is
    better than one that separates the classes, so the first such test ends the search. At the end, the second line of
    `left` (2, l) has the number of rows of each class that go left by the chosen test.
    """
    A, n, l = varying.shape[0], rows.shape[0], classes.shape[0]
    for j in range(A):
        order[j] = j
    for i in range(n):
        label[i] = labels[np.uint32(rows[i])]
    best, attribute, chosen, wanted = -np.inf, NONE, 0, tests_wanted(A)
    for place in range(A):
        j = draw_order(order, place, key)
        k = varying[j]
        bit = ONE << np.uint64(k) if k < BITS else NO_BIT
        if same & bit:
            continue
        low, high, missing = read_column(codes, rows, k, column)
        if high == 0 or (low == high and not missing):
            same |= bit
            continue
        mine = derived_key(key, PLACES + A + j)
        test = draw_test(column, n, named[k], low, high, missing, mine)
        if test == NONE:
            continue
        count_left_of_classes(column, label, n, named[k], test, derived_key(mine, test), left[0])
        pure = purity_of_classes(classes, left[0], table)
        if pure > best + PURITY_TIE:
            best, attribute, chosen = pure, k, test + ATTEMPTS * (A + j) if named[k] else test
            for c in range(l):
                left[1, c] = left[0, c]
        wanted -= 1
        if wanted == 0 or best > -PARTED:
            break
    return attribute, chosen, same


def log_table() -> Floats:
    """Return ``n ln n`` of the whole numbers below `TABLED`."""
    table = np.arange(float(TABLED))
    table[1:] *= np.log(table[1:])
    return table
