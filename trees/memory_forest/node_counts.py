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
    TIE,
    Bools,
    Codes,
    Floats,
    Ints,
    Kinds,
    Rows,
    draw_order,
    draw_test,
    goes_left,
    purity_of_classes,
    tests_wanted,
)

COUNTED = 32
"""Rows of the smallest node that has a record: to count fewer rows anew costs no more than to follow them."""
FIELDS = 6
ATTRIBUTE, TEST, LOW, HIGH, AT_LOW, AT_HIGH = range(FIELDS)
SPARE = 2
"""So many attributes may be looked at for each test that is wanted: those that do not vary get none."""


MOST = 8
"""A memory of n rows has at most n / MOST records."""


@compiled
def record_width(K: int, l: int) -> int:
    """Return the length of a record."""
    return l + SPARE * tests_wanted(K) * (FIELDS + l)


@compiled
def count_classes(rows: Rows, start: int, end: int, kinds: Kinds, sole: Kinds, classes: Kinds) -> bool:
    """Write how many rows each class has; false where a label is not precise."""
    classes[:] = 0
    for i in range(start, end):
        c = sole[kinds[rows[i]]]
        if c == NONE:
            return False
        classes[c] += 1
    return True


@compiled
def _range_of(codes: Codes, rows: Rows, start: int, end: int, k: int, skips_missing: bool) -> tuple[int, int]:
    """Return the lowest and the highest code of an attribute; of a number without the missing ones."""
    low, high = np.int64(ALL_KNOWN), np.int64(0)
    for i in range(start, end):
        code = np.int64(codes[rows[i], k])
        if code > 0 or not skips_missing:
            low, high = min(low, code), max(high, code)
    return low, high  # type: ignore[return-value]


@compiled
def count_tests(
    codes: Codes, named: Bools, rows: Rows, start: int, end: int, kinds: Kinds, sole: Kinds, key: np.uint64,
    classes: Kinds, order: Ints, record: Kinds,
) -> bool:  # fmt: skip
    """Draw the tests of a node with precise labels, and write its record.

    Returns
    -------
    bool
        Whether the record can follow the rows. It cannot, and is void, if too many attributes do not vary, or no subset
        of the names was found that parts the rows.
    """
    K, l = named.shape[0], classes.shape[0]
    record[:] = 0
    record[:l] = classes
    at, drawn, seen = l, 0, 0
    for k in range(K):
        order[k] = k
    for place in range(K):
        if drawn == tests_wanted(K) or at == record.shape[0]:
            break
        seen += 1
        k = draw_order(order, place, key)
        mine = keyed(key, PLACES + K + k)
        test = draw_test(codes, rows, start, end, k, named[k], mine)
        low, high = _range_of(codes, rows, start, end, k, not named[k] and test != NONE)
        if test == NONE and low != high:
            return False
        record[at + ATTRIBUTE], record[at + TEST], record[at + LOW], record[at + HIGH] = k, test, low, high
        if test != NONE:
            _count(codes, named, rows, start, end, kinds, sole, keyed(mine, test), 1, record, at)
            drawn += 1
        at += FIELDS + l
    if drawn < tests_wanted(K) and seen < K:
        return False
    if at < record.shape[0]:
        record[at + ATTRIBUTE] = NONE
    return True


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
    """Tell whether rows that come make a node draw another test of an attribute."""
    k, test, low, high = record[at + ATTRIBUTE], record[at + TEST], record[at + LOW], record[at + HIGH]
    for i in range(start, end):
        code = np.int64(codes[rows[i], k])
        if test == NONE or (not named and code > 0):
            if code < low or code > high:
                return True
        elif named:  # an attempt before the one that parted the rows may part them now
            for attempt in range(test):
                mask = keyed(key, attempt)
                if heads(keyed(mask, code)) != heads(keyed(mask, low)):
                    return True
    return False


@compiled
def still_drawn(named: Bools, l: int, record: Kinds) -> bool:
    """Tell whether the tests of a record are those that its node draws, after rows were taken out."""
    total = record[:l].sum()
    for at in range(l, record.shape[0], FIELDS + l):
        k = record[at + ATTRIBUTE]
        if k == NONE:
            break
        if record[at + TEST] == NONE:
            continue
        on_left = record[at + FIELDS : at + FIELDS + l].sum()
        if on_left in (0, total):
            return False
        if not named[k] and (record[at + AT_LOW] == 0 or record[at + AT_HIGH] == 0):
            return False
    return True


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
