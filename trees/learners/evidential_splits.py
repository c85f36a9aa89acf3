"""The split of a node by raw values and evidential labels: its tests, and the choice among them.

A *test* is a nominal attribute, with a branch a value, or a numeric attribute with a cut ``t``: code 0 is
``value < t``, code 1 ``value >= t``. Missing values are a branch of their own, in both. A node's candidate cuts are the
midpoints between neighbouring distinct values of its rows; when there are more than `max_cuts`, those nearest to the
quantiles (`quercus.trees.tree.splits.midpoints`). Where no cut parts the rows with a value and some have none, one
cut tells the former from the latter.

One cut stands for its attribute: that of largest gain at level 1, ``M(T) - Σ f_h M(T_h)``, of tied cuts the middle one
(`quercus.trees.rules.gain.best_splits`, theory §9). ``M`` is the mid-value of the entropies of the maximum likelihood
estimates: the entropy of the estimate, where there is only one. Gain-ratio intervals, dominance and the choice are
then between attributes, as in the paper: the largest mid-value of those that none dominates, of tied ones the first.

Why so: with unlabelled rows between two labelled groups, every cut between the groups may gain as much, and the gain
ratio prefers the most lopsided of them. Level 1, whatever α is: below it the widths of the intervals, which follow the
number of labels on either side, would count as well. And two cuts of one attribute are no rivals, because to know which
of them is better is not worth an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.specification.attributes import Nominal
from quercus.trees.growth.batch import OpenNode, SplitChoice
from quercus.trees.growth.sample import Sample
from quercus.trees.learners.table import Table
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.likelihood.maxima import LikelihoodMaxima
from quercus.trees.rules.choice import SplitCells, choose_splits
from quercus.trees.rules.earned import level_at
from quercus.trees.tree.splits import midpoints

Cuts = Sequence[tuple[float, ...]]  # an attribute; () of a nominal one


@dataclass(frozen=True, slots=True, eq=False)
class NodeTests:
    """The tests of a node, of ``t`` tests ``c`` cells in all; in order of attribute, then of cut.

    Parameters
    ----------
    attribute
        (t,) of each test.
    threshold
        (t,) its cut, NaN for a nominal attribute.
    test, cell
        (b,) the populated branches: test, and the cell that its rows are counted in.
    cells
        (1 + c) cells: the node's own, and those of the branches; a cell may serve many tests.
    size
        (1 + c,) rows of each, or what these weigh.
    """

    attribute: Ints
    threshold: Floats
    test: Ints
    cell: Ints
    cells: Cells
    size: NDArray[Any]

    @property
    def split_cells(self) -> SplitCells:
        """The cells of the tests: the node's own, then one for every branch, in order (1 + b)."""
        first = 1 + np.searchsorted(self.test, np.arange(self.attribute.size))
        bounds = np.append(np.unique(self.attribute, return_index=True)[1], self.attribute.size)
        return SplitCells(first, bounds, 1 + self.cell.size)

    @property
    def cell_contents(self) -> Ints:
        """The cell of `cells` that each cell of `split_cells` has the rows of, (1 + b,)."""
        return np.concatenate([np.zeros(1, dtype=np.int64), self.cell])


