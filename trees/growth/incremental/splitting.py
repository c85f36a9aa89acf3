"""Compiled loops that make the cells of splits out of counts by code (`layout`).

The cells of an attribute's cuts are sums over the bins on either side: those below a cut are added bin by bin, those
above it are the remaining rows with a value.
"""

import numpy as np

from quercus.trees.growth.incremental.arrays import Bools, Codes, Ids, Ints
from quercus.trees.growth.incremental.counting import sorted_columns, unspent_attributes
from quercus.trees.growth.incremental.prefetch import fetch
from quercus.trees.likelihood.solver.compiled import borrowing, compiled
from quercus.trees.tree.indices import NONE
from quercus.trees.tree.splits import ABOVE, BELOW, NO_NUMBER

Book = tuple[Ids, Ids, Ids, Ints, Ids, Ints, Ints]  # cells under construction, see `count_cells`


@borrowing
def cell_sizes(
    size: Ids, dirty: Bools, offsets: Ints, widths: Ints, cuts: Ints, first: Ints, to: Ids, changed: Bools
) -> None:
    """Find the sizes of cells, and which changed, from those of slots.

    A cell of no candidate has no row: such a cut divides the rows as a lower one does (`quercus.trees.tree.splits`).

    Parameters
    ----------
    size, dirty : (m, S) of the slots
    offsets, widths, cuts, first : the sheet of the layout
    to, changed : (m, C) of the cells, initially 0
    """
    for g in range(size.shape[0]):
        to[g, 0] = size[g, 0]
        changed[g, 0] = dirty[g, 0]
        for k in range(offsets.shape[0]):
            at, cell, bins = offsets[k], first[k], cuts[k] + 1
            if bins == 1:
                for j in range(widths[k]):
                    to[g, cell + j] = size[g, at + j]
                    changed[g, cell + j] = dirty[g, at + j]
                continue
            branches = 2 + (widths[k] > bins)
            lost = size[g, at + bins] if branches > NO_NUMBER else 0
            known, top, touched = 0, 0, 0  # rows with a value, and the last bin with rows or changes
            for j in range(bins):
                known += size[g, at + j]
                top = j if size[g, at + j] > 0 else top
                touched = j if dirty[g, at + j] else touched
            below, reached, told = 0, False, False
            for j in range(bins - 1):
                here = cell + j * branches
                below += size[g, at + j]
                reached |= dirty[g, at + j]
                changed[g, here + BELOW] = reached
                changed[g, here + ABOVE] = touched > j
                if branches > NO_NUMBER:
                    changed[g, here + NO_NUMBER] = dirty[g, at + bins]
                if size[g, at + j] > 0 and top > j:
                    told = True
                    to[g, here + BELOW], to[g, here + ABOVE] = below, known - below
                    if branches > NO_NUMBER:
                        to[g, here + NO_NUMBER] = lost
            if not told and known > 0 and lost > 0:
                to[g, cell + BELOW], to[g, cell + ABOVE] = size[g, at], known - size[g, at]
                to[g, cell + NO_NUMBER] = lost


@borrowing
def columns_by_contour(held: Ids, used: int, order: Ids) -> None:
    """List the columns of a block in order of their contours."""
    for j in range(used):
        order[j] = j
    gap = 1
    while gap < used // 9:
        gap = 3 * gap + 1
    while gap > 0:  # Shell's sort; NumPy's takes long to compile
        for j in range(gap, used):
            column, i = order[j], j
            while i >= gap and held[order[i - gap]] > held[column]:
                order[i] = order[i - gap]
                i -= gap
            order[i] = column
        gap //= 3


@borrowing
def sum_up(rows: Ids, width: int, begin: int, end: int, sums: Ints) -> None:
    """Add the counts of some bins."""
    for b in range(begin, end):
        for j in range(sums.shape[0]):
            sums[j] += rows[b * width + j]


