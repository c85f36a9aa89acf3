"""How reliable oracles are, estimated from how they agree; and what several answers say together.

**Reliability.** The model is that of Dawid & Skene (1979), *Maximum likelihood estimation of observer error-rates using
the EM algorithm*, Applied Statistics 28(1), 20-28, with one parameter an oracle (the "one-coin" model of Zhang, Chen,
Zhou & Jordan (2016), *Spectral methods meet EM*, JMLR 17, 1-44), written for answers that may be uncertain. Instance i
has an unknown class t, of class c with chance w_c. Oracle j is reliable in an answer with chance r_j; then the answer
speaks of t, with plausibility pl_ij(t). Else it says nothing of t, and its likelihood is the mean s_ij of pl_ij:

    P(answer ij | t = c) = r_j pl_ij(c) + (1 - r_j) s_ij

That r_j is what discounting takes (Shafer 1976, *A mathematical theory of evidence*, ch. 11): the chance that the
source is reliable, where otherwise nothing is known. EM alternates (q: class of an instance, p: reliable in an answer):

    q_i(c)  =  w_c Π_j P(ij | c) / Σ_c' ...                p_ij  =  Σ_c q_i(c) r_j pl_ij(c) / P(ij | c)
    r_j     =  (Σ_i p_ij + a) / (n_j + a + b)              w_c   =  (Σ_i q_i(c) + 1) / (n + l)

a and b are a prior Beta(a + 1, b + 1) of r_j: an oracle whom nobody has shared an instance with is taken to be right
four times of five. Each round raises the posterior (the property EM is known for); a test holds it.

**Combination.** Dempster's rule over the discounted answers. What remains apart is reported apart: the conflict of all
answers (mass of the empty set under the conjunctive rule) and the ignorance (mass of the whole frame).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.frame import full_mask
from quercus.belief.mass import MassFunction
from quercus.belief.rules import conjunctive, dempster, discount

Floats = NDArray[np.float64]

PRIOR_RIGHT, PRIOR_WRONG = 4.0, 1.0
ROUNDS = 200
TOLERANCE = 1e-9
MOST_RELIABLE = 0.99
"""Of several oracles none is taken to be infallible: Dempster's rule has no answer where two such contradict. One alone
counts as it stands."""


@dataclass(frozen=True, slots=True, eq=False)
class Agreement:
    """The result of EM.

    Attributes
    ----------
    reliability
        float64 (m,), of each oracle.
    classes
        float64 (n, l): q, the class of each instance, rows sum to 1.
    log_posterior
        After each round, up to a constant; never falls.
    """

    reliability: Floats
    classes: Floats
    log_posterior: tuple[float, ...]


def estimate(instances: NDArray[np.int64], oracles: NDArray[np.int64], contours: Floats) -> Agreement:
    """Estimate the reliability of oracles from their answers.

    Parameters
    ----------
    instances, oracles
        int64 (k,): of which instance, by whom; numbers from 0 without gaps.
    contours
        float64 (k, l): what was answered.

    Raises
    ------
    InvalidInput
        When the three do not have the same length, or an answer excludes every class.

    Examples
    --------
    >>> who, of = np.array([0, 1, 2] * 4), np.repeat(np.arange(4), 3)
    >>> said = np.eye(2)[[0, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0]]     # the third one mostly differs
    >>> [float(round(r, 2)) for r in estimate(of, who, said).reliability]
    [0.84, 0.84, 0.53]
    """
    if not len(instances) == len(oracles) == len(contours):
        raise InvalidInput(
            "contours", f"are {len(contours)}, must be one for each of {len(instances)} answers"
        )
    said = np.asarray(contours, dtype=np.float64)
    top = said.max(axis=1, initial=0.0)
    if not (top > 0.0).all():
        raise InvalidInput("contours", "an answer excludes every class, at least one must be plausible")
    said = said / top[:, None]
    mean = said.mean(axis=1, keepdims=True)
    n, m, size = int(instances.max(initial=-1)) + 1, int(oracles.max(initial=-1)) + 1, said.shape[1]
    count = np.bincount(oracles, minlength=m)
    r = np.full(m, PRIOR_RIGHT / (PRIOR_RIGHT + PRIOR_WRONG))
    weights = np.full(size, 1.0 / size)
    trace: list[float] = []
    while True:
        right = r[oracles, None] * said
        likelihood = right + (1.0 - r[oracles, None]) * mean
        log_joint = np.tile(np.log(weights), (n, 1))
        np.add.at(log_joint, instances, np.log(likelihood))
        top_joint = log_joint.max(axis=1, keepdims=True)
        joint = np.exp(log_joint - top_joint)
        q = joint / joint.sum(axis=1, keepdims=True)
        evidence = float((top_joint[:, 0] + np.log(joint.sum(axis=1))).sum())
        prior = float((PRIOR_RIGHT * np.log(r) + PRIOR_WRONG * np.log1p(-r)).sum() + np.log(weights).sum())
        trace.append(evidence + prior)
        if len(trace) == ROUNDS or (len(trace) > 1 and trace[-1] - trace[-2] < TOLERANCE):
            return Agreement(r, q, tuple(trace))
        p = (q[instances] * right / likelihood).sum(axis=1)
        r = (np.bincount(oracles, weights=p, minlength=m) + PRIOR_RIGHT) / (count + PRIOR_RIGHT + PRIOR_WRONG)
        weights = (q.sum(axis=0) + 1.0) / (n + size)


@dataclass(frozen=True, slots=True)
class Consensus:
    """The combination of several answers.

    Attributes
    ----------
    mass
        By Dempster's rule.
    conflict
        κ of all of them: the mass that the conjunctive rule gives to the empty set.
    ignorance
        Mass of the whole frame.
    """

    mass: MassFunction
    conflict: float
    ignorance: float


def combine(answers: Sequence[tuple[MassFunction, float]]) -> Consensus:
    """Combine answers, each with the reliability of its oracle in [0, 1]; of several it is taken for .99 at most.

    Raises
    ------
    InvalidInput
        When there is none, or the combination has too many focal sets.

    Examples
    --------
    >>> red, green = MassFunction(2, ((1, 1.0),)), MassFunction(2, ((2, 1.0),))
    >>> both = combine([(red, 0.8), (green, 0.5)])
    >>> round(both.conflict, 3), round(both.ignorance, 3)
    (0.4, 0.167)
    """
    if not answers:
        raise InvalidInput("answers", "are none, must be at least one")
    most = MOST_RELIABLE if len(answers) > 1 else 1.0
    weakened = [discount(mass, min(reliability, most)) for mass, reliability in answers]
    together = reduce(dempster, weakened)
    kappa = reduce(conjunctive, weakened).conflict
    whole = full_mask(together.size)
    return Consensus(together, kappa, next((mass for mask, mass in together.focal if mask == whole), 0.0))


def same_class(a: Floats, b: Floats) -> Floats:
    """Chance that two answers would name the same class, if each had to bet: float64 (k,) for contours (k, l).

    Each bets by its contour scaled to sum 1. Two precise answers: 1 or 0.
    """
    bets = a / a.sum(axis=1, keepdims=True) * (b / b.sum(axis=1, keepdims=True))
    chance: Floats = bets.sum(axis=1)
    return chance
