"""ABC4.5 and E2M trees of raw values (theory §3; Ma, Destercke, Wang 2016), numbers split at thresholds.

A *test* is a nominal attribute, with a branch a value, or a numeric attribute with a cut ``t``: code 0 is
``value < t``, code 1 ``value >= t``. Missing values are a branch of their own, in both. A node's candidate cuts are the
midpoints between neighbouring distinct values of its rows; when there are more than `max_cuts`, those nearest to the
quantiles (`quercus.trees.tree.splits.thresholds`). Where no cut parts the rows with a value and some have none, one
cut tells the former from the latter.

One cut stands for its attribute: that of largest gain at level 1, ``M(T) - Σ f_h M(T_h)``, of tied cuts the middle one
(`quercus.trees.rules.gain.best_splits`, theory §9). ``M`` is the mid-value of the entropies of the maximum likelihood
estimates: the entropy of the estimate, where there is only one. Gain-ratio intervals, dominance and the choice are
then between attributes, as in the paper: the largest mid-value of those that none dominates, of tied ones the first.

Why so: with silent rows between two groups of told ones, every cut between the groups may tell as much, and the gain
ratio prefers the most lopsided of them. Level 1, whatever α is: below it the widths of the intervals, which follow the
number of labels on either side, would count as well. And two cuts of one attribute are no rivals, because to know which
of them is better is not worth an answer.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.specification.algorithms import Pruning
from quercus.specification.attributes import Nominal
from quercus.specification.parameters import ALPHA, CANDIDATE_CUTS, MAX_DEPTH, MIN_INSTANCES, PREDICTION_LEVEL
from quercus.trees.growth.abc45 import Likeliest, Thresholds
from quercus.trees.growth.batch import BatchGrowth, GrowthRules, OpenNode, SplitChoice
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.learners.pruning import prune_evidential
from quercus.trees.learners.splits import ByCode, first_best, root
from quercus.trees.learners.stopping_rules import Wrap, wrapped
from quercus.trees.learners.table import Floats, Ints, Table
from quercus.trees.learners.weights import counted_or_weighed
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.dominance import TIE
from quercus.trees.rules.gain import best_splits
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node
from quercus.trees.tree.splits import thresholds

Bools = NDArray[np.bool_]
Cuts = Sequence[tuple[float, ...]]  # an attribute; () of a nominal one


def abc45(
    table: Table,
    *,
    alpha: float = ALPHA.default,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int = CANDIDATE_CUTS.default,
    cuts: Cuts | None = None,
    pruning: Pruning | None = None,
    prediction_level: float = PREDICTION_LEVEL.default,
    wrap: Wrap | None = None,
) -> Node:
    """Grow an active belief decision tree that asks nothing.

    Parameters
    ----------
    table
        The rows; labels are used as contours. A row of weight 2 counts as two rows, two of weight .5 as one.
    alpha
        Level of the likelihood cut, in [0, 1].
    min_instances
        A node with fewer rows is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    max_cuts
        Most candidate cuts of a numeric attribute at a node.
    cuts
        Candidate cuts of each attribute, the same at every node and rising; `max_cuts` is not looked at then. Of cuts
        that part the rows of a node alike, the lowest is the candidate. None: each node has its own.
    pruning
        Of the grown tree, see `quercus.trees.rules.significance`; None for no pruning.
    prediction_level
        Level of the likelihood cut that belief and plausibility are bounds over, in [0, 1].
    wrap
        Put around the criterion by a forest, see `quercus.trees.learners.forest`.

    Raises
    ------
    InvalidInput
        When a parameter is out of bounds, or whole weights sum to more than 10,000,000.

    Notes
    -----
    With α = 1 and precise labels this is C4.5's gain-ratio tree without pruning (theory §3.6), but of tied cuts the
    middle one is taken. Below α = 1 cheap outer bounds come first, and what they prove dominated is not solved: the
    reported interval of a dominated attribute encloses the exact one. The tree is that of exact intervals.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> rows = [[1.0], [2.0], [3.0], [4.0]], [Numeric("size")]
    >>> tree = abc45(Table.of_contours(*rows, [[1, 0], [1, 1], [0, 1], [0, 1]]), alpha=1.0)
    >>> tree.attribute, tree.threshold, {code: child.klass for code, child in tree.children.items()}
    (0, 1.5, {0: 0, 1: 1})
    """
    alpha = ALPHA.check(alpha)
    MIN_INSTANCES.check(min_instances)
    MAX_DEPTH.check(max_depth)
    CANDIDATE_CUTS.check(max_cuts)
    rows, weights = counted_or_weighed(table)
    sample = _labels(rows, weights)
    solver = sample.table.solver(alpha)
    method = GrowthRules(
        criterion=wrapped(BestTest(rows, sample, solver, max_cuts, _checked_cuts(cuts, rows)), wrap),
        branching=ByCode(rows),
        stopping=Thresholds(sample, solver, min_instances, max_depth),
        leaf=Likeliest(sample, solver, PREDICTION_LEVEL.check(prediction_level)),
    )
    growth = BatchGrowth(root(rows), method)
    tree = growth.tree()
    if pruning is None:
        return tree
    leaves = [sample.counts(found.place.rows)[np.newaxis] for found, _, _ in growth.preorder() if found.stop]
    return prune_evidential(FlatTree.of(tree), stacked(leaves), sample.table.contours, pruning).tree()


def e2m(
    table: Table,
    *,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int = CANDIDATE_CUTS.default,
    cuts: Cuts | None = None,
    pruning: Pruning | None = None,
    prediction_level: float = PREDICTION_LEVEL.default,
    wrap: Wrap | None = None,
) -> Node:
    """Grow an E2M tree: gain ratios of the maximum likelihood estimates, which is `abc45` at α = 1.

    Parameters, errors and the split of numbers are those of `abc45`.
    """
    return abc45(
        table,
        alpha=1.0,
        min_instances=min_instances,
        max_depth=max_depth,
        max_cuts=max_cuts,
        cuts=cuts,
        pruning=pruning,
        prediction_level=prediction_level,
        wrap=wrap,
    )


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
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

    def gains(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the gain ratio of each test (theory §3.1), given those of the cells' entropy."""
        share = self.size[self.cell] / self.size[0]
        information = self._sums(-share * np.log2(share))
        least = (lower[0] - self._sums(share * upper[self.cell])) / information
        most = (upper[0] - self._sums(share * lower[self.cell])) / information
        return least, most

    @property
    def firsts(self) -> Ints:
        """First test of each attribute."""
        return np.unique(self.attribute, return_index=True)[1]

    def best(self, entropy: Floats) -> "Tests":
        """Return of each attribute the test of largest gain, of tied cuts the middle one, given entropies of cells."""
        left = self._sums(self.size[self.cell] / self.size[0] * entropy[self.cell])
        below = self.size[self.cell[np.unique(self.test, return_index=True)[1]]]
        return self._take(best_splits(-left, self.firsts, below))

    def _take(self, chosen: Ints) -> "Tests":
        """Return some of the tests, ascending, and the cells that they need."""
        here = np.isin(self.test, chosen)
        needed = np.zeros(len(self.cells), dtype=bool)
        needed[0] = needed[self.cell[here]] = True
        return Tests(
            attribute=self.attribute[chosen],
            threshold=self.threshold[chosen],
            test=np.searchsorted(chosen, self.test[here]),
            cell=(np.cumsum(needed) - 1)[self.cell[here]],
            cells=self.cells.of(needed),
            size=self.size[needed],
        )

    def _sums(self, values: Floats) -> Floats:
        return np.bincount(self.test, weights=values, minlength=self.attribute.size).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class BestTest:
    """Criterion: a test an attribute, their gain-ratio intervals, dominance, largest mid-value; see the module.

    Parameters
    ----------
    table, sample
        The rows, and their labels.
    solver
        Entropy intervals over the contours of the sample.
    max_cuts, cuts
        See `abc45`.
    """

    table: Table
    sample: Sample
    solver: IntervalSolver
    max_cuts: int
    cuts: Cuts | None

    def judge(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no test has two populated branches."""
        tests = self.tests(place)
        if tests is None:
            return None
        tests = self._representing(tests)
        least, most = self._gains(tests)
        rivals = undominated(least, most)
        chosen = int(np.flatnonzero(rivals)[first_best((least[rivals] + most[rivals]) / 2)])
        threshold = float(tests.threshold[chosen])
        return SplitChoice(
            attribute=int(tests.attribute[chosen]),
            intervals=dict(
                zip(tests.attribute.tolist(), zip(least.tolist(), most.tolist(), strict=True), strict=True)
            ),
            rivals=tuple(tests.attribute[rivals].tolist()),
            undecided=int(rivals.sum()) > 1 and self.sample.candidates(place.rows).size > 0,
            threshold=None if np.isnan(threshold) else threshold,
        )

    def _representing(self, tests: Tests) -> Tests:
        """Return the one test that stands for each attribute."""
        several = np.bincount(tests.attribute)[tests.attribute] > 1
        if not several.any():
            return tests
        compared = np.zeros(len(tests.cells), dtype=bool)
        compared[tests.cell[several[tests.test]]] = True
        found = self.sample.table.solver(1.0).solve_cells(tests.cells.of(compared))
        entropy = np.zeros(compared.size)
        entropy[compared] = (found.lower + found.upper) / 2
        return tests.best(entropy)

    def _gains(self, tests: Tests) -> tuple[Floats, Floats]:
        """Return the ends of each test's gain ratio: exact ones of those that outer bounds do not prove dominated."""
        solver, wanted = self.solver, np.ones(len(tests.cells), dtype=bool)
        lower, upper = np.zeros(wanted.size), np.zeros(wanted.size)
        if solver.alpha < 1:  # at level 1 the exact interval is as cheap as its bounds
            lower, upper = solver.enclose_cells(tests.cells)
            own = solver.solve_cells(tests.cells.of(np.arange(wanted.size) == 0))
            lower[0], upper[0] = own.lower[0], own.upper[0]
            contested = undominated(*tests.gains(lower, upper))
            wanted[1:] = False
            wanted[tests.cell[contested[tests.test]]] = True
        found = solver.solve_cells(tests.cells.of(wanted))
        lower[wanted], upper[wanted] = found.lower, found.upper
        return tests.gains(lower, upper)

    def tests(self, place: OpenNode) -> Tests | None:
        """Return the tests of a node with their cells; None when there is none."""
        used, ids = np.unique(self.sample.ids[place.rows], return_inverse=True)
        weights = None if self.sample.weights is None else self.sample.weights[place.rows]
        labels = NodeLabels(ids.ravel(), weights, used.size)
        found = [
            (k, *split)
            for k in place.attributes
            if (split := self._split(k, self.table.values[place.rows, k], labels)) is not None
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
        return Tests(
            attribute=np.repeat([k for k, _, _, _ in found], width),
            threshold=np.concatenate([cuts for _, cuts, _, _ in found]),
            test=np.repeat(np.arange(sum(width)), [part.shape[1] for part in branches for _ in part]),
            cell=np.concatenate([part.ravel() for part in cell]),
            cells=stacked(counts, used),
            size=np.concatenate([part.sum(axis=1) for part in counts]),
        )

    def _split(
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
            cuts = thresholds(column, self.max_cuts, labels.weights)
        slots = np.where(missing, len(cuts) + 1, np.searchsorted(cuts, column, side="right"))
        counted = labels.counts(slots, len(cuts) + 2)
        bins, lost = counted[:-1], counted[-1:]
        below = np.cumsum(bins, axis=0)
        known, above = below[-1:], np.cumsum(bins[::-1], axis=0)[-2::-1]
        telling = bins[:-1].any(axis=1) & above.any(axis=1)  # of equal partings the lowest
        if not telling.any():
            lowest = cuts[:1] if self.cuts is not None else column[~missing][:1]
            if not lowest.size or not known.any() or not lost.any():
                return None
            return lowest, np.arange(2)[np.newaxis], np.concatenate([known, lost])
        sides = np.stack([below[:-1][telling], above[telling]], axis=1).reshape(-1, labels.width)
        branches = np.arange(len(sides)).reshape(-1, 2)
        if not lost.any():
            return cuts[telling], branches, sides
        branches = np.column_stack([branches, np.full(len(branches), len(sides))])
        return cuts[telling], branches, np.concatenate([sides, lost])


def undominated(least: Floats, most: Floats) -> Bools:
    """Tell which of many intervals none dominates, ties not counted (theory §3.2)."""
    free: Bools = least.max() <= most + TIE
    return free


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


def stacked(counts: Sequence[NDArray[Any]], used: NDArray[np.int32] | None = None) -> Cells:
    """Return cells from tables of counts; their columns are the contours `used`, all where there is none."""
    parts = [Cells.of_dense(part) for part in counts]
    lengths = np.concatenate([np.diff(part.start) for part in parts])
    start = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=start[1:])
    ids = np.concatenate([part.ids for part in parts])
    return Cells(start, ids if used is None else used[ids], np.concatenate([part.counts for part in parts]))


def _labels(table: Table, weights: Floats | None = None) -> Sample:
    """Return the labels of the rows, as far as the pieces of ABC4.5 look at them; values stay in the table."""
    distinct = ContourTable(table.size)
    return Sample(
        codes=np.empty((len(table), 0), dtype=np.int16),
        arities=(),
        ids=distinct.intern(table.contours),
        askable=np.ones(len(table), dtype=bool),
        table=distinct,
        weights=weights,
    )


def _checked_cuts(cuts: Cuts | None, table: Table) -> Cuts | None:
    if cuts is None:
        return None
    if len(cuts) != len(table.attributes):
        raise InvalidInput("cuts", f"are {len(cuts)}, must be {len(table.attributes)}, one per attribute")
    for k, some in enumerate(cuts):
        rising = np.array(some)
        if not np.isfinite(rising).all() or (np.diff(rising) < 0).any():
            raise InvalidInput(f"cuts[{k}]", f"are {some}, must be finite and not fall")
    return cuts
