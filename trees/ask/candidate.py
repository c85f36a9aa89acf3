"""The most valuable label of a child (theory §3.3), by leave-one-out scores over distinct contours.

A score needs the entropy interval of the child without one row. Few of these intervals are solved: points of the cuts
bound every score from above (`quercus.trees.likelihood.solver.leave_one_out_width`), and a row whose bound is below the
best score cannot be chosen. The choice and its score are the same as if all intervals were solved.
"""

from collections import OrderedDict

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.trees.growth.batch import Rows
from quercus.trees.growth.sample import ContourTable, Ids, Sample
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import SETTLED_END, IntervalSolver
from quercus.trees.likelihood.solver.leave_one_out_width import LeaveOneOut
from quercus.trees.rules.ties import TIE

# bits; an interval may be reported narrower by this much than points of its cut prove
SLACK = 2.0 * SETTLED_END + 2e-10
FLAT_CUT = 1e-7  # nats; with a cut less deep than this, scores are solved without bounds
SCORE_ENTRIES = 200_000  # greatest number of entries, about 100 bytes each, in a cache: one per contour,
OVERHEAD = 20  # and this many per child, however few contours it has
FULL = 1e-12  # bits; an interval this close to the whole range counts as the whole range
MISSED = 1e-7  # bits; if a bound exceeds the score by more than this, its points missed a minimum
FEW_CONTOURS = 3  # up to this many are solved directly, since bounds would cost as much
DENSE = 4  # up to this many contours in the table per row, counting in a table is cheaper than sorting
TRIVIAL, BOUNDED, REFINED, SOLVED = 0, 1, 2, 3  # states of a score


class CandidateScores:
    """The scores of a child's contours, computed only as far as needed.

    Parameters
    ----------
    solver
        Entropy intervals.
    table
        The distinct contours.
    ids, counts
        (n,) numbers of the child's contours, ascending, and the number of rows with each.
    """

    def __init__(self, solver: IntervalSolver, table: ContourTable, ids: Ids, counts: Ints) -> None:
        vacuous = table.vacuous[ids]
        self._solver = solver
        self._table = table
        self._ids, self._counts = ids, counts
        self._lower, upper = self._entropy_interval(counts)
        self._width = upper - self._lower
        self._alone = counts.sum() == 1
        self._vacuous = vacuous
        # Leaving out a vacuous label does not change the width, unless it was the only row.
        known = vacuous & (not self._alone)
        self._bounds = np.where(known, 1.0, self._width + vacuous)
        self._stage = np.where(known, SOLVED, TRIVIAL).astype(np.int8)
        self._telling = np.flatnonzero(~vacuous)
        self._points: LeaveOneOut | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def _entropy_interval(self, counts: Ints) -> tuple[float, float]:
        left = counts > 0
        cell = Cells(np.array([0, np.count_nonzero(left)]), self._ids[left], counts[left])
        found = self._solver.solve_cells(cell)
        return float(found.lower[0]), float(found.upper[0])

    def choose_contour(self, available: Bools, totals: Floats, first: Ints) -> tuple[int, float]:
        """Return the selected contour among the `available` ones, by its position in `ids`, and its score.

        Parameters
        ----------
        available
            (n,) which contours have a candidate left; at least one has.
        totals
            (n,) sums of the contours; of tied scores, the one with the largest sum is selected.
        first
            (n,) first row of each contour; of tied sums, the one with the earliest row is selected.
        """
        places = np.flatnonzero(available)
        totals, first = totals[places], first[places]
        while True:
            bounds = self._bounds[places]
            solved = self._stage[places] == SOLVED
            best = bounds[solved].max(initial=-np.inf)
            doubtful = ~solved & (bounds >= best - TIE)
            if solved.any():
                of_best = np.flatnonzero(solved & (bounds == best))
                winner = of_best[np.lexsort((first[of_best], -totals[of_best]))[0]]
                behind = (totals <= totals[winner]) & (first >= first[winner])
                doubtful &= (bounds > best) | ~(behind | (totals < totals[winner] - TIE))
            open_ = np.flatnonzero(doubtful)
            if not open_.size:
                break
            nearest = np.lexsort((first[open_], -totals[open_], -bounds[open_]))[0]
            self._look_closer(places[open_], int(nearest))
        tied = solved & (bounds >= best - TIE)
        tied &= totals >= totals[tied].max() - TIE
        chosen = np.flatnonzero(tied)[first[tied].argmin()]
        return int(places[chosen]), float(bounds[chosen])

    def _look_closer(self, doubtful: Ints, nearest: int) -> None:
        """Refine the score at `doubtful[nearest]` by one stage: bound all scores, bound it better, or solve it."""
        place = int(doubtful[nearest])
        stage = self._stage[place]
        if stage == TRIVIAL and doubtful.size > FEW_CONTOURS and self._is_wide:
            level = float(np.log(self._solver.alpha))
            contours = self._table.contours[self._ids[self._telling]]
            self._points = LeaveOneOut(contours, self._counts[self._telling], level, self._lower)
            self._stage[self._telling[self._stage[self._telling] == TRIVIAL]] = BOUNDED
            self._update_bounds(slice(None))
        elif stage == BOUNDED and self._points is not None:
            while self._stage[place] == BOUNDED:
                self._stage[place] = REFINED
                k = int(np.searchsorted(self._telling, place))
                self._update_bounds(slice(None) if self._points.refine_contour(k) else slice(k, k + 1))
                place = int(doubtful[self._bounds[doubtful].argmax()])
        else:
            self._solve_contour(place)

    @property
    def _is_wide(self) -> bool:
        alpha = self._solver.alpha
        return not self._alone and alpha > 0.0 and -np.log(alpha) > FLAT_CUT

    def _update_bounds(self, which: slice) -> None:
        """Update the bounds of the scores of the informative labels `which` from the widths that are proven."""
        if self._points is None:
            return
        top = np.log2(self._table.contours.shape[1])
        widths = self._points.width_bounds(which)
        full = widths >= top - FULL  # no interval is wider
        bounds = self._width - np.where(full, top, np.maximum(widths - SLACK, 0.0))
        places = self._telling[which]
        open_ = self._stage[places] < SOLVED
        bounded = places[open_]
        self._bounds[bounded] = np.minimum(self._bounds[bounded], bounds[open_])
        self._stage[places[open_ & full]] = SOLVED

    def _solve_contour(self, place: int) -> None:
        bound, stage = self._bounds[place], self._stage[place]
        counts = self._counts.copy()
        counts[place] -= 1
        lower, upper = self._entropy_interval(counts)
        self._bounds[place] = self._width - (upper - lower) + self._vacuous[place]
        self._stage[place] = SOLVED
        if stage == REFINED and bound - self._bounds[place] > MISSED and self._points is not None:
            self._points.learn_from_lower(int(np.searchsorted(self._telling, place)), lower)
            self._stage[self._stage == REFINED] = BOUNDED
            self._update_bounds(slice(None))


