"""A confusion matrix per labeller, shrunk towards the one-coin model, by variational Bayes (theory §13.2)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.labelling.crowds.answers import CrowdAnswers, normalise_log_joint, sum_by
from quercus.labelling.crowds.coin import (
    CELL,
    LEAST,
    PRIOR_RELIABILITY,
    likeliest_coins,
    log_prior,
    prior_cells,
)

ROUNDS: Final = 1_000
ACCURACY: Final = 1e-6
"""Greatest distance of the estimate from the fixed point."""
SETTLED_CHANGE: Final = ACCURACY / 1_000
"""Estimation stops after a round that changes no probability by more. A thousand such changes add up to `ACCURACY`."""
DIGITS: Final = 10
"""Decimals of the parameters: floating-point error must not choose between equally good classes."""
STEADY_CHANGES: Final = 4
STEADY_CHANGE: Final = 0.01
STEADY_SPREAD: Final = 0.05
"""Rounds converge steadily if the last four changes fall, and their ratios differ by at most this much."""


@dataclass(frozen=True, eq=False)
class CrowdEstimate:
    """The estimated confusion matrices of labellers, and the classes of the instances that they labelled.

    Attributes
    ----------
    cells : float64 (m, l, l)
        Parameters of the Dirichlet distribution of each row of each labeller's confusion matrix: row c holds the
        chances of the answers when the class is c.
    prevalence : float64 (l,)
        Share of each class.
    classes : float64 (n, l)
        Probability of the classes of each instance.
    bound : tuple of float
        Lower bound of the log evidence after each round; it never falls.
    """

    cells: Floats
    prevalence: Floats
    classes: Floats
    bound: tuple[float, ...]

    @cached_property
    def matrices(self) -> Floats:
        """Mean confusion matrices (m, l, l); rows sum to 1."""
        mean: Floats = self.cells / self.cells.sum(axis=2, keepdims=True)
        return mean

    @property
    def reliability(self) -> Floats:
        """Probability (m,) that a labeller's next answer is right, for an instance drawn by `prevalence`."""
        chance: Floats = np.einsum("jcc,c->j", self.matrices, self.prevalence)
        return chance

    @property
    def deviation(self) -> Floats:
        """Standard deviation (m,) of the reliability."""
        right = np.einsum("jcc->jc", self.matrices)
        variance = right * (1.0 - right) / (self.cells.sum(axis=2) + 1.0)
        deviation: Floats = np.sqrt((variance * self.prevalence**2).sum(axis=1))
        return deviation

    def answer_evidence(self, labeller: int, contour: Floats) -> Floats:
        """Return the evidence of a labeller's answer: the contour (l,) ``Σ_a π(a | c) pl(a)``, scaled to maximum 1.

        Raises
        ------
        InvalidInput
            When there is no such labeller.
        """
        if not 0 <= labeller < len(self.cells):
            raise InvalidInput("labeller", f"is {labeller}, must be 0 to {len(self.cells) - 1}")
        likelihood = (self.matrices[labeller] * np.asarray(contour, dtype=np.float64)).sum(axis=1)
        found: Floats = likelihood / likelihood.max()
        return found


