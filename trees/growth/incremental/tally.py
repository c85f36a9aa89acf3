"""Contour counts of the cells of large nodes, updated as rows come and change, and the resulting entropies."""

from collections.abc import Iterator

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.growth import (
    FIRST_WIDTH,
    NONE,
    cell_sizes,
    copy_blocks,
    count_cells,
    count_nodes,
    count_rows,
    gather_cells,
    new_columns,
)
from quercus.trees.growth.incremental.evidence import RowEvidence
from quercus.trees.growth.incremental.layout import Layout
from quercus.trees.growth.incremental.numbered import Ids, NumberedColumns
from quercus.trees.growth.sample import ContourTable
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.likelihood.maxima import LikelihoodMaxima

READ_ENTRIES = 4_000_000  # entries of kept cells read at a time


class ContourCounts(NumberedColumns):
    """Blocks of counts, one per node: a column per contour that occurs there, a row per slot.

    All blocks lie in one pool of integers. A block has the contours of its columns, then ``S`` rows of counts; each row
    has room for ``width`` columns, of which ``used`` are in use. The space that a block leaves when it outgrows its
    place is reclaimed when the pool is full.

    Parameters
    ----------
    layout
        The slots.
    evidence, table
        The rows and their contours.
    estimates
        Whether to store entropies at level 1 in addition to the ends.

    Attributes
    ----------
    size : (blocks, S) rows in each slot
    dirty : (blocks, S) whether the counts changed since the slot was last read
    solved, lower, upper : (blocks, C) whether a cell's entropy interval is known, and its ends
    enclosed, outer_lower, outer_upper : (blocks, C) the same for outer bounds
    estimated, entropy : (blocks, C) whether the mid-value of a cell's entropy at level 1 is known, and its value;
        (blocks, 0) if they are not stored
    """

    def __init__(
        self, layout: Layout, evidence: RowEvidence, table: ContourTable, *, estimates: bool = False
    ) -> None:
        super().__init__()
        self.layout = layout
        self.estimates = estimates
        self._evidence = evidence
        self._table = table
        self._pool = np.zeros(1024, np.int32)
        self._top = 0
        self._at = np.zeros(0, np.int64)
        self._width = np.zeros(0, np.int32)
        self._used = np.zeros(0, np.int32)
        self.columns = (
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
        blocks = self.take_numbers(count)
        self._width[blocks] = 0
        self._used[blocks] = 0
        for column in (self.dirty, self.solved, self.enclosed, self.estimated, self.size):
            column[blocks] = 0
        for ends in (self.lower, self.upper, self.outer_lower, self.outer_upper, self.entropy):
            ends[blocks] = 0.0
        return blocks

    def close_blocks(self, blocks: Ids) -> None:
        """Release blocks."""
        self._width[blocks] = 0
        self._used[blocks] = 0
        self.free.give_back(blocks)

    @property
    def held_bytes(self) -> int:
        """Bytes of the open blocks: their counts, and the results of their cells."""
        counts = int(self._width.sum(dtype=np.int64)) * (1 + self.layout.slot_count) * self._pool.itemsize
        known = sum(int(getattr(self, name)[:1].nbytes) for name in self.columns)
        return counts + self.used_count * known

    def add_rows(
        self, rows: Ids, was: Ids, start: Ints, nodes: Ids, blocks: Ids, parent: Ids, split: Ids
    ) -> None:
        """Count rows into blocks.

        Parameters
        ----------
        rows, was, start
            Rows grouped by node, and the contours under which they were counted before, -1 for none.
        nodes, blocks
            Node and block of each group.
        parent, split
            Parent and split of all nodes: attributes used above a node are not counted.
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
        """Count the rows of nodes without keeping the counts; return the nodes' own cells."""
        return in_order(*count_nodes(self._evidence.ids, rows, start, self._scratch_column()))

    def count_cells(
        self, rows: Ids, start: Ints, nodes: Ids, parent: Ids, split: Ids
    ) -> tuple[Ids, Ids, Ids, Cells]:
        """Count the rows of nodes without keeping the counts; return node (0 to m - 1), cell, size and contents.

        `parent` and `split` are those of all nodes: attributes used above a node are not counted.
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

    def cell_sizes(self, blocks: Ids) -> tuple[Ids, Bools]:
        """Return the number of rows in each cell of blocks (m, C), and whether the cell changed (m, C)."""
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
        """Give blocks room for the columns that they need; a block that moves gets at least twice its width."""
        narrow = needed > self._width[blocks]
        if not narrow.any():
            return
        moved, old_width = blocks[narrow], self._width[blocks[narrow]]
        new_width = np.maximum(np.maximum(needed[narrow], 2 * old_width), FIRST_WIDTH).astype(np.int32)
        lengths = new_width.astype(np.int64) * (1 + self.layout.slot_count)
        length = int(lengths.sum())
        if self._top + length > self._pool.size:
            self._compact_pool(length)
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
        self._top += length

    def _compact_pool(self, length: int) -> None:
        """Move all blocks into a new pool, without abandoned space, and with room for `length` more."""
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
    """Return cells with their contours in ascending order."""
    falls = np.diff(ids) < 0
    ends = start[1:-1]
    falls[ends[(ends > 0) & (ends < ids.size)] - 1] = False  # from one cell to the next they may fall
    if falls.any():
        order = np.lexsort((ids, np.repeat(np.arange(start.size - 1), np.diff(start))))
        ids, counts = ids[order], counts[order]
    return Cells(start, ids, counts)


class KeptEntropies:
    """`quercus.trees.rules.choice.Entropies` of the cells of blocks, kept until the counts change.

    Parameters
    ----------
    solver, estimator
        Solvers of the tree's level, and of level 1.
    tally, blocks
        The counts, and the m blocks whose cells these are.

    Attributes
    ----------
    size : (m, C) number of rows in each cell
    """

    def __init__(
        self, solver: IntervalSolver, estimator: IntervalSolver, tally: ContourCounts, blocks: Ids
    ) -> None:
        self._solver = solver
        self._estimator = estimator
        self._tally = tally
        self._blocks = blocks
        self.size, changed = tally.cell_sizes(blocks)
        tally.enclosed[blocks] &= ~changed
        tally.solved[blocks] &= ~changed
        if tally.estimates:
            tally.estimated[blocks] &= ~changed
        tally.dirty[blocks] = False

    def _missing_cells(self, wanted: Bools, known: Bools) -> Iterator[tuple[Ids, Ids]]:
        """Yield the blocks and numbers of the wanted cells that are not known yet, in batches of bounded size."""
        node, cell = np.nonzero(wanted & ~known[self._blocks])
        if not node.size:
            return
        blocks = self._blocks[node]
        parts = np.flatnonzero(np.diff(np.cumsum(self._tally._used[blocks]) // READ_ENTRIES)) + 1
        yield from zip(np.split(blocks, parts), np.split(cell.astype(np.int32), parts), strict=True)

    def enclose(self, wanted: Bools) -> None:
        """See `Entropies`."""
        tally = self._tally
        for at in self._missing_cells(wanted, tally.enclosed):
            tally.outer_lower[at], tally.outer_upper[at] = self._solver.enclose_cells(tally.cells_of(*at))
            tally.enclosed[at] = True

    def solve(self, wanted: Bools) -> None:
        """See `Entropies`."""
        tally = self._tally
        for at in self._missing_cells(wanted, tally.solved):
            found = self._solver.solve_cells(tally.cells_of(*at))
            tally.lower[at], tally.upper[at] = found.lower, found.upper
            tally.solved[at] = True

    def estimate(self, wanted: Bools) -> Floats:
        """See `Entropies`."""
        tally, blocks = self._tally, self._blocks
        if self._estimator is self._solver:
            self.solve(wanted)
            return (tally.lower[blocks] + tally.upper[blocks]) / 2
        for at in self._missing_cells(wanted, tally.estimated):
            found = self._estimator.solve_cells(tally.cells_of(*at))
            tally.entropy[at] = (found.lower + found.upper) / 2
            tally.estimated[at] = True
        return tally.entropy[blocks]

    def maximise(self, wanted: Bools) -> LikelihoodMaxima:
        """See `Entropies`."""
        node, cell = np.nonzero(wanted)
        cells = self._tally.cells_of(self._blocks[node], cell.astype(np.int32))
        return self._solver.maximise_cells(cells).spread_over(wanted.shape, (node, cell))

    def read_ends(self, solved: Bools) -> tuple[Floats, Floats]:
        """See `Entropies`."""
        tally, blocks = self._tally, self._blocks
        return (
            np.where(solved, tally.lower[blocks], tally.outer_lower[blocks]),
            np.where(solved, tally.upper[blocks], tally.outer_upper[blocks]),
        )
