"""How memories did lately: their members predict each block of told rows as they were before it (theory §10.3)."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.memory_forest.evidence import Moment
from quercus.trees.memory_forest.members import Members, memory_of

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

BLOCK = 50  # told rows
BLOCKS = 20  # that count
LEAST = 2  # blocks, before which all weights are equal
SHARPNESS = 20.0  # of the weights


@dataclass(frozen=True, eq=False)
class EndedBlock:
    """A block of told rows.

    Parameters
    ----------
    begun
        Number of rows that were told before it.
    end
        The moment when it was complete.
    """

    begun: int
    end: Moment

    @property
    def is_whole(self) -> bool:
        """Whether all its rows are here: blocks that count for nothing are passed over."""
        return len(self.end.told) == self.begun + BLOCK


class RecentScores:
    """The Brier scores of the last blocks, and the members that will predict the next one.

    A block that ends is only noted. Members are grown, and blocks scored, when somebody looks: of a long log only at
    the moments that still matter, which are at most 21.

    Parameters
    ----------
    judges
        The members before the first row is told.
    """

    def __init__(self, judges: Members) -> None:
        self._scores: deque[Floats] = deque(maxlen=BLOCKS)
        self._ended: deque[EndedBlock] = deque(maxlen=BLOCKS + 1)
        self._judges: Members | None = judges  # before the oldest ended block; None where nobody knows
        self._begun = 0

    def boundaries(self, told: int, more: int) -> Ints:
        """Return the counts of told rows at which blocks end, once `more` rows are told beside the `told` ones.

        Of a long batch only those that matter at its end.
        """
        every = np.arange(self._begun + BLOCK, told + more + 1, BLOCK)
        return every[-(BLOCKS + 1) :]

    def ended(self, told: int) -> bool:
        """Tell whether a block is complete with `told` rows."""
        return told == self._begun + BLOCK

    def end_block(self, end: Moment) -> None:
        """A block is complete; the next one begins."""
        if len(self._ended) == BLOCKS + 1:
            self._judges = None
        self._ended.append(EndedBlock(self._begun, end))
        self._begun = len(end.told)

    def catch_up(self, grow: Callable[[Moment], Members]) -> None:
        """Score the blocks that ended, the oldest first; `grow` returns the members of a moment."""
        for block in self._ended:
            if block.is_whole and self._judges is not None:
                self._scores.append(_scores_of(block, self._judges))
            self._judges = grow(block.end)
        self._ended.clear()

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


def _scores_of(block: EndedBlock, judges: Members) -> Floats:
    """Return the mean Brier score of each memory in a block: (memories,)."""
    rows, evidence = block.end.told[block.begun :], block.end.evidence
    theta = judges.estimates(evidence.values[rows])
    likely = evidence.contours.pignistic[block.end.contours_told[block.begun :]]
    score = 1.0 + (theta**2).sum(axis=2) - 2.0 * (theta * likely).sum(axis=2)
    return np.asarray(score.mean(axis=1))
