"""The rows that a tree grows on, in the shape that makes counting cheap.

Labels are interned: a row holds the number of its contour in a table of distinct contours, so a node's
statistics are counts of (value, contour) pairs, which add and subtract.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import is_precise, is_vacuous
from quercus.trees.interval import IntervalSolver

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Ids = NDArray[np.int32]
Bools = NDArray[np.bool_]

FIRST_ROOM = 16  # contours; room at least doubles


class ContourTable:
    """Distinct contours, numbered as they came; it only grows, so a number stays good.

    Contours are distinct when one of their numbers differs, however little.

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
        """Return the number of each contour (n, l), giving new ones the next numbers, in order."""
        plain = np.ascontiguousarray(contours, dtype=np.float64) + 0.0  # -0.0 becomes 0.0
        if not len(plain):
            return np.empty(0, dtype=np.int32)
        keys = plain.view(np.dtype((np.void, plain.itemsize * plain.shape[1]))).ravel()
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        numbers = np.empty(first.size, dtype=np.int32)
        fresh: list[int] = []
        for k in np.argsort(first):  # in the order in which they came
            row = int(first[k])
            number = self._numbers.setdefault(keys[row].tobytes(), self.size + len(fresh))
            if number == self.size + len(fresh):
                fresh.append(row)
            numbers[k] = number
        if fresh:
            self._append(plain[fresh])
        ids: Ids = numbers[inverse.ravel()]
        return ids

    def _append(self, contours: Floats) -> None:
        total = self._size + len(contours)
        if total > len(self._contours):
            room = max(FIRST_ROOM, 2 * total)
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
        """Which contours leave one class, (d,)."""
        return self._precise[: self._size]

    @property
    def vacuous(self) -> Bools:
        """Which contours say nothing, (d,)."""
        return self._vacuous[: self._size]

    def solver(self, alpha: float) -> IntervalSolver:
        """Return the solver at level `alpha` over all contours; it remembers what it has solved."""
        solver, known = self._solvers.get(alpha, (None, 0))
        if solver is None:
            solver = IntervalSolver(self.contours, alpha)
        elif known < self.size:
            solver.extend(self.contours[known:])
        self._solvers = {alpha: (solver, self.size)}  # the level of the past is not needed again
        return solver


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows that a tree grows on.

    Parameters
    ----------
    codes
        (n, K) branch codes, each in ``[0, arity)``; best column-major.
    arities
        Number of codes of each attribute.
    ids
        (n,) number of each row's contour.
    askable
        (n,) whether an oracle may still be asked: not yet answered, refused or being asked.
    table
        The distinct contours.
    """

    codes: NDArray[np.integer]
    arities: tuple[int, ...]
    ids: Ids
    askable: Bools
    table: ContourTable

    def counts(self, rows: Ints) -> Ints:
        """Return how often each distinct contour occurs among `rows`: (d,)."""
        counts: Ints = np.bincount(self.ids[rows], minlength=self.table.size)
        return counts

    def contingency(self, rows: Ints, attributes: tuple[int, ...]) -> Mapping[int, Ints]:
        """Return how often each (value, contour) pair occurs among `rows`: (arity, d) an attribute."""
        d = self.table.size
        ids = self.ids[rows].astype(np.int64)
        tables = {}
        for k in attributes:
            cells = self.codes[rows, k] * np.int64(d) + ids
            tables[k] = np.bincount(cells, minlength=self.arities[k] * d).reshape(self.arities[k], d)
        return tables

    def with_value(self, rows: Ints, attribute: int, code: int) -> Ints:
        """Return those of `rows` that have this code."""
        chosen: Ints = rows[self.codes[rows, attribute] == code]
        return chosen

    def candidates(self, rows: Ints) -> Ints:
        """Return those of `rows` that may be asked about: askable, and not known for certain."""
        return rows[self.askable[rows] & ~self.table.precise[self.ids[rows]]]
