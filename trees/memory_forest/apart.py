"""Distances between rows, kept while the codes and the rows to be covered stay the same."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.ask.strategies import covering
from quercus.trees.memory_forest.codes import Codebook, Codes

Ints = NDArray[np.int64]


class Apart:
    """Distances of candidates from some rows, in the smallest type that holds them: there are up to a million.

    Parameters
    ----------
    book
        The codes.
    rows
        (m,) numbers of the rows.
    """

    def __init__(self, book: Codebook, rows: Ints) -> None:
        self._book = book
        self._rows = rows
        self._candidates = np.empty(0, np.int64)
        most = covering.UNIT * len(book.named)
        self._far = np.empty((0, len(rows)), np.uint16 if most <= np.iinfo(np.uint16).max else np.int32)

    def fits(self, book: Codebook, rows: Ints) -> bool:
        """Tell whether these are the codes and the rows."""
        return book is self._book and np.array_equal(rows, self._rows)

    def lines(self, candidates: Ints, codes: Codes, others: NDArray[np.int16]) -> Ints:
        """Return the distances (n, m) of candidates (n,) from the rows, whose codes are `others`."""
        place = {int(row): at for at, row in enumerate(self._candidates)}
        fresh = np.array([row for row in candidates.tolist() if row not in place], dtype=np.int64)
        if fresh.size:
            bins = self._book.bins()
            kept = np.array([place[row] for row in candidates.tolist() if row in place], dtype=np.int64)
            more = covering.distances(ordered(codes[fresh], bins), others, bins)
            self._far = np.concatenate([self._far[kept], more.astype(self._far.dtype)])
            self._candidates = np.concatenate([self._candidates[kept], fresh])
            place = {int(row): at for at, row in enumerate(self._candidates)}
        return self._far[[place[row] for row in candidates.tolist()]].astype(np.int64)


def ordered(codes: Codes, bins: Ints) -> NDArray[np.int16]:
    """Return codes as `covering` wants them: those of numbers from 0 on, that of a missing one behind them."""
    found = np.where(bins > 0, np.where(codes == 0, bins, codes.astype(np.int64) - 1), codes)
    return found.astype(np.int16)
