"""Contour counts of the cells of large nodes; they add and subtract."""

import numpy as np

from quercus.kernels.growth import (
    FIRST_WIDTH,
    cell_sizes,
    copy_blocks,
    count_cells,
    count_nodes,
    count_rows,
    gather_cells,
    new_columns,
)
from quercus.trees.growth.incremental.arrays import Bools, Ids, Ints
from quercus.trees.growth.incremental.evidence import RowEvidence
from quercus.trees.growth.incremental.free_list import FreeNumbers
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.sample import ContourTable
from quercus.trees.likelihood.cells import Cells
from quercus.trees.tree.indices import NONE


class ContourCounts:
    """Blocks of counts, one per node: a column per contour that occurs there, a row per slot.

    A block stands in one pool of integers: the contours of its columns, then ``S`` rows of counts, ``width`` long
    each, of which ``used`` columns are taken. What a block leaves behind when it outgrows its place is reclaimed when
    the pool is full.

    Parameters
    ----------
    layout
        The slots.
    evidence, table
        The rows and their contours.
    estimates
        There is room for entropies at level 1, beside the ends.

    Attributes
    ----------
    size : (blocks, S) rows in each slot
    dirty : (blocks, S) whether the counts changed since the slot was last looked at
    solved, lower, upper : (blocks, C) whether a cell's entropy is known, and its ends
    enclosed, outer_lower, outer_upper : (blocks, C) the same of outer bounds
    estimated, entropy : (blocks, C) whether the mid-value of a cell's entropy at level 1 is known, and it; C is 0 here
        without room for them
    """

    def __init__(
        self, layout: Layout, evidence: RowEvidence, table: ContourTable, *, estimates: bool = False
    ) -> None:
        self.layout = layout
        self.estimates = estimates
        self._evidence = evidence
        self._table = table
        self._pool = np.zeros(1024, np.int32)
        self._top = 0
        self._at = np.zeros(0, np.int64)
        self._width = np.zeros(0, np.int32)
        self._used = np.zeros(0, np.int32)
        self._free = FreeNumbers()
        self._columns: tuple[str, ...] = (
            "_at", "_width", "_used", "dirty", "size",
            "solved", "lower", "upper", "enclosed", "outer_lower", "outer_upper", "estimated", "entropy",
        )  # fmt: skip
        self._column = np.zeros(0, np.int32)
        self.dirty = np.zeros((0, layout.slot_count), bool)
        self.size = np.zeros((0, layout.slot_count), np.int32)
        self.solved = np.zeros((0, layout.cell_count), bool)
        self.enclosed = np.zeros((0, layout.cell_count), bool)
        self.lower = np.zeros((0, layout.cell_count))
        self.upper = np.zeros((0, layout.cell_count))
        self.outer_lower = np.zeros((0, layout.cell_count))
        self.outer_upper = np.zeros((0, layout.cell_count))
        self.estimated = np.zeros((0, layout.cell_count if estimates else 0), bool)
        self.entropy = np.zeros((0, layout.cell_count if estimates else 0))

    def open_blocks(self, count: int) -> Ids:
        """Return the numbers of `count` empty blocks."""
        while len(self._free) < count:
            self._add_room()
        blocks = self._free.take(count).astype(np.int32)
        self._width[blocks] = 0
        self._used[blocks] = 0
        for column in (self.dirty, self.solved, self.enclosed, self.estimated, self.size):
            column[blocks] = 0
        for ends in (self.lower, self.upper, self.outer_lower, self.outer_upper, self.entropy):
            ends[blocks] = 0.0
        return blocks

    def close_blocks(self, blocks: Ids) -> None:
        """Give blocks back."""
        self._width[blocks] = 0
        self._used[blocks] = 0
        self._free.give_back(blocks)

    @property
    def open_count(self) -> int:
        """Number of blocks that are open."""
        return self._at.size - len(self._free)

    @property
    def held_bytes(self) -> int:
        """Bytes of the open blocks: their counts, and what is known of their cells."""
        counts = int(self._width.sum(dtype=np.int64)) * (1 + self.layout.slot_count) * self._pool.itemsize
        known = sum(int(getattr(self, name)[:1].nbytes) for name in self._columns)
        return counts + self.open_count * known

    def _add_room(self) -> None:
        known = self._at.size
        total = known + max(1, known // 2)  # a block may be large
        self._free.give_back(np.arange(total - 1, known - 1, -1))
        for name in self._columns:
            old = getattr(self, name)
            new = np.zeros((total, *old.shape[1:]), old.dtype)
            new[:known] = old
            setattr(self, name, new)

    def add_rows(
        self, rows: Ids, was: Ids, start: Ints, nodes: Ids, blocks: Ids, parent: Ids, split: Ids
    ) -> None:
        """Count rows into blocks.

        Parameters
        ----------
        rows, was, start
            Rows, group by group, and the contours they are counted under so far, -1 for none.
        nodes, blocks
            Node and block of each group.
        parent, split
            Of all nodes: attributes that are spent above are not counted.
        """
        column, codes, ids = self._scratch_column(), self._evidence.codes, self._evidence.ids
        stored = self._pool, self._at, self._width, self._used
        fresh = new_columns(ids, rows, start, blocks, *stored, self._table.size, column)
        self._widen_blocks(blocks, self._used[blocks] + fresh)
        count_rows(
            codes, self.layout.first_slots, ids, rows, was, start, nodes, parent, split,
            self.layout.spent_attributes, blocks, self._pool, self._at, self._width, self._used, column,
            self.dirty, self.size,
        )  # fmt: skip

    def count_nodes(self, rows: Ids, start: Ints) -> Cells:
        """Count the rows of nodes, node by node, without keeping the counts: their own cells."""
        return in_order(*count_nodes(self._evidence.ids, rows, start, self._scratch_column()))

    def count_cells(
        self, rows: Ids, start: Ints, nodes: Ids, parent: Ids, split: Ids
    ) -> tuple[Ids, Ids, Ids, Cells]:
        """Count the rows of nodes without keeping the counts: node (0 to m - 1), cell, size and contents of cells.

        `parent` and `split` are those of all nodes: attributes that are spent above are not counted.
        """
        codes, ids, layout = self._evidence.codes, self._evidence.ids, self.layout
        room = int(layout.entry_limits(np.diff(start)).sum())
        contours, counts = np.empty(room, np.int32), np.empty(room, np.int64)
        group, cell, size, first = count_cells(
            codes,
            *layout.attribute_columns,
            layout.slot_count,
            ids,
            rows,
            start,
            nodes,
            parent,
            split,
            layout.spent_attributes,
            self._scratch_column(),
            contours,
            counts,
        )
        return group, cell, size, in_order(first, contours[: first[-1]], counts[: first[-1]])

    def cells_of(self, blocks: Ids, cells: Ids) -> Cells:
        """Return cells of blocks, in sparse form."""
        offsets, _, cuts, _ = self.layout.attribute_columns
        stored = self._pool, self._at, self._width, self._used
        return Cells(*gather_cells(blocks, cells, *stored, offsets, cuts, *self.layout.cell_sources))

    def contours_used(self, blocks: Ids) -> Ids:
        """Return how many contours occur in blocks, which bounds the entries of their cells: (m,)."""
        return self._used[blocks]

    def cell_sizes(self, blocks: Ids) -> tuple[Ids, Bools]:
        """Return the rows in each cell of blocks that is one of a candidate, and which cells changed: (m, C)."""
        size, changed = self.size[blocks], self.dirty[blocks]
        if self.layout.cell_count == self.layout.slot_count and not any(self.layout.cuts):
            return size, changed
        shape = blocks.size, self.layout.cell_count
        to, touched = np.zeros(shape, np.int32), np.zeros(shape, bool)
        cell_sizes(size, changed, *self.layout.attribute_columns, to, touched)
        return to, touched

    def _scratch_column(self) -> Ids:
        if self._column.size < self._table.size:
            self._column = np.full(2 * self._table.size, NONE, np.int32)
        return self._column

    def _widen_blocks(self, blocks: Ids, needed: Ids) -> None:
        """Give blocks a place with room for the columns they need; at least doubled, where it is a new one."""
        narrow = needed > self._width[blocks]
        if not narrow.any():
            return
        moved, old_width = blocks[narrow], self._width[blocks[narrow]]
        new_width = np.maximum(np.maximum(needed[narrow], 2 * old_width), FIRST_WIDTH).astype(np.int32)
        lengths = new_width.astype(np.int64) * (1 + self.layout.slot_count)
        self._reserve_pool(int(lengths.sum()))
        new_at = self._top + np.cumsum(lengths) - lengths
        copy_blocks(
            self._pool,
            self._at[moved],
            old_width,
            self._pool,
            new_at,
            new_width,
            self._used[moved],
            self.layout.slot_count,
        )
        self._at[moved], self._width[moved] = new_at, new_width
        self._top += int(lengths.sum())

    def _reserve_pool(self, length: int) -> None:
        if self._top + length <= self._pool.size:
            return
        live = np.flatnonzero(self._width).astype(np.int32)
        lengths = self._width[live].astype(np.int64) * (1 + self.layout.slot_count)
        needed = int(lengths.sum()) + length
        pool = np.zeros(needed + needed // 2, np.int32)
        at = np.cumsum(lengths) - lengths
        copy_blocks(
            self._pool, self._at[live], self._width[live], pool, at, self._width[live], self._used[live],
            self.layout.slot_count,
        )  # fmt: skip
        self._pool, self._at[live], self._top = pool, at, int(lengths.sum())


def in_order(start: Ints, ids: Ids, counts: Ints) -> Cells:
    """Return cells with the contours of each rising."""
    falls = np.diff(ids) < 0
    ends = start[1:-1]
    falls[ends[(ends > 0) & (ends < ids.size)] - 1] = False  # from one cell to the next they may
    if falls.any():
        order = np.lexsort((ids, np.repeat(np.arange(start.size - 1), np.diff(start))))
        ids, counts = ids[order], counts[order]
    return Cells(start, ids, counts)
