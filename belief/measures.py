"""What a mass function says about a set of classes (ALGORITHMS §1)."""

import math

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import TotalConflict
from quercus.belief.frame import check_mask
from quercus.belief.mass import MassFunction, membership


def belief(m: MassFunction, mask: int) -> float:
    """Return ``Bel(B)``: the mass of the non-empty focal sets inside the set `mask`.

    Raises
    ------
    InvalidInput
        When the mask has a bit outside the frame.
    """
    check_mask(mask, m.size)
    return min(1.0, math.fsum(mass for focal, mass in m.focal if focal and not focal & ~mask))


def plausibility(m: MassFunction, mask: int) -> float:
    """Return ``Pl(B)``: the mass of the focal sets that meet the set `mask`.

    Raises
    ------
    InvalidInput
        When the mask has a bit outside the frame.
    """
    check_mask(mask, m.size)
    return min(1.0, math.fsum(mass for focal, mass in m.focal if focal & mask))


def commonality(m: MassFunction, mask: int) -> float:
    """Return ``Q(B)``: the mass of the focal sets that contain the set `mask`; 1 for the empty set.

    Raises
    ------
    InvalidInput
        When the mask has a bit outside the frame.
    """
    check_mask(mask, m.size)
    return min(1.0, math.fsum(mass for focal, mass in m.focal if focal & mask == mask))


def pignistic(m: MassFunction) -> NDArray[np.float64]:
    """Return ``BetP``, float64 (size,), summing to 1: each mass shared equally among the classes of its set.

    Mass on the empty set is normalised away first.

    Raises
    ------
    TotalConflict
        When all mass is on the empty set.

    Examples
    --------
    >>> pignistic(MassFunction(3, ((0b010, 0.5), (0b011, 0.2), (0b111, 0.3)))).round(6).tolist()
    [0.2, 0.7, 0.1]
    """
    masks, masses = m.arrays()
    inside = membership(masks, m.size)
    cardinality = inside.sum(axis=1)
    populated = cardinality > 0
    if not populated.any():
        raise TotalConflict("all mass is on the empty set: there is no pignistic probability")
    shares: NDArray[np.float64] = (masses[populated] / cardinality[populated]) @ inside[populated]
    normalised: NDArray[np.float64] = shares / shares.sum()
    return normalised
