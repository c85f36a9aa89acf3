"""Compiled: a member grown on the rows of its memory, from scratch or from what it was before (theory §10.2, §10.6)."""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.memory_forest.draws import LEFT, PLACES, RIGHT, keyed
from quercus.trees.memory_forest.nodes import (
    NONE,
    SOLE,
    Bools,
    Codes,
    Floats,
    Ints,
    Kinds,
    Rows,
    choose_test,
    choose_test_of_classes,
    count_classes,
    estimate_node,
    goes_left,
    runs_of,
)


@compiled
def grow(
    codes: Codes, named: Bools, kinds: Kinds, contours: Floats, beliefs: Floats, sole: Kinds, rank: Ints,
    key: np.uint64, table: Floats, nodes: Kinds, rows: Rows, opinions: Floats, come: Rows, go: Rows, gone: Bools,
) -> tuple[Kinds, Rows, Floats]:  # fmt: skip
    """Grow a member: what it was, less the rows that go, with the rows that come. From nothing that is from scratch.

    A node with rows that come or go decides anew. If its test stays, its children are looked at in turn; else
    everything below it is grown from its rows. A node whose rows stay is copied with all that is below it, for that is
    a function of these rows and of its path.

    Parameters
    ----------
    codes : (all rows, K)
    named : (K,) whether the attribute is nominal
    kinds : (all rows,) the contour of each
    contours, beliefs : (contours, l) plausibilities, 1 at most; beliefs of the single classes
    sole : (contours,) the class of a precise contour, else -1
    rank : (contours,) their places in an order of their own
    key : of the root
    table : of `quercus.trees.memory_forest.nodes.log_table`
    nodes, rows, opinions : what it was, see below; empty for nothing
    come, go : rows that come, by rank, and rows that go; a row whose contour changed goes and comes. Left in another
        order
    gone : (all rows,) whether a row goes

    Returns
    -------
    nodes : (4, nodes) attribute, test, skip and size of each node in pre-order. The left child follows its parent, the
        right one stands `skip` further on. A leaf has attribute -1, and in `skip` the number of its opinion; below l
        that is a class alone
    rows : (n,) in the order of the leaves
    opinions : (opinions, 3, l), from number l on: of each leaf whose labels are not one class alone, the estimate, the
        mean belief and the mean plausibility of its rows
    """
    n, l, K = rows.shape[0] + come.shape[0] - go.shape[0], contours.shape[1], named.shape[0]
    grown, mine, said = np.empty((4, 2 * n), np.int32), np.empty(n, np.int32), np.empty((n, 3, l))
    stack, keys = np.empty((n + 1, 8), np.int64), np.empty(n + 1, np.uint64)
    most = min(n, contours.shape[0])
    kind, count, left = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64)
    share, theta, order = np.empty((most, l)), np.empty(l), np.empty(K, np.int64)
    classes, on_left = np.empty(l, np.int32), np.empty(l, np.int32)
    column, label = np.empty(n, np.uint16), np.empty(n, np.int32)
    buffer, places = np.empty(max(n, go.shape[0], come.shape[0]), np.int32), np.empty(rank.shape[0], np.int64)
    stack[0, 0], stack[0, 1], stack[0, 2] = NONE, 0, 0 if nodes.shape[1] else NONE
    stack[0, 3], stack[0, 4], stack[0, 5], stack[0, 6], stack[0, 7] = 0, 0, come.shape[0], 0, go.shape[0]
    keys[0] = key
    waiting, made, opined = 1, 0, 0
    while waiting > 0:
        waiting -= 1
        parent, start, old, first = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        in_first, in_end, out_first, out_end = (
            stack[waiting, 4], stack[waiting, 5], stack[waiting, 6], stack[waiting, 7],
        )  # fmt: skip
        here, node = keys[waiting], made
        if parent >= 0:
            grown[2, parent] = node - parent
        if old >= 0 and in_first == in_end and out_first == out_end:
            made, opined = _copy(nodes, rows, opinions, old, first, l, grown, mine, said, node, start, opined)
            continue
        end = start + in_end - in_first
        if old >= 0:
            end += nodes[3, old] - (out_end - out_first)
        elif in_end == in_first:  # rows of a node that is grown from scratch are in place
            end = out_end
        made += 1
        if old >= 0:
            _gather(rows, first, first + nodes[3, old], gone, come, in_first, in_end, mine, start)
        elif in_end > in_first:
            for i in range(end - start):
                mine[start + i] = come[in_first + i]
        k, test, top, is_sole = NONE, 0, np.int64(0), False
        is_precise = count_classes(mine, start, end, kinds, sole, classes, label)
        if is_precise:
            top = np.argmax(classes)
            is_sole = classes[top] >= SOLE * (end - start)
            if not is_sole:
                k, test = choose_test_of_classes(
                    codes, named, mine, start, end, here, classes, label, table, order, on_left, column
                )
        if not is_precise or (k == NONE and not is_sole):
            if old >= 0 or is_precise:
                _sort(mine, start, end, kinds, rank, places, buffer)
            runs = runs_of(mine, start, end, kinds, kind, count)
            estimate_node(runs, kind, count, contours, sole, theta, share)
            top = np.argmax(theta)
            is_sole = theta[top] >= SOLE
            if not is_precise and not is_sole and end - start > 1:
                k, test = choose_test(
                    codes, named, mine, start, end, here, runs, count, share, table, order, left, column
                )
        stays = old >= 0 and nodes[0, old] == k and nodes[1, old] == test
        grown[0, node], grown[1, node], grown[3, node] = k, test, end - start
        if k == NONE:
            grown[2, node] = top
            if not (is_sole and is_precise):  # an uncertain label leaves the other classes plausible
                grown[2, node] = l + opined
                _opine(runs, kind, count, contours, beliefs, theta, said[opined])
                opined += 1
            continue
        mask = keyed(keyed(here, PLACES + K + k), test)
        if stays:
            in_middle = _partition(codes, come, in_first, in_end, k, named[k], test, mask, buffer)
            out_middle = _partition(codes, go, out_first, out_end, k, named[k], test, mask, buffer)
            size = nodes[3, old + 1]
            middle = start + size + (in_middle - in_first) - (out_middle - out_first)
            _push(stack, waiting, node, middle, old + nodes[2, old], first + size, in_middle, in_end, out_middle,
                  out_end)  # fmt: skip
            _push(stack, waiting + 1, NONE, start, old + 1, first, in_first, in_middle, out_first, out_middle)
        else:
            middle = _partition(codes, mine, start, end, k, named[k], test, mask, buffer)
            _push(stack, waiting, node, middle, NONE, 0, 0, 0, 0, end)
            _push(stack, waiting + 1, NONE, start, NONE, 0, 0, 0, 0, middle)
        keys[waiting], keys[waiting + 1] = keyed(here, RIGHT), keyed(here, LEFT)
        waiting += 2
    return grown[:, :made].copy(), mine, said[:opined].copy()


