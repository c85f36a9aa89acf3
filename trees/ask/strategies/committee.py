"""A committee of evidential trees: asks where the committee is most in doubt, and where no similar row is known yet.

Each member is grown (`kernels/forest/members.hpp`) from a bootstrap sample of the labelled rows, and considers ``⌈√K⌉``
random attributes in a node. A row's doubt is the entropy of the mean of the members' class probabilities, as a share of
``log2 l`` (query by committee; Seung, Opper, Sompolinsky 1992; with probabilities instead of votes, so that members who
all consider two classes equally likely are in doubt rather than in agreement). Probabilities are restricted to the
classes that are still plausible for the row, so a row whose label determines its class is never in doubt.

Doubt is meaningless where nothing is known, and of little use if all members learned from the same few rows. A row is
therefore also valued by its coverage: the sum, over all rows to cover, of how much nearer they are to it than to any
row that is known or asked about, as a share of the largest such sum (greedy k-medoids). A row's score is its doubt, in
[0, 1], plus `cover` times this share; every `explore`-th query, the first included, uses the share alone. Ties are
broken by `row_sample.row_hashes`, since files are often sorted by class. At most 1,000 rows each are considered as
candidates, as labelled rows, and as rows to cover (`row_sample`), and 4,000 as covering rows. The cost of an agenda is
therefore the same for a million rows as for a few thousand.
"""

from collections.abc import Iterator
from math import isqrt
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import largest_one
from quercus.kernels.forest import (
    covering_gains,
    distances,
    mean_probabilities,
    nearest_distances,
    take_candidate,
)
from quercus.specification.parameter import parameter, parametric
from quercus.specification.reasons import Fact, Shares
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import Reason, similar_rows
from quercus.trees.ask.strategies.leaf_queries import LeafRows
from quercus.trees.ask.strategies.row_sample import row_hashes, sample_rows, sample_size
from quercus.trees.ask.strategies.strategy import Strategy
from quercus.trees.growth.sample import Sample
from quercus.trees.rules.ties import TIE

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MEMBERS = 50
COVERING = 4  # how many times as many covering rows are considered as candidates
COVER = "Bonus of the row that covers the most other rows, in addition to its doubt in [0, 1]; 0: only doubt counts"
# Members agree on rows unlike any that they have seen, so only coverage can find a rare class.
EXPLORE = "One in this many queries, the first included, is chosen by coverage alone; 0: none"
SEED = 20_161  # arbitrary; the draws depend on it and on the number of labelled rows


@parametric
class Committee(Strategy):
    """The row whose class is most uncertain to a committee of trees."""

    name: ClassVar[str] = "committee"
    cover: float = parameter(0.0, COVER, 0, 1)
    explore: int = parameter(0, EXPLORE, 0, 1_000_000)

    def queries(self, context: QueryContext, _last: QueryPosition | None, limit: int) -> Iterator[Query]:
        """See `quercus.trees.ask.strategies.strategy.Strategy`."""
        sample = context.sample
        most = sample_size(len(sample.arities))
        pool = sample_rows(sample.candidates(np.arange(len(sample.ids))), most)
        if not pool.size:
            return
        pool = pool[np.argsort(row_hashes(pool))]
        leaves = LeafRows(context)
        theta = mean_estimate(context, pool, most)
        worth = doubt_of(theta) if theta is not None else np.zeros(pool.size)
        covered = _Coverage(context, pool, most) if self.cover > 0 else None
        free = np.ones(pool.size, dtype=bool)
        for _ in range(min(limit, pool.size)):
            score, explores = worth, False
            if covered is not None:
                shares = covered.gain_shares(free)
                due = self.explore > 0 and covered.asked % self.explore == 0
                explores = due and bool(shares[free].any())
                score = self.cover * shares + (0.0 if explores else worth)
            score = np.where(free, score, -np.inf)
            chosen = int((score >= score.max() - TIE).argmax())
            estimate = None if theta is None else (tuple(theta[chosen].tolist()), float(worth[chosen]))
            reason = _reason_of(estimate, 0 if covered is None else covered.stands_for(chosen), explores)
            yield leaves.query_about(int(pool[chosen]), float(score[chosen]), reason)
            free[chosen] = False
            if covered is not None:
                covered.mark_asked(chosen)


@parametric
class CoveringCommittee(Committee):
    """As committee, with a bonus for rows that are far from all known ones (recommended)."""

    name: ClassVar[str] = "covering-committee"
    cover: float = parameter(0.05, COVER, 0, 1)
    explore: int = parameter(6, EXPLORE, 0, 1_000_000)


