"""Prediction sets of stated coverage: conformal prediction from rows that were predicted without their label.

A set contains the classes whose score ``1 - theta_c`` is at most a threshold. The threshold is a quantile of the scores
of labelled rows, with the finite-sample correction (theory §10.8).

Sources: Vovk, Gammerman and Shafer, Algorithmic learning in a random world, 2005; Sadinle, Lei and Wasserman, Least
ambiguous set-valued classifiers with bounded error levels, JASA 114, 2019; for uncertain labels Angelopoulos et al.,
Conformal risk control, ICLR 2024; for streams that change Gibbs and Candès, Adaptive conformal inference under
distribution shift, NeurIPS 2021.
"""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from quercus.belief.arrays import Bools, Floats
from quercus.belief.contour import consonant_pignistic
from quercus.belief.errors import InvalidInput
from quercus.trees.learners.recent_accuracy import BLOCK
from quercus.trees.rules.ties import TIE

STRATA = 5
"""Number of margin strata by which rows selected for queries are weighted."""
FIRST_BLOCKS = 4
"""Number of blocks of ordered scores before the first correction of the threshold."""
LAST_BLOCKS = 14
"""Number of blocks of ordered scores, up to the last, of which the threshold is a quantile."""
CORRECTION = 0.1
"""Share of a block's excess or deficit of misses by which the next share of misses is corrected."""
LEAST_MISSED = 5e-4
"""Least share of rows that a corrected threshold is meant to miss, and to cover."""
POWERS = 4.0 ** (np.array(sorted(range(-12, 13), key=abs)) / 12)
"""Candidate powers of predicted probabilities, from 1 outwards to ¼ and 4."""
LEAST_LIKELY = 1e-3
"""Minimum probability of a class in the likelihood of a power."""


class Basis(StrEnum):
    """The kind of rows whose scores determine the threshold."""

    NONE = "none"
    """No rows: every set is the whole frame."""
    LABELLED = "labelled"
    """Rows that were not selected: they arrived with their label, or were held out."""
    WEIGHTED = "weighted"
    """Rows some of which were selected for queries, weighted to represent all rows."""


@dataclass(frozen=True, eq=False)
class Calibration:
    """The scores of rows that were predicted without their labels.

    Parameters
    ----------
    scores
        (n,) ascending: the k-th is the smallest score at which k rows are covered. With precise labels of equal weight,
        these are the rows' own scores; otherwise see `Calibration.of`.
    basis
        The kind of rows.
    in_order
        Whether the scores are those of successive blocks of rows, ascending in each.
    """

    scores: Floats
    basis: Basis
    in_order: bool = False

    @classmethod
    def of(
        cls, theta: Floats, contours: Floats, basis: Basis, weights: Floats | None = None
    ) -> "Calibration":
        """Return the calibration from rows.

        A row whose label is uncertain is covered in part: by the probability, given its label and its prediction, of
        the classes in its set, see `likely_classes`.

        Parameters
        ----------
        theta
            (n, l) probabilities that were predicted without the rows' labels.
        contours
            (n, l) contours of the labels.
        basis
            The kind of rows.
        weights
            (n,) weights of the rows, of which only the proportions matter; None: all equal.

        Examples
        --------
        >>> theta = np.array([[0.9, 0.1], [0.4, 0.6], [0.8, 0.2]])
        >>> Calibration.of(theta, np.eye(2)[[0, 0, 0]], Basis.LABELLED).scores.round(3).tolist()
        [0.1, 0.2, 0.6]
        >>> Calibration.of(theta[1:2], np.array([[1.0, 1.0]]), Basis.LABELLED).scores.round(3).tolist()
        [0.6]
        """
        if not len(theta):
            return UNKNOWN
        share = likely_classes(sharpened(theta, contours), contours)
        return cls(_scores_of(theta, share, weights, TIE), basis)

    @classmethod
    def of_recent(cls, theta: Floats, contours: Floats) -> "Calibration":
        """Return the calibration from the last rows, in order, that arrived with their label; see `of`."""
        if not len(theta):
            return UNKNOWN
        blocks = [slice(start, start + BLOCK) for start in range(0, len(theta), BLOCK)]
        share = likely_classes(sharpened(theta, contours), contours)
        scores = [_scores_of(theta[block], share[block], None, 0.5) for block in blocks]
        return cls(np.concatenate(scores), Basis.LABELLED, in_order=True)

    def threshold(self, coverage: float) -> float:
        """Return the largest score that a class in a set may have; infinite if too few rows are scored.

        Of n scores it is the ``ceil((n + 1) · coverage)``-th. Scores in order may drift: of these, only the last 14
        blocks count (more where the coverage requires it), and the coverage is corrected, block after block, by the
        excess or deficit of misses of earlier thresholds.

        Raises
        ------
        InvalidInput
            If the coverage is not between 0 and 1.

        Examples
        --------
        >>> nine = Calibration(np.arange(1, 10) / 10, Basis.LABELLED)
        >>> nine.threshold(0.8), nine.threshold(0.9), nine.threshold(0.91)
        (0.8, 0.9, inf)
        """
        check_coverage(coverage)
        if not self.in_order:
            return _quantile(self.scores, coverage)
        missed, blocks = 1.0 - coverage, math.ceil(len(self.scores) / BLOCK)
        most = max(LAST_BLOCKS, math.ceil(coverage / missed / BLOCK))
        for end in range(FIRST_BLOCKS, blocks):
            above = self._blocks(end, end + 1) > _quantile(self._blocks(end - most, end), 1.0 - missed) + TIE
            missed += CORRECTION * (1.0 - coverage - float(above.mean()))
            missed = min(max(missed, LEAST_MISSED), 1.0 - LEAST_MISSED)
        return _quantile(self._blocks(blocks - most, blocks), 1.0 - missed)

    def _blocks(self, first: int, end: int) -> Floats:
        return self.scores[max(0, first) * BLOCK : end * BLOCK]

    def sets(self, theta: Floats, coverage: float) -> Bools:
        """Return the classes (n, l) in the set of each row, which always includes its likeliest classes.

        Examples
        --------
        >>> nine = Calibration(np.arange(1, 10) / 10, Basis.LABELLED)
        >>> nine.sets(np.array([[0.7, 0.2, 0.1]]), 0.8).tolist(), nine.sets(np.array([[0.7, 0.2, 0.1]]), 0.95).tolist()
        ([[True, True, False]], [[True, True, True]])
        """
        found: Bools = 1.0 - theta <= self.threshold(coverage) + TIE
        found |= theta >= theta.max(axis=1, keepdims=True, initial=0.0) - TIE
        return found


