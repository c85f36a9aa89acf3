"""A confusion matrix a labeller, shrunk towards one coin: variational Bayes (theory §13.2)."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.crowds.answers import CrowdAnswers, normalise_log_joint, sum_by
from quercus.crowds.coin import PRIOR_RELIABILITY, likeliest_coins, log_prior, prior_cells

ROUNDS: Final = 100
SETTLED_CHANGE: Final = 1e-4
"""Estimation stops when no probability of a class changes by more."""


@dataclass(frozen=True, eq=False)
class CrowdEstimate:
    """An estimate of the labellers' confusion matrices, and of the classes of the instances that they answered.

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
        """Chance (m,) that a labeller's next answer is right, for an instance of the crowd's classes."""
        chance: Floats = np.einsum("jcc,c->j", self.matrices, self.prevalence)
        return chance

    @property
    def deviation(self) -> Floats:
        """Standard deviation (m,) of the reliability: how little is known of it."""
        right = np.einsum("jcc->jc", self.matrices)
        variance = right * (1.0 - right) / (self.cells.sum(axis=2) + 1.0)
        deviation: Floats = np.sqrt((variance * self.prevalence**2).sum(axis=1))
        return deviation

    def answer_evidence(self, labeller: int, contour: Floats) -> Floats:
        """Return the evidence in an answer of a labeller: a contour (l,), ``Σ_a π(a | c) pl(a)``, maximum 1.

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

    Labellers are compared on the instances with answers of two or more of them. The result does not depend on the order
    of the answers. The estimation ends after `rounds`, or when no probability of a class changes by more than 1e-4.

    Examples
    --------
    >>> of, who = np.repeat(np.arange(8), 3), np.array([0, 1, 2] * 8)
    >>> said = np.eye(2)[[0, 0, 1, 1, 1, 1] * 4]     # the third one always says the second class
    >>> found = estimate_crowd(CrowdAnswers.of(of, who, said))
    >>> found.matrices[2].round(2).tolist(), found.answer_evidence(2, np.array([0.0, 1.0])).round(2).tolist()
    ([[0.08, 0.92], [0.03, 0.97]], [0.95, 1.0])
    """
    shared = answers.shared_answers()
    pairs = _LabellerContours.of(shared)
    coins = np.full(answers.labeller_count, PRIOR_RELIABILITY)
    prior = prior_cells(coins, answers.size)
    cells, prevalence, uniform = prior, np.ones(answers.size), np.ones(answers.size)
    logs, log_shares = _expected_logs(cells), np.full(answers.size, -np.log(answers.size))
    bound: list[float] = []
    told = np.unique(shared.instances)
    q = _shares_of_answers(shared)
    for _ in range(rounds if len(told) else 0):
        cells = prior + pairs.counts(q, logs)
        prevalence = 1.0 + q[told].sum(axis=0)
        logs, log_shares = _expected_logs(cells), _expected_logs(prevalence)
        coins = likeliest_coins(logs)
        prior = prior_cells(coins, answers.size)
        before = q
        q, evidence = pairs.classes(logs, log_shares)
        lost = _divergence(cells, prior) + _divergence(prevalence, uniform)
        bound.append(evidence + log_prior(coins) - lost)
        if np.abs(q - before).max() <= SETTLED_CHANGE:
            break
    classes, _ = _LabellerContours.of(answers.informative_answers()).classes(logs, log_shares)
    return CrowdEstimate(cells, prevalence / prevalence.sum(), classes, tuple(bound))


@dataclass(frozen=True, slots=True, eq=False)
class _LabellerContours:
    """The distinct pairs of labeller and contour: answers of one pair have the same likelihood."""

    answers: CrowdAnswers
    labellers: Ints  # (p,) rising
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
    """Return the initial estimate: the mean of each instance's answers and one vacuous answer, (n, l)."""
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
    """Kullback-Leibler divergence of Dirichlet distributions (..., l) from their priors, summed."""
    from scipy.special import gammaln  # noqa: PLC0415  (a server that estimates nothing starts without SciPy)

    total, total_prior = cells.sum(axis=-1), prior.sum(axis=-1)
    norm = gammaln(total) - gammaln(total_prior) - (gammaln(cells) - gammaln(prior)).sum(axis=-1)
    return float((norm + ((cells - prior) * _expected_logs(cells)).sum(axis=-1)).sum())