@compiled
def gather_cells(
    blocks: Ids,
    cells: Ids,
    pool: Ids,
    at: Ints,
    width: Ids,
    used: Ids,
    offsets: Ints,
    cuts: Ints,
    slot: Ints,
    attribute: Ints,
    cut: Ints,
    branch: Ints,
) -> tuple[Ints, Ids, Ints]:
    """Return cells of blocks in sparse form: start (m + 1,), ascending contours, and counts.

    Parameters
    ----------
    blocks, cells : (m,) the wanted cells; fastest if the cells of a block, and the cuts of an attribute, ascend
    pool, at, width, used : the blocks, see `quercus.trees.growth.incremental.tally`
    offsets, cuts : of attributes, see `Layout.attribute_columns`
    slot, attribute, cut, branch : of cells, see `Layout.cell_sources`
    """
    m = blocks.shape[0]
    start = np.zeros(m + 1, np.int64)
    widest = 1
    for c in range(m):
        widest = max(widest, used[blocks[c]])
    order, counts = np.empty(widest, np.int32), np.empty(widest, np.int64)
    below, known = np.empty(widest, np.int64), np.empty(widest, np.int64)
    ids, out = np.empty(4 * m + widest, np.int32), np.empty(4 * m + widest, np.int64)
    n, last, summed, bins = 0, NONE, NONE, 0
    for c in range(m):
        b, cell = blocks[c], cells[c]
        held, rows, w, u = pool[at[b] :], pool[at[b] + width[b] :], width[b], used[b]
        if b != last:
            columns_by_contour(held, u, order)
            last, summed = b, NONE
        if slot[cell] >= 0:
            for j in range(u):
                counts[j] = rows[slot[cell] * w + j]
        else:
            k = attribute[cell]
            if k != summed or cut[cell] + 1 < bins:
                for j in range(u):
                    known[j] = below[j] = 0
                sum_up(rows[offsets[k] * w :], w, 0, cuts[k] + 1, known[:u])
                summed, bins = k, 0
            sum_up(rows[offsets[k] * w :], w, bins, cut[cell] + 1, below[:u])
            bins = cut[cell] + 1
            for j in range(u):
                counts[j] = below[j] if branch[cell] == BELOW else known[j] - below[j]
        if n + u > ids.shape[0]:
            more_ids, more = np.empty(2 * (n + u), np.int32), np.empty(2 * (n + u), np.int64)
            for i in range(n):
                more_ids[i], more[i] = ids[i], out[i]
            ids, out = more_ids, more
        for i in range(u):
            j = order[i]
            if counts[j] > 0:
                ids[n], out[n] = held[j], counts[j]
                n += 1
        start[c + 1] = n
    return start, ids[:n], out[:n]


@borrowing
def enter_cell(book: Book, group: int, cell: int, size: int, counts: Ids, held: Ids, d: int) -> None:
    """Enter a cell, with its contours and their counts."""
    groups, cells, sizes, start, ids, totals, used = book
    n, out = used
    groups[n], cells[n], sizes[n] = group, cell, size
    for j in range(d):
        if counts[j] > 0:
            ids[out] = held[j]
            totals[out] = counts[j]
            out += 1
    start[n + 1] = out
    used[0], used[1] = n + 1, out


@compiled
def enter_cuts(
    book: Book,
    group: int,
    cell: int,
    bins: int,
    branches: int,
    table: Ids,
    total: Ids,
    own: Ids,
    held: Ids,
    d: int,
) -> None:
    """Enter the cells of an attribute's cuts that are candidates.

    Parameters
    ----------
    book, group : see `enter_cell`
    cell : first of the attribute
    bins, branches : numbers of its bins, and of the branches of a split at a cut
    table, total : counts (slots of the attribute, d) and their sums
    own : (d,) counts of the node
    held, d : contours of the node
    """
    missing = total[bins] if branches > NO_NUMBER else 0
    sides = np.zeros((3, d), np.int32)
    known, top = 0, 0
    for b in range(bins):
        known += total[b]
        top = b if total[b] > 0 else top
    for j in range(d):
        sides[NO_NUMBER, j] = table[bins * d + j] if missing > 0 else 0
        sides[ABOVE, j] = own[j] - sides[NO_NUMBER, j]
    if known > 0 and total[top] == known:  # one bin: the lowest cut separates known from missing
        side = BELOW if top == 0 else ABOVE
        if missing > 0:
            enter_cell(book, group, cell + side, known, sides[ABOVE], held, d)
            enter_cell(book, group, cell + NO_NUMBER, missing, sides[NO_NUMBER], held, d)
        return
    below = 0
    for cut in range(top):
        if total[cut] == 0:
            continue
        below += total[cut]
        for j in range(d):
            sides[BELOW, j] += table[cut * d + j]
            sides[ABOVE, j] -= table[cut * d + j]
        at = cell + cut * branches
        enter_cell(book, group, at + BELOW, below, sides[BELOW], held, d)
        enter_cell(book, group, at + ABOVE, known - below, sides[ABOVE], held, d)
        if missing > 0:
            enter_cell(book, group, at + NO_NUMBER, missing, sides[NO_NUMBER], held, d)


