"""Deterministic samples of rows, which bound the cost of choosing queries for any number of rows."""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints

SAMPLED_ROWS = 1_000  # greatest sample of each kind: candidates, labelled rows, rows to cover
CONTESTED_NODES = 200  # the first undecided nodes, in pre-order, that are considered for an agenda
SAMPLE_DISTANCES = 30_000_000  # greatest number of code comparisons between candidates and rows to cover


def sample_size(attributes: int) -> int:
    """Return the sample size: 1,000 rows, fewer if rows have more than 30 attributes.

    Examples
    --------
    >>> sample_size(10), sample_size(1_000)
    (1000, 173)
    """
    return min(SAMPLED_ROWS, int((SAMPLE_DISTANCES / max(attributes, 1)) ** 0.5))


def sample_rows(rows: Ints, most: int) -> Ints:
    """Return at most `most` of `rows` (n,), in their order.

    The rows with the smallest hashes are taken. The sample therefore depends only on the rows, and adding or removing a
    row changes at most one element of it.

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
    """Return a pseudo-random hash of each of `rows` (n,): splitmix64 of its number."""
    with np.errstate(over="ignore"):  # overflow is intended
        z = (rows.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return z ^ (z >> np.uint64(31))
