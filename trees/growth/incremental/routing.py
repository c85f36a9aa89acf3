"""Compiled loops that send rows down a tree, and keep lists of them at its leaves."""

import numpy as np

from quercus.trees.growth.incremental.arrays import Bools, Codes, Deltas, Ids, Ints
from quercus.trees.growth.incremental.prefetch import AHEAD, fetch
from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.tree.indices import NONE
from quercus.trees.tree.splits import ABOVE, BELOW, NO_NUMBER

LANES = 16  # lists that are followed at once
TOGETHER = 256  # rows that descend a tree at once


@compiled
def merge_changes(
    rows: Ids,
    was: Ids,
    opened: Deltas,
    start: Ints,
    chosen: Bools,
    more: Ids,
    group: Ids,
    ids: Ids,
    askable: Bools,
    precise: Bools,
) -> tuple[Ints, Ids, Ids, Deltas]:
    """Add rows to groups of changes, as new ones; drop the changes of earlier rows in the chosen groups.

    Parameters
    ----------
    rows, was, opened, start : the changes, group by group
    chosen : (g,) whether all rows of a group are new
    more, group : the added rows, and the group of each
    ids, askable, precise : contours of rows, whether an oracle may be asked about a row, whether a contour is precise
    """
    groups = chosen.shape[0]
    at = np.zeros(groups + 1, np.int64)
    for g in range(groups):
        for i in range(start[g], start[g + 1]):
            if not chosen[g] or was[i] < 0:
                at[g + 1] += 1
    for g in group:
        at[g + 1] += 1
    for g in range(groups):
        at[g + 1] += at[g]
    to_start = at.copy()
    to_rows = np.empty(at[groups], np.int32)
    to_was = np.empty(at[groups], np.int32)
    to_opened = np.empty(at[groups], np.int8)
    for g in range(groups):
        to = at[g]
        for i in range(start[g], start[g + 1]):
            if not chosen[g] or was[i] < 0:
                to_rows[to] = rows[i]
                to_was[to] = was[i]
                to_opened[to] = opened[i]
                to += 1
        at[g] = to
    last = more.shape[0] - 1
    for i in range(more.shape[0]):
        fetch(ids, more[min(i + AHEAD, last)])
        fetch(askable, more[min(i + AHEAD, last)])
        row = more[i]
        to = at[group[i]]
        at[group[i]] = to + 1
        to_rows[to] = row
        to_was[to] = NONE
        to_opened[to] = askable[row] and not precise[ids[row]]
    return to_start, to_rows, to_was, to_opened


@borrowing
def link_rows(rows: Ids, was: Ids, start: Ints, nodes: Ids, split: Ids, first: Ids, after: Ids) -> None:
    """Insert the rows that arrived at a leaf at the front of its list."""
    for g in range(nodes.shape[0]):
        if split[g] < 0:
            for i in range(start[g], start[g + 1]):
                if was[i] < 0:
                    after[rows[i]] = first[nodes[g]]
                    first[nodes[g]] = rows[i]


@borrowing
def branch_of(codes: Codes, row: int, split: int, attribute: Ints, cut: Ints, bins: Ints) -> int:
    """Return the branch of a row at a split; the last three parameters are those of `layout.Layout.split_columns`."""
    code: int = np.int64(codes[row, attribute[split]])  # type: ignore[assignment]
    if cut[split] < 0:
        return code
    if code >= bins[split]:
        return NO_NUMBER
    return ABOVE if code > cut[split] else BELOW


