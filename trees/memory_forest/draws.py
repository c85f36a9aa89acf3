"""Draws as keyed hashes: a function of the seed, the member, the path and the attribute (theory §10.2).

A node has a key; its children's keys, the attributes that it looks at and their tests are hashes of that key and a
number. A running generator would make a tree depend on the order in which its nodes were grown.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compiled
from quercus.trees.memory_forest.hashes import FIRST, LEFT, ONE, PLACES, RIGHT, SECOND, SHIFTS, STEP

__all__ = ["LEFT", "PLACES", "RIGHT", "Whole", "below", "heads", "keyed", "member_key"]

Whole = int | np.int64

HALF = np.uint64(32)


@compiled
def keyed(key: np.uint64, number: Whole) -> np.uint64:
    """Return splitmix64 of a key and a number: the key of what the number names below the key."""
    z = key + (np.uint64(number) + ONE) * STEP
    z = (z ^ (z >> SHIFTS[0])) * FIRST
    z = (z ^ (z >> SHIFTS[1])) * SECOND
    return z ^ (z >> SHIFTS[2])


@compiled
def below(key: np.uint64, count: Whole) -> int:
    """Return the number of a key in [0, count), each as likely; `count` below 2^32."""
    return np.int64(((key >> HALF) * np.uint64(count)) >> HALF)  # type: ignore[return-value]


@compiled
def heads(key: np.uint64) -> bool:
    """Toss a coin for a key."""
    return (key & ONE) == ONE  # type: ignore[no-any-return]


def member_key(seed: int, member: int) -> np.uint64:
    """Return the key of a member's root.

    Examples
    --------
    >>> int(member_key(0, 0)), int(member_key(0, 1))
    (12035550249420947055, 12935080325729570654)
    """
    return np.uint64(keyed(np.uint64(keyed(np.uint64(seed), 0)), member))
