"""Compiled: the counts of a large node, which follow its rows as they come and go (theory §10.6).

A node whose labels are all precise needs no rows to choose its test, only counts: how many rows of each class it has,
and how many of them each drawn test sends left. A drawn test stays the same as long as the lowest and the highest code
of its attribute do. So a row that comes or goes changes the counts of the nodes on its path, and nothing else.

A record is a row of whole numbers: the rows of each class, then, for each attribute that the node looked at, in the
order of its draw, `FIELDS` numbers and the rows of each class on the left.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.memory_forest.draws import PLACES, heads, keyed
from quercus.trees.memory_forest.nodes import (
    ALL_KNOWN,
    NONE,
    SOLE,
    TIE,
    Bools,
    Codes,
    Column,
    Floats,
    Ints,
    Kinds,
    Rows,
    count_left_of_classes,
    draw_cut,
    draw_order,
    draw_test,
    goes_left,
    purity_of_classes,
    read_column,
    tests_wanted,
)

COUNTED = 32
"""Rows of the smallest node that has a record: to count fewer rows anew costs no more than to follow them."""
FIELDS = 6
ATTRIBUTE, TEST, LOW, HIGH, AT_LOW, AT_HIGH = range(FIELDS)
SPARE = 3
"""So many attributes may be looked at for each test that is wanted: those that do not vary get none."""


MOST = 8
"""A memory of n rows has at most n / MOST records."""


@compiled
def record_width(K: int, l: int) -> int:
    """Return the length of a record."""
    return l + min(K, SPARE * tests_wanted(K)) * (FIELDS + l)


@compiled
def count_classes(
    rows: Rows, start: int, end: int, kinds: Kinds, sole: Kinds, classes: Kinds, label: Kinds
) -> bool:
    """Write how many rows each class has, and the class of each; false where a label is not precise."""
    classes[:] = 0
    for i in range(start, end):
        c = sole[np.uint32(kinds[np.uint32(rows[i])])]
        if c == NONE:
            return False
        label[i - start] = c
        classes[c] += 1
    return True


@compiled
def count_tests(
    codes: Codes, named: Bools, rows: Rows, start: int, end: int, key: np.uint64, classes: Kinds, label: Kinds,
    order: Ints, column: Column, record: Kinds,
) -> bool:  # fmt: skip
    """Draw the tests of a node with precise labels, and write its record.

    Returns
    -------
    bool
        Whether the record can follow the rows. It cannot, and is void, if too many attributes do not vary, or no subset
        of the names was found that parts the rows.
    """
    K, l, n = named.shape[0], classes.shape[0], end - start
    for field in range(record.shape[0]):
        record[field] = classes[field] if field < l else 0
    at, drawn, seen = l, 0, 0
    for k in range(K):
        order[k] = k
    for place in range(K):
        if drawn == tests_wanted(K) or at == record.shape[0]:
            break
        seen += 1
        k = draw_order(order, place, key)
        mine = keyed(key, PLACES + K + k)
        low, high, missing = read_column(codes, rows, start, end, k, column)
        test = draw_test(column, n, named[k], low, high, missing, mine)
        if missing > 0 and (named[k] or test == NONE):
            low = 0
        if test == NONE and low != high:
            return False
        record[at + ATTRIBUTE], record[at + TEST], record[at + LOW], record[at + HIGH] = k, test, low, high
        if test != NONE:
            left = record[at + FIELDS : at + FIELDS + l]
            count_left_of_classes(column, label, n, named[k], test, keyed(mine, test), left)
            if not named[k]:
                _count_ends(column, n, record, at)
            drawn += 1
        at += FIELDS + l
    if drawn < tests_wanted(K) and seen < K:
        return False
    if at < record.shape[0]:
        record[at + ATTRIBUTE] = NONE
    return True


@compiled
def _count_ends(column: Column, n: int, record: Kinds, at: int) -> None:
    """Write how many codes are the lowest, and how many the highest."""
    low, high = np.uint16(record[at + LOW]), np.uint16(record[at + HIGH])
    at_low, at_high = np.int32(0), np.int32(0)
    for i in range(n):
        at_low += np.int32(column[i] == low)
        at_high += np.int32(column[i] == high)
    record[at + AT_LOW], record[at + AT_HIGH] = at_low, at_high


@compiled
def _count(
    codes: Codes, named: Bools, rows: Rows, start: int, end: int, kinds: Kinds, sole: Kinds, mask: np.uint64,
    step: int, record: Kinds, at: int,
) -> None:  # fmt: skip
    """Count what rows say of the test at a place of the record; `mask` is the key of the test."""
    k, test, low, high = record[at + ATTRIBUTE], record[at + TEST], record[at + LOW], record[at + HIGH]
    for i in range(start, end):
        row = rows[i]
        code = np.int64(codes[row, k])
        record[at + AT_LOW] += step * (code == low)
        record[at + AT_HIGH] += step * (code == high)
        if goes_left(code, named[k], test, mask):
            record[at + FIELDS + sole[kinds[row]]] += step


@compiled
def follow_rows(
    codes: Codes, named: Bools, rows: Rows, start: int, end: int, kinds: Kinds, sole: Kinds, key: np.uint64,
    step: int, l: int, record: Kinds,
) -> bool:  # fmt: skip
    """Add rows to a record (`step` 1) or take them out (-1); false where a test is no longer the one drawn."""
    K = named.shape[0]
    for i in range(start, end):
        c = sole[kinds[rows[i]]]
        if c == NONE:
            return False
        record[c] += step
    for at in range(l, record.shape[0], FIELDS + l):
        k, test = record[at + ATTRIBUTE], record[at + TEST]
        if k == NONE:
            break
        mine = keyed(key, PLACES + K + k)
        if step > 0 and _draws_other(codes, rows, start, end, named[k], mine, record, at):
            return False
        if test != NONE:
            _count(codes, named, rows, start, end, kinds, sole, keyed(mine, test), step, record, at)
    return True


@compiled
def _draws_other(
    codes: Codes, rows: Rows, start: int, end: int, named: bool, key: np.uint64, record: Kinds, at: int
) -> bool:
    """Tell whether rows that come make a node draw another test of an attribute; take note of new bounds."""
    k, test, low, high = record[at + ATTRIBUTE], record[at + TEST], record[at + LOW], record[at + HIGH]
    if test == NONE or named:
        for i in range(start, end):
            code = np.int64(codes[rows[i], k])
            if test == NONE:
                if code != low:
                    return True
                continue
            for attempt in range(test):  # one before the one that parted the rows may part them now
                mask = keyed(key, attempt)
                if heads(keyed(mask, code)) != heads(keyed(mask, low)):
                    return True
        return False
    lowest, highest = np.int64(low), np.int64(high)
    for i in range(start, end):
        code = np.int64(codes[rows[i], k])
        if code > 0:
            lowest, highest = min(lowest, code), max(highest, code)
    if (lowest < low or highest > high) and draw_cut(lowest, highest, 0, key) != test:
        return True
    if lowest < low:
        record[at + LOW], record[at + AT_LOW] = lowest, 0
    if highest > high:
        record[at + HIGH], record[at + AT_HIGH] = highest, 0
    return False


@compiled
def still_drawn(
    codes: Codes, named: Bools, rows: Rows, first: int, end: int, gone: Bools, come: Rows, in_first: int,
    in_end: int, key: np.uint64, l: int, record: Kinds,
) -> bool:  # fmt: skip
    """Tell whether the tests of a record are those that its node draws, after rows were taken out.

    Where no row has the lowest or the highest code any more, the bounds are read anew: of the rows that it had, less
    those that are `gone`, with those that came.
    """
    K, total = named.shape[0], record[:l].sum()
    for at in range(l, record.shape[0], FIELDS + l):
        k, test = record[at + ATTRIBUTE], record[at + TEST]
        if k == NONE:
            break
        if test == NONE:
            continue
        on_left = record[at + FIELDS : at + FIELDS + l].sum()
        if on_left in (0, total):
            return False
        if named[k] or (record[at + AT_LOW] > 0 and record[at + AT_HIGH] > 0):
            continue
        _read_bounds(codes, rows, first, end, gone, come, in_first, in_end, record, at)
        low, high = np.int64(record[at + LOW]), np.int64(record[at + HIGH])
        if draw_cut(low, high, 0, keyed(key, PLACES + K + k)) != test:
            return False
    return True


@compiled
def _read_bounds(
    codes: Codes, rows: Rows, first: int, end: int, gone: Bools, come: Rows, in_first: int, in_end: int,
    record: Kinds, at: int,
) -> None:  # fmt: skip
    """Write the lowest and the highest code, and how many rows have them."""
    k, low, high, at_low, at_high = record[at + ATTRIBUTE], np.int64(ALL_KNOWN), np.int64(0), 0, 0
    for i in range(end - first + in_end - in_first):
        row = rows[first + i] if i < end - first else come[in_first + i - (end - first)]
        code = np.int64(codes[row, k])
        if code == 0 or (i < end - first and gone[row]):
            continue
        if code < low:
            low, at_low = code, 0
        if code > high:
            high, at_high = code, 0
        at_low += code == low
        at_high += code == high
    record[at + LOW], record[at + HIGH], record[at + AT_LOW], record[at + AT_HIGH] = (
        low,
        high,
        at_low,
        at_high,
    )


@compiled
def is_one_class(l: int, n: int, record: Kinds) -> bool:
    """Tell whether the n rows of a record have one class."""
    most = 0
    for c in range(l):
        most = max(most, record[c])
    return most >= SOLE * n


@compiled
def best_test(l: int, record: Kinds, table: Floats) -> tuple[int, int]:
    """Return attribute and test of a record's best test, ``(NONE, 0)`` where nothing varies; of equals the first."""
    best, found, chosen = -np.inf, NONE, 0
    for at in range(l, record.shape[0], FIELDS + l):
        if record[at + ATTRIBUTE] == NONE:
            break
        if record[at + TEST] == NONE:
            continue
        pure = purity_of_classes(record[:l], record[at + FIELDS : at + FIELDS + l], table)
        if pure > best + TIE:
            best, found, chosen = pure, record[at + ATTRIBUTE], record[at + TEST]
    return found, chosen
