"""Draws as keyed hashes: a function of the seed, the member, the path and the attribute (theory §10.2).

A node has a key; its children's keys, the attributes that it looks at and their tests are hashes of that key and a
number. A running generator would make a tree depend on the order in which its nodes were grown.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import borrowing
from quercus.trees.memory_forest.hashes import (
    FIRST_FACTOR,
    HASH_STEP,
    LEFT,
    ONE,
    PLACES,
    RIGHT,
    SECOND_FACTOR,
    SHIFTS,
)

__all__ = [
    "LEFT",
    "PLACES",
    "RIGHT",
    "Whole",
    "derived_key",
    "is_heads",
    "member_key",
    "number_below",
    "number_between",
]

Whole = int | np.int64

HALF = np.uint64(32)


@borrowing
def derived_key(key: np.uint64, number: Whole) -> np.uint64:
    """Return splitmix64 of a key and a number: the key of what the number names below the key."""
    z = key + (np.uint64(number) + ONE) * HASH_STEP
    z = (z ^ (z >> SHIFTS[0])) * FIRST_FACTOR
    z = (z ^ (z >> SHIFTS[1])) * SECOND_FACTOR
    return z ^ (z >> SHIFTS[2])


@borrowing
def number_below(key: np.uint64, count: Whole) -> int:
    """Return the number of a key in [0, count), each as likely; `count` below 2^32."""
    return np.int64(((key >> HALF) * np.uint64(count)) >> HALF)  # type: ignore[return-value]


@borrowing
def number_between(key: np.uint64, low: Whole, high: Whole) -> int:
    """Return the number of a key in [low, high), each as likely.

    Ranges between powers of two are halved, and each half is chosen with a probability in proportion to its part of
    [low, high). So a small change of the bounds hardly ever changes the number.

    Examples
    --------
    >>> key = np.uint64(2 ** 63 + 11)
    >>> [int(number_between(key, 3, high)) for high in (4, 10, 90, 91, 100, 200)]
    [3, 9, 50, 50, 50, 177]
    """
    size, last = np.int64(1), high - 1
    while (low ^ last) >= size:
        size += size
    begin = low - low % size
    while size > 1:
        size = size // 2
        middle = begin + size
        on_left = min(middle, high) - max(begin, low)
        on_right = min(middle + size, high) - max(middle, low)
        drawn = number_below(derived_key(key, middle), on_left + on_right)
        begin += size * ((on_left <= 0) | ((on_right > 0) & (drawn >= on_left)))
    return begin  # type: ignore[return-value]


@borrowing
def is_heads(key: np.uint64) -> bool:
    """Toss a coin for a key."""
    return (key & ONE) == ONE  # type: ignore[no-any-return]


def member_key(seed: int, member: int) -> np.uint64:
    """Return the key of a member's root.

    Examples
    --------
    >>> int(member_key(0, 0)), int(member_key(0, 1))
    (12035550249420947055, 12935080325729570654)
    """
    return np.uint64(derived_key(np.uint64(derived_key(np.uint64(seed), 0)), member))