def estimate_crowd(answers: CrowdAnswers, rounds: int = ROUNDS) -> CrowdEstimate:
    """Estimate the confusion matrices of labellers, and the classes of instances.

    Labellers are compared on instances that two or more of them answered. The result does not depend on the order of
    the answers. All probabilities (classes, confusion matrices, prevalence) are within 1e-6 of the fixed point if each
    round reduces the error by at least a thousandth. If `rounds` do not suffice, the last round is returned.

    Examples
    --------
    >>> of, who = np.repeat(np.arange(8), 3), np.array([0, 1, 2] * 8)
    >>> said = np.eye(2)[[0, 0, 1, 1, 1, 1] * 4]     # the third one always says the second class
    >>> found = estimate_crowd(CrowdAnswers.of(of, who, said))
    >>> found.matrices[2].round(2).tolist(), found.answer_evidence(2, np.array([0.0, 1.0])).round(2).tolist()
    ([[0.08, 0.92], [0.03, 0.97]], [0.95, 1.0])
    """
    shared = answers.shared_answers()
    pairs, told = _LabellerContours.of(shared), np.unique(shared.instances)
    prior = prior_cells(np.full(answers.labeller_count, PRIOR_RELIABILITY), answers.size)
    here, bound = _Parameters(prior, np.ones(answers.size)), list[float]()
    q, changes = _shares_of_answers(shared), list[float]()
    first_cells = prior + pairs.counts(q, _expected_logs(prior))
    trail = [_Parameters.rounded(first_cells, 1.0 + q[told].sum(axis=0))]
    before_leap: _Parameters | None = None
    for _ in range(rounds if len(told) else 0):
        following, classes, value = _one_round(pairs, told, trail[-1])
        if before_leap is not None and not value >= bound[-1]:  # the bound must not fall
            trail, before_leap = [before_leap], None
            continue
        here, before_leap = trail[-1], None
        bound.append(value)
        trail = [*trail[-2:], following]
        change = max(np.abs(classes - q).max(), following.distance(here)) if len(trail) > 2 else np.inf
        q, changes = classes, [*changes[1 - STEADY_CHANGES :], change]
        if change <= SETTLED_CHANGE:
            break
        if _is_steady(changes):
            trail, before_leap, changes = [_leap(trail, len(answers))], following, []
    logs, log_shares = _expected_logs(here.cells), _expected_logs(here.prevalence)
    classes, _ = _LabellerContours.of(answers.informative_answers()).classes(logs, log_shares)
    return CrowdEstimate(here.cells, here.prevalence / here.prevalence.sum(), classes, tuple(bound))


@dataclass(frozen=True, slots=True, eq=False)
class _Parameters:
    """Parameters of the Dirichlet distributions of the matrices (m, l, l) and the prevalence (l,)."""

    cells: Floats
    prevalence: Floats

    @classmethod
    def rounded(cls, cells: Floats, prevalence: Floats) -> "_Parameters":
        """Return the parameters rounded to `DIGITS` decimals."""
        return cls(np.round(cells, DIGITS), np.round(prevalence, DIGITS))

    def distance(self, other: "_Parameters") -> float:
        """Return the largest difference between mean probabilities of both."""
        pairs = (self.cells, other.cells), (self.prevalence, other.prevalence)
        return max(
            float(np.abs(a / a.sum(axis=-1, keepdims=True) - b / b.sum(axis=-1, keepdims=True)).max())
            for a, b in pairs
        )


def _one_round(
    pairs: "_LabellerContours", told: Ints, here: _Parameters
) -> tuple[_Parameters, Floats, float]:
    """Return the parameters after a round, and the classes (n, l) and the bound on the log evidence before it."""
    size = here.prevalence.size
    logs, log_shares = _expected_logs(here.cells), _expected_logs(here.prevalence)
    coins = likeliest_coins(logs)
    prior = prior_cells(coins, size)
    q, evidence = pairs.classes(logs, log_shares)
    lost = _divergence(here.cells, prior) + _divergence(here.prevalence, np.ones(size))
    following = _Parameters.rounded(prior + pairs.counts(q, logs), 1.0 + q[told].sum(axis=0))
    return following, q, evidence + log_prior(coins) - lost


def _is_steady(changes: list[float]) -> bool:
    """Return whether rounds converge at a steady rate: their last `changes` are small and fall geometrically.

    Before that, a leap might lead to a different fixed point.
    """
    if len(changes) < STEADY_CHANGES or changes[-1] > STEADY_CHANGE:
        return False
    ratios = np.divide(changes[1:], changes[:-1])
    return bool(ratios.max() < 1.0 and np.ptp(ratios) <= STEADY_SPREAD)


