"""Recent scores of the memories: each block of labelled rows is judged by the members from before it (theory §10.3)."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.contour import consonant_pignistic
from quercus.trees.learners.predictions import first_most_likely
from quercus.trees.learners.recent_accuracy import BLOCK, BLOCKS, AccuracyBlock, in_all
from quercus.trees.memory_forest.evidence import ASKED, EvidenceMoment
from quercus.trees.memory_forest.members import Members
from quercus.trees.memory_forest.memories import MEMORIES, memory_of

PIECE = 10  # labelled rows that are judged together in the first block
MOST_WAITING = 1_000  # greatest number of unlabelled rows whose predictions are kept for one block
JUDGED_BLOCKS = 2  # with fewer judged blocks, all weights are equal
SHARPNESS = 20.0  # a memory's weight is proportional to exp(-SHARPNESS * its Brier score)


@dataclass(frozen=True, eq=False)
class EndedBlock:
    """A block of labelled rows.

    Parameters
    ----------
    begun
        Number of rows that were labelled before the block.
    end
        The moment when the block was complete.
    """

    begun: int
    end: EvidenceMoment

    @property
    def is_whole(self) -> bool:
        """True if the block has exactly `BLOCK` rows: in a long batch, blocks that do not count are skipped."""
        return len(self.end.labelled) == self.begun + BLOCK

    @property
    def values(self) -> Floats:
        """(rows, K) values of its rows."""
        return self.end.evidence.values[self.end.labelled[self.begun :]]

    @property
    def contours(self) -> Floats:
        """(rows, l) contours of its rows at its end."""
        return self.end.evidence.contours.values[self.end.labelled_kinds[self.begun :]]

    @property
    def rows(self) -> Ints:
        """(rows,) numbers of its rows in the log."""
        return self.end.labelled[self.begun :].astype(np.int64)

    @property
    def asked(self) -> Bools:
        """(rows,) whether a strategy chose each row."""
        return np.asarray(self.end.evidence.origin[self.rows] == ASKED)


@dataclass(frozen=True, eq=False)
class WaitingRows:
    """Rows that came during a block and had no label at its end, as predicted by the members from before the block.

    Parameters
    ----------
    rows
        (p,) numbers of the rows, ascending.
    theta
        (memories, p, l) estimates.
    """

    rows: Ints
    theta: Floats

    @classmethod
    def none(cls, size: int) -> "WaitingRows":
        """Return no rows, as at the start of a log."""
        return cls(np.empty(0, np.int64), np.empty((MEMORIES, 0, size)))

    @classmethod
    def of(cls, judges: Members, since: int, end: EvidenceMoment) -> "WaitingRows":
        """Return the newest rows, from `since` on, without a label at the moment `end`, as the judges predict them."""
        if not judges.tree_count:
            return cls.none(judges.size)
        waits = np.ones(end.count - since, np.bool_)
        waits[end.labelled[end.labelled >= since] - since] = False
        rows = since + np.flatnonzero(waits)[-MOST_WAITING:]
        if not rows.size:
            return cls.none(judges.size)
        return cls(rows, judges.memory_estimates(end.evidence.values[rows]))


@dataclass(frozen=True, eq=False)
class JudgedBlock:
    """A block, and its predictions by the members from before it.

    Parameters
    ----------
    trees
        Number of trees that had been grown before the block; 0 for the first block.
    theta
        (memories, rows, l) estimates by the members from before the block.
    contours
        (rows, l) contours of the rows at the end of the block.
    asked
        (rows,) whether a strategy chose each row.
    at_arrival
        (memories, rows, l) estimates by the members from before the row came. They differ from `theta` for rows that
        came during the previous block and waited for their label.
    """

    trees: int
    theta: Floats
    contours: Floats
    asked: Bools
    at_arrival: Floats

    @classmethod
    def of(cls, judges: Members, block: EndedBlock, waiting: WaitingRows | None = None) -> "JudgedBlock":
        """Return a block with its judges' predictions; `waiting` affects `at_arrival` only."""
        theta = judges.memory_estimates(block.values)
        at_arrival, rows, asked = theta, block.rows, block.asked
        if waiting is not None and (known := np.flatnonzero(np.isin(rows, waiting.rows) & ~asked)).size:
            at_arrival = theta.copy()
            at_arrival[:, known] = waiting.theta[:, np.searchsorted(waiting.rows, rows[known])]
        return cls(judges.tree_count, theta, block.contours, asked, at_arrival)


