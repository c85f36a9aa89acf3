"""The choice of splits for many nodes at once (theory §3.1, §3.2, §3.5, §9, §12).

A split is *populated* if at least two of its branches have rows. One of an attribute's populated cuts is its
*candidate*: the one with the largest gain at level 1; of ties, the middle one. Candidates are compared by the intervals
of their gain ratios. A candidate that no other dominates is a rival, and the rival with the largest mid-value is
chosen; of ties, the first. An end of a gain ratio is known to within `TIE` bits divided by the split information, so
only a larger difference counts as dominance.

Where splits must be earned (`earned`), "do not split" is a rival too: it dominates the candidates that are not earned,
and is dominated by those that are.

The caller provides the entropies as an `Entropies`: of stored counts, or of counts made for this decision. Only the
cells that the decision needs are solved.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.growth import compare_splits, keep_one_cut
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.likelihood.maxima import LikelihoodMaxima
from quercus.trees.rules.earned import earned_splits
from quercus.trees.rules.gain import split_information


@dataclass(frozen=True)
class SplitCells:
    """The cells of a node's splits. Cell 0 is the node itself, the others are the branches, split by split.

    Parameters
    ----------
    first
        (T,) first cell of each split.
    bounds
        (K + 1,) first split of each attribute, followed by the number of splits; the cuts of an attribute ascend.
    count
        Number of cells, ``C``.
    """

    first: Ints
    bounds: Ints
    count: int

    @cached_property
    def split_of(self) -> Ints:
        """(C - 1,) split of each cell except the first."""
        return np.repeat(np.arange(self.first.size), np.diff(np.append(self.first, self.count)))

    @cached_property
    def split_counts(self) -> Ints:
        """(K,) number of splits of each attribute."""
        return np.diff(self.bounds)

    @cached_property
    def has_cuts(self) -> bool:
        """True if an attribute has several splits."""
        return self.bounds.size <= self.first.size


class Entropies(Protocol):
    """Entropies of the cells of m nodes; masks are (m, C)."""

    def enclose(self, wanted: Bools) -> None:
        """Compute outer bounds of the wanted cells that have none yet."""

    def solve(self, wanted: Bools) -> None:
        """Solve the wanted cells that are not solved yet."""

    def estimate(self, wanted: Bools) -> Floats:
        """Return the mid-values of the wanted cells' entropies at level 1; the other entries are meaningless."""

    def maximise(self, wanted: Bools) -> LikelihoodMaxima:
        """Return the greatest likelihoods (m, C) of the wanted cells; the other entries are meaningless."""

    def read_ends(self, solved: Bools) -> tuple[Floats, Floats]:
        """Return lower and upper ends (m, C): exact for `solved` cells, outer bounds for the others."""


class CountedEntropies:
    """`Entropies` of cells that were counted for one decision, and are not kept.

    Parameters
    ----------
    solver, estimator
        Solvers of the tree's level, and of level 1.
    group, cell, cells
        Node (0 to m - 1), number and contents of each populated cell.
    shape
        ``(m, C)``.
    """

    def __init__(
        self,
        solver: IntervalSolver,
        estimator: IntervalSolver,
        group: NDArray[np.integer],
        cell: NDArray[np.integer],
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
        lower, upper = (np.where(solved, *ends) for ends in zip(self._exact, self._outer, strict=True))
        return lower, upper


@dataclass(frozen=True, eq=False)
class Choices:
    """The choices at m nodes.

    Attributes
    ----------
    split : (m,) the best split, -1 if there is no candidate
    lower, upper : (m, T) gain ratio of each candidate that was compared, NaN for other splits
    rivals : (m, T) candidates that none dominates
    justified : (m,) true if a candidate is earned, or splits need not be earned; otherwise "do not split" is best
    """

    split: Ints
    lower: Floats
    upper: Floats
    rivals: Bools
    justified: Bools


def choose_splits(
    cells: SplitCells,
    rows: NDArray[np.number],
    entropies: Entropies,
    *,
    frugal: bool,
    level: Floats | None = None,
) -> Choices:
    """Choose the splits of m nodes, and solve only the cells that the choice needs.

    An attribute that outer bounds prove dominated is not solved: these bounds remain its interval. The result is a
    function of the cells alone, and its choice and rivals are those of exact intervals throughout.

    Parameters
    ----------
    cells
        The cells of the splits.
    rows
        (m, C) number of rows in each cell, or the sum of their weights.
    entropies
        Entropies of these cells.
    frugal
        If true, begin with outer bounds; otherwise every interval is exact.
    level
        (m,) level of the test by which splits are earned; None: splits need not be earned. If some candidates are
        earned, only these are compared; if none is, all are, and "do not split" is one more rival.
    """
    size: Floats = rows.astype(np.float64, order="C")
    populated = rows > 0
    own = np.zeros(size.shape, bool)
    own[:, 0] = True
    candidates, tried = _candidate_splits(cells, size, populated, entropies)
    justified = np.ones(len(size), bool)
    if level is not None:
        maxima = entropies.maximise(own | (_cells_of(cells, candidates) & populated))
        earned = earned_splits(cells.first, size, maxima, candidates, tried, level)
        justified[:] = earned.any(axis=1)
        candidates = np.where(justified[:, np.newaxis], earned, candidates)
    information = split_information(size[:, 1:], cells.first - 1)
    remaining = candidates
    if frugal:
        entropies.solve(own)
        entropies.enclose(_cells_of(cells, remaining) & populated)
        _, _, _, remaining = _compare_splits(cells, size, information, entropies.read_ends(own), candidates)
    exact = own | (_cells_of(cells, remaining) & populated)
    entropies.solve(exact)
    return Choices(
        *_compare_splits(cells, size, information, entropies.read_ends(exact), candidates), justified
    )


def _candidate_splits(
    cells: SplitCells, size: Floats, populated: Bools, entropies: Entropies
) -> tuple[Bools, Ints]:
    """Return the splits to compare, (m, T), and from how many populated splits of each attribute they come, (m, K)."""
    branches = np.add.reduceat(populated[:, 1:], cells.first - 1, axis=1, dtype=np.int64)
    candidates: Bools = branches > 1
    tried: Ints = np.add.reduceat(candidates, cells.bounds[:-1], axis=1, dtype=np.int64)
    if not cells.has_cuts:
        return candidates, tried
    several = np.add.reduceat(candidates, cells.bounds[:-1], axis=1, dtype=np.int64) > 1
    cuts = candidates & np.repeat(several, cells.split_counts, axis=1)
    entropy = entropies.estimate(_cells_of(cells, cuts) & populated)
    keep_one_cut(cells.first, cells.bounds, size, entropy, candidates)
    return candidates, tried


def _cells_of(cells: SplitCells, splits: Bools) -> Bools:
    """Mark the cells (m, C) of splits (m, T); cell 0 belongs to none."""
    marked = np.zeros((len(splits), cells.count), bool)
    marked[:, 1:] = splits[:, cells.split_of]
    return marked


def _compare_splits(
    cells: SplitCells, size: Floats, information: Floats, ends: tuple[Floats, Floats], candidates: Bools
) -> tuple[Ints, Floats, Floats, Bools]:
    """Return all fields of `Choices` except the last (theory §3.1, §3.2)."""
    lower, upper, rivals = (np.full(candidates.shape, value) for value in (np.nan, np.nan, False))
    split = compare_splits(cells.first, size, information, *ends, candidates, lower, upper, rivals)
    return split, lower, upper, rivals
