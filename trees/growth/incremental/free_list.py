"""Numbers that are given out and taken back."""

import numpy as np
from numpy.typing import NDArray

from quercus.trees.growth.incremental.arrays import Ints


class FreeNumbers:
    """A stack of free numbers: the number that was given back last is taken first.

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
        """Return the count of free numbers."""
        return self._count

    def take(self, count: int) -> Ints:
        """Take `count` numbers; at least as many must be free."""
        self._count -= count
        return self._numbers[self._count : self._count + count][::-1].copy()

    def give_back(self, numbers: NDArray[np.integer]) -> None:
        """Give numbers back."""
        total = self._count + numbers.size
        if total > self._numbers.size:
            self._numbers = np.resize(self._numbers, 2 * total)
        self._numbers[self._count : total] = numbers
        self._count = total