class NodeEntropies:
    """Entropies of the cells of one node, see `quercus.trees.rules.choice.Entropies`; a cell may serve many tests.

    Parameters
    ----------
    solver, estimator
        Solve them, the latter at level 1.
    cells
        The cells, all different.
    contents
        (C,) which of `cells` each cell of the node has the rows of.
    """

    def __init__(
        self, solver: IntervalSolver, estimator: IntervalSolver, cells: Cells, contents: Ints
    ) -> None:
        self._solver = solver
        self._estimator = estimator
        self._cells, self._contents = cells, contents
        self._outer = np.zeros((2, len(cells)))
        self._exact = np.zeros((2, len(cells)))
        self._solved = np.zeros(len(cells), bool)

    def enclose(self, wanted: Bools) -> None:
        """See `Entropies`."""
        chosen = self._chosen_cells(wanted)
        self._outer[:, chosen] = self._solver.enclose_cells(self._cells.chosen_cells(chosen))

    def solve(self, wanted: Bools) -> None:
        """See `Entropies`."""
        chosen = self._chosen_cells(wanted) & ~self._solved
        found = self._solver.solve_cells(self._cells.chosen_cells(chosen))
        self._exact[:, chosen] = found.lower, found.upper
        self._solved |= chosen

    def estimate(self, wanted: Bools) -> Floats:
        """See `Entropies`."""
        if self._estimator is self._solver:
            self.solve(wanted)
            return self._spread_over_tests((self._exact[0] + self._exact[1]) / 2)
        chosen = self._chosen_cells(wanted)
        found = self._estimator.solve_cells(self._cells.chosen_cells(chosen))
        entropy = np.zeros(chosen.size)
        entropy[chosen] = (found.lower + found.upper) / 2
        return self._spread_over_tests(entropy)

    def maximise(self, wanted: Bools) -> LikelihoodMaxima:
        """See `Entropies`."""
        chosen = self._chosen_cells(wanted)
        found = self._solver.maximise_cells(self._cells.chosen_cells(chosen)).spread_over(
            chosen.shape, (chosen,)
        )
        return LikelihoodMaxima(
            *map(self._spread_over_tests, (found.reached, found.bound, found.classes, found.weight))
        )

    def read_ends(self, solved: Bools) -> tuple[Floats, Floats]:
        """See `Entropies`."""
        lower, upper = np.where(self._chosen_cells(solved), self._exact, self._outer)
        return self._spread_over_tests(lower), self._spread_over_tests(upper)

    def _chosen_cells(self, wanted: Bools) -> Bools:
        chosen = np.zeros(len(self._cells), bool)
        chosen[self._contents[wanted[0]]] = True
        return chosen

    def _spread_over_tests(self, values: NDArray[Any]) -> NDArray[Any]:
        return values[self._contents][np.newaxis]


