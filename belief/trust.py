"""Answers weighed by their reliability: the chance that an answer is right (theory §13.1).

Let an answer name k of l classes, and let r be the chance that the class is one of these. Where nothing else is known,
each of the k classes then has probability r / k, each other class (1 - r) / (l - k). Up to a constant that is the
contour

    1 for the classes that the answer names,    ε = (1 - r) k / (r (l - k)) for the others, 1 at most,

so the answer is discounted (Shafer 1976) to the rate d = 1 - ε. A labeller who is right no more often than chance,
r ≤ k/l, says nothing. An answer that is a contour pl of maximum 1 names k = Σ pl classes, and becomes d pl + 1 - d.
"""

import numpy as np
from numpy.typing import NDArray

from quercus.belief.mass import MassFunction
from quercus.belief.rules import check_reliability, discount


def discount_rate(contour: NDArray[np.float64], reliability: float) -> float:
    """Return the rate in [0, 1] to which an answer is discounted, given the chance that it is right.

    Parameters
    ----------
    contour
        (l,) of the answer, maximum 1.
    reliability
        Chance that the class is among those that the answer names, in [0, 1].

    Raises
    ------
    InvalidInput
        When the reliability lies outside [0, 1].

    Examples
    --------
    >>> [round(discount_rate(np.array([1.0, 0.0, 0.0]), r), 3) for r in (1.0, 0.9, 0.5, 0.2)]
    [1.0, 0.944, 0.5, 0.0]
    """
    r = check_reliability(reliability)
    named = float(contour.sum())
    others = len(contour) - named
    if r == 1.0 or others <= 0.0:
        return 1.0
    return max(0.0, 1.0 - (1.0 - r) * named / (r * others)) if r > 0.0 else 0.0


def trusted(contour: NDArray[np.float64], reliability: float) -> NDArray[np.float64]:
    """Return the contour of an answer, of maximum 1, weighed by the chance that it is right.

    Examples
    --------
    >>> said = trusted(np.array([1.0, 0.0]), 0.8)
    >>> said.tolist(), (said / said.sum()).round(3).tolist()
    ([1.0, 0.25], [0.8, 0.2])
    """
    d = discount_rate(contour, reliability)
    found: NDArray[np.float64] = d * contour + (1.0 - d)
    return found


def weakened_mass(answer: MassFunction, reliability: float) -> MassFunction:
    """Return the mass function of an answer, discounted by the chance that it is right.

    Examples
    --------
    >>> weakened_mass(MassFunction(2, ((1, 1.0),)), 0.8).focal
    ((1, 0.75), (3, 0.25))
    """
    pl = answer.contour()
    return discount(answer, discount_rate(pl / pl.max(), reliability))
