"""Evidence that may overlap: the cautious rule (theory §1.6).

Dempster's rule counts what two labellers say twice, even if they conferred. The cautious rule counts the strongest
reason for each set once: it takes the minimum of the weights of the canonical decomposition. It is commutative,
associative and idempotent.

Source: Denoeux, Conjunctive and disjunctive combination of belief functions induced by nondistinct bodies of evidence,
Artificial Intelligence 172, 2008.
"""

import math
from collections.abc import Iterable, Sequence
from functools import reduce

from quercus.belief.errors import InvalidInput, TooManyFocalSets
from quercus.belief.frame import full_mask
from quercus.belief.mass import MassFunction
from quercus.belief.rules import conjunctive, dempster

MAX_DECOMPOSED = 1_024
"""Maximum number of sets in a canonical decomposition; this many take a tenth of a second."""
_EQUAL = 1e-12  # logarithms of weights that differ by less count as equal


def decompose(m: MassFunction) -> dict[int, float]:
    """Return the logarithms of the weights of a mass function's canonical decomposition, those that are not 0.

    ``m`` is the conjunction of generalised simple mass functions ``A^w(A)``, whose weights come from the commonalities:
    ``ln w(A) = -sum_{B ⊇ A} (-1)^{|B|-|A|} ln q(B)``. Only intersections of focal sets have weights other than 1, so
    few sets need to be examined, however large the frame. A weight above 1 is evidence against a set.

    Raises
    ------
    InvalidInput
        When the mass function is dogmatic: the whole frame has no mass.
    TooManyFocalSets
        When there are more than 1,024 intersections of focal sets.

    Examples
    --------
    >>> m = MassFunction(3, ((0b011, 0.3), (0b110, 0.5), (0b111, 0.2)))
    >>> {mask: round(math.exp(log), 4) for mask, log in sorted(decompose(m).items())}
    {2: 1.75, 3: 0.4, 6: 0.2857}
    """
    whole = full_mask(m.size)
    if m.focal[-1][0] != whole:
        reason = "is dogmatic: the whole frame has no mass. Discount it first, by a reliability of .99 say"
        raise InvalidInput("mass", reason)
    closed = _intersections([mask for mask, _ in m.focal])
    logs: dict[int, float] = {}
    for mask in sorted(closed, key=int.bit_count, reverse=True):
        commonality = math.fsum(mass for focal, mass in m.focal if focal & mask == mask)
        logs[mask] = -math.log(commonality) - math.fsum(
            log for larger, log in logs.items() if larger & mask == mask
        )
    return {mask: log for mask, log in logs.items() if mask != whole and abs(log) > _EQUAL}


def cautious(masses: Iterable[MassFunction]) -> MassFunction:
    """Combine bodies of evidence that need not be distinct, by the cautious rule, normalised: see `overlapping`.

    Examples
    --------
    >>> one = MassFunction(3, ((0b011, 0.3), (0b110, 0.5), (0b111, 0.2)))
    >>> other = MassFunction(3, ((0b010, 0.3), (0b110, 0.4), (0b111, 0.3)))
    >>> [(mask, round(mass, 4)) for mask, mass in cautious([one, other, one]).focal]
    [(2, 0.6), (3, 0.12), (6, 0.2), (7, 0.08)]
    """
    together = overlapping(masses)
    return dempster(together, MassFunction.vacuous(together.size))


def overlapping(masses: Iterable[MassFunction]) -> MassFunction:
    """Combine bodies of evidence that need not be distinct, by the cautious rule; the mass of the empty set is κ.

    Neither the order nor repetitions change the result. Total conflict cannot occur, since no body of evidence rules
    out a class.

    Raises
    ------
    InvalidInput
        If there is no mass function, one is dogmatic, or the frames differ in size.
    TooManyFocalSets
        As :func:`decompose` and :func:`quercus.belief.rules.conjunctive`.
    """
    distinct = sorted(set(masses), key=lambda m: (m.size, m.focal))  # so that the order does not matter
    if not distinct:
        raise InvalidInput("masses", "is empty, must have at least one")
    sizes = {m.size for m in distinct}
    if len(sizes) > 1:
        raise InvalidInput("masses", f"are on frames of {sorted(sizes)} classes, must be on one frame")
    logs_of = [decompose(m) for m in distinct]
    whole = full_mask(distinct[0].size)
    reasons = [  # the evidence of the others that goes beyond that of the first
        (mask, more)
        for mask in sorted({mask for logs in logs_of for mask in logs})
        if (more := min(logs.get(mask, 0.0) for logs in logs_of) - logs_of[0].get(mask, 0.0)) < -_EQUAL
    ]
    return reduce(
        conjunctive,
        (
            MassFunction(
                distinct[0].size,
                ((mask, -math.expm1(more)), (whole, math.exp(more))),
                allow_empty=mask == 0,
            )
            for mask, more in reasons
        ),
        distinct[0],
    )


def _intersections(masks: Sequence[int]) -> set[int]:
    """Return all intersections of one or more sets."""
    found: set[int] = set()
    for mask in masks:
        found |= {mask, *(mask & other for other in found)}
        if len(found) > MAX_DECOMPOSED:
            raise TooManyFocalSets(
                "focal",
                f"have more than {MAX_DECOMPOSED:,} intersections, the most that the cautious rule examines",
            )
    return found