def _scores_of(theta: Floats, share: Floats, weights: Floats | None, less: float) -> Floats:
    """Return the smallest scores, ascending, at which ``k - less`` of n rows are covered, for k from 1 on.

    `share` is the part of a row that each class covers, (n, l).
    """
    if weights is not None:
        share = share * (weights / weights.mean())[:, np.newaxis]
    order = np.argsort(1.0 - theta, axis=None, kind="stable")
    covered = np.cumsum(share.ravel()[order])
    places = np.searchsorted(covered, np.arange(1, len(theta) + 1) - less)
    return np.asarray(1.0 - theta.ravel()[order[np.minimum(places, order.size - 1)]])


def _quantile(scores: Floats, coverage: float) -> float:
    """Return the ``ceil((n + 1) · coverage)``-th of n scores; infinite if there is none."""
    k = max(1, math.ceil((len(scores) + 1) * coverage - TIE))
    return float(np.partition(scores, k - 1)[k - 1]) if k <= len(scores) else math.inf


def likely_classes(theta: Floats, contours: Floats) -> Floats:
    """Return the probability of each class (n, l) given prediction and label, as in the E step of E2M (theory §2.2).

    If the prediction excludes every plausible class, it is the pignistic probability of the label.

    Examples
    --------
    >>> theta = np.array([[0.6, 0.2, 0.2], [1.0, 0.0, 0.0]])
    >>> likely_classes(theta, np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])).round(2).tolist()
    [[0.75, 0.25, 0.0], [0.0, 0.5, 0.5]]
    """
    joint = theta * contours
    total = joint.sum(axis=1, keepdims=True)
    other = consonant_pignistic(contours / contours.max(axis=1, keepdims=True))
    return np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), other)


def sharpened(theta: Floats, contours: Floats) -> Floats:
    """Return probabilities (n, l) recalibrated: raised to the power that maximises the likelihood of the labels.

    Ties go to the power nearest to 1. If all labels are precise, nothing depends on the power, and the probabilities
    are unchanged.

    Examples
    --------
    >>> theta, sure = np.array([[0.6, 0.4]]).repeat(9, axis=0), np.array([[1.0, 0.0]]).repeat(9, axis=0)
    >>> sure[0] = 1.0, 0.5
    >>> sharpened(theta, sure)[0].round(2).tolist()
    [0.84, 0.16]
    """
    if (np.count_nonzero(contours, axis=1) == 1).all():
        return theta
    best, power, logarithms = -math.inf, 1.0, np.log(np.maximum(theta, LEAST_LIKELY))
    for each in POWERS.tolist():
        raised = np.exp(each * logarithms)
        likely = float(np.log((raised * contours).sum(axis=1) / raised.sum(axis=1)).sum())
        if likely > best + TIE:
            best, power = likely, each
    found = theta**power
    return np.asarray(found / found.sum(axis=1, keepdims=True))


UNKNOWN = Calibration(np.empty(0), Basis.NONE)
"""The calibration without rows."""


def check_coverage(coverage: float) -> None:
    """Raise `InvalidInput` if a coverage is not between 0 and 1."""
    if not 0.0 < coverage < 1.0:
        raise InvalidInput("coverage", f"is {coverage:g}, must lie in (0, 1), such as 0.9")


def margins(theta: Floats) -> Floats:
    """Return the difference of the two largest probabilities of each row (n, l), (n,)."""
    largest = np.partition(theta, -2, axis=1)[:, -2:]
    return np.asarray(largest[:, 1] - largest[:, 0])


def like_all_rows(scored: Floats, others: Floats, count: float) -> Floats:
    """Return weights (n,) with which scored rows represent all rows by their margins (post-stratification).

    Queries select rows by their margin, so these rows are harder than others.

    Parameters
    ----------
    scored
        (n,) margins of the scored rows.
    others
        (m,) margins of rows without a score.
    count
        Number of rows that `others` represent.
    """
    if not others.size or not scored.size:
        return np.ones(len(scored))
    cuts = np.quantile(np.concatenate([scored, others]), np.arange(1, STRATA) / STRATA)
    mine = np.searchsorted(cuts, scored)
    have = np.bincount(mine, minlength=STRATA).astype(np.float64)
    rest = np.bincount(np.searchsorted(cuts, others), minlength=STRATA) * (count / len(others))
    return np.asarray((1.0 + rest / np.maximum(have, 1.0))[mine])
