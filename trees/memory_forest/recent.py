"""How memories did lately: their members predict each block of told rows as they were before it (theory §10.3)."""

from collections import deque

import numpy as np
from numpy.typing import NDArray

from quercus.trees.memory_forest.evidence import ForestEvidence
from quercus.trees.memory_forest.members import Members, memory_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 50  # told rows
BLOCKS = 20  # that count
LEAST = 2  # blocks, before which all weights are equal
SHARPNESS = 20.0  # of the weights


class RecentScores:
    """The Brier scores of the last blocks, and the members that will predict the next one.

    Parameters
    ----------
    members
        Before the first row is told.
    """

    def __init__(self, members: Members) -> None:
        self._scores: deque[Floats] = deque(maxlen=BLOCKS)
        self._judged: Members | None = members
        self._begun = 0

    def boundaries(self, told: int, more: int) -> Ints:
        """Return the counts of told rows at which blocks begin, once `more` rows are told beside the `told` ones.

        Of a long batch only those that matter at its end: before the first of them no score is wanted.
        """
        every = np.arange(self._begun + BLOCK, told + more + 1, BLOCK)
        return every[-(BLOCKS + 1) :]

    def ended(self, told: int) -> bool:
        """Tell whether a block is complete with `told` rows."""
        return told == self._begun + BLOCK

    def score(self, evidence: ForestEvidence, members: Members) -> None:
        """Score the block that ends with the last told row, if its members are known; the next one begins."""
        told = len(evidence.told)
        if self._judged is not None and told == self._begun + BLOCK:
            rows = evidence.told[self._begun :]
            theta = self._judged.estimates(evidence.values[rows])
            likely = evidence.contours.pignistic[evidence.kinds[rows]]
            score = 1.0 + (theta**2).sum(axis=2) - 2.0 * (theta * likely).sum(axis=2)
            self._scores.append(score.mean(axis=1))
        self._judged, self._begun = members, told

    def skip(self, told: int) -> None:
        """Let a block begin that will not be scored."""
        self._judged, self._begun = None, told

    def withdraw(self, place: int) -> None:
        """The told row at this place is told no more."""
        if place < self._begun:
            self._begun -= 1

    @property
    def scores(self) -> Floats:
        """(blocks, memories) mean Brier score of each memory in the last blocks, the oldest first."""
        return np.array(self._scores)

    def weights(self, trees: int) -> Floats:
        """Return the weights (members,) with sum 1: of `trees` trees, then of the naive-Bayes members.

        Members with the same memory share its weight.
        """
        memory = memory_of(trees)
        if len(self._scores) < LEAST:
            return np.full(len(memory), 1.0 / len(memory))
        mean = self.scores.mean(axis=0)
        members = np.bincount(memory, minlength=len(mean))
        weights = np.exp(-SHARPNESS * (mean - mean.min()))[memory] / members[memory]
        return np.asarray(weights / weights.sum())