@compiled
def empty_book(start: Ints, widths: Ints, cuts: Ints) -> Book:
    """Return a book with room for the cells of nodes, given the `start` of their rows."""
    cells, entries = 0, 0
    for g in range(start.shape[0] - 1):
        rows = start[g + 1] - start[g]
        cells += 1
        entries += rows
        for k in range(widths.shape[0]):
            candidates = max(1, min(cuts[k], rows - 1)) if cuts[k] > 0 else 1
            cells += 3 * candidates if cuts[k] > 0 else min(widths[k], rows)
            entries += rows * candidates
    return (
        np.empty(cells, np.int32),
        np.empty(cells, np.int32),
        np.empty(cells, np.int32),
        np.zeros(cells + 1, np.int64),
        np.empty(entries, np.int32),
        np.empty(entries, np.int64),
        np.zeros(2, np.int64),
    )


@compiled
def count_cells(
    codes: Codes,
    offsets: Ints,
    widths: Ints,
    cuts: Ints,
    first: Ints,
    slots: int,
    ids: Ids,
    rows: Ids,
    start: Ints,
    nodes: Ids,
    parent: Ids,
    split: Ids,
    spent: Ints,
    column: Ids,
) -> Book:
    """Count the rows of nodes without storing counts; spent attributes and cuts that are no candidates are omitted.

    Parameters
    ----------
    codes, ids : (n, K) and (n,), codes and contour of each row
    offsets, widths, cuts, first : the sheet of the layout
    slots : ``S``
    rows, start, nodes : rows, node by node
    parent, split : of all nodes
    spent : of all splits
    column : (d,) scratch, all -1

    Returns
    -------
    group, cell, size : of each populated cell
    start, ids, counts : the cells in sparse form
    used : numbers of cells and entries; the arrays beyond them are meaningless
    """
    book = empty_book(start, widths, cuts)
    widest = 1
    for g in range(nodes.shape[0]):
        widest = max(widest, min(start[g + 1] - start[g], column.shape[0]))
    held, free = np.empty(widest, np.int32), np.empty(codes.shape[1], np.int32)
    table, total = np.empty(slots * widest, np.int32), np.empty(slots, np.int32)
    for g in range(nodes.shape[0]):
        here = rows[start[g] : start[g + 1]]
        if g + 1 < nodes.shape[0]:
            for row in rows[start[g + 1] : start[g + 2]]:
                fetch(ids, row)
                fetch(codes, row)
        d = sorted_columns(ids, here, column, held)
        left = unspent_attributes(nodes[g], parent, split, spent, free)
        for j in range(slots * d):
            table[j] = 0
        for j in range(slots):
            total[j] = 0
        for row in here:
            j = column[ids[row]]
            table[j] += 1
            for f in range(left):
                slot = offsets[free[f]] + codes[row, free[f]]
                table[slot * d + j] += 1
                if cuts[free[f]] > 0:  # there are many bins; a few slots are summed up afterwards
                    total[slot] += 1
        enter_cell(book, g, 0, here.shape[0], table, held, d)
        for f in range(left):
            k = free[f]
            at = offsets[k]
            if cuts[k] == 0:
                for slot in range(at, at + widths[k]):
                    size = 0
                    for j in range(slot * d, (slot + 1) * d):
                        size += table[j]
                    if size > 0:
                        enter_cell(book, g, first[k] + slot - at, size, table[slot * d :], held, d)
            else:
                bins = cuts[k] + 1
                branches = 2 + (widths[k] > bins)
                enter_cuts(book, g, first[k], bins, branches, table[at * d :], total[at:], table, held, d)
        for j in range(d):
            column[held[j]] = NONE
    return book
