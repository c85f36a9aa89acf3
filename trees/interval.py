"""Entropy intervals from the evidential likelihood, with proof (ALGORITHMS §2).

``S_alpha = [min, max]`` of the Shannon entropy over ``L_alpha = {theta : l(theta) >= l(theta_hat) + ln alpha}``. The
maximum is a convex program, the minimum a concave one solved globally; both end in a proof, not in a hope. The work is
done by compiled kernels (`problem`); here are the types, the checks, and a memory of what was solved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.trees import likelihood
from quercus.trees.cells import Cells
from quercus.trees.likelihood import Array, Estimate, distinct
from quercus.trees.solver import cut, kernels, problem
from quercus.trees.solver.maximisers import maximiser_entropies

EFFORT = 40_000  # boxes the branch and bound may examine; a box costs some tens of microseconds with
LIGHT = 7  # classes; with more of them fewer boxes, since a box costs as the cube of their number
SETTLED = 5e-10  # bits; an end proved to this is reported as the value reached, else as the proven bound
POINT = 1e-6  # bits; the same where alpha is 1, so that a unique maximiser is reported as a point
MEMO = 200_000  # problems an IntervalSolver remembers

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
    lower, upper : the ends. An end whose proof did not finish within the effort is the *outer* proven bound, so that
        the interval encloses the true one
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
    """Many intervals: ``lower`` (m,), ``upper`` (m,), ``gap`` (m,), in bits, as in `EntropyInterval`."""

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
    effort : most boxes the search for the minimum examines; ``gap`` tells what was proved within it. Default:
        40,000 for up to 7 classes, ``40,000 (7 / l)^3`` for more

    Returns
    -------
    EntropyInterval
        ``gap <= 1e-6`` for ``l <= 7``, and for any ``l`` when all labels are precise or vacuous; what little escapes
        (every class judged by the same row in turn, levels within 1e-9 of 1) says so. No rows: ``[0, 0]``.

    Raises
    ------
    InvalidInput
        Naming the argument, the value and the bound.

    Notes
    -----
    ALGORITHMS §2; the method is Ma, Destercke, Wang 2016, section 3.1, which searched a lattice.

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
    """Entropy intervals of many sets of evidential labels; each as in `entropy_interval`.

    Parameters
    ----------
    problems : (contours (n_i, l), weights (n_i,) or None) each
    alpha, effort : see `entropy_interval`

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
    for row, (given, given_weights) in enumerate(problems):
        contours, weights = likelihood.check_problem(given, given_weights)
        sizes[row] = contours.shape[1]
        if weights.any():
            P, w = distinct(contours, weights)
            ends[row] = solve(P, w[np.newaxis], alpha, effort)[0]
    return report(ends, sizes, alpha)


def check_alpha(alpha: float) -> None:
    """Raise `InvalidInput` unless `alpha` is a level."""
    if not 0.0 <= alpha <= 1.0:
        raise InvalidInput("alpha", f"is {alpha}; it must lie in [0, 1]")


def solve(table: Array, counts: Array, alpha: float, effort: int | None) -> Array:
    """Ends (m, 4) in nats of the problems (m, d) over a table (d, l), as `problem.solve_problem` writes them."""
    if effort is None:
        effort = int(EFFORT * min(1.0, LIGHT / table.shape[1]) ** 3)
    ends, states = np.zeros((len(counts), 4)), np.zeros(len(counts), np.int8)
    problem.solve_counts(table, counts, alpha, ends, states)
    hard = np.flatnonzero(states == problem.SEARCH)
    if hard.size:
        found = ends[hard]
        problem.search_counts(table, counts[hard], alpha, effort, found)
        ends[hard] = found
    for row in np.flatnonzero(states == problem.MAXIMISERS):
        use = counts[row] > 0.0
        ends[row] = of_maximisers(table[use], counts[row, use], alpha)
    return ends


def of_maximisers(P: Array, w: Array, alpha: float) -> tuple[float, float, float, float]:
    """Ends (as `problem.solve_problem` writes them) where the cut is the set of maximisers, and they may be many."""
    theta, excess = kernels.maximise(P, w)
    scaled = np.ascontiguousarray(P / (P @ theta)[:, None])
    slack = float(w.sum() * (excess + problem.EPS) - np.log(alpha))
    lower, upper, gap = maximiser_entropies(scaled, w, theta, slack)
    return lower - gap, lower, upper, upper + gap


