"""Some of many rows, always the same ones: what keeps the cost of a choice bounded however many rows there are."""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints

SAMPLED_ROWS = 1_000  # sampled in each role: as candidates, as labelled rows, as rows to cover
CONTESTED_NODES = 200  # nodes with several rivals that are looked at for one agenda, the first in pre-order
SAMPLE_DISTANCES = 30_000_000  # differences of codes between rows that are counted for one agenda


def sample_size(attributes: int) -> int:
    """Return how many rows are looked at: 1,000, fewer where rows have more than 30 attributes.

    Examples
    --------
    >>> sample_size(10), sample_size(1_000)
    (1000, 173)
    """
    return min(SAMPLED_ROWS, int((SAMPLE_DISTANCES / max(attributes, 1)) ** 0.5))


def sample_rows(rows: Ints, most: int) -> Ints:
    """Return `most` of `rows` (n,), ascending as they are; all of them where they are no more.

    Every row has a lot, a number that looks random; those with the least are taken. So it depends on the rows alone,
    and one row more or less changes at most one of those taken.

    Examples
    --------
    >>> sample_rows(np.arange(5), 9), sample_rows(np.arange(1_000_000), 4)
    (array([0, 1, 2, 3, 4]), array([ 70273, 164256, 390831, 573548]))
    """
    if rows.size <= most:
        return rows
    chosen = np.argpartition(row_hashes(rows), most - 1)[:most]
    chosen.sort()
    return rows[chosen]


def row_hashes(rows: Ints) -> NDArray[np.uint64]:
    """Return the number of each of `rows` (n,) that looks random: splitmix64 of its ordinal."""
    with np.errstate(over="ignore"):  # wraps around: that is the point
        z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
