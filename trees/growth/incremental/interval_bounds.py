"""Entropies of many cells, counted for this once or kept: what `quercus.trees.rules.choice` decides by."""

from collections.abc import Iterator

import numpy as np

from quercus.trees.growth.incremental.arrays import Bools, Floats, Ids
from quercus.trees.growth.incremental.tally import ContourCounts
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.likelihood.maxima import LikelihoodMaxima

READ_ENTRIES = 4_000_000  # entries of kept cells that are read at a time


class TransientBounds:
    """Ends of cells that were counted and are not kept.

    Parameters
    ----------
    solver, estimator
        Solve them, the latter at level 1.
    group, cell, cells
        Node (0 to m - 1), number and contents of each populated cell.
    shape
        ``(m, C)``.
    """

    def __init__(
        self,
        solver: IntervalSolver,
        estimator: IntervalSolver,
        group: Ids,
        cell: Ids,
        cells: Cells,
        shape: tuple[int, int],
    ) -> None:
        self._solver = solver
        self._estimator = estimator
        self._group, self._cell, self._cells = group, cell, cells
        self._outer = np.zeros(shape), np.zeros(shape)
        self._exact = np.zeros(shape), np.zeros(shape)
        self._solved = np.zeros(shape, bool)

    def enclose(self, wanted: Bools) -> None:
        """See `Entropies`."""
        chosen = wanted[self._group, self._cell]
        at = self._group[chosen], self._cell[chosen]
        self._outer[0][at], self._outer[1][at] = self._solver.enclose_cells(self._cells.chosen_cells(chosen))

    def solve(self, wanted: Bools) -> None:
        """See `Entropies`."""
        chosen = (wanted & ~self._solved)[self._group, self._cell]
        at = self._group[chosen], self._cell[chosen]
        found = self._solver.solve_cells(self._cells.chosen_cells(chosen))
        self._exact[0][at], self._exact[1][at] = found.lower, found.upper
        self._solved[at] = True

    def estimate(self, wanted: Bools) -> Floats:
        """See `Entropies`."""
        if self._estimator is self._solver:
            self.solve(wanted)
            return (self._exact[0] + self._exact[1]) / 2
        chosen = wanted[self._group, self._cell]
        found = self._estimator.solve_cells(self._cells.chosen_cells(chosen))
        entropy = np.zeros(wanted.shape)
        entropy[self._group[chosen], self._cell[chosen]] = (found.lower + found.upper) / 2
        return entropy

    def maximise(self, wanted: Bools) -> LikelihoodMaxima:
        """See `Entropies`."""
        chosen = wanted[self._group, self._cell]
        found = self._solver.maximise_cells(self._cells.chosen_cells(chosen))
        return found.spread_over(wanted.shape, (self._group[chosen], self._cell[chosen]))

    def read_ends(self, solved: Bools) -> tuple[Floats, Floats]:
        """See `Entropies`."""
        return np.where(solved, self._exact[0], self._outer[0]), np.where(
            solved, self._exact[1], self._outer[1]
        )


class CachedBounds:
    """Ends of the cells of blocks, which are kept until the counts change.

    Parameters
    ----------
    solver, estimator
        Solve them, the latter at level 1.
    tally, blocks
        The cells of all m blocks.

    Attributes
    ----------
    size : (m, C) rows in each cell of a candidate
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
        """Yield block and number of the wanted cells that are not known, not too many at a time."""
        node, cell = np.nonzero(wanted & ~known[self._blocks])
        blocks = self._blocks[node]
        parts = np.flatnonzero(np.diff(np.cumsum(self._tally.contours_used(blocks)) // READ_ENTRIES)) + 1
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
