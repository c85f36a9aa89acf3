"""The scores for prediction sets of stated coverage: the forest's predictions without the label (theory §10.8).

They are a function of the log. While few rows are labelled, forests of the other rows predict each fifth of them; later
they are the predictions of the last blocks by the members from before each.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from quercus.belief.arrays import Bools, Floats
from quercus.trees.learners.average_confidence import spread_rows
from quercus.trees.learners.conformal import (
    Basis,
    Calibration,
    like_all_rows,
    margins,
)
from quercus.trees.learners.recent_accuracy import BLOCK
from quercus.trees.memory_forest.evidence import ASKED, ForestEvidence
from quercus.trees.memory_forest.labelled_rows import Rows
from quercus.trees.memory_forest.members import Members
from quercus.trees.memory_forest.memories import BAYES
from quercus.trees.memory_forest.recent import PIECE

FEW = 4 * BLOCK
"""Maximum number of labelled rows predicted in folds; if there are more, the last ones that were queried count."""
FOLDS = 5
ENOUGH = BLOCK
"""If at least so many of the last `FEW` rows came with their labels, no others count."""


def suffice_unasked(asked: Bools) -> bool:
    """Return whether of scored rows (n,) those that no strategy chose suffice, so that no others count."""
    return bool((~asked[-FEW:]).sum() >= ENOUGH or not asked.any())


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows that were predicted without their labels.

    Parameters
    ----------
    theta, contours
        (n, l) their predictions, and their labels.
    asked
        (n,) whether a strategy chose them.
    other_margins
        (m,) margins of rows without a score; not needed where `suffice_unasked`.
    others
        Number of rows that these stand for.
    in_order
        Whether the scored rows are the last ones, in their order.
    """

    theta: Floats
    contours: Floats
    asked: Bools
    other_margins: Floats
    others: int
    in_order: bool = False

    def calibration(self) -> Calibration:
        """Return the calibration: from rows that no strategy chose if enough, else from the last, weighted."""
        if suffice_unasked(self.asked):
            mine = ~self.asked
            if self.in_order:
                return Calibration.of_recent(self.theta[mine], self.contours[mine])
            return Calibration.of(self.theta[mine], self.contours[mine], Basis.LABELLED)
        theta, contours = self.theta[-FEW:], self.contours[-FEW:]
        weights = like_all_rows(margins(theta), self.other_margins, self.others)
        return Calibration.of(theta, contours, Basis.WEIGHTED, weights)


def folded_count(labelled: int) -> int:
    """Return the number of labelled rows that are predicted in folds: it grows in steps, which saves forests.

    Examples
    --------
    >>> [folded_count(labelled) for labelled in (9, 10, 37, 50, 99, 100, 200, 201)]
    [0, 10, 30, 50, 90, 100, 200, 0]
    """
    return 0 if labelled > FEW else labelled - labelled % PIECE


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """The first labelled rows, each fifth of them predicted by the members that learned the others.

    Parameters
    ----------
    evidence
        Evidence of the log.
    labelled, kinds
        (n,) labelled rows in their order, and the numbers of their contours.
    rows
        Number of rows at the start of the log that stand for all.
    trees, seed
        Of the forest.
    """

    evidence: ForestEvidence
    labelled: Rows
    kinds: Rows
    rows: int
    trees: int
    seed: int

    @classmethod
    def of(cls, evidence: ForestEvidence, trees: int, seed: int) -> "FoldedRows | None":
        """Return those of the present evidence; None where there are none."""
        count = folded_count(len(evidence.labelled))
        if not count:
            return None
        labelled = evidence.labelled[:count].copy()
        rows = 1 << (len(evidence).bit_length() - 1)  # seldom changes
        return cls(evidence, labelled, evidence.kinds[labelled].copy(), rows, trees, seed)

    def is_same(self, other: "FoldedRows") -> bool:
        """Return whether the others have the same rows, labels and forests."""
        return (
            self.evidence is other.evidence
            and self.rows == other.rows
            and np.array_equal(self.labelled, other.labelled)
            and np.array_equal(self.kinds, other.kinds)
        )

    @cached_property
    def scored(self) -> ScoredRows:
        """The rows as they were predicted."""
        evidence, l = self.evidence, self.evidence.size
        values, contours = evidence.values[self.labelled], evidence.contours.values[self.kinds]
        others = np.setdiff1d(np.arange(self.rows), self.labelled, assume_unique=True)
        sample = evidence.values[others[spread_rows(len(others), 4 * FEW)]]
        fold = np.arange(len(values)) % FOLDS
        theta, margin = np.empty((len(values), l)), np.empty(len(sample))
        weights = np.full(self.trees + len(BAYES), 1.0 / (self.trees + len(BAYES)))
        for k in range(FOLDS):
            learned = ForestEvidence(evidence.named, l)
            rest = fold != k
            learned.add_rows(values[rest], learned.contours.contour_numbers(contours[rest]))
            members = Members.of(learned.present_moment(), self.trees, self.seed, None)
            together = np.concatenate([values[~rest], sample[k::FOLDS]])
            predicted = members.mean_opinions(together, weights, 1.0, parts=1)[:, 0]
            theta[~rest], margin[k::FOLDS] = predicted[: (~rest).sum()], margins(predicted[(~rest).sum() :])
        return ScoredRows(theta, contours, evidence.origin[self.labelled] == ASKED, margin, len(others))
