"""Draws as keyed hashes: a function of the seed, the member, the path and the attribute (theory §10.2).

A node has a key; its children's keys, the attributes that it looks at and their tests are hashes of that key and a
number. A running generator would make a tree depend on the order in which its nodes were grown.
"""

import numpy as np

from quercus.trees.likelihood.solver.compiled import compiled

Whole = int | np.int64

STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST = np.uint64(0xBF58476D1CE4E5B9)
SECOND = np.uint64(0x94D049BB133111EB)
ONE, HALF = np.uint64(1), np.uint64(32)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)

LEFT, RIGHT, PLACES = (
    0,
    1,
    2,
)  # numbers that make keys of a node's key: of its children; of its draws, from here on


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
