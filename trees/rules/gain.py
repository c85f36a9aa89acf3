"""Split information (theory §3.1), and the choice of an attribute's cut where gains are single numbers (§9).

`quercus.trees.rules.choice` applies the same rule to cells, in a compiled kernel. Learners whose gains are single
numbers use `best_splits`; `tests/property/trees/test_rules.py` compares the two.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats
from quercus.trees.rules.ties import TIE


def split_information(sizes: NDArray[np.number], first: NDArray[np.int64] | None = None) -> Floats:
    """Return ``SI``, the entropy in bits of how a split distributes the instances; 0 for one populated child.

    Parameters
    ----------
    sizes
        (..., c) number of instances of each child, or the sum of their weights.
    first
        (s,) where the children of each split begin; None: all are children of one split.

    Returns
    -------
    (..., s) in bits; 0 where a split has no instance.

    Examples
    --------
    >>> split_information(np.array([8, 0, 8, 3, 9]), np.array([0, 3])).round(3).tolist()
    [1.0, 0.811]
    """
    first = np.zeros(1, dtype=np.int64) if first is None else first
    total = np.add.reduceat(sizes, first, axis=-1)
    lengths = np.append(first[1:], sizes.shape[-1]) - first
    share = sizes / np.repeat(np.where(total > 0, total, 1), lengths, axis=-1)
    terms = share * np.log2(np.where(share > 0, share, 1.0))
    information: Floats = 0.0 - np.add.reduceat(terms, first, axis=-1)
    return information


def best_splits(gains: Floats, first: NDArray[np.int64], below: NDArray[np.number]) -> NDArray[np.int64]:
    """Return, for each attribute, the split of largest gain; of tied cuts, the middle one (theory §9).

    The middle one is the cut whose number of rows below is nearest to halfway between those of the lowest and the
    highest tied cut; of two equally near ones, the lower.

    Parameters
    ----------
    gains
        (..., s) gain of every split, attribute by attribute, the cuts of each ascending.
    first
        (a,) where each attribute's splits begin.
    below
        (s,) rows below each cut; any number where an attribute has one split.

    Returns
    -------
    (..., a) the number of the split chosen for each attribute.

    Examples
    --------
    >>> best_splits(np.array([0.3, 0.9, 0.9, 0.9, 0.2]), np.array([0, 4]), np.array([1, 2, 3, 9, 0])).tolist()
    [2, 4]
    """
    if not first.size:
        return np.zeros((*gains.shape[:-1], 0), dtype=np.int64)
    count = gains.shape[-1]
    lengths = np.append(first[1:], count) - first
    tied = gains >= np.repeat(np.maximum.reduceat(gains, first, axis=-1) - TIE, lengths, axis=-1)
    lowest = np.minimum.reduceat(np.where(tied, below, np.inf), first, axis=-1)
    highest = np.maximum.reduceat(np.where(tied, below, -np.inf), first, axis=-1)
    middle = np.repeat((lowest + highest) / 2, lengths, axis=-1)
    off = np.where(tied, np.abs(below - middle), np.inf)
    nearest = off <= np.repeat(np.minimum.reduceat(off, first, axis=-1) + TIE, lengths, axis=-1)
    return np.minimum.reduceat(np.where(nearest, np.arange(count), count), first, axis=-1)
