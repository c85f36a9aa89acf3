"""Entropy intervals from the evidential likelihood, with proof (theory §2.3).

``S_alpha = [min, max]`` of the Shannon entropy over ``L_alpha = {theta : l(theta) >= l(theta_hat) + ln alpha}``. The
maximum is a convex program, the minimum a concave one that is solved globally; both results are proven. Compiled
kernels do the work (`kernels/likelihood/problem.hpp`); this module has the types, the checks, and a cache of solutions.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import largest_one
from quercus.belief.errors import InvalidInput
from quercus.kernels.likelihood import (
    CONSTANT,
    GENERAL,
    OTHER,
    bound_counts,
    bound_maxima,
    bound_precise,
    estimate_precise,
    merge_cells,
    reduce_rows,
    solve_precise,
    take_problem,
)
from quercus.trees.likelihood import maximiser
from quercus.trees.likelihood.cell_cache import CellCache
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.maxima import LikelihoodMaxima
from quercus.trees.likelihood.maximiser import Array, Estimate
from quercus.trees.likelihood.solver import stages

SETTLED_END = 5e-10  # bits; an end proved to this is reported as the value reached, else as the proven bound
POINT = 1e-6  # bits; the same at alpha = 1, so that a unique maximiser is reported as a point
SLIP = 1e-12  # bits; rounding of an entropy, added to outer bounds
LOOKUP_ENTRIES = 1_000_000  # entries of general cells in one batch of look-ups
RECENT = 100_000  # approximate size, in numbers, of the cache of recently solved cells of precise labels
LOOKS = 16  # the least number of looks at a tree for which solutions are remembered

Ints = NDArray[np.int64]

__all__ = [
    "Cells",
    "EntropyInterval",
    "EntropyIntervals",
    "IntervalSolver",
    "entropy_interval",
    "entropy_intervals",
]


@dataclass(frozen=True)
class EntropyInterval:
    """Bounds of the entropy over a likelihood cut, in bits.

    Attributes
    ----------
    lower, upper : the ends. If the effort was spent before an end was settled, it is the proven *outer* bound, so the
        interval encloses the true one
    gap : proven bound of the error of each end
    """

    lower: float
    upper: float
    gap: float

    @property
    def width(self) -> float:
        """``upper - lower``, in bits."""
        return self.upper - self.lower


@dataclass(frozen=True, eq=False)
class EntropyIntervals:
    """Many intervals: ``lower`` (m,), ``upper`` (m,) and ``gap`` (m,), in bits, as in `EntropyInterval`."""

    lower: Array
    upper: Array
    gap: Array


def entropy_interval(
    contours: Array, weights: Array | None, alpha: float, *, effort: int | None = None
) -> EntropyInterval:
    """Entropy interval of a set of evidential labels.

    Parameters
    ----------
    contours : (n, l) plausibilities in [0, 1], no row all zero
    weights : (n,) non-negative counts; 1 each when None
    alpha : level of the cut, in [0, 1]
    effort : greatest number of boxes in the search for the minimum; ``gap`` is the proven accuracy. Default:
        40,000 for up to 7 classes, ``40,000 (7 / l)^3`` for more

    Returns
    -------
    EntropyInterval
        ``gap <= 1e-6`` for ``l <= 7``, and for any ``l`` if all labels are precise or vacuous. The gap may be larger at
        levels so near 1 that rounding blurs the cut (``-ln alpha`` below 1e-10 of the weight). The bounds always hold.
        If the effort is spent, they may depend on the order of rows and classes. Without rows: ``[0, 0]``.

    Raises
    ------
    InvalidInput
        If an argument is malformed or out of its bounds. The error names the argument, the value and the bound.

    Notes
    -----
    theory §2.3 to §2.8. The interval is that of Ma, Destercke, Wang 2016, section 3.1, who searched a lattice.

    Examples
    --------
    >>> interval = entropy_interval(np.eye(3)[[0, 0, 1]], None, 0.8)
    >>> round(interval.lower, 6), round(interval.upper, 6)
    (0.665651, 1.249878)
    """
    found = entropy_intervals([(contours, weights)], alpha, effort=effort)
    return EntropyInterval(float(found.lower[0]), float(found.upper[0]), float(found.gap[0]))


def entropy_intervals(
    problems: Sequence[tuple[Array, Array | None]], alpha: float, *, effort: int | None = None
) -> EntropyIntervals:
    """Entropy intervals of many sets of evidential labels.

    Parameters
    ----------
    problems : one pair per set: contours (n_i, l_i), and weights (n_i,) or None
    alpha, effort : see `entropy_interval`

    Raises
    ------
    InvalidInput
        As `entropy_interval`.

    Examples
    --------
    >>> entropy_intervals([(np.eye(2), None), (np.ones((1, 4)), None)], 0.5).upper.tolist()
    [1.0, 2.0]
    """
    check_alpha(alpha)
    if effort is not None and effort < 1:
        raise InvalidInput("effort", f"is {effort}; at least 1 box must be examined")
    ends = np.zeros((len(problems), 4))
    sizes = np.full(len(problems), 2)
    for chosen, contours, weights, first in maximiser.stack_problems(problems):
        table, totals = np.empty_like(contours), np.empty_like(weights)
        start, empty = np.empty_like(first), np.empty(len(chosen), np.bool_)
        reduce_rows(contours, weights, first, table, totals, start, empty)
        columns = np.arange(len(table), dtype=np.int32)
        stacked, wanted = (start, columns, totals), np.arange(len(chosen))
        estimates = stages.estimate(table, stacked, wanted)
        found = stages.enclose(table, stacked, wanted, estimates, alpha, tight=False)
        found = stages.finish(table, stacked, wanted, estimates, alpha, effort, found)
        found[empty] = 0.0
        ends[chosen], sizes[chosen] = found, contours.shape[1]
    return report_intervals(ends, sizes, alpha)


def check_alpha(alpha: float) -> None:
    """Raise `InvalidInput` unless `alpha` is a level."""
    if not 0.0 <= alpha <= 1.0:
        raise InvalidInput("alpha", f"is {alpha}; it must lie in [0, 1]")


def report_intervals(ends: Array, sizes: Ints, alpha: float) -> EntropyIntervals:
    """Choose between the value reached and the proven bound of each end.

    Parameters
    ----------
    ends : (m, 4) lower bound, least and greatest entropy reached, upper bound, in nats
    sizes : (m,) number of classes of each problem
    alpha : level of the cut

    Returns
    -------
    EntropyIntervals
        In bits.
    """
    bits = ends / np.log(2.0)
    low_gap = np.maximum(bits[:, 1] - bits[:, 0], 0.0)
    high_gap = np.maximum(bits[:, 3] - bits[:, 2], 0.0)
    top = np.log2(sizes)
    settled = POINT if alpha == 1.0 else SETTLED_END
    lower = np.clip(np.where(low_gap <= settled, bits[:, 1], bits[:, 0]), 0.0, top)
    upper = np.clip(np.where(high_gap <= settled, bits[:, 2], bits[:, 3]), lower, top)
    return EntropyIntervals(lower, upper, np.maximum(low_gap, high_gap))


class IntervalSolver:
    """Entropy intervals of many cells over one growing table of contours.

    Contours that the likelihood cannot tell apart (equal up to a factor) are counted together, and constant ones are
    ignored. The result for a cell depends on that cell alone, not on other cells or earlier calls.

    Parameters
    ----------
    contours : (d, l) contours; more may be appended with `add_contours`
    alpha : level of the cut
    effort : see `entropy_interval`
    """

    def __init__(self, contours: Array, alpha: float, *, effort: int | None = None) -> None:
        check_alpha(alpha)
        self.alpha = alpha
        self.effort = effort
        self.scores: Any = None  # a cache of `quercus.trees.ask.candidate`, which lives as long as the solver
        checked = maximiser.check_problem(contours, None)[0]
        self.contours = checked[:0]
        self._scaled = checked[:0]  # (d, l) with maximum 1: products with tiny plausibilities would be 0
        self._table = checked[:0]  # (c, l) informative contours scaled to maximum 1, distinct
        self._numbers: dict[bytes, int] = {}
        self._column = np.empty(0, np.int32)  # (d,) number in the table, -1 for constant contours
        self._klass = np.empty(0, np.int8)  # (d,) the class of a precise contour, else CONSTANT or OTHER
        self._memo, self._looks = CellCache(), 0
        self._recent: tuple[Array, Array] | None = None  # allocated with the first cell
        self.add_contours(checked)

    def add_contours(self, contours: Array) -> None:
        """Append (k, l) contours; they get the next ids."""
        extra = maximiser.check_problem(contours, None)[0]
        if extra.shape[1] != self.contours.shape[1]:
            raise InvalidInput(
                "contours", f"have {extra.shape[1]} classes; the table has {self.contours.shape[1]}"
            )
        scaled = largest_one(extra)
        columns = np.full(len(extra), -1, np.int32)
        fresh = []
        for row in np.flatnonzero(extra.min(axis=1) < extra.max(axis=1)):
            key = scaled[row].tobytes()
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                fresh.append(row)
            columns[row] = self._numbers[key]
        klass = np.where(columns < 0, CONSTANT, OTHER)
        one = np.count_nonzero(extra, axis=1) == 1
        klass[one] = extra[one].argmax(axis=1)
        self.contours = np.concatenate([self.contours, extra])
        self._scaled = np.ascontiguousarray(np.concatenate([self._scaled, scaled]))
        self._table = np.ascontiguousarray(np.concatenate([self._table, scaled[fresh]]))
        self._column = np.concatenate([self._column, columns])
        self._klass = np.concatenate([self._klass, klass.astype(np.int8)])

    def end_look(self) -> None:
        """Count a look at the tree, and after every `LOOKS` of them drop the cache of cells if it is large.

        A process holds a cache for each of its trees, but few trees change at a time, so most cached cells are old.
        """
        self._looks += 1
        if self._looks >= LOOKS and self._memo.is_large:
            self._memo, self._looks = CellCache(), 0

    def intervals(self, counts: Ints) -> tuple[Array, Array]:
        """Intervals of (m, d) count vectors: lower (m,) and upper (m,), in bits. A vector of zeros has ``[0, 0]``."""
        found = self.solve(counts)
        return found.lower, found.upper

    def interval(self, counts: Ints) -> EntropyInterval:
        """Interval of one (d,) count vector, with its gap."""
        found = self.solve(np.asarray(counts)[np.newaxis])
        return EntropyInterval(float(found.lower[0]), float(found.upper[0]), float(found.gap[0]))

    def solve(self, counts: Ints) -> EntropyIntervals:
        """Intervals of (m, d) count vectors, with their gaps."""
        return self.solve_cells(Cells.of_dense(np.asarray(counts)))

    def estimate(self, counts: Ints) -> Estimate:
        """Maximum likelihood estimate of one (d,) count vector."""
        counts = np.asarray(counts)
        theta, unique = self.estimate_cells(Cells.of_dense(counts[np.newaxis]))
        used = np.flatnonzero(counts)
        return maximiser.certify(self.contours[used], counts[used].astype(float), theta[0], bool(unique[0]))

    def class_bounds(self, counts: Ints, level: float | None = None) -> tuple[Array, Array]:
        """Belief (l,) and plausibility (l,) of each class: proven bounds of ``theta_c`` over the likelihood cut.

        The level of the cut is `level`, or `alpha` if that is None.
        """
        belief, plausibility = self.bound_classes_cells(Cells.of_dense(np.asarray(counts)[np.newaxis]), level)
        return belief[0], plausibility[0]

    def solve_cells(self, cells: Cells) -> EntropyIntervals:
        """Certified intervals of cells. An empty cell has ``[0, 0]``.

        Raises
        ------
        InvalidInput
            If the ids of a cell do not rise or are not numbers of contours, or if a count is not above 0. The other
            methods that take cells raise it too.
        """
        ends, kinds = np.zeros((3, len(cells))), np.empty(len(cells), np.int8)
        recent = self._recent_cells()
        arrays = cells.start, cells.ids, cells.counts, self._klass
        self._check_cells(solve_precise(*arrays, self.contours.shape[1], self.alpha, *recent, kinds, ends))
        for chosen, numbers in self._general_cells(cells, kinds):
            ends[:, chosen] = self._memo.recall_values(numbers, "interval", 3, self._compute_intervals).T
        return EntropyIntervals(ends[0], ends[1], ends[2])

    def _recent_cells(self) -> tuple[Array, Array]:
        """Return the cache of recently solved cells of precise labels: count vectors and ends, indexed by hash.

        The arrays are large, but the operating system provides their pages only as they are used.
        """
        if self._recent is None:
            l = self.contours.shape[1]
            recent = 1 << (RECENT // (l + 3)).bit_length()
            self._recent = np.zeros((recent, l)), np.empty((recent, 3))
        return self._recent

    def enclose_cells(self, cells: Cells) -> tuple[Array, Array]:
        """Proven outer bounds (bits) of the intervals of cells: lower (m,), upper (m,).

        The bounds of cells of precise labels are exact. For other cells one box bounds the least entropy, without a
        search.
        """
        ends, kinds = np.zeros((3, len(cells))), np.empty(len(cells), np.int8)
        recent = self._recent_cells()
        arrays = cells.start, cells.ids, cells.counts, self._klass
        self._check_cells(solve_precise(*arrays, self.contours.shape[1], self.alpha, *recent, kinds, ends))
        lower, upper = ends[0] - ends[2], ends[1] + ends[2]
        for chosen, numbers in self._general_cells(cells, kinds):
            bits = self._memo.recall_values(numbers, "enclosure", 5, self._compute_enclosures) / np.log(2.0)
            lower[chosen] = bits[:, :2].min(axis=1) - SLIP
            upper[chosen] = bits[:, 2:4].max(axis=1) + SLIP
        return np.maximum(lower, 0.0), np.minimum(upper, np.log2(self.contours.shape[1]))

    def estimate_cells(self, cells: Cells) -> tuple[Array, NDArray[np.bool_]]:
        """Maximum likelihood estimates of cells (m, l), and whether each is the only maximiser (m,)."""
        l = self.contours.shape[1]
        theta, unique = np.empty((len(cells), l)), np.empty(len(cells), np.bool_)
        kinds = np.empty(len(cells), np.int8)
        arrays = cells.start, cells.ids, cells.counts, self._klass
        self._check_cells(estimate_precise(*arrays, kinds, theta, unique))
        for chosen, numbers in self._general_cells(cells, kinds):
            found = self._recall_estimates(numbers)
            theta[chosen], unique[chosen] = found[:, :l], found[:, l + 1] > 0.0
        return theta, unique

    def maximise_cells(self, cells: Cells) -> LikelihoodMaxima:
        """Greatest log likelihoods of cells, with proven bounds."""
        theta, _ = self.estimate_cells(cells)
        found = LikelihoodMaxima(
            np.empty(len(cells)),
            np.empty(len(cells)),
            np.empty(len(cells), dtype=np.uint64),
            np.empty(len(cells)),
        )
        arrays = cells.start, cells.ids, cells.counts
        bound_maxima(*arrays, self._scaled, theta, found.reached, found.bound, found.classes, found.weight)
        return found

    def bound_classes_cells(self, cells: Cells, level: float | None = None) -> tuple[Array, Array]:
        """Belief (m, l) and plausibility (m, l) of each class in each cell, see `class_bounds`."""
        l = self.contours.shape[1]
        lower, upper = np.empty((len(cells), l)), np.empty((len(cells), l))
        kinds = np.empty(len(cells), np.int8)
        arrays = cells.start, cells.ids, cells.counts, self._klass
        cut = self.alpha if level is None else level
        self._check_cells(bound_precise(*arrays, cut, kinds, lower, upper))
        for chosen, numbers in self._general_cells(cells, kinds):
            found = self._memo.recall_values(
                numbers, f"bounds {cut}", 2 * l, partial(self._compute_class_bounds, level=cut)
            )
            lower[chosen], upper[chosen] = found[:, :l], found[:, l:]
        return lower, upper

    def _check_cells(self, malformed: int) -> None:
        if malformed >= 0:
            raise InvalidInput(
                f"cells[{malformed}]",
                f"is malformed; ids must rise from 0 to {len(self._klass) - 1}, and counts be above 0",
            )

    def _general_cells(self, cells: Cells, kinds: NDArray[np.int8]) -> Iterator[tuple[Ints, Ints]]:
        """Yield in batches the numbers of cells whose labels are not all precise or vacuous, here and in the cache."""
        general = np.flatnonzero(kinds == GENERAL)
        if not general.size:
            return
        sizes = cells.start[general + 1] - cells.start[general]
        for chosen in np.split(general, np.flatnonzero(np.diff(np.cumsum(sizes) // LOOKUP_ENTRIES)) + 1):
            room = int((cells.start[chosen + 1] - cells.start[chosen]).sum())
            start = np.empty(chosen.size + 1, np.int64)
            columns, counts = np.empty(room, np.int32), np.empty(room)
            arrays = cells.start, cells.ids, cells.counts
            merge_cells(*arrays, chosen, self._column, start, columns, counts)
            yield chosen, self._memo.intern_cells(start, columns[: start[-1]], counts[: start[-1]])

    def _compute_estimates(self, wanted: Ints) -> Array:
        l = self.contours.shape[1]
        found = stages.estimate(self._table, self._memo.cells, wanted)
        for row in np.flatnonzero(found[:, l + 1] == 0.0):
            P, w = take_problem(self._table, *self._memo.cells, wanted[row])
            found[row, l + 1] = maximiser.is_unique(P, w, found[row, :l])
        return found

    def _recall_estimates(self, wanted: Ints) -> Array:
        return self._memo.recall_values(
            wanted, "estimate", self.contours.shape[1] + 2, self._compute_estimates
        )

    def _compute_enclosures(self, wanted: Ints) -> Array:
        return stages.enclose(
            self._table, self._memo.cells, wanted, self._recall_estimates(wanted), self.alpha, tight=True
        )

    def _compute_intervals(self, wanted: Ints) -> Array:
        known = self._memo.recall_values(wanted, "enclosure", 5, self._compute_enclosures)
        problems = self._table, self._memo.cells, wanted, self._recall_estimates(wanted)
        ends = stages.finish(*problems, self.alpha, self.effort, known)
        found = report_intervals(ends, np.full(len(wanted), self.contours.shape[1]), self.alpha)
        return np.stack([found.lower, found.upper, found.gap], axis=1)

    def _compute_class_bounds(self, wanted: Ints, level: float) -> Array:
        bounds = np.empty((len(wanted), 2 * self.contours.shape[1]))
        problems = self._table, *self._memo.cells, wanted, self._recall_estimates(wanted)
        bound_counts(*problems, level, bounds)
        return bounds