def _leap(trail: Sequence[_Parameters], most: int) -> _Parameters:
    """Extrapolate three successive parameters, in logarithms: SQUAREM (Varadhan, Roland 2008, step length S3).

    Cells are clipped between the least prior of any coin and the greatest value that `most` answers allow.
    """
    shape, size = trail[0].cells.shape, trail[0].prevalence.size
    x, y, z = (np.log(np.append(each.cells, each.prevalence)) for each in trail)
    step, bend = y - x, z - 2.0 * y + x
    length = max(
        1.0, float(np.sqrt((step * step).sum() / max((bend * bend).sum(), np.finfo(np.float64).tiny)))
    )
    least = CELL * min(size * LEAST, size * LEAST / (size - 1))
    found = np.exp(np.clip(x + 2.0 * length * step + length**2 * bend, np.log(least), np.log(most + size)))
    return _Parameters.rounded(found[:-size].reshape(shape), found[-size:])


@dataclass(frozen=True, slots=True, eq=False)
class _LabellerContours:
    """The distinct pairs of labeller and contour; answers of the same pair have the same likelihood."""

    answers: CrowdAnswers
    labellers: Ints  # (p,) sorted
    contours: Floats  # (p, l)
    pair_of: Ints  # (k,) of each answer
    by_pair: Ints  # (k,) the answers in the order of pairs

    @classmethod
    def of(cls, answers: CrowdAnswers) -> "_LabellerContours":
        both = np.column_stack([answers.labellers, answers.kinds])
        pairs, pair_of = np.unique(both, axis=0, return_inverse=True)
        pair_of = pair_of.ravel().astype(np.int64)
        by_pair = np.argsort(pair_of, kind="stable").astype(np.int64)
        return cls(answers, pairs[:, 0], answers.contours[pairs[:, 1]], pair_of, by_pair)

    def likelihood(self, logs: Floats) -> Floats:
        """``Σ_a exp(logs[j, c, a]) pl(a)`` of each pair, (p, l)."""
        found: Floats = np.einsum("pca,pa->pc", np.exp(logs)[self.labellers], self.contours)
        return found

    def classes(self, logs: Floats, log_shares: Floats) -> tuple[Floats, float]:
        """Return the probabilities of the classes (n, l), and the log evidence of all answers."""
        told = self.answers
        said = np.log(self.likelihood(logs))[self.pair_of]
        q, evidence = normalise_log_joint(log_shares + sum_by(told.instances, said, told.instance_count))
        return q, float(evidence[np.unique(told.instances)].sum())

    def counts(self, q: Floats, logs: Floats) -> Floats:
        """Return how often each labeller is expected to have meant a when the class was c, (m, l, l)."""
        told = self.answers
        mass = q[told.instances][self.by_pair]
        weight = sum_by(self.pair_of[self.by_pair], mass, len(self.labellers)) / self.likelihood(logs)
        meant = np.exp(logs)[self.labellers] * weight[:, :, np.newaxis] * self.contours[:, np.newaxis, :]
        return sum_by(self.labellers, meant, told.labeller_count)


def _shares_of_answers(answers: CrowdAnswers) -> Floats:
    """Return the initial classes (n, l): the mean of each instance's answers and one vacuous answer."""
    bets = answers.contours / answers.contours.sum(axis=1, keepdims=True)
    votes = sum_by(answers.instances, bets[answers.kinds], answers.instance_count) + 1.0 / answers.size
    shares: Floats = votes / votes.sum(axis=1, keepdims=True)
    return shares


def _expected_logs(cells: Floats) -> Floats:
    """Return the expected logarithms of the probabilities of Dirichlet distributions (..., l)."""
    from scipy.special import digamma  # noqa: PLC0415  (a server that estimates nothing starts without SciPy)

    found: Floats = digamma(cells) - digamma(cells.sum(axis=-1, keepdims=True))
    return found


def _divergence(cells: Floats, prior: Floats) -> float:
    """Return the summed Kullback-Leibler divergence of Dirichlet distributions (..., l) from their priors."""
    from scipy.special import gammaln  # noqa: PLC0415  (a server that estimates nothing starts without SciPy)

    total, total_prior = cells.sum(axis=-1), prior.sum(axis=-1)
    norm = gammaln(total) - gammaln(total_prior) - (gammaln(cells) - gammaln(prior)).sum(axis=-1)
    return float((norm + ((cells - prior) * _expected_logs(cells)).sum(axis=-1)).sum())
