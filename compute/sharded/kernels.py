"""Compiled loops of sharded growth: they count and divide the rows of a shard, and add the counts of all shards.

The rows of a node are adjacent in the columns of a shard, in any order: the counts do not depend on it.
"""

import numpy as np

from quercus.trees.growth.incremental.arrays import Bools, Codes, Ids, Ints
from quercus.trees.growth.incremental.routing import branch_of
from quercus.trees.growth.incremental.splitting import Book, enter_cell, enter_cuts
from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.tree.indices import NONE


@compiled
def count_shard(
    codes: Codes, ids: Ids, begin: Ints, end: Ints, free: Bools, offsets: Ints, slots: int, column: Ids
) -> tuple[Ints, Ids, Ids, Ids]:
    """Count the rows of nodes by slot and contour.

    Parameters
    ----------
    codes, ids : (n, K) and (n,), codes and contour of each row
    begin, end : (g,) range of the rows of each node
    free : (g, K) attributes that may still split the node
    offsets, slots : see `quercus.trees.growth.incremental.layout.Layout`
    column : (d,) scratch, all -1

    Returns
    -------
    first : (g + 1,) start of the entries of each node
    slot, contour, count : the entries, by ascending slot; slot 0 is the node itself
    """
    groups = begin.shape[0]
    first = np.zeros(groups + 1, np.int64)
    room = 1024
    slot_of, contour_of, count_of = (
        np.empty(room, np.int32),
        np.empty(room, np.int32),
        np.empty(room, np.int32),
    )
    held, left = np.empty(column.shape[0], np.int32), np.empty(offsets.shape[0], np.int64)
    table = np.zeros(0, np.int32)
    n = 0
    for g in range(groups):
        d = 0
        for i in range(begin[g], end[g]):
            contour = ids[i]
            if column[contour] < 0:
                column[contour] = d
                held[d] = contour
                d += 1
        if slots * d > table.shape[0]:
            table = np.zeros(2 * slots * d, np.int32)
        table[: slots * d] = 0
        count = 0
        for k in range(offsets.shape[0]):
            if free[g, k]:
                left[count] = k
                count += 1
        for i in range(begin[g], end[g]):
            j = column[ids[i]]
            table[j] += 1
            for f in range(count):
                k = left[f]
                table[(offsets[k] + codes[i, k]) * d + j] += 1
        if n + slots * d > room:
            room = 2 * (n + slots * d)
            more_slots, more_contours = np.empty(room, np.int32), np.empty(room, np.int32)
            more_counts = np.empty(room, np.int32)
            more_slots[:n], more_contours[:n], more_counts[:n] = slot_of[:n], contour_of[:n], count_of[:n]
            slot_of, contour_of, count_of = more_slots, more_contours, more_counts
        for slot in range(slots):
            for j in range(d):
                if table[slot * d + j] > 0:
                    slot_of[n], contour_of[n], count_of[n] = slot, held[j], table[slot * d + j]
                    n += 1
        first[g + 1] = n
        for j in range(d):
            column[held[j]] = NONE
    return first, slot_of[:n].copy(), contour_of[:n].copy(), count_of[:n].copy()


