"""Rules that combine and weaken mass functions (theory §1.1)."""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput, TooManyFocalSets, TotalConflict, shown
from quercus.belief.frame import full_mask
from quercus.belief.mass import MAX_FOCAL_SETS, MassFunction

MAX_PAIRS = 4_194_304
"""Maximum number of pairs of focal sets in one combination: 64 MiB of products, a few tenths of a second."""

_NO_DIGITS = 1e-300
"""A smaller sum of products of masses has lost digits to underflow, and is computed in logarithms instead."""


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
    if not masks.size:
        raise TotalConflict(
            "the two mass functions are in total conflict: no focal set of one meets one of the other"
        )
    if masses.sum() < _NO_DIGITS:
        return combine_repeatedly(Counter((a, b)))
    return _scaled_masses(a.size, masks, masses, allow_empty=False)


def combine_repeatedly(times: Mapping[MassFunction, int]) -> MassFunction:
    """Combine many bodies of evidence by Dempster's rule, some of them repeatedly.

    The computation is in logarithms, so that the doubt left by a thousand weak labels does not underflow to certainty.
    The result therefore does not depend on the order, and there is total conflict only if no class is possible for all.

    Parameters
    ----------
    times
        How often each mass function occurs, at least once. None has mass on the empty set.

    Raises
    ------
    TotalConflict
        When no class is possible for all of them.
    InvalidInput, TooManyFocalSets
        As :func:`conjunctive`, or if there is no mass function.

    Examples
    --------
    >>> red, green = MassFunction(2, ((1, 0.9), (3, 0.1))), MassFunction(2, ((2, 0.9), (3, 0.1)))
    >>> combine_repeatedly({red: 501, green: 500}).contour().round(3).tolist()
    [0.909, 0.091]
    """
    if not times:
        raise InvalidInput("times", "is empty, must have at least one mass function")
    sizes = {mass.size for mass in times}
    if len(sizes) > 1:
        raise InvalidInput("times", f"are on frames of {sorted(sizes)} classes, must be on one frame")
    if list(times.values()) == [1]:
        return next(iter(times))  # exactly, without rounding
    together = reduce(_combine_logs, (_repeated_combination(mass, count) for mass, count in times.items()))
    return _scaled_masses(sizes.pop(), together.masks, np.exp(together.logs), allow_empty=False)


@dataclass(frozen=True, slots=True, eq=False)
class _LogMasses:
    """Focal sets and the logarithms of their masses, the largest 0: a mass function up to a factor."""

    masks: NDArray[np.uint64]
    logs: NDArray[np.float64]


def _repeated_combination(mass: MassFunction, times: int) -> _LogMasses:
    """Combine `times` copies of a mass function, by repeated squaring: the rule is associative."""
    masks, masses = mass.arrays()
    square = _LogMasses(masks, np.log(masses) - np.log(masses.max()))
    result: _LogMasses | None = None
    while True:
        if times & 1:
            result = square if result is None else _combine_logs(result, square)
        times >>= 1
        if not times:
            return square if result is None else result
        square = _combine_logs(square, square)


def _combine_logs(a: _LogMasses, b: _LogMasses) -> _LogMasses:
    """Combine by Dempster's rule; sums of products, so there is no cancellation."""
    masks, where = _distinct_meetings(a.masks, b.masks, np.bitwise_and)
    sums = np.add.outer(a.logs, b.logs).ravel()
    top = np.full(len(masks), -np.inf)
    np.maximum.at(top, where, sums)
    logs = top + np.log(np.bincount(where, np.exp(sums - top[where])))
    met = masks != 0
    if not met.any():
        raise TotalConflict("the mass functions are in total conflict: no class is possible for all of them")
    return _LogMasses(masks[met], logs[met] - logs[met].max())


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
        raise InvalidInput("reliability", f"is {shown(reliability)}, must lie in [0, 1]")
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
    # 1 - r + r m(C), computed so that the sum is 1 to the last digit
    masses[whole] = max(0.0, 1.0 - math.fsum(masses.values()))
    return MassFunction(m.size, tuple(masses.items()), allow_empty=m.allow_empty)


def _combine_with(
    a: MassFunction, b: MassFunction, meet: np.ufunc
) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """Return the sets ``meet(B, C)``, each once, and the sums of the products of their masses."""
    if a.size != b.size:
        raise InvalidInput(
            "size", f"the mass functions have {a.size} and {b.size} classes, must have the same"
        )
    (masks_a, masses_a), (masks_b, masses_b) = a.arrays(), b.arrays()
    masks, where = _distinct_meetings(masks_a, masks_b, meet)
    products = np.multiply.outer(masses_a, masses_b).ravel()
    return masks, np.bincount(where, weights=products).astype(np.float64)


def _distinct_meetings(
    a: NDArray[np.uint64], b: NDArray[np.uint64], meet: np.ufunc
) -> tuple[NDArray[np.uint64], NDArray[np.intp]]:
    """Return the distinct sets ``meet(B, C)`` of focal sets, ascending, and the position in them of each pair's set."""
    pairs = len(a) * len(b)
    if pairs > MAX_PAIRS:
        raise TooManyFocalSets(
            "focal", f"{len(a)} and {len(b)} focal sets make {pairs} pairs, at most {MAX_PAIRS} are allowed"
        )
    masks, where = np.unique(meet.outer(a, b).ravel(), return_inverse=True)
    if len(masks) > MAX_FOCAL_SETS:
        raise TooManyFocalSets(
            "focal", f"the combination has {len(masks)} focal sets, at most {MAX_FOCAL_SETS} are allowed"
        )
    return masks, where


def _scaled_masses(
    size: int, masks: NDArray[np.uint64], masses: NDArray[np.float64], *, allow_empty: bool
) -> MassFunction:
    # Always divide by the sum: inputs may deviate from 1 by 1e-9 each, and a chain of them would exceed the tolerance.
    masses = np.minimum(masses / masses.sum(), 1.0)
    return MassFunction(
        size, tuple(zip(masks.tolist(), masses.tolist(), strict=True)), allow_empty=allow_empty
    )
