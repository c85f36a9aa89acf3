"""The rows from which a tree grows, in a form that makes counting cheap.

Labels are interned: a row has the number of its contour in a table of distinct contours, so a node's statistics are
counts of (value, contour) pairs, which can be added and subtracted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.contour import is_precise, is_vacuous
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.tree.splits import Splits

Ids = NDArray[np.int32]

FIRST_CONTOURS = 16  # initial capacity, which at least doubles when exceeded
SCRAMBLE = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio: its multiples are evenly spread


class ContourTable:
    """Distinct contours, numbered in order of arrival; the table only grows, so numbers stay valid.

    Contours are distinct if any of their values differ, however little.

    Parameters
    ----------
    size
        Number of classes.
    """

    def __init__(self, size: int) -> None:
        self._numbers: dict[bytes, int] = {}
        self._size = 0
        self._contours = np.empty((0, size))
        self._precise = np.empty(0, dtype=bool)
        self._vacuous = np.empty(0, dtype=bool)
        self._solvers: dict[float, tuple[IntervalSolver, int]] = {}

    def intern(self, contours: Floats) -> Ids:
        """Return the number of each contour (n, l); new contours get the next numbers, in order."""
        plain = np.ascontiguousarray(contours, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        if not len(plain):
            return np.empty(0, dtype=np.int32)
        if (
            len(plain) == 1 and (known := self._numbers.get(plain.tobytes())) is not None
        ):  # fast path for most answers
            return np.array([known], dtype=np.int32)
        keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
        first, inverse = _distinct_rows(plain)
        numbers = np.empty(first.size, dtype=np.int32)
        fresh: list[int] = []
        for k in np.argsort(first):  # in order of arrival
            row = int(first[k])
            number = self._numbers.setdefault(keys[row].tobytes(), self.size + len(fresh))
            if number == self.size + len(fresh):
                fresh.append(row)
            numbers[k] = number
        if fresh:
            self._append_contours(plain[fresh])
        ids: Ids = numbers[inverse]
        return ids

    def _append_contours(self, contours: Floats) -> None:
        total = self._size + len(contours)
        if total > len(self._contours):
            room = max(FIRST_CONTOURS, 2 * total)
            for name in ("_contours", "_precise", "_vacuous"):
                old = getattr(self, name)
                new = np.empty((room, *old.shape[1:]), old.dtype)
                new[: self._size] = old[: self._size]
                setattr(self, name, new)
        fresh = slice(self._size, total)
        self._contours[fresh] = contours
        self._precise[fresh] = is_precise(contours)
        self._vacuous[fresh] = is_vacuous(contours)
        self._size = total

    @property
    def size(self) -> int:
        """Number of distinct contours, ``d``."""
        return self._size

    @property
    def contours(self) -> Floats:
        """The contours, (d, l)."""
        return self._contours[: self._size]

    @property
    def precise(self) -> Bools:
        """(d,) whether each contour is precise."""
        return self._precise[: self._size]

    @property
    def vacuous(self) -> Bools:
        """(d,) whether each contour is vacuous."""
        return self._vacuous[: self._size]

    def solver(self, alpha: float) -> IntervalSolver:
        """Return the solver at level `alpha` over all contours; it caches solutions.

        Two solvers are kept: the one for the last level requested, and the one for level 1, which chooses cuts.
        """
        solver, known = self._solvers.get(alpha, (None, 0))
        if solver is None:
            solver = IntervalSolver(self.contours, alpha)
        elif known < self.size:
            solver.add_contours(self.contours[known:])
        self._solvers = {level: kept for level, kept in self._solvers.items() if level == 1.0 or alpha == 1.0}
        self._solvers[alpha] = solver, self.size
        return solver

    def end_look(self) -> None:
        """Let the solvers drop large caches of old solutions, see `IntervalSolver.end_look`."""
        for solver, _ in self._solvers.values():
            solver.end_look()


def _distinct_rows(plain: Floats) -> tuple[Ints, Ints]:
    """Return the first occurrence of each distinct row of (n, l), and the index of each row among these.

    Rows are sorted by hash, which is faster than by bytes; in the rare case of a collision, bytes decide.
    """
    bits = plain.view(np.uint64)
    factors = (np.arange(2, bits.shape[1] + 2, dtype=np.uint64) * SCRAMBLE) | np.uint64(1)
    numbers = ((bits ^ (bits >> np.uint64(32))) * factors).sum(axis=1, dtype=np.uint64)
    _, first, inverse = np.unique(numbers, return_index=True, return_inverse=True)
    if not (bits == bits[first[inverse]]).all():
        keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    return first, inverse


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows from which a tree grows.

    Parameters
    ----------
    codes
        (n, K) branch codes, each in ``[0, arity)``; access is fastest if they are column-major.
    arities
        Number of codes of each attribute.
    ids
        (n,) number of each row's contour.
    askable
        (n,) whether an oracle may still be asked: not yet answered, refused or being asked.
    table
        The distinct contours.
    cuts
        Number of cuts of each attribute, see `quercus.trees.tree.splits`; empty if no attribute has cuts.
    weights
        (n,) weight of each row, above 0; None: 1 each.
    closed
        (n,) whether a row must not be asked about now, although nobody has been asked about it; None: no row.
    """

    codes: NDArray[np.integer]
    arities: tuple[int, ...]
    ids: Ids
    askable: Bools
    table: ContourTable
    cuts: tuple[int, ...] = ()
    weights: Floats | None = None
    closed: Bools | None = None

    @property
    def splits(self) -> Splits:
        """The possible splits of a node."""
        return _splits_of(self.arities, self.cuts)

    def counts(self, rows: Ints) -> NDArray[Any]:
        """Return the count, or the weight, of each distinct contour among `rows`: (d,)."""
        weights = None if self.weights is None else self.weights[rows]
        counts: NDArray[Any] = np.bincount(self.ids[rows], weights, minlength=self.table.size)
        return counts

    def weight(self, rows: Ints) -> float:
        """Return the total weight of `rows`."""
        return float(rows.size if self.weights is None else self.weights[rows].sum())

    def contingency(self, rows: Ints, splits: tuple[int, ...]) -> Mapping[int, Ints]:
        """Return the count of each (branch, contour) pair among `rows`: (branches, d) for each split."""
        d = self.table.size
        ids = self.ids[rows].astype(np.int64)
        tables = {}
        for split in splits:
            branches = int(self.splits.branches[split])
            pairs = self.branch(rows, split) * d + ids
            tables[split] = np.bincount(pairs, minlength=branches * d).reshape(branches, d)
        return tables

    def branch(self, rows: Ints, split: int) -> Ints:
        """Return the branch of each of `rows` at a split."""
        splits = self.splits
        return splits.branches_of(split, self.codes[rows, splits.attribute[split]])

    def with_value(self, rows: Ints, split: int, branch: int) -> Ints:
        """Return those of `rows` that go down this branch of a split."""
        chosen: Ints = rows[self.branch(rows, split) == branch]
        return chosen

    def candidates(self, rows: Ints) -> Ints:
        """Return those of `rows` that may be asked about: askable, not closed, and of uncertain class."""
        found = rows[self.askable[rows] & ~self.table.precise[self.ids[rows]]]
        return found if self.closed is None else found[~self.closed[found]]


@lru_cache(maxsize=64)
def _splits_of(arities: tuple[int, ...], cuts: tuple[int, ...]) -> Splits:
    return Splits(arities, cuts)