@compiled
def divide_rows(
    codes: Codes,
    ids: Ids,
    begin: Ints,
    end: Ints,
    split: Ids,
    attribute: Ints,
    cut: Ints,
    bins: Ints,
    branches: Ints,
) -> tuple[Ints, Ints]:
    """Put the rows of each split node in order of branch, in place.

    Parameters
    ----------
    codes, ids, begin, end : see `count_shard`; codes and ids are reordered
    split : (g,) split of each node, -1 for a leaf
    attribute, cut, bins : of all splits, see `Layout.split_columns`
    branches : number of branches of all splits

    Returns
    -------
    first : (g + 1,) start of the branches of each node
    stop : end of the rows of each branch; they begin at the end of the branch before, or at the start of the node
    """
    groups = begin.shape[0]
    first = np.zeros(groups + 1, np.int64)
    for g in range(groups):
        first[g + 1] = first[g] + (branches[split[g]] if split[g] >= 0 else 0)
    stop = np.zeros(first[groups], np.int64)
    for g in range(groups):
        if split[g] < 0:
            continue
        here = stop[first[g] : first[g + 1]]
        for i in range(begin[g], end[g]):
            here[branch_of(codes, i, split[g], attribute, cut, bins)] += 1
        free = np.empty(here.shape[0], np.int64)  # place of the next row of each branch
        at = begin[g]
        for b in range(here.shape[0]):
            free[b] = at
            at += here[b]
            here[b] = at
        for b in range(here.shape[0]):
            while free[b] < here[b]:
                i = free[b]
                way = branch_of(codes, i, split[g], attribute, cut, bins)
                if way != b:
                    to = free[way]
                    for k in range(codes.shape[1]):
                        codes[i, k], codes[to, k] = codes[to, k], codes[i, k]
                    ids[i], ids[to] = ids[to], ids[i]
                free[way] += 1
    return first, stop


@compiled
def add_counts(
    nodes: int,
    first: Ints,
    slot_of: Ids,
    contour_of: Ids,
    count_of: Ids,
    free: Bools,
    offsets: Ints,
    widths: Ints,
    cuts: Ints,
    first_cell: Ints,
    slots: int,
    rooms: tuple[int, int],
    column: Ids,
) -> Book:
    """Add the counts of the same nodes in all shards, and enter the cells of their candidates.

    Parameters
    ----------
    nodes : number of nodes
    first : (shards, nodes + 1) start of the entries of each node of each shard
    slot_of, contour_of, count_of : entries of all shards, see `count_shard`
    free : (nodes, K) attributes that may still split the node
    offsets, widths, cuts, first_cell : the sheet of the layout
    slots : ``S``
    rooms : greatest numbers of cells and of entries
    column : (d,) scratch, all -1

    Returns
    -------
    book : see `quercus.trees.growth.incremental.splitting.count_cells`
    """
    cells, entries = rooms
    book = (
        np.empty(cells, np.int32),
        np.empty(cells, np.int32),
        np.empty(cells, np.int32),
        np.zeros(cells + 1, np.int64),
        np.empty(entries, np.int32),
        np.empty(entries, np.int64),
        np.zeros(2, np.int64),
    )
    unsorted = np.empty(column.shape[0], np.int32)
    table, total = np.empty(0, np.int32), np.empty(slots, np.int32)
    for g in range(nodes):
        d = 0
        for s in range(first.shape[0]):
            for i in range(first[s, g], first[s, g + 1]):
                if slot_of[i] > 0:
                    break
                if column[contour_of[i]] < 0:
                    column[contour_of[i]] = 0
                    unsorted[d] = contour_of[i]
                    d += 1
        held = np.sort(unsorted[:d])
        for j in range(d):
            column[held[j]] = j
        if slots * d > table.shape[0]:
            table = np.empty(2 * slots * d, np.int32)
        table[: slots * d] = 0
        total[:] = 0
        for s in range(first.shape[0]):
            for i in range(first[s, g], first[s, g + 1]):
                table[slot_of[i] * d + column[contour_of[i]]] += count_of[i]
                total[slot_of[i]] += count_of[i]
        enter_cell(book, g, 0, total[0], table, held, d)
        for k in range(offsets.shape[0]):
            if not free[g, k]:
                continue
            at = offsets[k]
            if cuts[k] == 0:
                for slot in range(at, at + widths[k]):
                    if total[slot] > 0:
                        enter_cell(
                            book, g, first_cell[k] + slot - at, total[slot], table[slot * d :], held, d
                        )
            else:
                bins = cuts[k] + 1
                branches = 2 + (widths[k] > bins)
                enter_cuts(
                    book, g, first_cell[k], bins, branches, table[at * d :], total[at:], table, held, d
                )
        for j in range(d):
            column[held[j]] = NONE
    return book
