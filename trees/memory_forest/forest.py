"""The forest of many memories, which follows the log and predicts (theory §10).

The forest is a function of the log: of the rows, of their labels, and of the order in which the labels arrived. It does
not depend on how the log was divided into batches, or on when the forest was read.
"""

from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.trees.learners.average_confidence import spread_rows
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.conformal import UNKNOWN, Calibration, margins
from quercus.trees.learners.doubt import Doubt
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.recent_accuracy import AccuracyBlock
from quercus.trees.memory_forest.calibrating import FEW, FoldedRows, ScoredRows, suffice_unasked
from quercus.trees.memory_forest.codes import Codes
from quercus.trees.memory_forest.completions import Completions
from quercus.trees.memory_forest.distance_cache import DistanceCache
from quercus.trees.memory_forest.evidence import UNLABELLED, EvidenceMoment, ForestEvidence
from quercus.trees.memory_forest.members import Members
from quercus.trees.memory_forest.recent import RecentScores
from quercus.trees.memory_forest.served import opinion_predictions, overlaps_of_possible, predict_possible
from quercus.trees.tree.encoding import Parts


class MemoryForest:
    """The forest of many memories. Its members grow at the next look, not when a row is labelled.

    Parameters
    ----------
    named
        (K,) whether an attribute is nominal: its values are indices of names, of which there may be any number.
    size
        Number of classes, l.
    trees
        Number of trees; three naive-Bayes members come in addition.
    seed
        Seed of the draws.
    level
        Level of the likelihood cut of leaves, in [0, 1]: a lower level gives larger prediction sets.
    attributes
        How many of the attributes, from the first on, rows have initially; None: all. `begin_attributes` adds the
        others.

    Attributes
    ----------
    evidence
        The evidence of the log.
    recent
        Recent scores of the members.
    """

    def __init__(
        self, named: Bools, size: int, *, trees: int, seed: int, level: float, attributes: int | None = None
    ) -> None:
        self.evidence = ForestEvidence(named, size, attributes)
        self.trees = trees
        self.seed = seed
        self.level = level
        self._members: Members | None = None
        self._before: Members | None = None  # the members that were grown last
        self.recent = RecentScores(self._grow_members(self.evidence.present_moment()))
        self.distances: DistanceCache | None = None  # distances that queries share
        self._folded: FoldedRows | None = None

    def observe(
        self,
        values: Floats,
        contours: Floats,
        parts: Parts = MappingProxyType({}),
        *,
        asked: bool = False,
    ) -> None:
        """Add rows.

        Parameters
        ----------
        values
            (n, K) values.
        contours
            (n, l) contours; constant ones are vacuous.
        parts
            Ranges in which uncertain values may lie, by row (from 0 on) and attribute.
        asked
            Whether a strategy chose the labelled ones, which are therefore not a random sample of all rows.
        """
        values = np.asarray(values, dtype=np.float64)
        kinds = (
            self.evidence.contours.contour_numbers(np.asarray(contours, dtype=np.float64))
            if len(values)
            else None
        )
        if kinds is None:
            return
        if parts and self.evidence.completions is None:
            self.evidence.completions = Completions(self.seed, self.trees)
        first = len(self.evidence)
        parts = {(first + row, k): ranges for (row, k), ranges in parts.items()}
        informed = np.flatnonzero(kinds >= 0)
        labelled, taken = len(self.evidence.labelled), 0
        for boundary in self.recent.block_boundaries(labelled, len(informed)):
            end = int(informed[boundary - labelled - 1]) + 1
            self._add_rows(values[taken:end], kinds[taken:end], parts, asked)
            taken = end
            self.recent.end_block(self.evidence.present_moment())
        self._add_rows(values[taken:], kinds[taken:], parts, asked)

    def begin_attributes(self, count: int) -> None:
        """From now on, rows have the first `count` attributes; the new ones are missing in all earlier rows."""
        self.evidence.begin_attributes(count)
        self._members = None

    def with_classes(self, size: int) -> "MemoryForest":
        """Return a forest of `size` classes, more than now, that has observed the same rows with their present labels.

        The labels exclude the new classes; rows without a label may be of any class (theory §18.1).
        """
        evidence = self.evidence
        contours, told = np.ones((len(evidence), size)), evidence.kinds != UNLABELLED
        contours[told] = 0.0
        contours[told, : evidence.size] = evidence.contours.values[evidence.kinds[told]]
        forest = MemoryForest(evidence.named, size, trees=self.trees, seed=self.seed, level=self.level)
        forest.evidence.completions = evidence.completions  # they do not depend on the classes
        forest.observe(evidence.values, contours)
        forest.evidence.restore_origin(evidence.origin)
        return forest

    def replace_contour(self, row: int, contour: Floats, *, asked: bool = False) -> None:
        """Replace the contour (l,) of a row; a constant one withdraws its label. `asked`: a strategy chose the row."""
        (kind,) = self.evidence.contours.contour_numbers(np.asarray(contour, dtype=np.float64)[np.newaxis])
        labelled = len(self.evidence.labelled)
        withdrawn = self.evidence.replace_contour(row, int(kind), asked=asked)
        self._members = None
        if withdrawn is not None:
            self.recent.withdraw_row(withdrawn)
        elif len(self.evidence.labelled) > labelled and self.recent.ends_block(labelled + 1):
            self.recent.end_block(self.evidence.present_moment())

    def members(self) -> Members:
        """Return the present members, which grow first if the evidence has changed."""
        if self._members is None:
            self.recent.catch_up(self._grow_members)
            self._members = self._grow_members(self.evidence.present_moment())
        return self._members

    def bounded_members(self) -> Members:
        """Return the present members with the bounds of their leaves."""
        members = self.members().with_bounds(self.evidence.contours, self.level)
        self._members = self._before = members
        return members

    @property
    def is_grown(self) -> bool:
        """True if the members have been grown from the present evidence."""
        return self._members is not None

    def continue_from(self, evidence: ForestEvidence, recent: RecentScores) -> None:
        """Continue from the state of another forest."""
        self.evidence, self.recent = evidence, recent
        self._members, self._before, self.distances = None, recent.judging_members, None
        self._folded = None

    def _grow_members(self, moment: EvidenceMoment) -> Members:
        self._before = Members.of(moment, self.trees, self.seed, self._before)
        return self._before

    @property
    def weights(self) -> Floats:
        """(members,) the weight of each member; they sum to 1."""
        self.members()
        return self.recent.member_weights(self.trees)

    @property
    def accuracy(self) -> tuple[AccuracyBlock, ...]:
        """Accuracy of the forest on the last labelled rows, in blocks, the oldest first (theory §10.7)."""
        self.members()
        return self.recent.accuracy(self.evidence.present_moment())

    def calibration(self) -> Calibration:
        """Return the scores for prediction sets of stated coverage: a function of the log alone."""
        if len(self.evidence.labelled) <= FEW:
            folded = FoldedRows.of(self.evidence, self.trees, self.seed)
            if folded is None:
                return UNKNOWN
            if self._folded is None or not folded.is_same(self._folded):
                self._folded = folded
            return self._folded.scored.calibration()
        self.members()
        return self._predicted_rows().calibration()

    def _predicted_rows(self) -> ScoredRows:
        """Return the rows of the last blocks, as predicted by the members from before each block."""
        theta, contours, asked = self.recent.predictions(self.trees)
        others, margin = np.empty(0, np.int64), np.empty(0)
        if not suffice_unasked(asked):
            first = int(self.evidence.labelled[-len(theta) :].min())
            others = first + np.flatnonzero(self.evidence.kinds[first:] == UNLABELLED)
            margin = margins(self.theta_of_rows(others[spread_rows(len(others))]))
        return ScoredRows(theta, contours, asked, margin, len(others), in_order=True)

    def theta(self, values: Floats) -> Floats:
        """Return the mean estimate of rows of values (m, K): (m, l)."""
        return self.members().mean_opinions(values, self.weights, self.level, parts=1)[:, 0]

    def theta_of_rows(self, rows: Ints) -> Floats:
        """Return the mean estimate of rows of the log (m,), whose codes are known: (m, l)."""
        members, (values, codes) = self.members(), self._columns_of(rows)
        return members.mean_opinions(values, self.weights, self.level, parts=1, codes=codes)[:, 0]

    def memory_estimates(self, rows: Ints) -> Floats:
        """Return the estimate of each memory for rows of the log (m,): (memories, m, l)."""
        return self.members().memory_estimates(*self._columns_of(rows))

    def disagreement(self, rows: Ints, mean: Floats) -> Floats:
        """Return the mean total variation of the members from the mean estimate of rows of the log: (m,) in [0, 1]."""
        theta = self.members().member_estimates(*self._columns_of(rows))
        apart = 0.5 * np.abs(theta - mean).sum(axis=2)
        return np.asarray((self.weights[: len(apart), np.newaxis] * apart).sum(axis=0))

    def doubt_of_rows(self, rows: Ints, theta: Floats) -> Doubt:
        """Return the doubt about rows of the log (m,), whose mean estimate is `theta` (m, l)."""
        values, codes = self._columns_of(rows)
        return Doubt.of(theta, self.members().overlaps(values, self.weights, codes))

    def overlaps(self, cells: UncertainValues) -> Floats:
        """Return how much of the doubt about rows of cells is overlap, (n,) in bits (theory §10.9)."""
        members = self.members()
        return overlaps_of_possible(
            lambda values: members.overlaps(values, self.weights), cells, members.book.cuts
        )

    def _columns_of(self, rows: Ints) -> tuple[Floats, Codes]:
        """Return values and codes of rows of the log, by the codebook of the present members."""
        return self.evidence.values[rows], self.evidence.codes()[rows]

    def predict(self, values: Floats) -> Predictions:
        """Return the forest's predictions for rows of values (m, K)."""
        members = self.bounded_members()
        predicted = members.mean_opinions(values, self.weights, self.level)
        return opinion_predictions(predicted, len(members.labelled), members.size)

    def predict_cells(self, cells: UncertainValues) -> Predictions:
        """Return the forest's predictions for rows whose values may be sets, ranges or unknown.

        Raises
        ------
        InvalidInput
            If a row has more than 4,096 combinations of values.
        """
        return predict_possible(self.predict, cells, self.members().book.cuts)

    def _add_rows(self, values: Floats, kinds: NDArray[np.int32], parts: Parts, asked: bool) -> None:
        if len(values):
            first = len(self.evidence)
            mine = {cell: each for cell, each in parts.items() if first <= cell[0] < first + len(values)}
            self.evidence.add_rows(values, kinds, mine, asked=asked)
            self._members = None