def _reason_of(estimate: tuple[tuple[float, ...], float] | None, stands_for: int, explores: bool) -> Reason:
    """Return the reason for a row: the members' estimate and their doubt, unless it was chosen by coverage alone."""
    sentence, similar = similar_rows(stands_for)
    if estimate is None:
        return Reason(sentence or "No row is known yet, so the first ones are chosen at random.", similar)
    theta, doubt = estimate
    if explores:
        sentence = f"It is unlike the rows that are known. {sentence}".rstrip()
    shares = Fact("estimate", Shares(theta, "" if explores else "The committee of trees"))
    return Reason(sentence, (shares, Fact("doubt", doubt), *similar))


def doubt_of(theta: Floats) -> Floats:
    """Return the entropy of each row of `theta` (p, l) as a share of the maximum, in [0, 1].

    Examples
    --------
    >>> doubt_of(np.array([[0.5, 0.5], [1.0, 0.0]])).tolist()
    [1.0, 0.0]
    """
    bits = 0.0 - (theta * np.log2(np.where(theta > 0, theta, 1.0))).sum(axis=1)
    return np.asarray(bits / np.log2(theta.shape[1]))


def mean_estimate(context: QueryContext, pool: Ints, most: int) -> Floats | None:
    """Return the members' mean estimate of each row of `pool` (p, l); None if no row is labelled yet.

    Parameters
    ----------
    context
        The evidence.
    pool
        The candidate rows.
    most
        Maximum number of rows that the members learn from.
    """
    sample = context.sample
    contours = largest_one(sample.table.contours)
    labelled = sample_rows(np.flatnonzero(~sample.table.vacuous[sample.ids]), most)
    if not labelled.size:
        return None
    drawn = np.random.default_rng((SEED, labelled.size)).integers(
        labelled.size, size=(MEMBERS, labelled.size)
    )
    weights = np.stack([np.bincount(draw, minlength=labelled.size) for draw in drawn]).astype(float)
    attributes = len(sample.arities)
    return mean_probabilities(
        _codes_of_rows(sample, labelled),
        contours[sample.ids[labelled]],
        weights,
        np.array(context.ordered, np.int64),
        np.array(sample.arities, np.int64),
        isqrt(attributes - 1) + 1,
        _codes_of_rows(sample, pool),
        contours[sample.ids[pool]],
    )


class _Coverage:
    """Distances of rows from those known or asked about, and the gain of each candidate in coverage."""

    def __init__(self, context: QueryContext, pool: Ints, most: int) -> None:
        sample, ordered = context.sample, np.array(context.ordered, np.int64)
        known = np.flatnonzero(~sample.askable | ~sample.table.vacuous[sample.ids])
        settled = ~sample.askable | sample.table.precise[sample.ids]  # or precise
        self.asked = int(np.count_nonzero(settled))
        drawn = sample_rows(np.arange(len(sample.ids)), most)
        rows = _codes_of_rows(sample, drawn)
        self._vacuous = sample.table.vacuous[sample.ids[drawn]]
        self._each = len(sample.ids) / max(1, drawn.size)  # rows that each sampled row stands for
        self._far = distances(_codes_of_rows(sample, pool), rows, ordered)
        self._near = nearest_distances(
            rows, _codes_of_rows(sample, sample_rows(known, COVERING * most)), ordered
        )
        self._gains = covering_gains(self._far, self._near)

    def gain_shares(self, free: NDArray[np.bool_]) -> Floats:
        """Return the gain of each candidate (n,), as a share of the largest gain among `free` ones."""
        return np.asarray(self._gains / max(1, int(self._gains[free].max())))

    def stands_for(self, candidate: int) -> int:
        """Return the number of unlabelled rows that are nearer to a candidate than to any row known or asked about."""
        nearer = self._vacuous & (self._far[candidate] < self._near)
        return max(1, round(int(nearer.sum()) * self._each))

    def mark_asked(self, candidate: int) -> None:
        """Record that a candidate is asked about, which lowers the gains of others."""
        self.asked += 1
        take_candidate(self._far, self._near, self._gains, candidate)


def _codes_of_rows(sample: Sample, at: Ints) -> NDArray[np.int16]:
    """Return the codes of the rows `at` in the type and memory order that the kernels need."""
    return np.ascontiguousarray(sample.codes[at], np.int16)
