"""The queries of the forest: rows whose mean estimate has little margin, and rows that cover many (theory §10.5)."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.trees.ask.strategies import covering
from quercus.trees.ask.strategies.row_sample import row_hashes, sample_rows, sample_size
from quercus.trees.ask.strategies.taken import take_candidate
from quercus.trees.memory_forest import nodes
from quercus.trees.memory_forest.apart import Apart
from quercus.trees.memory_forest.evidence import UNTOLD, ForestEvidence
from quercus.trees.memory_forest.forest import MemoryForest

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

COVER = 0.05  # what covering other rows is worth
EXPLORE = 6  # one query in so many goes by what it covers alone
FIRST = 2  # queries for each class that do so at the start, at most
TIE = 1e-12
KNOWN = 4  # times as many rows that cover are looked at as others
NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class Choice:
    """A row to ask about.

    Parameters
    ----------
    row
        Its number.
    pool
        The candidates that were looked at.
    scores
        Theirs; minus infinity of those that were chosen before.
    stands_for
        Untold rows that are nearer to it than to any that was told or asked about before, in a large log estimated.
    """

    row: int
    pool: Ints
    scores: Floats
    stands_for: int


def choose_rows(
    forest: MemoryForest, candidates: Ints, limit: int, refused: Ints = NO_ROWS
) -> Iterator[Choice]:
    """Yield at most `limit` of the `candidates`, numbers of rows, in the order to ask about them.

    A row's worth is 1 less the margin of the mean estimate, ``1 - (θ_(1) - θ_(2))``; nothing before the first row is
    told. Its score adds what it covers: by how much it brings other rows nearer to one that was told or asked about,
    as a share of the most that a candidate brings, times .05. The share alone counts at first, until every class has a
    told row, for 2·l queries at most; and in one query of six. Of equal rows a lot decides. Rows that were `refused`
    cover others as told ones do: where nobody can answer is not asked again and again.
    """
    evidence = forest.evidence
    most = sample_size(len(evidence.named))
    pool = sample_rows(np.sort(candidates), most)
    if not pool.size:
        return
    pool = pool[np.argsort(row_hashes(pool))]
    told = len(evidence.told)
    worth = margin_worth(forest, pool) if told else np.zeros(pool.size)
    cover = Coverage(forest, pool, most, refused)
    beginning = not all_classes_told(evidence)
    free = np.ones(pool.size, dtype=bool)
    for asked in range(told, told + min(limit, pool.size)):
        shares = cover.shares(free)
        by_cover = asked % EXPLORE == 0 or (beginning and asked < FIRST * evidence.size)
        score = np.where(free, COVER * shares + (0.0 if by_cover else worth), -np.inf)
        chosen = int((score >= score.max() - TIE).argmax())
        yield Choice(int(pool[chosen]), pool, score, cover.stands_for(chosen))
        free[chosen] = False
        cover.take(chosen)


def margin_worth(forest: MemoryForest, pool: Ints) -> Floats:
    """Return 1 less the margin of the mean estimate of each row, of the classes that its label leaves plausible."""
    evidence = forest.evidence
    theta = forest.theta(evidence.values[pool])
    kinds = evidence.kinds[pool]
    partly = np.flatnonzero(kinds != UNTOLD)
    if partly.size:
        joint = theta[partly] * evidence.contours.values[kinds[partly]]
        total = joint.sum(axis=1, keepdims=True)
        theta[partly] = np.where(total > 0.0, joint / np.where(total > 0.0, total, 1.0), theta[partly])
    falling = np.sort(theta, axis=1)
    worth: Floats = 1.0 - (falling[:, -1] - falling[:, -2])
    return worth


def all_classes_told(evidence: ForestEvidence) -> bool:
    """Tell whether each class has a told row: one whose share of the class, at the root, is at least one half."""
    contours, kinds = evidence.contours, evidence.kinds[evidence.told]
    if not kinds.size:
        return False
    order = np.argsort(contours.rank)
    count = np.bincount(kinds, minlength=len(order))[order]
    kind, count = order[count > 0].astype(np.int32), count[count > 0].astype(np.int64)
    theta, share = np.empty(evidence.size), np.zeros((len(kind), evidence.size))
    if nodes.estimate_node(len(kind), kind, count, contours.values, contours.sole, theta, share):
        return bool((theta > 0.0).all())
    return bool((share >= 0.5).any(axis=0).all())


class Coverage:
    """Distances of rows from those told or asked about, and the gain of each candidate in coverage."""

    def __init__(self, forest: MemoryForest, pool: Ints, most: int, refused: Ints = NO_ROWS) -> None:
        evidence = forest.evidence
        codes = evidence.codes()
        rows = sample_rows(np.arange(len(evidence)), most)
        known = sample_rows(np.sort(np.append(evidence.told, refused)), KNOWN * most)
        if forest.apart is None or not forest.apart.fits(evidence.book, rows):
            forest.apart = Apart(evidence.book, rows, codes)
        self._far = forest.apart.far(pool, codes)
        self._near = forest.apart.near(known, codes)
        self._gains = covering.covering_gains(self._far, self._near)
        self._untold = evidence.kinds[rows] == UNTOLD
        self._each = len(evidence) / max(1, len(rows))  # rows that one of those looked at stands for

    def shares(self, free: NDArray[np.bool_]) -> Floats:
        """Return what each candidate brings, as a share of the most that a `free` one can bring."""
        return np.asarray(self._gains / max(1, int(self._gains[free].max())))

    def stands_for(self, candidate: int) -> int:
        """Return how many untold rows are nearer to a candidate than to what was told or asked about before."""
        nearer = self._untold & (self._far[candidate] < self._near)
        return max(1, round(int(nearer.sum()) * self._each))

    def take(self, candidate: int) -> None:
        """A candidate is asked about; others bring less from now on where it is nearer than what was known."""
        take_candidate(self._far, self._near, self._gains, candidate)