class RecentScores:
    """The Brier scores of the last blocks, and the members that will judge the next one.

    The end of a block is only recorded. Members are grown, and blocks scored, when scores are read: in a long log only
    at the moments that still count, of which there are at most 21.

    Parameters
    ----------
    judges
        The members before the first row is labelled.
    """

    def __init__(self, judges: Members) -> None:
        self._scores: deque[Floats] = deque(maxlen=BLOCKS)
        self._ended: deque[EndedBlock] = deque(maxlen=BLOCKS + 1)
        self._judges: Members | None = judges  # members from before the oldest ended block; None if unknown
        self._judged: deque[JudgedBlock] = deque(maxlen=BLOCKS)  # the blocks of the scores
        self._accuracy: list[AccuracyBlock] = []  # accuracy in these blocks; empty until it is read
        self._begun = 0
        self.since = 0  # rows in the log when the judges were grown
        self.waiting = WaitingRows.none(judges.size)
        self.early = EarlyPieces(judges)

    @classmethod
    def of(
        cls,
        judges: Members,
        judged: Sequence[JudgedBlock],
        begun: int,
        early: "EarlyPieces",
        since: int,
        waiting: WaitingRows,
    ) -> "RecentScores":
        """Return the scores of judged blocks.

        Parameters
        ----------
        judges
            The members after the first `begun` labelled rows, which will judge the present block.
        judged
            The judged blocks, the oldest first.
        begun
            Number of rows that were labelled before the present block.
        early
            The pieces of the first block.
        since
            Number of rows in the log when the judges were grown.
        waiting
            Rows that came during the previous block.
        """
        made = cls(judges)
        made._judged.extend(judged)
        made._scores.extend(_scores_of(block.theta, block.contours) for block in judged)
        made._begun, made.early, made.since, made.waiting = begun, early, since, waiting
        return made

    @property
    def judging_members(self) -> Members:
        """The members from before the present block; raises `ValueError` unless all ended blocks are scored."""
        if self._judges is None or self._ended:
            raise ValueError("blocks that ended are not scored yet")
        return self._judges

    @property
    def judged_blocks(self) -> Sequence[JudgedBlock]:
        """The blocks of the scores, the oldest first."""
        return tuple(self._judged)

    @property
    def begun(self) -> int:
        """Number of rows that were labelled before the present block."""
        return self._begun

    def block_boundaries(self, labelled: int, more: int) -> Ints:
        """Return the counts of labelled rows at which blocks end while `more` rows follow the `labelled` ones.

        If they are many, only the last ones are returned, which still count at the end of the batch.
        """
        every = np.arange(self._begun + BLOCK, labelled + more + 1, BLOCK)
        if len(every) > BLOCKS:
            return every[-(BLOCKS + 1) :]
        return np.concatenate([self.early.piece_boundaries(labelled + more), every])

    def ends_block(self, labelled: int) -> bool:
        """Return whether a block, or a piece of the first one, is complete with `labelled` rows."""
        return labelled == self._begun + BLOCK or labelled in self.early.piece_boundaries(labelled)

    def end_block(self, end: EvidenceMoment) -> None:
        """Record that a block, or a piece of the first one, is complete, and begin the next."""
        self.early.end_piece(end)
        if len(end.labelled) < self._begun + BLOCK:
            return
        if len(self._ended) == BLOCKS + 1:
            self._judges = None
        self._ended.append(EndedBlock(self._begun, end))
        self._begun = len(end.labelled)

    def catch_up(self, grow: Callable[[EvidenceMoment], Members]) -> None:
        """Score the blocks that have ended, the oldest first; `grow` returns the members of a moment."""
        self.early.catch_up(grow)
        while self._ended:  # a moment refers to data of all rows, so it is released once it is processed
            block = self._ended[0]
            judged = None
            if block.is_whole and self._judges is not None:
                judged = JudgedBlock.of(self._judges, block, self.waiting)
            before = self._judges
            self._judges = grow(block.end)
            self.waiting = (
                WaitingRows.none(self._judges.size)
                if before is None
                else WaitingRows.of(before, self.since, block.end)
            )
            self.since = block.end.count
            self._ended.popleft()
            if judged is not None:
                self._accuracy = []
                self._judged.append(judged)
                self._scores.append(_scores_of(judged.theta, judged.contours))

    def accuracy(self, now: EvidenceMoment) -> tuple[AccuracyBlock, ...]:
        """Return the forest's accuracy in the last blocks, the oldest first, and in the present one up to `now`.

        In each block, members are weighted by their scores in the kept blocks before it, so the result is a function of
        the log, whenever it is read. Rows that were labelled before any member was grown do not count, since they were
        never predicted.
        """
        if len(self._accuracy) < len(self._judged):
            self._accuracy = [self._accuracy_of(judged, before) for before, judged in enumerate(self._judged)]
        blocks = [self.early.accuracy(now), *self._accuracy]
        if self._judges is not None and len(now.labelled) > self._begun:
            begun = JudgedBlock.of(self._judges, EndedBlock(self._begun, now))
            blocks.append(self._accuracy_of(begun, len(self._scores)))
        return tuple(block for block in blocks[-BLOCKS:] if block.rows)

    def _accuracy_of(self, judged: "JudgedBlock", before: int) -> AccuracyBlock:
        """Return the joint accuracy of a block's judges, weighted by the first `before` scores."""
        return _accuracy_of(judged, self.member_weights(judged.trees, before))

    def predictions(self, trees: int) -> tuple[Floats, Floats, Bools]:
        """Return the estimates of the rows of the last blocks by the members from before each row, with their labels.

        The members have their present weights, as they do for the rows that are predicted next. The oldest block is
        left out, because the rows that waited before it are known only if scores were read at the time.

        Parameters
        ----------
        trees
            Number of trees in the forest.

        Returns
        -------
        (n, l) estimates, (n, l) contours, and (n,) whether a strategy chose the row.
        """
        judged = [block for block in list(self._judged)[1 - BLOCKS :] if block.trees]
        if not judged:
            l = self.judging_members.size
            return np.empty((0, l)), np.empty((0, l)), np.empty(0, np.bool_)
        shares = np.bincount(memory_of(trees), self.member_weights(trees), len(judged[0].theta))
        estimates = np.concatenate([block.at_arrival for block in judged], axis=1)
        theta = np.einsum("m,mnc->nc", shares, estimates)
        contours, asked = ([getattr(block, name) for block in judged] for name in ("contours", "asked"))
        return theta, np.concatenate(contours), np.concatenate(asked)

    def withdraw_row(self, place: int) -> None:
        """Record that the labelled row at this place is no longer labelled."""
        self.early.withdraw_row(place)
        if place < self._begun:
            self._begun -= 1

    @property
    def scores(self) -> Floats:
        """(blocks, memories) mean Brier score of each memory in the last blocks, the oldest first."""
        return np.array(self._scores)

    def member_weights(self, trees: int, before: int | None = None) -> Floats:
        """Return the weights (members,), which sum to 1: of `trees` trees, then of the naive-Bayes members.

        Members with the same memory share its weight. `before` is the number of scores that count, from the oldest on;
        None: all.
        """
        memory, scores = memory_of(trees), self.scores[:before]
        if len(scores) < JUDGED_BLOCKS:
            return _equal_weights(trees)
        mean = scores.mean(axis=0)
        members = np.bincount(memory, minlength=len(mean))
        weights = np.exp(-SHARPNESS * (mean - mean.min()))[memory] / members[memory]
        return np.asarray(weights / weights.sum())


