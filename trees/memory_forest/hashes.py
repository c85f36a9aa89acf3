"""Keyed hashes of many keys at once; `kernels/forest/draws.hpp` has them for compiled code (theory §10.2)."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

Keys = NDArray[np.uint64]

ATTEMPTS = 64
"""Attempts to draw a subset of the names that divides the rows of a node."""

HASH_STEP = np.uint64(0x9E3779B97F4A7C15)
FIRST_FACTOR = np.uint64(0xBF58476D1CE4E5B9)
SECOND_FACTOR = np.uint64(0x94D049BB133111EB)
ONE = np.uint64(1)
SHIFTS = np.uint64(30), np.uint64(27), np.uint64(31)

LEFT, RIGHT, PLACES = 0, 1, 2
"""Numbers that make keys of a node's key: of its children; of its draws, from here on."""


def derived_keys(keys: Keys, numbers: ArrayLike) -> Keys:
    """Return splitmix64 of keys (n,) and numbers (n,) or one for all.

    Examples
    --------
    >>> derived_keys(np.array([0, 0], dtype=np.uint64), [0, 1]).tolist()
    [16294208416658607535, 7960286522194355700]
    """
    z = keys + (np.atleast_1d(numbers).astype(np.uint64) + ONE) * HASH_STEP
    z = (z ^ (z >> SHIFTS[0])) * FIRST_FACTOR
    z = (z ^ (z >> SHIFTS[1])) * SECOND_FACTOR
    return np.asarray(z ^ (z >> SHIFTS[2]))


def coin_tosses(keys: Keys) -> NDArray[np.bool_]:
    """Toss a coin for each key."""
    return np.asarray((keys & ONE) == ONE)