class ScoreCache:
    """A cache of the scores of the children that one solver saw last. It saves work, but does not affect the scores."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, CandidateScores] = OrderedDict()
        self._entries = 0

    def scores_of(self, sample: Sample, solver: IntervalSolver, ids: Ids, counts: Ints) -> CandidateScores:
        """Return the scores of a child, given the numbers of its contours (n,), ascending, and their counts (n,)."""
        key = ids.tobytes() + counts.tobytes()
        known = self._known.get(key)
        if known is None:
            known = CandidateScores(solver, sample.table, ids, counts)
            self._known[key] = known
            self._entries += OVERHEAD + len(ids)
            while self._entries > SCORE_ENTRIES and len(self._known) > 1:
                self._entries -= OVERHEAD + len(self._known.popitem(last=False)[1])
        self._known.move_to_end(key)
        return known


class ChildCandidates:
    """A child of an undecided node, with its remaining candidates.

    Parameters
    ----------
    sample
        The rows and their labels.
    solver
        Entropy intervals over the sample's contours.
    rows
        The rows of the child, ascending.
    candidates
        The rows that may be asked about, ascending.
    limit
        Greatest number of queries: of the candidates with equal contours, at most this many are kept.
    """

    def __init__(
        self, sample: Sample, solver: IntervalSolver, rows: Rows, candidates: Rows, limit: int
    ) -> None:
        ids, counts = _occurring_contours(sample.ids[rows], sample.table.size)
        if solver.scores is None:
            solver.scores = ScoreCache()
        self._scores = solver.scores.scores_of(sample, solver, ids, counts)
        place = _places_of(sample.ids[candidates], ids, sample.table.size)
        order = np.argsort(place, kind="stable")
        asked = np.bincount(place, minlength=len(ids))
        end = np.cumsum(asked)
        rank = np.arange(len(order)) - np.repeat(end - asked, asked)
        kept = np.minimum(asked, limit)
        self._end = np.cumsum(kept)
        self._at = self._end - kept
        self._rows = candidates[order[rank < limit]]
        self._totals = sample.table.contours[ids].sum(axis=1)

    def __len__(self) -> int:
        return len(self._totals) + len(self._rows)

    def best_candidate(self, free: Bools) -> tuple[int, float] | None:
        """Return the best candidate among the rows that are still `free` (n,), with its score; None if none is left."""
        if not self._rows.size:
            return None
        while True:
            available = self._at < self._end
            first = np.where(available, self._rows[np.where(available, self._at, 0)], 0)
            taken = available & ~free[first]
            if not taken.any():
                break
            self._at[taken] += 1
        if not available.any():
            return None
        place, score = self._scores.choose_contour(available, self._totals, first)
        return int(first[place]), score


def _occurring_contours(ids: Ids, size: int) -> tuple[Ids, Ints]:
    """Return the numbers of the contours that occur, ascending, and their counts; `size` is that of the table."""
    if size > DENSE * len(ids):
        return np.unique(ids, return_counts=True)
    counts = np.bincount(ids, minlength=size)
    occurring = np.flatnonzero(counts)
    return occurring.astype(np.int32), counts[occurring]


def _places_of(ids: Ids, occurring: Ids, size: int) -> NDArray[np.integer]:
    """Return the position of each of `ids` in `occurring`, in the smallest type: NumPy sorts short integers faster."""
    kind = np.int16 if len(occurring) <= np.iinfo(np.int16).max else np.int32
    if size > DENSE * len(ids):
        places: NDArray[np.integer] = np.searchsorted(occurring, ids).astype(kind)
        return places
    table: NDArray[np.integer] = np.empty(size, kind)
    table[occurring] = np.arange(len(occurring))
    return table[ids]