class EarlyPieces:
    """The accuracy of the forest in its first block, in pieces of ten rows: each is predicted by the members before it.

    The members have equal weights. The pieces count for the accuracy only, and only until 20 later blocks are judged.

    Parameters
    ----------
    judges
        The members from before the present piece.
    """

    def __init__(self, judges: Members) -> None:
        self.judges = judges
        self.before: EvidenceMoment | None = None  # the moment of the judges; None before the first label
        self.begun = 0
        self.judged: list[AccuracyBlock] = []
        self.is_over = False
        self._ended: list[EndedBlock] = []

    def piece_boundaries(self, labelled: int) -> Ints:
        """Return the counts of labelled rows up to `labelled` at which pieces end; the last one ends with the block."""
        end = 0 if self.is_over else min(labelled + 1, BLOCK)
        return np.arange(self.begun + PIECE, end, PIECE)

    def end_piece(self, end: EvidenceMoment) -> None:
        """Record that a piece, or the block, is complete."""
        if not self.is_over and len(end.labelled) <= BLOCK:
            self._ended.append(EndedBlock(self.begun, end))
        self.begun, self.is_over = len(end.labelled), self.is_over or len(end.labelled) >= BLOCK

    def catch_up(self, grow: Callable[[EvidenceMoment], Members]) -> None:
        """Judge the pieces that have ended; `grow` returns the members of a moment."""
        while self._ended:
            piece = self._ended[0]
            accuracy = _accuracy_of(
                judged := JudgedBlock.of(self.judges, piece), _equal_weights(judged.trees)
            )
            if len(piece.end.labelled) < BLOCK:
                self.judges, self.before = grow(piece.end), piece.end
            self._ended.pop(0)
            self.judged.append(accuracy)

    def accuracy(self, now: EvidenceMoment) -> AccuracyBlock:
        """Return the accuracy of the forest in all pieces, including the present one up to `now`."""
        if self.is_over or len(now.labelled) == self.begun:
            return in_all(self.judged)
        begun = JudgedBlock.of(self.judges, EndedBlock(self.begun, now))
        return in_all([*self.judged, _accuracy_of(begun, _equal_weights(begun.trees))])

    def withdraw_row(self, place: int) -> None:
        """Record that the labelled row at this place is no longer labelled."""
        self.begun -= place < self.begun


def _equal_weights(trees: int) -> Floats:
    count = len(memory_of(trees))
    return np.full(count, 1.0 / count)


def _accuracy_of(judged: JudgedBlock, weights: Floats) -> AccuracyBlock:
    """Return the joint accuracy of a block's judges; an empty one if there were none."""
    if not judged.trees:
        return AccuracyBlock()
    shares = np.bincount(memory_of(judged.trees), weights, len(judged.theta))
    mean = np.einsum("m,mnc->nc", shares, judged.theta)
    return AccuracyBlock.of(first_most_likely(mean), judged.contours, judged.asked)


def _scores_of(theta: Floats, contours: Floats) -> Floats:
    """Return the mean Brier score (memories,) of each memory, given its estimates (memories, n, l)."""
    likely = consonant_pignistic(contours)
    score = 1.0 + (theta**2).sum(axis=2) - 2.0 * (theta * likely).sum(axis=2)
    return np.asarray(score.mean(axis=1))
