"""ABC4.5 and E2M trees of raw values (theory §3; Ma, Destercke, Wang 2016), numbers split at thresholds.

They grow in batch, node by node, with the same rules (`quercus.trees.rules`) as the tree that follows a log.

A *test* is a nominal attribute, with a branch per value, or a numeric attribute with a cut ``t``: code 0 is ``value <
t``, code 1 ``value >= t``. In both, missing values form a separate branch. A node's candidate cuts are the midpoints
between neighbouring distinct values of its rows; if there are more than `max_cuts`, those nearest to the quantiles
(`quercus.trees.tree.splits.midpoints`). If all known values are equal and some are missing, one cut separates known
from missing values.

One cut represents its attribute: that of largest gain at level 1, ``M(T) - Σ f_h M(T_h)``, of tied cuts the middle one
(`quercus.trees.rules.gain.best_splits`, theory §9). ``M`` is the mid-value of the entropies of the maximum likelihood
estimates: the entropy of the estimate, if it is unique. Gain-ratio intervals, dominance and the choice are then between
attributes, as in the paper: the largest mid-value among undominated attributes, of tied ones the first.

The reasons: with unlabelled rows between two labelled groups, all cuts between the groups may have equal gains, and the
gain ratio prefers the most unbalanced one. Level 1 is used for any α, since below it the widths of the intervals, which
depend on the number of labels on either side, would also count. Two cuts of one attribute are not rivals, because it is
not worth a query to find out which of them is better.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import is_vacuous
from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal
from quercus.specification.learners import Pruning
from quercus.specification.parameter import parametric
from quercus.specification.parameters import (
    ALPHA,
    CANDIDATE_CUTS,
    INFORMED_ONLY,
    MAX_DEPTH,
    MIN_INSTANCES,
    PREDICTION_LEVEL,
    SPLIT_SIGNIFICANCE,
)
from quercus.trees.growth.batch import (
    Draw,
    GrowthRules,
    NodePrediction,
    OpenNode,
    SplitChoice,
    decide_nodes,
    tree_of,
)
from quercus.trees.growth.incremental.growing import TreeRules
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.learners.gain_rules import code_branches
from quercus.trees.learners.learner import TreeLearner
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.sharing import OpenCells
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.table import Table
from quercus.trees.learners.weights import counted_or_weighed
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.choice import Choices, CountedEntropies, SplitCells, choose_splits
from quercus.trees.rules.earned import level_at
from quercus.trees.rules.evidential_pruning import prune_evidential
from quercus.trees.rules.stopping import stop_reason, stops_after, stops_before
from quercus.trees.rules.ties import Interval, first_largest
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node, Stop
from quercus.trees.tree.splits import midpoints

Cuts = Sequence[tuple[float, ...]]  # per attribute; () for a nominal one


@parametric
class Abc45(TreeLearner):
    """ABC4.5, the active belief decision tree.

    Source: theory §3.

    Parameters
    ----------
    pruning
        Pruning of the grown tree; None for none.
    """

    name: ClassVar[str] = "abc45"
    forgets: ClassVar[bool] = True
    certain_alone: ClassVar[str] = ""
    alpha: float = ALPHA.dataclass_field()
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int = CANDIDATE_CUTS.dataclass_field()
    pruning: Pruning | None = None
    prediction_level: float = PREDICTION_LEVEL.dataclass_field()
    split_significance: float = SPLIT_SIGNIFICANCE.dataclass_field()

    @property
    def engine(self) -> str:
        """The engine of the tree, which follows the log."""
        return "quercus.server.growth.engines:TreeEngine"

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return TreeModel.of(abc45(table, self, draw=draw), table.attributes)


@parametric
class E2m(TreeLearner):
    """The E2M tree: ABC4.5 at level 1.

    Rows with vacuous labels affect the weights of a split's branches, but not its entropies. If most rows are of this
    kind, a tree without them (`informed_only`) is better.

    Parameters
    ----------
    pruning
        Pruning of the grown tree; None for none.
    """

    name: ClassVar[str] = "e2m"
    forgets: ClassVar[bool] = True
    certain_alone: ClassVar[str] = ""
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int = CANDIDATE_CUTS.dataclass_field()
    pruning: Pruning | None = None
    informed_only: bool = INFORMED_ONLY.dataclass_field()
    prediction_level: float = PREDICTION_LEVEL.dataclass_field()
    split_significance: float = SPLIT_SIGNIFICANCE.dataclass_field()

    @property
    def engine(self) -> str:
        """The engine of a tree of all rows, which follows the log."""
        return "" if self.informed_only else "quercus.server.growth.engines:ActiveE2mEngine"

    def usable_rows(self, table: Table) -> Table | None:
        """Return all rows, or only those with informative labels."""
        if not self.informed_only:
            return table
        informed = ~is_vacuous(table.contours) & (table.weights > 0)
        return table.take(np.flatnonzero(informed)) if informed.any() else None

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        at_level_1 = Abc45(
            1.0,
            self.min_instances,
            self.max_depth,
            self.max_cuts,
            self.pruning,
            self.prediction_level,
            self.split_significance,
        )
        return at_level_1.grow(table, draw=draw)


def abc45(table: Table, learner: Abc45, *, cuts: Cuts | None = None, draw: Draw | None = None) -> Node:
    """Grow an active belief decision tree without queries.

    Parameters
    ----------
    table
        The rows; labels are used as contours. A row of weight 2 counts as two rows, two rows of weight .5 as one.
    learner
        Its parameters.
    cuts
        Candidate cuts of each attribute, ascending, for all nodes; `max_cuts` is then ignored. Of cuts that divide the
        rows of a node in the same way, only the lowest counts. None: each node has its own cuts.
    draw
        The draws of a forest (`quercus.trees.growth.batch.Draw`).

    Raises
    ------
    InvalidInput
        If the cuts do not fit the attributes, or integer weights sum to more than 10,000,000.

    Notes
    -----
    With α = 1 and precise labels this is C4.5's gain-ratio tree without pruning (theory §3.6), except that the middle
    one of tied cuts is taken. Below α = 1, cheap outer bounds are computed first, and attributes that they prove to be
    dominated are not solved: their reported intervals enclose the exact ones. The tree is that of exact intervals.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> table = Table.of_contours([[1.0], [2.0], [3.0], [4.0]], [Numeric("size")], [[1, 0], [1, 1], [0, 1], [0, 1]])
    >>> tree = abc45(table, Abc45(alpha=1.0))
    >>> tree.attribute, tree.threshold, {code: child.klass for code, child in tree.children.items()}
    (0, 1.5, {0: 0, 1: 1})
    """
    if cuts is not None and len(cuts) != len(table.attributes):
        raise InvalidInput("cuts", f"are {len(cuts)}, must be {len(table.attributes)}, one per attribute")
    for k, some in enumerate(cuts or ()):
        rising = np.array(some)
        if not np.isfinite(rising).all() or (np.diff(rising) < 0).any():
            raise InvalidInput(f"cuts[{k}]", f"are {some}, must be finite and in ascending order")
    rules = TableRules.of(table, learner, cuts)
    decided = list(decide_nodes(root_node(rules.table), rules, draw))
    tree = tree_of(decided, rules)
    if learner.pruning is None:
        return tree
    leaves = [node_counts(rules.sample, decision.place) for decision, _ in decided if decision.stop]
    contours = rules.sample.table.contours
    return prune_evidential(
        FlatTree.of(tree), Cells.of_dense(np.array(leaves)), contours, learner.pruning
    ).tree()


@dataclass(frozen=True, eq=False)
class NodeTests:
    """The tests of a node, in order of attribute, then of cut.

    Parameters
    ----------
    attribute
        (t,) attribute of each test.
    threshold
        (t,) its cut, NaN for a nominal attribute.
    first
        (t,) its first cell.
    cells
        The cells: the node itself, then the populated branches of each test in turn, (c,).
    size
        (c,) number of rows in each cell, or their weight.
    """

    attribute: Ints
    threshold: Floats
    first: Ints
    cells: Cells
    size: NDArray[Any]


class EvidentialRules(GrowthRules):
    """The rules that all evidential trees share: when a node stops, which split is best, what a leaf predicts.

    Attributes
    ----------
    sample
        The labels of the rows.
    limits
        The parameters of the learner.
    """

    sample: Sample
    limits: Abc45 | TreeRules

    @cached_property
    def solver(self) -> IntervalSolver:
        """Entropy intervals over the contours of the sample."""
        return self.sample.table.solver(self.limits.alpha)

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split: too few rows, one class for certain, too deep."""
        estimates = self.solver.estimate_cells(Cells.of_dense(node_counts(self.sample, place)[np.newaxis]))
        weight, depth = np.array([node_weight(self.sample, place)]), np.array([place.depth])
        limits = self.limits.min_instances, self.limits.max_depth
        return stop_reason(stops_before(weight, estimates, depth, *limits)[0])

    def level(self, place: OpenNode) -> Floats | None:
        """Return the level at which a split of a node must be significant, (1,); None if none must be."""
        significance = self.limits.split_significance
        return level_at(significance, np.array([place.depth])) if significance > 0 else None

    def compare(
        self, split_cells: SplitCells, cells: Cells, size: NDArray[Any], *, frugal: bool, level: Floats | None
    ) -> Choices:
        """Compare the splits of a node."""
        every = np.arange(len(cells))
        estimator = self.sample.table.solver(1.0) if split_cells.has_cuts else self.solver
        entropies = CountedEntropies(
            self.solver, estimator, np.zeros_like(every), every, cells, (1, every.size)
        )
        return choose_splits(split_cells, size[np.newaxis], entropies, frugal=frugal, level=level)

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` if no split can gain anything, `Stop.NOT_SIGNIFICANT` if none is significant."""
        most = np.array([[upper for _, upper in choice.intervals.values()]])
        return stop_reason(stops_after(np.array([choice.attribute]), most, np.array([choice.justified]))[0])

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the class with the largest maximum likelihood estimate, with bounds at the prediction level."""
        return evidential_prediction(self.sample, place, self.solver, self.limits.prediction_level)


def compared_intervals(names: Ints, found: Choices) -> dict[int, Interval]:
    """Return the intervals of the compared candidates, by the names (t,) of the splits."""
    compared = np.flatnonzero(~np.isnan(found.lower[0]))
    ends = zip(found.lower[0, compared].tolist(), found.upper[0, compared].tolist(), strict=True)
    return dict(zip(names[compared].tolist(), ends, strict=True))


@dataclass(frozen=True, eq=False)
class TableRules(EvidentialRules):
    """The rules of ABC4.5 over raw values: the tests of an attribute are one candidate, see the module docstring.

    Parameters
    ----------
    table, sample
        The rows, and their labels.
    limits
        Parameters of the learner.
    cuts
        See `abc45`.
    """

    table: Table
    sample: Sample
    limits: Abc45
    cuts: Cuts | None = None

    @classmethod
    def of(cls, table: Table, learner: Abc45, cuts: Cuts | None = None) -> "TableRules":
        """Return the rules for the rows of a table that count."""
        rows, weights = counted_or_weighed(table)
        distinct = ContourTable(rows.size)
        sample = Sample(  # only the labels; values stay in the table
            codes=np.empty((len(rows), 0), dtype=np.int16),
            arities=(),
            ids=distinct.intern(rows.contours),
            askable=np.ones(len(rows), dtype=bool),
            table=distinct,
            weights=weights,
        )
        return cls(rows, sample, learner, cuts)

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no test has two populated branches."""
        tests = self.node_tests(place)
        if tests is None:
            return None
        bounds = np.append(np.unique(tests.attribute, return_index=True)[1], tests.attribute.size)
        split_cells = SplitCells(tests.first, bounds, len(tests.cells))
        frugal = self.solver.alpha < 1  # at level 1 the exact interval is as cheap as its bounds
        found = self.compare(split_cells, tests.cells, tests.size, frugal=frugal, level=self.level(place))
        chosen, rivals = int(found.split[0]), int(np.count_nonzero(found.rivals[0]))
        threshold, justified = float(tests.threshold[chosen]), bool(found.justified[0])
        return SplitChoice(
            attribute=int(tests.attribute[chosen]),
            intervals=compared_intervals(tests.attribute, found),
            undecided=(rivals > 1 or not justified) and self.sample.candidates(place.rows).size > 0,
            threshold=None if np.isnan(threshold) else threshold,
            justified=justified,
        )

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return the populated children, in order of code."""
        return code_branches(self.table, place, choice)

    def node_tests(self, place: OpenNode) -> NodeTests | None:
        """Return the tests of a node with their cells; None when there is none."""
        used, ids = np.unique(self.sample.ids[place.rows], return_inverse=True)
        labels = ids.ravel()
        opened = {k: cells for k in self.table.uncertain if (cells := OpenCells.of(self.table, place, k))}
        weights = sample_weights(self.sample, place)
        if opened and weights is None:
            weights = np.ones(labels.size)

        def counts(codes: Ints, number: int, cells: OpenCells | None = None) -> NDArray[Any]:
            """Return the count, or the weight, of each contour with each code: (codes, contours)."""
            pairs, parts = codes * used.size + labels, weights
            if cells is not None and parts is not None:
                parts = parts.copy()
                parts[cells.at] = 0.0
            counted = np.bincount(pairs, parts, minlength=number * used.size)
            return counted.reshape(number, used.size).astype(np.int64 if parts is None else np.float64)

        def open_counts(k: int, column: Floats, cells: OpenCells, cuts: Floats) -> Floats:
            """Return the weights of rows with uncertain values in each branch: (tests, branches, contours)."""
            own = np.ones(labels.size) if weights is None else weights
            shares = cells.shares(self.table.attributes[k], column, own, cuts)
            of_contours = np.zeros((cells.at.size, used.size))
            of_contours[np.arange(cells.at.size), labels[cells.at]] = own[cells.at]
            found: Floats = np.einsum("tmb,mc->tbc", shares, of_contours)
            return found

        own = counts(np.zeros(labels.size, np.int64), 1)
        parts, attributes, thresholds, widths = [own], [np.zeros(0, np.int64)], [np.zeros(0)], [1]
        for k in place.attributes:
            declared, column = self.table.attributes[k], self.table.values[place.rows, k]
            missing, cells = np.isnan(column), opened.get(k)
            if isinstance(declared, Nominal):
                codes = np.where(missing, len(declared.values), column).astype(np.int64)
                cuts = np.array([np.nan])
                counted = counts(codes, len(declared.values) + 1, cells)
                if cells is not None:
                    counted[:-1] += open_counts(k, column, cells, cuts)[0]
                tests = counted[counted.any(axis=1)][np.newaxis]  # (tests, branches, contours)
            else:
                cuts = (
                    midpoints(column, self.limits.max_cuts, weights)
                    if self.cuts is None
                    else np.array(self.cuts[k])
                )
                slots = np.where(missing, len(cuts) + 1, np.searchsorted(cuts, column, side="right"))
                counted = counts(slots, len(cuts) + 2, cells)
                bins, lost = counted[:-1], counted[-1]
                below, above = np.cumsum(bins, axis=0), np.cumsum(bins[::-1], axis=0)[-2::-1]
                informative = bins[:-1].any(axis=1) & above.any(axis=1)  # of equal divisions, the lowest
                if informative.any():
                    cuts = cuts[informative]
                    sides = [below[:-1][informative], above[informative]]
                    if cells is not None:
                        more = open_counts(k, column, cells, cuts)
                        sides = [sides[0] + more[:, 0], sides[1] + more[:, 1]]
                    if lost.any():
                        sides.append(np.broadcast_to(lost, sides[0].shape))
                    tests = np.stack(sides, axis=1)
                else:
                    here = below[-1]
                    cuts = (cuts if self.cuts is not None else column[~missing])[:1]
                    if cells is not None and cuts.size:
                        here = here + open_counts(k, column, cells, cuts)[0].sum(axis=0)
                    tests = np.stack([here, lost])[np.newaxis]
                    tests = tests[:, tests.any(axis=(0, 2))]
            if tests.shape[1] < 2 or not cuts.size:
                continue
            parts.append(tests.reshape(-1, used.size))
            attributes.append(np.full(len(tests), k))
            thresholds.append(cuts)
            widths += [tests.shape[1]] * len(tests)
        if len(parts) == 1:
            return None
        together = np.concatenate(parts)
        dense = Cells.of_dense(together)
        return NodeTests(
            attribute=np.concatenate(attributes),
            threshold=np.concatenate(thresholds),
            first=np.cumsum(widths)[:-1],
            cells=Cells(dense.start, used[dense.ids], dense.counts),
            size=together.sum(axis=1),
        )


def evidential_prediction(
    sample: Sample, place: OpenNode, solver: IntervalSolver, prediction_level: float
) -> NodePrediction:
    """Return the class with the largest maximum likelihood estimate, with bounds over the cut at a separate level.

    If all labels are vacuous, every estimate has maximum likelihood, and that of the parent is used, as for a node
    without rows (theory §3.4).
    """
    size = sample.table.contours.shape[1]
    if not place.rows.size:
        return NodePrediction(0, (1 / size,) * size, (0.0,) * size, (1.0,) * size, silent=True)
    counts = node_counts(sample, place)
    theta = tuple(solver.estimate(counts).theta.tolist())
    belief, plausibility = solver.class_bounds(counts, prediction_level)
    bounds = tuple(belief.tolist()), tuple(plausibility.tolist())
    silent = not (counts[~sample.table.vacuous] > 0).any()
    return NodePrediction(
        first_largest(theta), theta, *bounds, weight=node_weight(sample, place), silent=silent
    )


def sample_weights(sample: Sample, place: OpenNode) -> Floats | None:
    """Return the weights that a node's rows have at the node, (m,); None if each counts once."""
    if place.weights is not None:
        return place.weights
    return None if sample.weights is None else sample.weights[place.rows]


def node_counts(sample: Sample, place: OpenNode) -> NDArray[Any]:
    """Return the count, or the weight, of each distinct contour among the rows of a node: (d,)."""
    counts: NDArray[Any] = np.bincount(
        sample.ids[place.rows], sample_weights(sample, place), minlength=sample.table.size
    )
    return counts


def node_weight(sample: Sample, place: OpenNode) -> float:
    """Return the total weight of a node's rows."""
    weights = sample_weights(sample, place)
    return float(place.rows.size if weights is None else weights.sum())
