"""Distances between rows, kept while the codes and the rows to be covered stay the same."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.ask.strategies import covering
from quercus.trees.memory_forest.codes import Codebook, Codes

Ints = NDArray[np.int64]


class Apart:
    """Distances of candidates, and of known rows, from some rows.

    From one agenda to the next few candidates change, and few rows become known: only their distances are counted.

    Parameters
    ----------
    book
        The codes.
    rows
        (m,) numbers of the rows.
    codes
        Of all rows.
    """

    def __init__(self, book: Codebook, rows: Ints, codes: Codes) -> None:
        self._book, self._rows, self._bins = book, rows, book.bins()
        self._others = ordered(codes[rows], self._bins)
        most = covering.UNIT * len(book.named)
        small = np.uint16 if most <= np.iinfo(np.uint16).max else np.int32
        self._far = np.empty((0, len(rows)), small)  # up to a million distances
        self._candidates = np.empty(0, np.int64)  # of each line, former ones among them
        self._near = self._nearest(codes[:0])
        self._known = np.empty(0, np.int64)

    def fits(self, book: Codebook, rows: Ints) -> bool:
        """Tell whether these are the codes and the rows."""
        return book is self._book and np.array_equal(rows, self._rows)

    def far(self, candidates: Ints, codes: Codes) -> Ints:
        """Return the distances (n, m) of candidates (n,) from the rows; `codes` are of all rows."""
        fresh = np.setdiff1d(candidates, self._candidates)
        if fresh.size:
            more = covering.distances(ordered(codes[fresh], self._bins), self._others, self._bins)
            more = more.astype(self._far.dtype)
            free = np.flatnonzero(~np.isin(self._candidates, candidates))[: fresh.size]
            self._far[free], self._candidates[free] = more[: free.size], fresh[: free.size]
            if free.size < fresh.size:
                self._far = np.concatenate([self._far, more[free.size :]])
                self._candidates = np.append(self._candidates, fresh[free.size :])
        order = np.argsort(self._candidates)
        lines = order[np.searchsorted(self._candidates, candidates, sorter=order)]
        return self._far[lines].astype(np.int64)

    def near(self, known: Ints, codes: Codes) -> Ints:
        """Return the distance (m,) of each row from the nearest of `known` ones (n,), an array of the caller's own."""
        if not np.isin(self._known, known).all():
            self._near, self._known = self._nearest(codes[:0]), known[:0]
        fresh = np.setdiff1d(known, self._known)
        if fresh.size:
            self._near = np.minimum(self._near, self._nearest(codes[fresh]))
        self._known = known
        return self._near.copy()

    def _nearest(self, codes: Codes) -> Ints:
        return covering.nearest(self._others, ordered(codes, self._bins), self._bins)


def ordered(codes: Codes, bins: Ints) -> NDArray[np.int16]:
    """Return codes as `covering` wants them: those of numbers from 0 on, that of a missing one behind them."""
    found = np.where(bins > 0, np.where(codes == 0, bins, codes.astype(np.int64) - 1), codes)
    return found.astype(np.int16)