@compiled
def _push(
    stack: Ints, at: int, parent: int, start: int, old: int, first: int, in_first: int, in_end: int,
    out_first: int, out_end: int,
) -> None:  # fmt: skip
    """Put a node on the stack: its parent if it is a right child, where its rows begin, what it was and where it began.

    Then the ranges of the rows that come and go. One grown from scratch has its rows in place; it ends at `out_end`.
    """
    stack[at, 0], stack[at, 1], stack[at, 2], stack[at, 3] = parent, start, old, first
    stack[at, 4], stack[at, 5], stack[at, 6], stack[at, 7] = in_first, in_end, out_first, out_end


@compiled
def _copy(
    nodes: Kinds, rows: Rows, opinions: Floats, old: int, first: int, l: int, grown: Kinds, mine: Rows,
    said: Floats, node: int, start: int, opined: int,
) -> tuple[int, int]:  # fmt: skip
    """Copy a node with everything below it; return the numbers of nodes and opinions then."""
    last = old
    while nodes[0, last] >= 0:
        last += nodes[2, last]
    for each in range(old, last + 1):
        at = node + each - old
        for field in range(4):
            grown[field, at] = nodes[field, each]
        if nodes[0, each] < 0 and nodes[2, each] >= l:
            for kind in range(3):
                for c in range(l):
                    said[opined, kind, c] = opinions[nodes[2, each] - l, kind, c]
            grown[2, at] = l + opined
            opined += 1
    for i in range(nodes[3, old]):
        mine[start + i] = rows[first + i]
    return node + last - old + 1, opined


