"""Compiled loops that count rows into cells.

A cell is a slot of a node (`layout`); it holds the count of each contour. Contours and rows are identified by number.
"""

import numpy as np

from quercus.trees.growth.incremental.arrays import Bools, Codes, Ids, Ints
from quercus.trees.growth.incremental.prefetch import AHEAD, fetch
from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.tree.indices import NONE

FIRST_WIDTH = 4  # columns of a new block
INSERTED_CONTOURS = 32  # contours that are inserted in order one by one; more of them are sorted afterwards


@borrowing
def column_of(column: Ids, held: Ids, used: int) -> None:
    """Write the column of each contour in a block."""
    for j in range(used):
        column[held[j]] = j


@compiled
def new_columns(
    ids: Ids,
    rows: Ids,
    start: Ints,
    blocks: Ids,
    pool: Ids,
    at: Ints,
    width: Ids,
    used: Ids,
    contours: int,
    column: Ids,
) -> Ids:
    """Return the most columns that each group of rows may add to its block: (groups,). `column` stays all -1.

    That is the number of contours without a column. They are counted only if the block may have too few columns for
    all `contours`.
    """
    fresh = np.zeros(blocks.shape[0], np.int32)
    last = rows.shape[0] - 1
    for g in range(blocks.shape[0]):
        b = blocks[g]
        n = used[b]
        most = min(contours - n, start[g + 1] - start[g])
        if n + most <= max(width[b], FIRST_WIDTH):
            fresh[g] = most
            continue
        held = pool[at[b] :]
        column_of(column, held, n)
        for i in range(start[g], start[g + 1]):
            fetch(ids, rows[min(i + AHEAD, last)])
            contour = ids[rows[i]]
            if column[contour] < 0:
                column[contour] = n
                fresh[g] += 1
        for j in range(n):
            column[held[j]] = NONE
        for i in range(start[g], start[g + 1]):
            column[ids[rows[i]]] = NONE
    return fresh


@borrowing
def unspent_attributes(node: int, parent: Ids, split: Ids, spent: Ints, free: Ids) -> int:
    """Write the attributes that the splits above have not used up into `free`, and return their number."""
    K = free.shape[0]
    for k in range(K):
        free[k] = k
    above = parent[node]
    while above >= 0:
        if spent[split[above]] >= 0:
            free[spent[split[above]]] = NONE
        above = parent[above]
    count = 0
    for k in range(K):
        if free[k] >= 0:
            free[count] = k
            count += 1
    return count


@compiled
def count_rows(
    codes: Codes,
    offsets: Ints,
    ids: Ids,
    rows: Ids,
    was: Ids,
    start: Ints,
    nodes: Ids,
    parent: Ids,
    split: Ids,
    spent: Ints,
    blocks: Ids,
    pool: Ids,
    at: Ints,
    width: Ids,
    used: Ids,
    column: Ids,
    dirty: Bools,
    size: Ids,
) -> None:
    """Count rows in the blocks of their nodes, and remove their earlier counts.

    Spent attributes are omitted: at their node they have one value.

    Parameters
    ----------
    codes : (n, K), in row-major order: they are read one row at a time
    offsets : (K,) first slot of each attribute
    ids : (n,) present contour of each row
    rows, was : (m,) rows, group by group, and their earlier contours; -1 for a row that is new here
    start, nodes : groups of `rows`, and their nodes
    parent, split : columns of all nodes
    spent : attributes that each split uses up, see `quercus.trees.growth.incremental.layout.Layout`
    blocks : (g,) the block of each group
    pool, at, width, used : the blocks, see `quercus.trees.growth.incremental.tally`
    column : (d,) scratch, all -1
    dirty, size : (blocks, S) marks of the cells whose counts change; number of rows in each cell
    """
    slots = dirty.shape[1]
    free = np.empty(codes.shape[1], np.int32)
    arrived = np.zeros(slots, np.int32)  # rows of a group in each slot
    last = rows.shape[0] - 1
    for g in range(blocks.shape[0]):
        b = blocks[g]
        w = width[b]
        held = pool[at[b] :]
        counts = pool[at[b] + w :]
        left = unspent_attributes(nodes[g], parent, split, spent, free) if slots > 1 else 0
        column_of(column, held, used[b])
        for i in range(start[g], start[g + 1]):
            fetch(ids, rows[min(i + AHEAD, last)])
            fetch(codes, rows[min(i + AHEAD, last)])
            row = rows[i]
            new = ids[row]
            if was[i] == new:
                continue
            to = column[new]
            if to < 0:
                to = used[b]
                column[new] = to
                held[to] = new
                used[b] += 1
            counts[to] += 1
            if was[i] < 0:
                arrived[0] += 1
                for f in range(left):
                    slot = offsets[free[f]] + codes[row, free[f]]
                    counts[slot * w + to] += 1
                    arrived[slot] += 1
                continue
            back = column[was[i]]
            counts[back] -= 1
            dirty[b, 0] = True
            for f in range(left):
                slot = offsets[free[f]] + codes[row, free[f]]
                counts[slot * w + to] += 1
                counts[slot * w + back] -= 1
                dirty[b, slot] = True
        for slot in range(slots):
            if arrived[slot] > 0:
                size[b, slot] += arrived[slot]
                dirty[b, slot] = True
                arrived[slot] = 0
        for j in range(used[b]):
            column[held[j]] = NONE


@borrowing
def copy_blocks(
    pool: Ids, old: Ints, old_width: Ids, to: Ids, new: Ints, new_width: Ids, used: Ids, slots: int
) -> None:
    """Copy blocks within or between pools: from `pool` at `old` into `to` at `new`, each with its own widths."""
    for g in range(old.shape[0]):
        u = used[g]
        for j in range(u):
            to[new[g] + j] = pool[old[g] + j]
        for slot in range(slots):
            a = old[g] + old_width[g] * (slot + 1)
            b = new[g] + new_width[g] * (slot + 1)
            for j in range(u):
                to[b + j] = pool[a + j]
            for j in range(u, new_width[g]):
                to[b + j] = 0


@borrowing
def sorted_columns(ids: Ids, rows: Ids, column: Ids, held: Ids) -> int:
    """List the contours of rows in `held` and their columns in `column`; return their number.

    A few contours are listed in ascending order.
    """
    d = 0
    for row in rows:
        contour = ids[row]
        if column[contour] < 0:
            column[contour] = 0
            j = d
            while j > 0 and d < INSERTED_CONTOURS and held[j - 1] > contour:
                held[j] = held[j - 1]
                j -= 1
            held[j] = contour
            d += 1
    for j in range(d):
        column[held[j]] = j
    return d


@compiled
def count_nodes(ids: Ids, rows: Ids, start: Ints, column: Ids) -> tuple[Ints, Ids, Ints]:
    """Return the contours of rows, group by group, in sparse form; `column` is scratch (d,), all -1."""
    groups = start.shape[0] - 1
    first = np.zeros(groups + 1, np.int64)
    out_ids = np.empty(rows.shape[0], np.int32)
    out_counts = np.empty(rows.shape[0], np.int64)
    for g in range(groups):
        here = rows[start[g] : start[g + 1]]
        out = first[g]
        d = sorted_columns(ids, here, column, out_ids[out:])
        for j in range(d):
            out_counts[out + j] = 0
        for row in here:
            out_counts[out + column[ids[row]]] += 1
        for j in range(d):
            column[out_ids[out + j]] = NONE
        first[g + 1] = out + d
    return first, out_ids[: first[groups]], out_counts[: first[groups]]
