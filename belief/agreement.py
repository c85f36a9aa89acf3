"""The combination of several answers, and the agreement of labellers.

**Combination.** Dempster's rule over the answers, each discounted by its reliability (theory §13.1), or the cautious
rule where labellers may have conferred (theory §1.6). Two figures are
reported with it: the conflict of all answers (mass of the empty set under the conjunctive rule) and the ignorance
(mass of the whole frame).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from quercus.belief.cautious import cautious, overlapping
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import full_mask
from quercus.belief.mass import MassFunction
from quercus.belief.rules import combine_repeatedly, conjunctive, discount

MOST_RELIABLE = 0.99
"""Upper bound of the reliability of each of several oracles: Dempster's rule is undefined if two infallible oracles
contradict each other. The reliability of a single oracle is not capped."""


@dataclass(frozen=True, slots=True)
class Consensus:
    """The combination of several answers.

    Attributes
    ----------
    mass
        The combined mass function.
    conflict
        κ of all answers: the mass of the empty set before normalisation.
    ignorance
        Mass of the whole frame.
    """

    mass: MassFunction
    conflict: float
    ignorance: float


def combine(answers: Sequence[tuple[MassFunction, float]], *, distinct: bool = True) -> Consensus:
    """Combine answers, each with the reliability of its oracle in [0, 1]; it is capped at .99 if there are several.

    Dempster's rule combines `distinct` (independent) answers. Others are combined by the cautious rule, which counts
    evidence that several answers share only once.

    Raises
    ------
    InvalidInput
        If there are no answers, or the combination has too many focal sets.

    Examples
    --------
    >>> red, green = MassFunction(2, ((1, 1.0),)), MassFunction(2, ((2, 1.0),))
    >>> both = combine([(red, 0.8), (green, 0.5)])
    >>> round(both.conflict, 3), round(both.ignorance, 3)
    (0.4, 0.167)
    >>> [(mask, round(mass, 3)) for mask, mass in combine([(red, 0.8), (red, 0.5)], distinct=False).mass.focal]
    [(1, 0.8), (3, 0.2)]
    """
    if not answers:
        raise InvalidInput("answers", "is empty, must have at least one")
    most = MOST_RELIABLE if len(answers) > 1 else 1.0
    weakened = [discount(mass, min(reliability, most)) for mass, reliability in answers]
    if distinct or len(weakened) == 1:
        together = combine_repeatedly(Counter(weakened))
        kappa = reduce(conjunctive, weakened).conflict
    else:
        together, kappa = cautious(weakened), overlapping(weakened).conflict
    whole = full_mask(together.size)
    return Consensus(together, kappa, next((mass for mask, mass in together.focal if mask == whole), 0.0))