@compiled
def _gather(
    rows: Rows, first: int, end: int, gone: Bools, come: Rows, in_first: int, in_end: int, mine: Rows, at: int
) -> None:
    """Write the rows of a node that stay, and those that come."""
    for i in range(first, end):
        if not gone[rows[i]]:
            mine[at] = rows[i]
            at += 1
    for i in range(in_first, in_end):
        mine[at] = come[i]
        at += 1


@compiled
def _sort(mine: Rows, start: int, end: int, kinds: Kinds, rank: Ints, places: Ints, buffer: Rows) -> None:
    """Put rows in the order of their contours: rows that stay came in the order of leaves."""
    n = end - start
    for i in range(n):
        buffer[i] = mine[start + i]
    if places.shape[0] > n:  # counting would look at contours that are not here
        _sort_few(mine, start, n, kinds, rank)
        return
    places[:] = 0
    for i in range(n):
        places[rank[kinds[buffer[i]]]] += 1
    at = start
    for d in range(places.shape[0]):
        count = places[d]
        places[d] = at
        at += count
    for i in range(n):
        d = rank[kinds[buffer[i]]]
        mine[places[d]] = buffer[i]
        places[d] += 1


@compiled
def _sort_few(mine: Rows, start: int, n: int, kinds: Kinds, rank: Ints) -> None:
    """Put rows in the order of their contours by Shell's method: those of equal contours in no order of their own."""
    gap = n // 2
    while gap > 0:
        for i in range(gap, n):
            row, at = mine[start + i], i
            here = rank[kinds[row]]
            while at >= gap and rank[kinds[mine[start + at - gap]]] > here:
                mine[start + at] = mine[start + at - gap]
                at -= gap
            mine[start + at] = row
        gap //= 2


@compiled
def _opine(
    runs: int, kind: Kinds, count: Ints, contours: Floats, beliefs: Floats, theta: Floats, opinion: Floats
) -> None:
    """Write the estimate of a leaf, and the mean belief and plausibility of its rows."""
    total = 0.0
    opinion[:] = 0.0
    for d in range(runs):
        total += count[d]
        for c in range(theta.shape[0]):
            opinion[1, c] += count[d] * beliefs[kind[d], c]
            opinion[2, c] += count[d] * contours[kind[d], c]
    for c in range(theta.shape[0]):
        opinion[0, c] = theta[c]
        opinion[1, c] /= total
        opinion[2, c] /= total


@compiled
def _partition(
    codes: Codes, rows: Rows, start: int, end: int, k: int, named: bool, test: int, key: np.uint64,
    buffer: Rows,
) -> int:  # fmt: skip
    """Put the rows that go left first, both sides in their order; return where the right ones begin."""
    middle, others = start, 0
    for i in range(start, end):
        row = rows[i]
        rows[middle] = row  # at i or before it: no row is lost, whichever side it goes to
        buffer[others] = row
        on_left = goes_left(np.int64(codes[np.uint32(row), k]), named, test, key)
        middle += on_left
        others += 1 - on_left
    for i in range(others):
        rows[middle + i] = buffer[i]
    return middle
