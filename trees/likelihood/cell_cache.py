"""A cache of results by cell: bounded in memory, with a compiled look-up (theory §2.3)."""

from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.kernels.likelihood import enter_cells, place_hashes
from quercus.trees.likelihood.solver.stages import Sparse

Array = NDArray[np.float64]
Shorts = NDArray[np.int32]

T = TypeVar("T", bound=np.generic)

CELLS = 40_000  # greatest number of cells remembered; beyond it, or beyond
CELL_ENTRIES = 800_000  # entries of these cells (12 bytes each), all are forgotten
SPARED_BYTES = 800_000  # up to this size a cache is not large


class CellCache:
    """Distinct cells over a table of contours, and named rows of numbers that were computed from each."""

    def __init__(self) -> None:
        self._size = 0
        self._start: Ints = np.zeros(65, np.int64)
        self._columns: Shorts = np.empty(256, np.int32)
        self._counts: Array = np.empty(256)
        self._hashes: NDArray[np.uint64] = np.empty(64, np.uint64)
        self._slots: Shorts = np.full(128, -1, np.int32)
        self._values: dict[str, Array] = {}
        self._known: dict[str, NDArray[np.bool_]] = {}

    def forget_cells(self) -> None:
        """Drop all contents but keep the memory, because as much will be needed again."""
        self._size = 0
        self._slots.fill(-1)
        for known in self._known.values():
            known.fill(False)

    @property
    def is_large(self) -> bool:
        """True if the cache takes so much memory that many caches would burden a process."""
        arrays: list[NDArray[Any]] = [*self.cells, self._hashes, self._slots, *self._values.values()]
        return sum(array.nbytes for array in arrays) > SPARED_BYTES

    @property
    def cells(self) -> Sparse:
        """The cells in compressed rows (start, columns, counts, as in `Cells`), in the order in which they came."""
        return self._start, self._columns, self._counts

    def intern_cells(self, start: Ints, columns: Shorts, counts: Array) -> Ints:
        """Return the numbers (m,) of cells, entering those that are new. Columns must rise within each cell.

        All earlier cells, and their numbers, may be forgotten to make room.
        """
        self._make_room(len(start) - 1, len(columns))
        numbers = np.empty(len(start) - 1, np.int64)
        table = self._slots, self._hashes, *self.cells, self._size
        self._size = enter_cells(start, columns, counts, *table, numbers)
        return numbers

    def recall_values(self, numbers: Ints, name: str, width: int, compute: Callable[[Ints], Array]) -> Array:
        """Return the values called `name` of cells, (m, width); those not yet known are computed by `compute`."""
        values, known = self._value_table(name, width)
        missing = numbers[~known[numbers]]
        if missing.size:
            todo = np.unique(missing)
            values[todo] = compute(todo)
            known[todo] = True
        return values[numbers]

    def _make_room(self, cells: int, entries: int) -> None:
        used = int(self._start[self._size])
        if self._size > 0 and (self._size + cells > CELLS or used + entries > CELL_ENTRIES):
            self.forget_cells()
            used = 0
        if used + entries > len(self._columns):
            room = max(used + entries, min(2 * (used + entries), CELL_ENTRIES))
            self._columns = enlarged_copy(self._columns, room)
            self._counts = enlarged_copy(self._counts, room)
        if self._size + cells > len(self._hashes):
            room = max(self._size + cells, min(2 * (self._size + cells), CELLS))
            self._start = enlarged_copy(self._start, room + 1)
            self._hashes = enlarged_copy(self._hashes, room)
            self._slots = np.full(1 << (2 * room - 1).bit_length(), -1, np.int32)
            place_hashes(self._hashes[: self._size], self._slots)

    def _value_table(self, name: str, width: int) -> tuple[Array, NDArray[np.bool_]]:
        room = len(self._hashes)
        values = self._values.get(name)
        if values is None:
            self._values[name], self._known[name] = np.empty((room, width)), np.zeros(room, np.bool_)
        elif len(values) < room:
            fresh = np.empty((room, width))
            fresh[: len(values)] = values
            known = np.zeros(room, np.bool_)
            known[: len(values)] = self._known[name]
            self._values[name], self._known[name] = fresh, known
        return self._values[name], self._known[name]


def enlarged_copy(array: NDArray[T], room: int) -> NDArray[T]:
    """Copy of an array, with room for more."""
    larger: NDArray[T] = np.empty(room, array.dtype)
    larger[: len(array)] = array
    return larger
