"""The queries of the forest: rows whose label is worth much to its strategy, or that cover many (theory §10.5)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.kernels.forest import best_candidate, covering_gains, estimate_node, take_candidate
from quercus.trees.ask.strategies.row_sample import row_hashes, sample_rows, sample_size
from quercus.trees.memory_forest.distance_cache import DistanceCache
from quercus.trees.memory_forest.evidence import UNLABELLED, ForestEvidence
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.memories import BAYES, memories_of
from quercus.trees.memory_forest.worth import margin_worth

Rows = NDArray[np.int32]
Worth = Callable[[MemoryForest, Ints], Floats]
"""Worth of the label of each of some rows (n,), to a forest: (n,) in [0, 2]."""

COVER = 0.05  # weight of the coverage of other rows
EXPLORE = 6  # one query in this many is chosen by coverage alone
FIRST_QUERIES = 2  # at the start, so are all queries, up to this many per class
SCORE_TIE = 1e-12  # scores within this distance of the greatest are tied with it
KNOWN = 4  # how many times as many covering rows are sampled as candidates
NO_ROWS = np.empty(0, np.int64)


@dataclass(frozen=True, eq=False)
class ChosenRow:
    """A row to ask about.

    Parameters
    ----------
    row
        Number of the row in the log.
    pool
        The candidates that were considered.
    scores
        The scores of these candidates; minus infinity for those that were chosen before.
    score
        The score of the row.
    stands_for
        Number of unlabelled rows nearer to it than to any labelled row or earlier query; in a large log, an estimate.
    """

    row: int
    pool: Ints
    scores: Floats
    score: float
    stands_for: int


def choose_rows(
    forest: MemoryForest,
    candidates: Ints,
    limit: int,
    refused: Ints = NO_ROWS,
    *,
    worth: Worth = margin_worth,
) -> Iterator[ChosenRow]:
    """Yield at most `limit` of the `candidates`, numbers of rows, in the order in which to ask about them.

    The score of a row is the `worth` of its label (`quercus.trees.memory_forest.worth`), which is 0 before the first
    label, plus .05 times its coverage: by how much it reduces the distances of other rows from the nearest row that is
    labelled or asked about, as a share of the largest such reduction. Coverage alone counts in one query of six, and at
    first: until every class has a labelled row, but for at most 2 l queries. Ties are broken by hash. Rows that were
    `refused` cover others as labelled ones do, so that regions where nobody can answer are not queried again and again.
    """
    evidence = forest.evidence
    evidence.codes()  # brings the codebook up to date
    most = sample_size(len(evidence.book.varying))
    pool = sample_rows(np.sort(candidates), most)
    if not pool.size:
        return
    pool = pool[np.argsort(row_hashes(pool))]
    labelled = len(evidence.labelled)
    worths = worth(forest, pool)
    cover = Coverage(forest, pool, most, refused)
    beginning = not all_classes_labelled(evidence)
    first = np.zeros(pool.size)  # the worth if coverage alone counts
    for asked in range(labelled, labelled + min(limit, pool.size)):
        by_cover = asked % EXPLORE == 0 or (beginning and asked < FIRST_QUERIES * evidence.size)
        chosen, stands_for, scores = cover.best_candidate(first if by_cover else worths)
        yield ChosenRow(int(pool[chosen]), pool, scores, float(scores[chosen]), stands_for)
        first[chosen] = worths[chosen] = -np.inf
        cover.mark_asked(chosen)


def all_classes_labelled(evidence: ForestEvidence) -> bool:
    """Return whether each class has a labelled row: one whose share of the class is at least ½ at the root."""
    contours, kinds = evidence.contours, evidence.kinds[evidence.labelled]
    if not kinds.size:
        return False
    order = np.argsort(contours.lexicographic_rank)
    count = np.bincount(kinds, minlength=len(order))[order]
    kind, count = order[count > 0].astype(np.int32), count[count > 0].astype(np.int64)
    theta, share = np.empty(evidence.size), np.zeros((len(kind), evidence.size))
    if estimate_node(len(kind), kind, count, contours.values, contours.sole_class, theta, share):
        return bool((theta > 0.0).all())
    return bool((share >= 0.5).any(axis=0).all())


def remembered_rows(forest: MemoryForest) -> list[tuple[Rows, float]]:
    """Return the labelled rows that each memory holds, and the weight of its members, the shortest memory first.

    All memories that reach back to the first labelled row are returned as one. Memories do not move in steps here: a
    long one holds the latest labels too, although its members have not learned them yet.
    """
    labelled = forest.evidence.labelled
    held = np.minimum([*memories_of(forest.trees, forest.evidence.size), *BAYES], len(labelled))
    lengths, which = np.unique(held, return_inverse=True)
    if lengths.size == 1:
        return [(labelled, 1.0)]
    weights = np.bincount(which, forest.weights)
    return [
        (labelled[len(labelled) - n :], w) for n, w in zip(lengths.tolist(), weights.tolist(), strict=True)
    ]


class Coverage:
    """Distances of rows from those labelled or asked about, and the gain of each candidate in coverage.

    Old answers count less: the distance of a row from the labelled rows is the weighted mean, over the members, of its
    distance from the nearest labelled row that the member remembers, rounded. For a member that has forgotten labelled
    rows, rows from before its memory have the distance 0, because it needs no labels there.
    """

    def __init__(self, forest: MemoryForest, pool: Ints, most: int, refused: Ints = NO_ROWS) -> None:
        evidence = forest.evidence
        codes = evidence.codes()
        if len(evidence.book.varying) < len(evidence.named):
            codes = np.ascontiguousarray(codes[:, evidence.book.varying])
        rows = sample_rows(np.arange(len(evidence)), most)
        if forest.distances is None or not forest.distances.book.is_same(evidence.book):
            forest.distances = DistanceCache(evidence.book, rows, codes)
        rows = forest.distances.follow_rows(rows, codes)
        self._far, self._lines = forest.distances.candidate_distances(pool, codes)
        held = remembered_rows(forest)
        known = [sample_rows(np.sort(np.append(labelled, refused)), KNOWN * most) for labelled, _ in held]
        near = np.zeros(len(rows))
        for distance, (labelled, weight) in zip(
            forest.distances.group_distances(known, codes), held, strict=True
        ):
            first = labelled.min() if len(labelled) < len(evidence.labelled) else 0
            near += weight * np.where(rows >= first, distance, 0)
        self._near = np.rint(near).astype(np.int64)
        self._gains = covering_gains(self._far, self._near)
        self._unlabelled = evidence.kinds[rows] == UNLABELLED
        self._each = len(evidence) / max(1, len(rows))  # rows that each sampled row stands for

    def best_candidate(self, worths: Floats) -> tuple[int, int, Floats]:
        """Return the candidate of greatest score, the number of rows that it stands for, and all scores (n,).

        It stands for the unlabelled rows that are nearer to it than to any row labelled or asked about before. `worths`
        (n,) is what the label of each candidate is worth.
        """
        chosen, nearer, scores = best_candidate(
            self._far, self._near, self._gains, self._lines, worths, self._unlabelled, COVER, SCORE_TIE
        )
        return chosen, max(1, round(nearer * self._each)), scores

    def mark_asked(self, candidate: int) -> None:
        """Record that a candidate is asked about: others gain less by the rows that are nearest to it."""
        take_candidate(self._far, self._near, self._gains, int(self._lines[candidate]))
