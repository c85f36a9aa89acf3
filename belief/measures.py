"""Measures of a mass function on sets of classes (theory §1.1, §1.2)."""

import math

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import TotalConflict
from quercus.belief.frame import check_mask
from quercus.belief.mass import MassFunction, membership
from quercus.belief.sums import weighted_sum


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
    shares = weighted_sum(masses[populated] / cardinality[populated], inside[populated])
    normalised: NDArray[np.float64] = shares / shares.sum()
    return normalised


def nonspecificity(m: MassFunction) -> float:
    """Return ``N(m) = Σ m(A) log2 |A|``, in bits: 0 when every focal set is one class, at most ``log2 l``.

    Mass on the empty set is normalised away first.

    Raises
    ------
    TotalConflict
        When all mass is on the empty set.

    Examples
    --------
    >>> nonspecificity(MassFunction(4, ((0b0001, 0.5), (0b1111, 0.5))))
    1.0
    """
    masses, inside = _populated_sets(m)
    return float((masses * np.log2(inside.sum(axis=1))).sum())


def discord(m: MassFunction) -> float:
    """Return ``D(m) = -Σ m(A) log2 BetP(A)``, in bits: Shannon's entropy when every focal set is one class.

    Mass on the empty set is normalised away first.

    Raises
    ------
    TotalConflict
        When all mass is on the empty set.

    Examples
    --------
    >>> discord(MassFunction(2, ((0b01, 0.5), (0b10, 0.5))))
    1.0
    """
    masses, inside = _populated_sets(m)
    bets = np.minimum((inside * pignistic(m)).sum(axis=1), 1.0)
    return float(-(masses * np.log2(bets)).sum()) + 0.0  # never -0.0


def deng_entropy(m: MassFunction) -> float:
    """Return ``E(m) = -Σ m(A) log2(m(A) / (2^|A| - 1))``, in bits: Shannon's entropy of a Bayesian mass.

    Mass on the empty set is normalised away first.

    Raises
    ------
    TotalConflict
        When all mass is on the empty set.

    Examples
    --------
    >>> round(deng_entropy(MassFunction.vacuous(3)), 6)  # log2 7
    2.807355
    """
    masses, inside = _populated_sets(m)
    subsets = np.exp2(inside.sum(axis=1)) - 1.0
    return float((masses * (np.log2(subsets) - np.log2(masses))).sum()) + 0.0


def _populated_sets(m: MassFunction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the masses of the non-empty focal sets, normalised, and which classes are in each."""
    masks, masses = m.arrays()
    masks, masses = masks[masks != 0], masses[masks != 0]
    if not masks.size:
        raise TotalConflict("all mass is on the empty set: nothing is left to measure")
    return masses / masses.sum(), membership(masks, m.size)
