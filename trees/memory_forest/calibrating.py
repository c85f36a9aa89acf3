"""The scores for prediction sets of stated coverage: the forest's predictions without the label (theory §10.8).

The scores are a function of the log. While few rows are labelled, each fifth of them is predicted by a forest of the
others; later, the rows of the last blocks are predicted by the members from before each block.
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
"""Greatest number of labelled rows that are predicted in folds, and of the last rows that count if most are queried."""
FOLDS = 5
ENOUGH = BLOCK
"""If at least this many of the last `FEW` rows were labelled without a query, only such rows count."""


def suffice_unasked(asked: Bools) -> bool:
    """Return whether of scored rows (n,) those that no strategy chose suffice, so that no others count."""
    return bool((~asked[-FEW:]).sum() >= ENOUGH or not asked.any())


@dataclass(frozen=True, eq=False)
class ScoredRows:
    """Rows that were predicted without their labels.

    Parameters
    ----------
    theta, contours
        (n, l) estimates and contours of the rows.
    asked
        (n,) whether a strategy chose each row.
    other_margins
        (m,) margins of a sample of the rows without a score; not needed where `suffice_unasked`.
    others
        Number of rows that the sample represents.
    in_order
        Whether the scored rows are the last ones, in the order in which they were labelled.
    """

    theta: Floats
    contours: Floats
    asked: Bools
    other_margins: Floats
    others: int
    in_order: bool = False

    def calibration(self) -> Calibration:
        """Return the calibration: by rows that no strategy chose if they are enough, else by the last, weighted."""
        if suffice_unasked(self.asked):
            mine = ~self.asked
            if self.in_order:
                return Calibration.of_recent(self.theta[mine], self.contours[mine])
            return Calibration.of(self.theta[mine], self.contours[mine], Basis.LABELLED)
        theta, contours = self.theta[-FEW:], self.contours[-FEW:]
        weights = like_all_rows(margins(theta), self.other_margins, self.others)
        return Calibration.of(theta, contours, Basis.WEIGHTED, weights)


def folded_count(labelled: int) -> int:
    """Return the number of labelled rows that are predicted in folds; it grows in steps, so that fewer forests grow.

    Examples
    --------
    >>> [folded_count(labelled) for labelled in (9, 10, 37, 50, 99, 100, 200, 201)]
    [0, 10, 30, 50, 90, 100, 200, 0]
    """
    return 0 if labelled > FEW else labelled - labelled % PIECE


@dataclass(frozen=True, eq=False)
class FoldedRows:
    """The first labelled rows, each fifth of them predicted by members that learned the others.

    Parameters
    ----------
    evidence
        Evidence of the log.
    labelled, kinds
        (n,) labelled rows, in the order in which they were first labelled, and the numbers of their contours.
    rows
        Number of rows, from the start of the log, that represent all rows.
    trees, seed
        Number of trees of the forest, and its seed.
    """

    evidence: ForestEvidence
    labelled: Rows
    kinds: Rows
    rows: int
    trees: int
    seed: int

    @classmethod
    def of(cls, evidence: ForestEvidence, trees: int, seed: int) -> "FoldedRows | None":
        """Return the folded rows of the present evidence; None if there are none."""
        count = folded_count(len(evidence.labelled))
        if not count:
            return None
        labelled = evidence.labelled[:count].copy()
        rows = 1 << (len(evidence).bit_length() - 1)  # a power of two, so that it rarely changes
        return cls(evidence, labelled, evidence.kinds[labelled].copy(), rows, trees, seed)

    def is_same(self, other: "FoldedRows") -> bool:
        """Return whether other folded rows have the same rows and labels."""
        return (
            self.evidence is other.evidence
            and self.rows == other.rows
            and np.array_equal(self.labelled, other.labelled)
            and np.array_equal(self.kinds, other.kinds)
        )

    @cached_property
    def scored(self) -> ScoredRows:
        """The rows with their predictions."""
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
