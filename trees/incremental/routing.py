"""Compiled loops that send rows down a tree, and keep lists of them at its leaves."""

import numpy as np

from quercus.trees.incremental.arrays import NONE, Codes, Deltas, Ids, Ints
from quercus.trees.solver.compiled import compiled


@compiled
def group(keys: Ints, groups: int) -> tuple[Ids, Ints]:
    """Sort stably by a small key: order (m,), and where each group starts in it (groups + 1,)."""
    start = np.zeros(groups + 1, np.int64)
    for i in range(keys.shape[0]):
        start[keys[i] + 1] += 1
    for g in range(groups):
        start[g + 1] += start[g]
    at = start.copy()
    order = np.empty(keys.shape[0], np.int32)
    for i in range(keys.shape[0]):
        order[at[keys[i]]] = i
        at[keys[i]] += 1
    return order, start


@compiled
def link(rows: Ids, was: Ids, start: Ints, nodes: Ids, split: Ids, first: Ids, after: Ids) -> None:
    """Put the rows that arrived at a leaf at the front of its list."""
    for g in range(nodes.shape[0]):
        if split[g] < 0:
            for i in range(start[g], start[g + 1]):
                if was[i] < 0:
                    after[rows[i]] = first[nodes[g]]
                    first[nodes[g]] = rows[i]


@compiled
def meet(
    codes: Codes, rows: Ids, start: Ints, nodes: Ids, split: Ids, kids: Ints, rank: Ids
) -> tuple[Ids, Ints, Ids, Ints]:
    """Find the children that rows of split nodes go to.

    Parameters
    ----------
    codes : (n, K)
    rows, start, nodes : rows, node by node
    split : (g,) attribute of each node, -1 for a leaf
    kids : where the children of each node stand
    rank : scratch, one for each such place, all -1

    Returns
    -------
    child : (m,) child of each row, counted in the order in which they are met; -1 for rows of leaves
    place, group : (c,) where each child stands, and which of `nodes` is its parent
    start : (c + 1,) where the rows of each child begin, once sorted by child
    """
    most = min(rows.shape[0], rank.shape[0])
    child = np.empty(rows.shape[0], np.int32)
    place = np.empty(most, np.int64)
    group = np.empty(most, np.int32)
    below = np.zeros(most + 1, np.int64)
    count = 0
    for g in range(nodes.shape[0]):
        if split[g] < 0:
            child[start[g] : start[g + 1]] = NONE
            continue
        first = kids[nodes[g]]
        for i in range(start[g], start[g + 1]):
            at = first + codes[rows[i], split[g]]
            if rank[at] < 0:
                rank[at] = count
                place[count] = at
                group[count] = g
                count += 1
            child[i] = rank[at]
            below[rank[at] + 1] += 1
    for c in range(count):
        rank[place[c]] = NONE
        below[c + 1] += below[c]
    return child, place[:count], group[:count], below[: count + 1]


@compiled
def descend(rows: Ids, was: Ids, opened: Deltas, child: Ids, start: Ints) -> tuple[Ids, Ids, Deltas]:
    """Sort changes by the `child` they go to, of which `start` says where each one's begin; -1 goes nowhere."""
    at = start.copy()
    total = start[start.shape[0] - 1]
    to_rows = np.empty(total, np.int32)
    to_was = np.empty(total, np.int32)
    to_opened = np.empty(total, np.int8)
    for i in range(rows.shape[0]):
        c = child[i]
        if c >= 0:
            to = at[c]
            at[c] += 1
            to_rows[to] = rows[i]
            to_was[to] = was[i]
            to_opened[to] = opened[i]
    return to_rows, to_was, to_opened


@compiled
def listed(leaves: Ids, owner: Ints, first: Ids, after: Ids) -> tuple[Ids, Ints]:
    """Return the rows in the lists of the leaves, and the owner of each one's leaf."""
    total = 0
    for leaf in leaves:
        row = first[leaf]
        while row >= 0:
            total += 1
            row = after[row]
    rows = np.empty(total, np.int32)
    whose = np.empty(total, np.int64)
    count = 0
    for i in range(leaves.shape[0]):
        row = first[leaves[i]]
        while row >= 0:
            rows[count] = row
            whose[count] = owner[i]
            count += 1
            row = after[row]
    return rows, whose
