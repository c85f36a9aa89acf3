"""Numbers that are reused: a stack of free numbers, and growing columns indexed by number."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints

Ids = NDArray[np.int32]
Codes = NDArray[np.signedinteger[Any]]
Deltas = NDArray[np.int8]


class FreeNumbers:
    """A stack of free numbers: the number returned last is taken first.

    Examples
    --------
    >>> free = FreeNumbers()
    >>> free.give_back(np.array([7, 3, 5]))
    >>> free.take(2).tolist(), len(free)
    ([5, 3], 1)
    """

    def __init__(self) -> None:
        self._numbers: Ints = np.empty(16, np.int64)
        self._count = 0

    def __len__(self) -> int:
        """Return the number of free numbers."""
        return self._count

    def take(self, count: int) -> Ints:
        """Take `count` numbers; at least as many must be free."""
        self._count -= count
        return self._numbers[self._count : self._count + count][::-1].copy()

    def give_back(self, numbers: NDArray[np.integer]) -> None:
        """Return numbers to the stack."""
        total = self._count + numbers.size
        if total > self._numbers.size:
            self._numbers = np.resize(self._numbers, 2 * total)
        self._numbers[self._count : total] = numbers
        self._count = total


class NumberedColumns:
    """Base of columns with an entry, or a row of entries, for each number.

    Attributes
    ----------
    columns : names of the columns, set by the subclass after creating them empty
    least_room : minimum capacity, once there is any
    """

    columns: tuple[str, ...]
    least_room = 1

    def __init__(self) -> None:
        self.room = 0
        self.free = FreeNumbers()

    @property
    def used_count(self) -> int:
        """The number of numbers in use."""
        return self.room - len(self.free)

    def take_numbers(self, count: int) -> Ids:
        """Return `count` numbers; the caller must set their entries."""
        while len(self.free) < count:
            known, total = self.room, max(self.least_room, self.room + max(1, self.room // 2))
            self.free.give_back(np.arange(total - 1, known - 1, -1))
            for name in self.columns:
                old = getattr(self, name)
                new = np.zeros((total, *old.shape[1:]), old.dtype)
                new[:known] = old
                setattr(self, name, new)
            self.room = total
        return self.free.take(count).astype(np.int32)
