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
def unborn(
    codes: Codes, rows: Ids, start: Ints, nodes: Ids, split: Ids, kids: Ints, kid: Ids, width: Ints
) -> tuple[Ids, Ids, Ints]:
    """Find the children that rows go to and that do not exist yet: parent, code and place of each."""
    most = 0
    for g in range(nodes.shape[0]):
        if split[g] >= 0:
            most += min(width[split[g]], start[g + 1] - start[g])
    parent = np.empty(most, np.int32)
    code = np.empty(most, np.int32)
    place = np.empty(most, np.int64)
    count = 0
    for g in range(nodes.shape[0]):
        if split[g] < 0:
            continue
        for i in range(start[g], start[g + 1]):
            at = kids[nodes[g]] + codes[rows[i], split[g]]
            if kid[at] == NONE:
                kid[at] = NONE - 1  # met, and about to be
                parent[count] = nodes[g]
                code[count] = codes[rows[i], split[g]]
                place[count] = at
                count += 1
    return parent[:count], code[:count], place[:count]


@compiled
def descend(
    codes: Codes,
    rows: Ids,
    was: Ids,
    opened: Deltas,
    start: Ints,
    nodes: Ids,
    split: Ids,
    kids: Ints,
    kid: Ids,
    rank: Ids,
) -> tuple[Ids, Ints, Ids, Ids, Deltas]:
    """Send the changes of split nodes on to their children; see `quercus.trees.incremental.growing.Changes`.

    `rank` is scratch as long as `kid`, all -1.
    """
    most = min(rows.shape[0], kid.shape[0])
    places = np.empty(most, np.int64)
    sizes = np.zeros(most + 1, np.int64)
    count = 0
    for g in range(nodes.shape[0]):
        if split[g] < 0:
            continue
        for i in range(start[g], start[g + 1]):
            at = kids[nodes[g]] + codes[rows[i], split[g]]
            if rank[at] < 0:
                rank[at] = count
                places[count] = at
                count += 1
            sizes[rank[at] + 1] += 1
    below = np.empty(count, np.int32)
    for c in range(count):
        sizes[c + 1] += sizes[c]
        below[c] = kid[places[c]]
    below_start = sizes[: count + 1].copy()
    total = sizes[count]
    to_rows = np.empty(total, np.int32)
    to_was = np.empty(total, np.int32)
    to_opened = np.empty(total, np.int8)
    for g in range(nodes.shape[0]):
        if split[g] < 0:
            continue
        for i in range(start[g], start[g + 1]):
            c = rank[kids[nodes[g]] + codes[rows[i], split[g]]]
            to = sizes[c]
            sizes[c] += 1
            to_rows[to] = rows[i]
            to_was[to] = was[i]
            to_opened[to] = opened[i]
    for c in range(count):
        rank[places[c]] = NONE
    return below, below_start, to_rows, to_was, to_opened


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