@dataclass(frozen=True, slots=True, eq=False)
class BestTest:
    """Criterion: a test an attribute, their gain-ratio intervals, dominance, largest mid-value; see the module.

    Parameters
    ----------
    table, sample
        The rows, and their labels.
    solver
        Entropy intervals over the contours of the sample.
    max_cuts, cuts, significance
        See `abc45`; the last is its `split_significance`.
    """

    table: Table
    sample: Sample
    solver: IntervalSolver
    max_cuts: int
    cuts: Cuts | None
    significance: float = 0.0

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no test has two populated branches."""
        tests = self.node_tests(place)
        if tests is None:
            return None
        cells, contents = tests.split_cells, tests.cell_contents
        estimator = self.sample.table.solver(1.0) if cells.has_cuts else self.solver
        entropies = NodeEntropies(self.solver, estimator, tests.cells, contents)
        frugal = self.solver.alpha < 1  # at level 1 the exact interval is as cheap as its bounds
        sizes = tests.size[contents][np.newaxis]
        level = level_at(self.significance, np.array([place.depth])) if self.significance > 0 else None
        found = choose_splits(cells, sizes, entropies, frugal=frugal, level=level)
        chosen, rivals = int(found.split[0]), tests.attribute[found.rivals[0]]
        compared = np.flatnonzero(~np.isnan(found.lower[0]))
        least, most = found.lower[0, compared].tolist(), found.upper[0, compared].tolist()
        threshold = float(tests.threshold[chosen])
        return SplitChoice(
            attribute=int(tests.attribute[chosen]),
            intervals=dict(
                zip(tests.attribute[compared].tolist(), zip(least, most, strict=True), strict=True)
            ),
            rivals=tuple(rivals.tolist()),
            undecided=(rivals.size > 1 or not found.justified[0])
            and self.sample.candidates(place.rows).size > 0,
            threshold=None if np.isnan(threshold) else threshold,
            justified=bool(found.justified[0]),
        )

    def node_tests(self, place: OpenNode) -> NodeTests | None:
        """Return the tests of a node with their cells; None when there is none."""
        used, ids = np.unique(self.sample.ids[place.rows], return_inverse=True)
        weights = None if self.sample.weights is None else self.sample.weights[place.rows]
        labels = NodeLabels(ids.ravel(), weights, used.size)
        found = [
            (k, *split)
            for k in place.attributes
            if (split := self._attribute_tests(k, self.table.values[place.rows, k], labels)) is not None
        ]
        if not found:
            return None
        counts = [
            labels.counts(np.zeros(len(place.rows), np.int64), 1),
            *(cells for _, _, _, cells in found),
        ]
        first = np.cumsum([len(part) for part in counts])
        branches = [branch for _, _, branch, _ in found]
        cell = [part + start for part, start in zip(branches, first, strict=False)]
        width = [len(branch) for branch in branches]
        return NodeTests(
            attribute=np.repeat([k for k, _, _, _ in found], width),
            threshold=np.concatenate([cuts for _, cuts, _, _ in found]),
            test=np.repeat(np.arange(sum(width)), [part.shape[1] for part in branches for _ in part]),
            cell=np.concatenate([part.ravel() for part in cell]),
            cells=stacked_cells(counts, used),
            size=np.concatenate([part.sum(axis=1) for part in counts]),
        )

    def _attribute_tests(
        self, k: int, column: Floats, labels: "NodeLabels"
    ) -> tuple[Floats, Ints, NDArray[Any]] | None:
        """Return the tests of one attribute: cuts (t,), cell of each populated branch (t, b), counts of cells."""
        declared, missing = self.table.attributes[k], np.isnan(column)
        if isinstance(declared, Nominal):
            codes = np.where(missing, len(declared.values), column).astype(np.int64)
            cells = labels.counts(codes, len(declared.values) + 1)
            cells = cells[cells.any(axis=1)]
            return (np.array([np.nan]), np.arange(len(cells))[np.newaxis], cells) if len(cells) > 1 else None
        cuts = np.array(self.cuts[k]) if self.cuts is not None else None
        if cuts is None:
            cuts = midpoints(column, self.max_cuts, labels.weights)
        slots = np.where(missing, len(cuts) + 1, np.searchsorted(cuts, column, side="right"))
        counted = labels.counts(slots, len(cuts) + 2)
        bins, lost = counted[:-1], counted[-1:]
        below = np.cumsum(bins, axis=0)
        known, above = below[-1:], np.cumsum(bins[::-1], axis=0)[-2::-1]
        informative = bins[:-1].any(axis=1) & above.any(axis=1)  # of equal partings the lowest
        if not informative.any():
            lowest = cuts[:1] if self.cuts is not None else column[~missing][:1]
            if not lowest.size or not known.any() or not lost.any():
                return None
            return lowest, np.arange(2)[np.newaxis], np.concatenate([known, lost])
        sides = np.stack([below[:-1][informative], above[informative]], axis=1).reshape(-1, labels.width)
        branches = np.arange(len(sides)).reshape(-1, 2)
        if not lost.any():
            return cuts[informative], branches, sides
        branches = np.column_stack([branches, np.full(len(branches), len(sides))])
        return cuts[informative], branches, np.concatenate([sides, lost])


@dataclass(frozen=True, slots=True, eq=False)
class NodeLabels:
    """Labels of the rows of a node.

    Parameters
    ----------
    ids
        (n,) number of each row's contour, in [0, `width`).
    weights
        (n,) how much each row counts; None: 1 each.
    width
        Number of contours.
    """

    ids: Ints
    weights: Floats | None
    width: int

    def counts(self, codes: Ints, codes_count: int) -> NDArray[Any]:
        """Return how often each contour occurs with each code, or what these rows weigh: (codes, contours)."""
        pairs = np.bincount(codes * self.width + self.ids, self.weights, minlength=codes_count * self.width)
        number = np.int64 if self.weights is None else np.float64
        return pairs.reshape(codes_count, self.width).astype(number)


def stacked_cells(counts: Sequence[NDArray[Any]], used: NDArray[np.int32] | None = None) -> Cells:
    """Return cells from tables of counts; their columns are the contours `used`, all where there is none."""
    parts = [Cells.of_dense(part) for part in counts]
    lengths = np.concatenate([np.diff(part.start) for part in parts])
    start = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=start[1:])
    ids = np.concatenate([part.ids for part in parts])
    return Cells(start, ids if used is None else used[ids], np.concatenate([part.counts for part in parts]))