def report(ends: Array, sizes: Ints, alpha: float) -> EntropyIntervals:
    """Choose what to report of each end: nats (m, 4) in, bits out; `sizes` (m,) are the numbers of classes."""
    bits = ends / np.log(2.0)
    low_gap = np.maximum(bits[:, 1] - bits[:, 0], 0.0)
    high_gap = np.maximum(bits[:, 3] - bits[:, 2], 0.0)
    top = np.log2(sizes)
    settled = POINT if alpha == 1.0 else SETTLED
    lower = np.clip(np.where(low_gap <= settled, bits[:, 1], bits[:, 0]), 0.0, top)
    upper = np.clip(np.where(high_gap <= settled, bits[:, 2], bits[:, 3]), lower, top)
    return EntropyIntervals(lower, upper, np.maximum(low_gap, high_gap))


def prepare() -> None:
    """Have every kernel compiled: half a minute on a fresh machine, a moment when the on-disk cache has them.

    Processes that must answer in time call this first; nobody else needs to.
    """
    contours = np.array([[1.0, 0.2, 0.3], [0.1, 1.0, 0.4], [0.3, 0.4, 1.0]])
    for labels in (np.eye(3), contours):  # what precise labels need comes first
        for alpha in (0.9, 1.0):
            entropy_interval(labels, np.array([9.0, 5.0, 3.0]), alpha)
    class_bounds(*distinct(contours, np.ones(3)), 3, 0.9)


class IntervalSolver:
    """Entropy intervals of many count vectors over one growing table of contours, each computed once.

    Contours that the likelihood cannot tell apart (equal up to a factor) are counted together, constant ones not at
    all.

    Parameters
    ----------
    contours : (d, l) contours; more may be appended with `extend`
    alpha : level of the cut
    effort : see `entropy_interval`
    """

    def __init__(self, contours: Array, alpha: float, *, effort: int | None = None) -> None:
        check_alpha(alpha)
        self.alpha = alpha
        self.effort = effort
        checked = likelihood.check_problem(contours, None)[0]
        self.contours = checked[:0]
        self._table = checked[:0]  # (c, l) informative contours scaled to maximum 1, distinct
        self._numbers: dict[bytes, int] = {}
        self._column = np.empty(0, np.int64)  # (d,) number in the table, -1 for constant contours
        self._memo: dict[bytes, tuple[float, float, float]] = {}
        self._estimate = lru_cache(MEMO)(self._solve_estimate)
        self._bounds = lru_cache(MEMO)(self._solve_bounds)
        self.extend(checked)

    def extend(self, contours: Array) -> None:
        """Append (k, l) contours; they get the next ids."""
        extra = likelihood.check_problem(contours, None)[0]
        if extra.shape[1] != self.contours.shape[1]:
            raise InvalidInput(
                "contours", f"have {extra.shape[1]} classes; the table has {self.contours.shape[1]}"
            )
        scaled = extra / extra.max(axis=1, keepdims=True, initial=0.0)
        columns = np.full(len(extra), -1)
        fresh = []
        for row in np.flatnonzero(extra.min(axis=1) < extra.max(axis=1)):
            key = scaled[row].tobytes()
            if key not in self._numbers:
                self._numbers[key] = len(self._numbers)
                fresh.append(row)
            columns[row] = self._numbers[key]
        self.contours = np.concatenate([self.contours, extra])
        self._table = np.ascontiguousarray(np.concatenate([self._table, scaled[fresh]]))
        self._column = np.concatenate([self._column, columns])

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
        return self._estimate(sparse(np.asarray(counts)))

    def class_bounds(self, counts: Ints) -> tuple[Array, Array]:
        """Belief (l,) and plausibility (l,) of each class: proven bounds of ``theta_c`` over the likelihood cut."""
        belief, plausibility = self.bound_classes_cells(Cells.of_dense(np.asarray(counts)[np.newaxis]))
        return belief[0], plausibility[0]

    def solve_cells(self, cells: Cells) -> EntropyIntervals:
        """Certified intervals of cells; each depends on its cell alone. An empty cell has ``[0, 0]``."""
        merged = self._merged(cells)
        keys = [sparse(row) for row in merged]
        todo = {key: row for row, key in enumerate(keys) if key not in self._memo}
        if todo:
            self._remember(list(todo), merged[list(todo.values())])
        rows = np.array([self._memo[key] for key in keys]).reshape(-1, 3)
        rows[np.diff(cells.start) == 0] = 0.0
        return EntropyIntervals(rows[:, 0], rows[:, 1], rows[:, 2])

    def enclose_cells(self, cells: Cells) -> tuple[Array, Array]:
        """Proven outer bounds (bits) of the intervals of cells: lower (m,), upper (m,); of the cell alone."""
        found = self.solve_cells(cells)
        return found.lower - found.gap, found.upper + found.gap

    def estimate_cells(self, cells: Cells) -> tuple[Array, NDArray[np.bool_]]:
        """Maximum likelihood estimates of cells (m, l), and which of them are the only maximisers (m,)."""
        theta = np.empty((len(cells), self.contours.shape[1]))
        unique = np.empty(len(cells), np.bool_)
        for i in range(len(cells)):
            entries = slice(cells.start[i], cells.start[i + 1])
            found = self._estimate(pack(cells.ids[entries], cells.counts[entries]))
            theta[i], unique[i] = found.theta, found.unique
        return theta, unique

    def bound_classes_cells(self, cells: Cells) -> tuple[Array, Array]:
        """Belief (m, l) and plausibility (m, l) of each class in each cell, see `class_bounds`."""
        found = [self._bounds(sparse(row)) for row in self._merged(cells)]
        bounds = np.array(found).reshape(-1, 2, self.contours.shape[1])
        return bounds[:, 0], bounds[:, 1]

    def _merged(self, cells: Cells) -> Array:
        """Counts (m, c) over the table of informative contours."""
        merged = np.zeros((len(cells), len(self._table)))
        columns = self._column[cells.ids]
        rows = np.repeat(np.arange(len(cells)), np.diff(cells.start))
        np.add.at(merged, (rows[columns >= 0], columns[columns >= 0]), cells.counts[columns >= 0])
        return merged

    def _remember(self, keys: list[bytes], merged: Array) -> None:
        ends = solve(self._table, merged, self.alpha, self.effort)
        found = report(ends, np.full(len(keys), self.contours.shape[1]), self.alpha)
        if len(self._memo) + len(keys) > MEMO:
            self._memo.clear()
        self._memo.update(
            zip(
                keys,
                zip(found.lower.tolist(), found.upper.tolist(), found.gap.tolist(), strict=True),
                strict=True,
            )
        )

    def _solve_estimate(self, key: bytes) -> Estimate:
        rows, counts = dense(key)
        return likelihood.estimate(self.contours[rows], counts)

    def _solve_bounds(self, key: bytes) -> tuple[Array, Array]:
        rows, counts = dense(key)
        return class_bounds(self._table[rows], counts, self.contours.shape[1], self.alpha)


