"""Rules that combine and weaken mass functions (theory §1.1)."""

import math

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, TooManyFocalSets, TotalConflict
from quercus.belief.frame import full_mask
from quercus.belief.mass import MAX_FOCAL_SETS, MassFunction

MAX_PAIRS = 4_194_304
"""Most pairs of focal sets that one combination looks at: 64 MiB of products, a few tenths of a second."""

_NO_DIGITS = 1e-300
"""Below it a sum of products of masses has lost its digits to underflow, and cannot be normalised."""


def conjunctive(a: MassFunction, b: MassFunction) -> MassFunction:
    """Combine two reliable, independent bodies of evidence; the mass of the empty set is their conflict κ.

    Raises
    ------
    InvalidInput
        When the frames differ in size.
    TooManyFocalSets
        When there are more than 4,194,304 pairs of focal sets, or the result has more than 65,536 focal sets.
    """
    masks, masses = _combine_with(a, b, np.bitwise_and)
    return _scaled_masses(a.size, masks, masses, allow_empty=True)


def dempster(a: MassFunction, b: MassFunction) -> MassFunction:
    """Combine by Dempster's rule: the conjunctive rule, then normalised.

    Raises
    ------
    TotalConflict
        When no pair of focal sets meets (κ = 1).
    InvalidInput, TooManyFocalSets
        As :func:`conjunctive`.

    Examples
    --------
    >>> rain = MassFunction(2, ((0b01, 0.5), (0b11, 0.5)))
    >>> dry = MassFunction(2, ((0b10, 0.5), (0b11, 0.5)))
    >>> [(mask, round(mass, 6)) for mask, mass in dempster(rain, dry).focal]
    [(1, 0.333333), (2, 0.333333), (3, 0.333333)]
    """
    masks, masses = _combine_with(a, b, np.bitwise_and)
    masks, masses = masks[masks != 0], masses[masks != 0]
    if masses.sum() < _NO_DIGITS:
        raise TotalConflict(
            "the two mass functions are in total conflict: no focal set of one meets one of the other"
        )
    return _scaled_masses(a.size, masks, masses, allow_empty=False)


def disjunctive(a: MassFunction, b: MassFunction) -> MassFunction:
    """Combine two bodies of evidence, at least one of which is reliable.

    Raises
    ------
    InvalidInput, TooManyFocalSets
        As :func:`conjunctive`.
    """
    masks, masses = _combine_with(a, b, np.bitwise_or)
    return _scaled_masses(a.size, masks, masses, allow_empty=a.conflict > 0 and b.conflict > 0)


def check_reliability(reliability: float) -> float:
    """Return `reliability` if it lies in [0, 1].

    Raises
    ------
    InvalidInput
        When it does not, or is not a number.
    """
    if not 0.0 <= reliability <= 1.0:  # also catches NaN
        raise InvalidInput("reliability", f"is {reliability!r}, must lie in [0, 1]")
    return float(reliability)


def discount(m: MassFunction, reliability: float) -> MassFunction:
    """Weaken evidence from a source of the given reliability in [0, 1]; 0 leaves the vacuous mass function.

    Raises
    ------
    InvalidInput
        When the reliability lies outside [0, 1], or the result has more than 65,536 focal sets.
    """
    r = check_reliability(reliability)
    if r == 1.0:
        return m
    whole = full_mask(m.size)
    masses = {mask: r * mass for mask, mass in m.focal if mask != whole}
    masses[whole] = max(
        0.0, 1.0 - math.fsum(masses.values())
    )  # 1 - r + r m(C), so that the sum is 1 to the last digit
    return MassFunction(m.size, tuple(masses.items()), allow_empty=m.allow_empty)


def _combine_with(
    a: MassFunction, b: MassFunction, meet: np.ufunc
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the sets ``meet(B, C)``, each once, and the sums of the products of their masses."""
    if a.size != b.size:
        raise InvalidInput(
            "size", f"the mass functions have {a.size} and {b.size} classes, must have the same"
        )
    pairs = len(a.focal) * len(b.focal)
    if pairs > MAX_PAIRS:
        raise TooManyFocalSets(
            "focal",
            f"{len(a.focal)} and {len(b.focal)} focal sets make {pairs} pairs, at most {MAX_PAIRS} may be",
        )
    (masks_a, masses_a), (masks_b, masses_b) = a.arrays(), b.arrays()
    masks, where = np.unique(meet.outer(masks_a, masks_b).ravel(), return_inverse=True)
    if len(masks) > MAX_FOCAL_SETS:
        raise TooManyFocalSets(
            "focal", f"the combination has {len(masks)} focal sets, at most {MAX_FOCAL_SETS} are allowed"
        )
    products = np.multiply.outer(masses_a, masses_b).ravel()
    return masks, np.bincount(where, weights=products).astype(np.float64)


def _scaled_masses(
    size: int, masks: NDArray[np.uint64], masses: NDArray[np.float64], *, allow_empty: bool
) -> MassFunction:
    # Always divided by the sum: inputs may miss 1 by 1e-9 each, and a chain would leave the tolerance.
    masses = np.minimum(masses / masses.sum(), 1.0)
    return MassFunction(
        size, tuple(zip(masks.tolist(), masses.tolist(), strict=True)), allow_empty=allow_empty
    )