@compiled
def send_changes(
    codes: Codes,
    attribute: Ints,
    cut: Ints,
    bins: Ints,
    branches: Ints,
    rows: Ids,
    was: Ids,
    opened: Deltas,
    start: Ints,
    nodes: Ids,
    split: Ids,
    kids: Ints,
) -> tuple[Ints, Ids, tuple[Ints, Ids, Ids, Deltas]]:
    """Send the changes of split nodes to their children; those of leaves are dropped.

    Parameters
    ----------
    codes : (n, K)
    attribute, cut, bins, branches : columns of all splits, see `branch_of`; the last is the number of branches
    rows, was, opened, start, nodes : the changes, node by node
    split : (g,) split of each node, -1 for a leaf
    kids : start of each node's children

    Returns
    -------
    place, group : (c,) place of each child that receives a change, and the index of its parent in `nodes`
    start, rows, was, opened : the changes, child by child
    """
    groups = nodes.shape[0]
    first = np.zeros(groups + 1, np.int64)
    for g in range(groups):
        first[g + 1] = first[g] + (branches[split[g]] if split[g] >= 0 else 0)
    to = np.zeros(first[groups], np.int32)  # number of changes of each child, and then their destination
    way = np.empty(rows.shape[0], np.int16)
    last = rows.shape[0] - 1
    for g in range(groups):
        if split[g] < 0:
            continue
        here = to[first[g] : first[g + 1]]
        if cut[split[g]] < 0:
            k = attribute[split[g]]
            for i in range(start[g], start[g + 1]):
                fetch(codes, rows[min(i + AHEAD, last)])
                code = codes[rows[i], k]
                way[i] = code
                here[code] += 1
        else:
            for i in range(start[g], start[g + 1]):
                fetch(codes, rows[min(i + AHEAD, last)])
                way[i] = branch_of(codes, rows[i], split[g], attribute, cut, bins)
                here[way[i]] += 1
    count = np.count_nonzero(to)
    place, group, below = np.empty(count, np.int64), np.empty(count, np.int32), np.zeros(count + 1, np.int64)
    c, total = 0, 0
    for g in range(groups):
        for b in range(first[g + 1] - first[g]):
            size = to[first[g] + b]
            if size > 0:
                place[c] = kids[nodes[g]] + b
                group[c] = g
                to[first[g] + b] = total
                total += size
                c += 1
                below[c] = total
    to_rows, to_was, to_opened = (
        np.empty(total, np.int32),
        np.empty(total, np.int32),
        np.empty(total, np.int8),
    )
    for g in range(groups):
        if split[g] < 0:
            continue
        here = to[first[g] : first[g + 1]]
        for i in range(start[g], start[g + 1]):
            at = here[way[i]]
            here[way[i]] += 1
            to_rows[at] = rows[i]
            to_was[at] = was[i]
            to_opened[at] = opened[i]
    return place, group, (below, to_rows, to_was, to_opened)


@compiled
def list_rows(leaves: Ids, owner: Ints, first: Ids, after: Ids, most: int) -> tuple[Ids, Ids]:
    """Return at most `most` rows in the lists of the leaves, and the owner of each row's leaf.

    Several lists are followed at once, so that their links are loaded from memory together.
    """
    rows = np.empty(most, np.int32)
    whose = np.empty(most, np.int32)
    lane_row = np.full(LANES, NONE, np.int32)
    lane_owner = np.zeros(LANES, np.int32)
    count = 0
    leaf = 0
    going = True
    while going:
        going = False
        for lane in range(LANES):
            row = lane_row[lane]
            while row < 0 and leaf < leaves.shape[0]:
                row = first[leaves[leaf]]
                lane_owner[lane] = owner[leaf]
                leaf += 1
            if row >= 0:
                rows[count] = row
                whose[count] = lane_owner[lane]
                count += 1
                lane_row[lane] = after[row]
                going = True
    return rows[:count], whose[:count]


@compiled
def relist_rows(
    codes: Codes,
    attribute: Ints,
    cut: Ints,
    bins: Ints,
    rows: Ids,
    whose: Ids,
    roots: Ids,
    known: Ids,
    split: Ids,
    kids: Ints,
    kid: Ids,
    first: Ids,
    after: Ids,
) -> tuple[Ids, Ids]:
    """Send the rows that subtrees know to the lists of their leaves; return the others.

    Many rows descend in step, so that none waits for the memory that another one needs.

    Parameters
    ----------
    codes : (n, K)
    attribute, cut, bins : see `branch_of`
    rows, whose : (m,) rows, and the index of each row's root in `roots`
    roots, known : (r,) the roots, and the first row that each subtree does not know
    split, kids : columns of all nodes
    kid : the children, see `Nodes`
    first, after : the lists
    """
    others = np.empty(rows.shape[0], np.int32)
    of_others = np.empty(rows.shape[0], np.int32)
    at = np.empty(TOGETHER, np.int32)
    count = 0
    for begin in range(0, rows.shape[0], TOGETHER):
        here = rows[begin : begin + TOGETHER]
        for row in here:
            fetch(codes, row)
            fetch(after, row)
        for i in range(here.shape[0]):
            root = whose[begin + i]
            at[i] = roots[root]
            if here[i] >= known[root]:
                at[i] = NONE
                others[count] = here[i]
                of_others[count] = root
                count += 1
        going = True
        while going:
            going = False
            for i in range(here.shape[0]):
                if at[i] >= 0 and split[at[i]] >= 0:
                    at[i] = kid[kids[at[i]] + branch_of(codes, here[i], split[at[i]], attribute, cut, bins)]
                    going = True
        for i in range(here.shape[0]):
            if at[i] >= 0:
                after[here[i]] = first[at[i]]
                first[at[i]] = here[i]
    return others[:count], of_others[:count]
