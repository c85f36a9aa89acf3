"""Compiled: trees grown on the rows of a memory, from scratch or from earlier trees (theory §10.2, §10.6)."""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.memory_forest.draws import LEFT, RIGHT, derived_key, is_heads
from quercus.trees.memory_forest.nodes import (
    SOLE,
    Bools,
    Codes,
    Column,
    Floats,
    Ints,
    Keys,
    Kinds,
    Labels,
    Rows,
    choose_test,
    choose_test_of_classes,
    count_classes,
    estimate_node,
    names_key,
    runs_of,
)
from quercus.trees.tree.indices import NONE


@compiled
def grow(
    codes: Codes, named: Bools, varying: Ints, kinds: Kinds, labels: Labels, contours: Floats, sole: Kinds,
    rank: Ints, keys: Keys, table: Floats, nodes: Kinds, rows: Rows, opinions: Floats, counts: Ints, come: Rows,
    go: Rows, gone: Bools,
) -> tuple[Kinds, Rows, Floats, Ints]:  # fmt: skip
    """Grow the trees of a memory from their earlier state, without the rows that go, with the rows that come.

    Without an earlier state the trees are grown from scratch. A node with rows that come or go decides anew. If its
    test stays, its children follow in turn; else everything below it is grown from its rows. A node whose rows stay is
    copied with its subtree, which is a function of these rows and of its path.

    Parameters
    ----------
    codes : (all rows, K)
    named : (K,) whether the attribute is nominal
    varying : (A,) numbers of the attributes that vary in the log
    kinds : (all rows,) number of each row's contour
    labels : (all rows,) class of each row with a precise contour, else -1
    contours : (contours, l) plausibilities, 1 at most
    sole : (contours,) the class of a precise contour, else -1
    rank : (contours,) their places in the lexicographic order
    keys : (trees,) keys of the roots
    table : result of `quercus.trees.memory_forest.nodes.log_table`
    nodes, rows, opinions, counts : the earlier state, see below; empty if there is none
    come, go : rows that come, by rank, and rows that go; a row whose contour changed goes and comes
    gone : (all rows,) whether a row goes

    Returns
    -------
    nodes : (nodes, 4) attribute, test, skip and size of each node in pre-order, one tree after the other. The left
        child follows its parent, the right one stands `skip` further on. A leaf has attribute -1, and in `skip` the
        number of its opinion; below l that is a class alone
    rows : (trees n,) in the order of the leaves
    opinions : (opinions, 3, l), of each tree from number l on: of each leaf whose labels are not one class alone, the
        estimate; its bounds are those of the earlier state, or NaN (`quercus.trees.memory_forest.leaf_bounds`)
    counts : (trees, 2) of each tree the numbers of nodes and opinions
    """
    trees, l = keys.shape[0], contours.shape[1]
    had = rows.shape[0] // trees
    n = had + come.shape[0] - go.shape[0]
    grown, mine = np.empty((2 * n * trees, 4), np.int32), np.empty(n * trees + 1, np.int32)
    new_opinions, new_counts = np.empty((n * trees, 3, l)), np.empty((trees, 2), np.int64)
    most = min(n, contours.shape[0])
    stack, below, tried = (
        np.empty((n + 1, 8), np.int64),
        np.empty(n + 1, np.uint64),
        np.empty(n + 1, np.uint64),
    )
    class_counts, classes = np.empty((n + 1, l), np.int32), np.empty(l, np.int32)
    parts = np.empty((2, l), np.int32)
    kind, count, left = np.empty(most, np.int32), np.empty(most, np.int64), np.empty(most, np.int64)
    share, theta, order = np.empty((most, l)), np.empty(l), np.empty(varying.shape[0], np.int64)
    column, label = np.empty(n, np.uint16), np.empty(n, np.int16)
    buffer, places = np.empty(max(n, go.shape[0], come.shape[0]), np.int32), np.empty(rank.shape[0], np.int64)
    coming, going = np.empty(come.shape[0], np.int32), np.empty(go.shape[0], np.int32)
    node, opinion, made, opined = 0, 0, 0, 0
    for m in range(trees):
        for i in range(come.shape[0]):
            coming[i] = come[i]
        for i in range(go.shape[0]):
            going[i] = go[i]
        new_counts[m, 0], new_counts[m, 1] = _grow_tree(
            codes, named, varying, kinds, labels, contours, sole, rank, keys[m], table, nodes[node:],
            rows[m * had:], opinions[opinion:], coming, going, gone, grown[made:], mine[m * n:],
            new_opinions[opined:], stack, below, tried, class_counts, classes, parts, kind, count, left, share, theta,
            order, column, label, buffer, places,
        )  # fmt: skip
        if had > 0:
            node += counts[m, 0]
            opinion += counts[m, 1]
        made += new_counts[m, 0]
        opined += new_counts[m, 1]
    return grown[:made].copy(), mine[: n * trees], new_opinions[:opined].copy(), new_counts


