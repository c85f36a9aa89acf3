"""What the log says: rows of values, what is known of their classes, and in which order it was told."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.memory_forest.codes import Codebook, Codes, rows_that_cut
from quercus.trees.memory_forest.nodes import NONE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

UNTOLD = -1  # contour of a row of which nothing is known
ROOM = 64


class Contours:
    """The distinct contours, scaled to maximum 1, by number."""

    def __init__(self, size: int) -> None:
        self._numbers: dict[bytes, int] = {}
        self.values = np.empty((0, size))
        self.beliefs = np.empty((0, size))
        self.pignistic = np.empty((0, size))
        self.sole = np.empty(0, np.int32)
        self.rank = np.empty(0, np.int64)

    def numbers(self, contours: Floats) -> NDArray[np.int32]:
        """Return the numbers of contours (n, l); `UNTOLD` of those that say nothing."""
        scaled = contours / contours.max(axis=1, keepdims=True) + 0.0  # no negative zeros
        distinct, which = np.unique(scaled, axis=0, return_inverse=True)
        found = np.empty(len(distinct), np.int32)
        fresh: list[Floats] = []
        for i, contour in enumerate(distinct):
            number = UNTOLD
            if contour.min() < 1.0:
                number = self._numbers.setdefault(contour.tobytes(), len(self._numbers))
                if number == len(self.values) + len(fresh):
                    fresh.append(contour)
            found[i] = number
        if fresh:
            self._take(np.array(fresh))
        return found[which.ravel()]

    def _take(self, contours: Floats) -> None:
        self.values = np.vstack([self.values, contours])
        self.beliefs = np.vstack([self.beliefs, beliefs_of(contours)])
        self.pignistic = np.vstack([self.pignistic, pignistic_of(contours)])
        alone = np.where((contours > 0.0).sum(axis=1) == 1, contours.argmax(axis=1), NONE)
        self.sole = np.append(self.sole, alone.astype(np.int32))
        self.rank = np.empty(len(self.values), np.int64)
        self.rank[np.lexsort(self.values.T[::-1])] = np.arange(len(self.values))


def beliefs_of(contours: Floats) -> Floats:
    """Return the belief of each class under the consonant mass functions of contours (n, l) of maximum 1.

    Examples
    --------
    >>> beliefs_of(np.array([[1.0, 0.25, 0.0], [1.0, 1.0, 0.0]])).tolist()
    [[0.75, 0.0, 0.0], [0.0, 0.0, 0.0]]
    """
    rows = np.arange(len(contours))
    order = np.argsort(-contours, axis=1, kind="stable")
    found = np.zeros(contours.shape)
    found[rows, order[:, 0]] = 1.0 - contours[rows, order[:, 1]]
    return found


def pignistic_of(contours: Floats) -> Floats:
    """Return the pignistic probabilities of the consonant mass functions of contours (n, l) of maximum 1.

    Examples
    --------
    >>> pignistic_of(np.array([[1.0, 0.5, 0.0]])).tolist()
    [[0.75, 0.25, 0.0]]
    """
    order = np.argsort(-contours, axis=1, kind="stable")
    falling = np.take_along_axis(contours, order, axis=1)
    steps = falling - np.column_stack([falling[:, 1:], np.zeros(len(contours))])
    shares = steps / np.arange(1, contours.shape[1] + 1)
    found = np.empty(contours.shape)
    np.put_along_axis(found, order, np.cumsum(shares[:, ::-1], axis=1)[:, ::-1], axis=1)
    return found


class ForestEvidence:
    """Rows, their codes and contours.

    Parameters
    ----------
    named
        (K,) whether an attribute is nominal.
    size
        Number of classes.

    Attributes
    ----------
    told
        (T,) the rows of which something is known, in the order in which it was first told.
    book
        The codes in force.
    """

    def __init__(self, named: Bools, size: int) -> None:
        self.named = np.asarray(named, dtype=np.bool_)
        self.size = size
        self.contours = Contours(size)
        self.told = np.empty(0, np.int64)
        self._rows = 0
        self._values = np.empty((ROOM, len(self.named)))
        self._codes = np.empty((ROOM, len(self.named)), np.uint16)
        self._kinds = np.empty(ROOM, np.int32)
        self._cut_by = self._coded = 0
        self.book = Codebook.of(self._values[:0], self.named)

    def __len__(self) -> int:
        return self._rows

    @property
    def values(self) -> Floats:
        """(n, K) values of all rows; read only."""
        return self._values[: self._rows]

    @property
    def kinds(self) -> NDArray[np.int32]:
        """(n,) number of each row's contour, `UNTOLD` where nothing is known; read only."""
        return self._kinds[: self._rows]

    def add(self, values: Floats, kinds: NDArray[np.int32]) -> None:
        """Take rows (n, K) with the numbers (n,) of their contours."""
        first, end = self._rows, self._rows + len(values)
        if end > len(self._values):
            room = max(end, 2 * len(self._values))
            self._values, self._codes, self._kinds = (
                np.concatenate([old, np.empty((room - len(old), *old.shape[1:]), old.dtype)])
                for old in (self._values, self._codes, self._kinds)
            )
        self._values[first:end] = values
        self._kinds[first:end] = kinds
        self._rows = end
        self.told = np.append(self.told, first + np.flatnonzero(kinds != UNTOLD))

    def say(self, row: int, kind: int) -> int | None:
        """Put a contour in the place of what is known of a row.

        Returns
        -------
        The place in the order of told rows that a row left of which nothing is known any more, else None.
        """
        before = self._kinds[row]
        self._kinds[row] = kind
        if before == UNTOLD and kind != UNTOLD:
            self.told = np.append(self.told, row)
        elif before != UNTOLD and kind == UNTOLD:
            place = int(np.flatnonzero(self.told == row)[0])
            self.told = np.delete(self.told, place)
            return place
        return None

    def codes(self) -> Codes:
        """Return the codes (n, K) of all rows, in the `book` that their number calls for; read only."""
        cut_by = rows_that_cut(self._rows)
        if cut_by != self._cut_by:
            self.book = Codebook.of(self._values[:cut_by], self.named)
            self._cut_by, self._coded = cut_by, 0
            self._codes = np.empty_like(self._codes)  # who holds the old ones keeps them
        fresh = slice(self._coded, self._rows)
        self._codes[fresh] = self.book.codes(self._values[fresh])
        self._coded = self._rows
        return self._codes[: self._rows]

    def by_rank(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return rows in the order of their contours; those of equal contours stay in theirs."""
        found: NDArray[np.int32] = rows[np.argsort(self.contours.rank[self._kinds[rows]], kind="stable")]
        return found

    def ranked(self, rows: Ints) -> tuple[Ints, Floats]:
        """Return the contours (n,) of rows by rank, and the contours in this order: it does not depend on the log's."""
        return self.contours.rank[self._kinds[rows]], self.contours.values[np.argsort(self.contours.rank)]
