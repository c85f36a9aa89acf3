"""Cells: sparse vectors of contour counts, the form in which evidence reaches the solver (theory §2.1)."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.belief.errors import InvalidInput


@dataclass(frozen=True, eq=False)
class Cells:
    """Many cells, each a multiset of evidential labels, in compressed rows.

    The label counts of cell ``i`` are ``counts[start[i]:start[i + 1]]``, of the contours with the numbers
    ``ids[start[i]:start[i + 1]]``.

    Attributes
    ----------
    start : (m + 1,) int64, from 0, never falling
    ids : (nnz,) int32, numbers of contours, rising within a cell
    counts : (nnz,) int64, how often each occurs, above 0; or float64, how much these weigh together

    Raises
    ------
    InvalidInput
        If the arrays do not fit together. Ids that are out of range or do not rise, and counts of 0, are not checked
        here but by the methods of `IntervalSolver`, which read every entry anyway.
    """

    start: Ints
    ids: NDArray[np.int32]
    counts: NDArray[Any]

    def __post_init__(self) -> None:
        number = np.float64 if self.counts.dtype == np.float64 else np.int64
        for name, dtype in (("start", np.int64), ("ids", np.int32), ("counts", number)):
            array = getattr(self, name)
            if array.ndim != 1 or array.dtype != dtype:
                kind = np.dtype(dtype).name
                raise InvalidInput(
                    name, f"is {array.dtype} {array.shape}; it must be {kind} of one dimension"
                )
            object.__setattr__(self, name, np.ascontiguousarray(array))
        if self.start.size == 0 or self.start[0] != 0 or self.start[-1] != self.ids.size:
            raise InvalidInput("start", f"must begin at 0 and end at the number of entries, {self.ids.size}")
        if self.counts.size != self.ids.size:
            raise InvalidInput("counts", f"are {self.counts.size}; there are {self.ids.size} ids")

    def __len__(self) -> int:
        """Number of cells, ``m``."""
        return self.start.size - 1

    @classmethod
    def of_dense(cls, counts: NDArray[Any]) -> "Cells":
        """Return the cells of a table (m, d): one row per cell, the count of every contour.

        Examples
        --------
        >>> Cells.of_dense(np.array([[0, 2, 1], [0, 0, 0]])).start.tolist()
        [0, 2, 2]
        """
        rows, ids = np.nonzero(counts)
        start = np.zeros(len(counts) + 1, np.int64)
        np.cumsum(np.bincount(rows, minlength=len(counts)), out=start[1:])
        number = np.float64 if counts.dtype == np.float64 else np.int64
        return cls(start, ids.astype(np.int32), counts[rows, ids].astype(number))

    def cells_with_only(self, marked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return which cells (m,) contain only contours that are `marked` (d,). An empty cell does.

        Examples
        --------
        >>> Cells.of_dense(np.array([[0, 2, 1], [0, 2, 0]])).cells_with_only(np.array([True, True, False])).tolist()
        [False, True]
        """
        others = np.zeros(self.ids.size + 1, np.int64)
        np.cumsum(~marked[self.ids], out=others[1:])
        only: NDArray[np.bool_] = others[self.start[1:]] == others[self.start[:-1]]
        return only

    def chosen_cells(self, chosen: NDArray[np.bool_]) -> "Cells":
        """Return the chosen cells, given as a mask (m,)."""
        if chosen.all():
            return self
        lengths = np.diff(self.start)
        entries = np.repeat(chosen, lengths)
        start = np.concatenate([[0], np.cumsum(lengths[chosen])])
        return Cells(start, self.ids[entries], self.counts[entries])