@borrowing
def _grow_tree(
    codes: Codes, named: Bools, varying: Ints, kinds: Kinds, labels: Labels, contours: Floats, sole: Kinds,
    rank: Ints, key: np.uint64, table: Floats, nodes: Kinds, rows: Rows, opinions: Floats, come: Rows, go: Rows,
    gone: Bools, grown: Kinds, mine: Rows, new_opinions: Floats, stack: Ints, keys: Keys, tried: Keys,
    class_counts: Kinds, classes: Kinds, parts: Kinds, kind: Kinds, count: Ints, left: Ints, share: Floats,
    theta: Floats, order: Ints, column: Column, label: Labels, buffer: Rows, places: Ints,
) -> tuple[int, int]:  # fmt: skip
    """Write a tree to `grown`, `mine` and `new_opinions`; return the numbers of its nodes and opinions.

    `come` and `go` are reordered. For the nodes that wait, `class_counts` has the count of each class, first -1 if it
    is not known, and `tried` the attributes that are known not to vary.
    """
    l = contours.shape[1]
    stack[0, 0], stack[0, 1], stack[0, 2] = NONE, 0, 0 if rows.shape[0] else NONE
    stack[0, 3], stack[0, 4], stack[0, 5], stack[0, 6], stack[0, 7] = 0, 0, come.shape[0], 0, go.shape[0]
    keys[0], tried[0], class_counts[0, 0] = key, 0, NONE
    waiting, made, opined = 1, 0, 0
    while waiting > 0:
        waiting -= 1
        parent, start, old, first = stack[waiting, 0], stack[waiting, 1], stack[waiting, 2], stack[waiting, 3]
        in_first, in_end, out_first, out_end = (
            stack[waiting, 4], stack[waiting, 5], stack[waiting, 6], stack[waiting, 7],
        )  # fmt: skip
        here, same, node = keys[waiting], tried[waiting], made
        if parent >= 0:
            grown[parent, 2] = node - parent
        if old >= 0 and in_first == in_end and out_first == out_end:
            made, opined = _copy_subtree(
                nodes, rows, opinions, old, first, l, grown, mine, new_opinions, node, start, opined
            )
            continue
        end = start + in_end - in_first
        if old >= 0:
            end += nodes[old, 3] - (out_end - out_first)
            _gather_rows(rows, first, first + nodes[old, 3], gone, come, in_first, in_end, mine, start)
        elif in_end > in_first:
            for i in range(end - start):
                mine[start + i] = come[in_first + i]
        else:  # rows of a node that is grown from scratch are in place
            end = out_end
        made += 1
        here_rows = mine[start:end]
        k, test, top, is_sole, is_precise = NONE, 0, np.int64(0), False, True
        if class_counts[waiting, 0] >= 0:
            for c in range(l):
                classes[c] = class_counts[waiting, c]
        else:
            is_precise = count_classes(here_rows, labels, classes)
        if is_precise:
            top = np.argmax(classes)
            is_sole = classes[top] == end - start
            if not is_sole:
                k, test, same = choose_test_of_classes(
                    codes,
                    named,
                    varying,
                    here_rows,
                    here,
                    classes,
                    labels,
                    table,
                    same,
                    order,
                    parts,
                    label,
                    column,
                )
        if not is_precise or (k == NONE and not is_sole):
            if old >= 0 or is_precise:
                _sort_rows(mine, start, end, kinds, rank, places, buffer)
            runs = runs_of(here_rows, kinds, kind, count)
            estimate_node(runs, kind, count, contours, sole, theta, share)
            top = np.argmax(theta)
            is_sole = theta[top] >= SOLE
            if not is_precise and not is_sole and end - start > 1:
                k, test = choose_test(
                    codes, named, varying, here_rows, here, runs, count, share, table, order, left, column
                )
        stays = old >= 0 and nodes[old, 0] == k and nodes[old, 1] == test
        grown[node, 0], grown[node, 1], grown[node, 3] = k, test, end - start
        if k == NONE:
            grown[node, 2] = top
            if not (is_sole and is_precise):  # an uncertain label leaves the other classes plausible
                grown[node, 2] = l + opined
                for c in range(l):
                    new_opinions[opined, 0, c] = theta[c]
                    new_opinions[opined, 1, c] = new_opinions[opined, 2, c] = np.nan
                opined += 1
            continue
        mask = names_key(here, test)  # of no use to a number
        if stays:
            in_middle = _partition_rows(codes, come, in_first, in_end, k, named[k], test, mask, buffer)
            out_middle = _partition_rows(codes, go, out_first, out_end, k, named[k], test, mask, buffer)
            size = nodes[old + 1, 3]
            middle = start + size + (in_middle - in_first) - (out_middle - out_first)
            _push_node(stack, waiting, node, middle, old + nodes[old, 2], first + size, in_middle, in_end, out_middle,
                  out_end)  # fmt: skip
            _push_node(
                stack, waiting + 1, NONE, start, old + 1, first, in_first, in_middle, out_first, out_middle
            )
        else:
            middle = _partition_rows(codes, mine, start, end, k, named[k], test, mask, buffer)
            _push_node(stack, waiting, node, middle, NONE, 0, 0, 0, 0, end)
            _push_node(stack, waiting + 1, NONE, start, NONE, 0, 0, 0, 0, middle)
        keys[waiting], keys[waiting + 1] = derived_key(here, RIGHT), derived_key(here, LEFT)
        tried[waiting] = tried[waiting + 1] = same
        class_counts[waiting, 0] = class_counts[waiting + 1, 0] = NONE
        if is_precise:
            for c in range(l):
                class_counts[waiting, c], class_counts[waiting + 1, c] = classes[c] - parts[1, c], parts[1, c]
        waiting += 2
    return made, opined


