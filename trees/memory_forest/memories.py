"""The memories of the members: which labelled rows each of them holds (theory §10.1)."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

LADDER = (200, 600, 2_000, 6_000, 20_000, 100_000)
"""Memories of the trees, in labelled rows; they are divided evenly among the trees."""
BAYES = (600, 2_000, 100_000)
"""Memories of the naive-Bayes members, in labelled rows."""
FOREST_BYTES = 512 << 20
"""Bound of the memory for the nodes and opinions of all trees, in bytes."""
MOVING = 2_000
"""A memory that holds at least this many labelled rows moves in steps."""
MEMORY_STEP = 500
"""The first step, in rows; it doubles whenever the rows in memory do."""
MEMORIES = len(LADDER) + len(BAYES)
NODE_BYTES = 16
OPINION_BYTES = 24  # per class


def remembered_places(memory: int, labelled: int) -> slice:
    """Return the places of the labelled rows that a memory holds after `labelled` rows (theory §10.1).

    A memory that holds fewer than 2,000 rows holds the last ones. A longer one moves in steps of an eighth to a quarter
    of its rows: 500 rows, 1,000 from 4,000 rows on, 2,000 from 8,000 on, and so on.

    Examples
    --------
    >>> [remembered_places(*each) for each in ((600, 1_999), (20_000, 1_999), (20_000, 2_250), (6_000, 20_150))]
    [slice(1399, 1999, None), slice(0, 1999, None), slice(0, 2000, None), slice(14000, 20000, None)]
    """
    held, end = min(memory, labelled), labelled
    if held >= MOVING:
        end -= labelled % (MEMORY_STEP << ((held // MOVING).bit_length() - 1))
    return slice(max(0, end - memory), end)


def bayes_rows(labelled: int) -> list[int]:
    """Return how many labelled rows each naive-Bayes member has learned from.

    Examples
    --------
    >>> bayes_rows(500), bayes_rows(2_600)
    ([500, 500, 500], [600, 2000, 2500])
    """
    return [len(range(labelled)[remembered_places(memory, labelled)]) for memory in BAYES]


@cache
def memories_of(trees: int, size: int) -> tuple[int, ...]:
    """Return the memory of each tree, in labelled rows, of a forest of `size` classes (theory §10.1).

    In the worst case a labelled row adds two nodes to a tree, one of them a leaf with an opinion. No memory is longer
    than the longest with which all trees together stay within `FOREST_BYTES`.

    Examples
    --------
    >>> memories_of(6, 2)
    (200, 600, 2000, 6000, 20000, 100000)
    >>> memories_of(1000, 64)[:6]
    (200, 370, 370, 370, 370, 370)
    """
    steps = [LADDER[m % len(LADDER)] for m in range(trees)]
    most = FOREST_BYTES // (2 * NODE_BYTES + OPINION_BYTES * size)
    low, high = 1, max(LADDER) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if sum(min(step, middle) for step in steps) <= most else (low, middle)
    return tuple(min(step, low) for step in steps)


def memory_of(trees: int) -> NDArray[np.int64]:
    """Return the number of each member's memory: first those of the trees, then those of the naive-Bayes members.

    Each naive-Bayes member has a memory of its own.

    Examples
    --------
    >>> memory_of(8).tolist()
    [0, 1, 2, 3, 4, 5, 0, 1, 6, 7, 8]
    """
    return np.append(np.arange(trees) % len(LADDER), len(LADDER) + np.arange(len(BAYES)))
