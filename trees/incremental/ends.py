"""Ends of the entropy of many cells: enclosed cheaply first, solved exactly where that does not settle a decision."""

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from quercus.trees.cells import Cells
from quercus.trees.incremental.arrays import Bools, Floats, Ids
from quercus.trees.incremental.layout import Layout
from quercus.trees.incremental.tally import Tally
from quercus.trees.incremental.verdicts import Verdicts, judge, populated
from quercus.trees.interval import IntervalSolver

BATCH = 4_000_000  # entries of kept cells that are read at a time


class Ends(Protocol):
    """The cells of m nodes; masks are (m, C)."""

    def enclose(self, wanted: Bools) -> None:
        """Enclose the wanted cells in outer bounds, those that are not yet."""

    def solve(self, wanted: Bools) -> None:
        """Solve the wanted cells, those that are not yet."""

    def read(self, solved: Bools) -> tuple[Floats, Floats]:
        """Return lower and upper ends (m, C): the exact ones of `solved` cells, of the others the outer bounds."""


def verdicts(layout: Layout, size: Ids, ends: Ends, *, frugal: bool) -> Verdicts:
    """Judge m nodes, solving no more cells than it takes.

    An attribute that is dominated by its outer bounds is dominated; its interval stays as these bounds give it. So
    the verdict is a function of the cells alone, and its choice and rivals are those of exact intervals throughout.

    Parameters
    ----------
    layout
        The cells.
    size
        (m, C) rows in each cell of a candidate, see `quercus.trees.incremental.splitting`.
    ends
        Their entropies.
    frugal
        Begin with outer bounds; without it every interval is exact.
    """
    own = np.zeros(size.shape, bool)
    own[:, 0] = True
    contested = populated(layout, size)
    if frugal:
        ends.solve(own)
        ends.enclose(_cells(layout, contested) & (size > 0))
        contested = judge(layout, size, *ends.read(own)).rivals
    exact = own | (_cells(layout, contested) & (size > 0))
    ends.solve(exact)
    return judge(layout, size, *ends.read(exact))


def _cells(layout: Layout, splits: Bools) -> Bools:
    """Mark the cells (m, C) of splits (m, T); cell 0 belongs to none."""
    cells = np.zeros((len(splits), layout.cells), bool)
    cells[:, 1:] = splits[:, layout.split_of]
    return cells


class CountedEnds:
    """Ends of cells that were counted and are not kept.

    Parameters
    ----------
    solver
        Solves them.
    group, cell, cells
        Node (0 to m - 1), number and contents of each populated cell.
    shape
        ``(m, C)``.
    """

    def __init__(
        self, solver: IntervalSolver, group: Ids, cell: Ids, cells: Cells, shape: tuple[int, int]
    ) -> None:
        self._solver = solver
        self._group, self._cell, self._cells = group, cell, cells
        self._outer = np.zeros(shape), np.zeros(shape)
        self._exact = np.zeros(shape), np.zeros(shape)
        self._solved = np.zeros(shape, bool)

    def enclose(self, wanted: Bools) -> None:
        """See `Ends`."""
        chosen = wanted[self._group, self._cell]
        at = self._group[chosen], self._cell[chosen]
        self._outer[0][at], self._outer[1][at] = self._solver.enclose_cells(self._cells.of(chosen))

    def solve(self, wanted: Bools) -> None:
        """See `Ends`."""
        chosen = (wanted & ~self._solved)[self._group, self._cell]
        at = self._group[chosen], self._cell[chosen]
        found = self._solver.solve_cells(self._cells.of(chosen))
        self._exact[0][at], self._exact[1][at] = found.lower, found.upper
        self._solved[at] = True

    def read(self, solved: Bools) -> tuple[Floats, Floats]:
        """See `Ends`."""
        return np.where(solved, self._exact[0], self._outer[0]), np.where(
            solved, self._exact[1], self._outer[1]
        )


class KeptEnds:
    """Ends of the cells of blocks, which are kept until the counts change.

    Parameters
    ----------
    solver
        Solves them.
    tally, blocks
        The cells: of so many blocks, m, all.

    Attributes
    ----------
    size : (m, C) rows in each cell of a candidate
    """

    def __init__(self, solver: IntervalSolver, tally: Tally, blocks: Ids) -> None:
        self._solver = solver
        self._tally = tally
        self._blocks = blocks
        self.size, changed = tally.sizes(blocks)
        tally.enclosed[blocks] &= ~changed
        tally.solved[blocks] &= ~changed
        tally.dirty[blocks] = False

    def _missing(self, wanted: Bools, known: Bools) -> Iterator[tuple[Ids, Ids]]:
        """Yield block and number of the wanted cells that are not known, not too many at a time."""
        node, cell = np.nonzero(wanted & ~known[self._blocks])
        blocks = self._blocks[node]
        parts = np.flatnonzero(np.diff(np.cumsum(self._tally.widest(blocks)) // BATCH)) + 1
        yield from zip(np.split(blocks, parts), np.split(cell.astype(np.int32), parts), strict=True)

    def enclose(self, wanted: Bools) -> None:
        """See `Ends`."""
        tally = self._tally
        for at in self._missing(wanted, tally.enclosed):
            tally.outer_lower[at], tally.outer_upper[at] = self._solver.enclose_cells(tally.cells(*at))
            tally.enclosed[at] = True

    def solve(self, wanted: Bools) -> None:
        """See `Ends`."""
        tally = self._tally
        for at in self._missing(wanted, tally.solved):
            found = self._solver.solve_cells(tally.cells(*at))
            tally.lower[at], tally.upper[at] = found.lower, found.upper
            tally.solved[at] = True

    def read(self, solved: Bools) -> tuple[Floats, Floats]:
        """See `Ends`."""
        tally, blocks = self._tally, self._blocks
        return (
            np.where(solved, tally.lower[blocks], tally.outer_lower[blocks]),
            np.where(solved, tally.upper[blocks], tally.outer_upper[blocks]),
        )