@borrowing
def _push_node(
    stack: Ints, at: int, parent: int, start: int, old: int, first: int, in_first: int, in_end: int,
    out_first: int, out_end: int,
) -> None:  # fmt: skip
    """Push a node: its parent if it is a right child, the start of its rows, its earlier node and the start of that.

    The ranges of the rows that come and go follow. A node grown from scratch has its rows in place, up to `out_end`.
    """
    stack[at, 0], stack[at, 1], stack[at, 2], stack[at, 3] = parent, start, old, first
    stack[at, 4], stack[at, 5], stack[at, 6], stack[at, 7] = in_first, in_end, out_first, out_end


@borrowing
def _copy_subtree(
    nodes: Kinds, rows: Rows, opinions: Floats, old: int, first: int, l: int, grown: Kinds, mine: Rows,
    new_opinions: Floats, node: int, start: int, opined: int,
) -> tuple[int, int]:  # fmt: skip
    """Copy a node with everything below it; return the numbers of nodes and opinions then."""
    last = old
    while nodes[last, 0] >= 0:
        last += nodes[last, 2]
    for each in range(old, last + 1):
        at = node + each - old
        for field in range(4):
            grown[at, field] = nodes[each, field]
        if nodes[each, 0] < 0 and nodes[each, 2] >= l:
            for kind in range(3):
                for c in range(l):
                    new_opinions[opined, kind, c] = opinions[nodes[each, 2] - l, kind, c]
            grown[at, 2] = l + opined
            opined += 1
    for i in range(nodes[old, 3]):
        mine[start + i] = rows[first + i]
    return node + last - old + 1, opined


@borrowing
def _gather_rows(
    rows: Rows, first: int, end: int, gone: Bools, come: Rows, in_first: int, in_end: int, mine: Rows, at: int
) -> None:
    """Write the rows of a node that stay, and those that come. The places behind them may be overwritten."""
    for i in range(first, end):
        mine[np.uint32(at)] = rows[np.uint32(i)]
        at += 1 - gone[np.uint32(rows[np.uint32(i)])]
    for i in range(in_first, in_end):
        mine[at] = come[i]
        at += 1


@borrowing
def _sort_rows(
    mine: Rows, start: int, end: int, kinds: Kinds, rank: Ints, places: Ints, buffer: Rows
) -> None:
    """Sort rows by the order of their contours; rows that stay are in the order of leaves."""
    n = end - start
    for i in range(n):
        buffer[i] = mine[start + i]
    if places.shape[0] > n:  # counting would visit contours that do not occur here
        _sort_few(mine, start, n, kinds, rank)
        return
    for d in range(places.shape[0]):
        places[d] = 0
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


@borrowing
def _sort_few(mine: Rows, start: int, n: int, kinds: Kinds, rank: Ints) -> None:
    """Sort rows by the order of their contours with Shell's method, which is not stable."""
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


@borrowing
def _partition_rows(
    codes: Codes, rows: Rows, start: int, end: int, k: int, named: bool, test: int, key: np.uint64,
    buffer: Rows,
) -> int:  # fmt: skip
    """Move the rows that go left to the front, both sides in order; return the start of the right ones."""
    middle, others = np.int64(0), np.int64(0)
    mine = rows[start:end]
    skipped = 1 - (test & 1)  # less 1, a missing code is above all cuts
    cut = np.uint16((test >> 1) - skipped)
    for i in range(mine.shape[0]):
        row = mine[i]
        mine[middle] = row  # at i or before it, so no row is lost
        buffer[others] = row
        code = codes[np.uint32(row), np.uint32(k)]
        on_left = is_heads(derived_key(key, np.int64(code))) if named else np.uint16(code - skipped) <= cut
        middle += on_left
        others += 1 - on_left
    for i in range(others):
        mine[middle + i] = buffer[i]
    return start + middle  # type: ignore[return-value]