def sparse(counts: NDArray[np.float64] | Ints) -> bytes:
    """Hashable form of a count vector: which numbers occur, and how often."""
    rows = np.flatnonzero(counts)
    return pack(rows, counts[rows])


def pack(numbers: NDArray[np.integer], counts: NDArray[np.float64] | Ints) -> bytes:
    """Numbers and counts as bytes."""
    return np.concatenate([numbers, counts]).astype(np.float64).tobytes()


def dense(key: bytes) -> tuple[Ints, Array]:
    """Numbers and counts that `sparse` packed."""
    numbers, counts = np.frombuffer(key).reshape(2, -1)
    return numbers.astype(np.int64), counts.copy()


def class_bounds(P: Array, w: Array, l: int, alpha: float) -> tuple[Array, Array]:
    """Proven bounds of each class probability over the likelihood cut of a reduced problem: lower (l,), upper (l,)."""
    if len(w) == 0 or alpha == 0.0:
        return np.zeros(l), np.ones(l)
    theta, excess = kernels.maximise(P, w)
    P = np.ascontiguousarray(P / (P @ theta)[:, None])
    c = np.log(alpha) - w.sum() * (excess + problem.EPS)
    lower, upper = np.empty(l), np.empty(l)
    for j in range(l):
        for sign, bounds in ((1.0, lower), (-1.0, upper)):
            cost = np.zeros(l)
            cost[j] = sign
            start = 0.9 * theta + 0.1 / l
            bound, _ = cut.minimise_over_cut(P, w, c, cost, np.zeros(l), np.ones(l), start, np.inf)
            bounds[j] = sign * bound
    return np.clip(lower, 0.0, theta), np.clip(upper, theta, 1.0)
