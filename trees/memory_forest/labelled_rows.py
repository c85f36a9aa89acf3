"""The labelled rows, in the order in which they were first labelled."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.trees.memory_forest.unpickled import WritableArrays

Rows = NDArray[np.int32]
Kinds = NDArray[np.int32]

FIRST_LENGTH = 64  # initial length of an array that grows, which then at least doubles


class LabelledRows(WritableArrays):
    """The labelled rows and the numbers of their contours.

    Arrays that `held_columns` returned never change: rows are appended behind them, and the first change of a contour
    makes a copy.
    """

    def __init__(self) -> None:
        self._rows = np.empty(FIRST_LENGTH, np.int32)
        self._kinds = np.empty(FIRST_LENGTH, np.int32)
        self._count = 0
        self._is_held = False

    @classmethod
    def of(cls, rows: Rows, kinds: Kinds) -> "LabelledRows":
        """Return labelled rows in their order, with the numbers of their contours (T,).

        `rows` may have unused room behind the first T, where later rows are written.
        """
        made = cls()
        made._rows, made._kinds, made._count = rows, with_room(kinds, len(kinds), len(rows)), len(kinds)
        return made

    @property
    def rows(self) -> Rows:
        """(T,) the labelled rows, in the order in which they were first labelled; read only."""
        return self._rows[: self._count]

    def held_columns(self) -> tuple[Rows, Kinds]:
        """Return the rows (T,) and the numbers of their contours (T,), which will not change; read only."""
        self._is_held = True
        return self.rows, self._kinds[: self._count]

    def append(self, rows: NDArray[np.int64], kinds: Kinds) -> None:
        """Append rows that are labelled for the first time."""
        end = self._count + len(rows)
        if end > len(self._rows):
            room = max(end, 2 * self._count)
            self._rows = with_room(self._rows, self._count, room)
            self._kinds = with_room(self._kinds, self._count, room)
            self._is_held = False
        self._rows[self._count : end] = rows
        self._kinds[self._count : end] = kinds
        self._count = end

    def change_kind(self, row: int, kind: int) -> None:
        """Change the contour of a labelled row."""
        place = self._place_of(row)
        if self._kinds[place] == kind:
            return
        if self._is_held:
            self._kinds, self._is_held = self._kinds.copy(), False
        self._kinds[place] = kind

    def withdraw_row(self, row: int) -> int:
        """Remove a row whose label was withdrawn; return its former place."""
        place = self._place_of(row)
        self._rows = np.delete(self.rows, place)
        self._kinds = np.delete(self._kinds[: self._count], place)
        self._count, self._is_held = self._count - 1, False
        return place

    def _place_of(self, row: int) -> int:
        return int(np.flatnonzero(self.rows == row)[0])


def with_room(array: NDArray[Any], count: int, room: int) -> NDArray[Any]:
    """Return a new array of length `room` that begins with the first `count` entries of `array`.

    The rest is left unwritten, and costs no memory until it is written.
    """
    widened = np.empty((room, *array.shape[1:]), array.dtype)
    widened[:count] = array[:count]
    return widened


def common_length(one: Rows, other: Rows) -> int:
    """Return how many entries, from the first on, are equal in two arrays that `LabelledRows.held_columns` returned.

    Such arrays need no comparison if they begin at the same address, since they never change.
    """
    n = min(len(one), len(other))
    if one.__array_interface__["data"][0] == other.__array_interface__["data"][0]:
        return n
    differ = one[:n] != other[:n]
    return int(differ.argmax()) if differ.any() else n
