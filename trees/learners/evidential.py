"""ABC4.5 and E2M trees of raw values (theory §3; Ma, Destercke, Wang 2016), numbers split at thresholds.

They grow in batch, node by node. `quercus.trees.learners.evidential_splits` lists the tests of a node; the decisions
are those of `quercus.trees.rules`, as in the tree that follows a log.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.contour import is_vacuous
from quercus.belief.errors import InvalidInput
from quercus.specification.algorithms import Pruning
from quercus.specification.parameter import parametric, values_of
from quercus.specification.parameters import (
    ALPHA,
    CANDIDATE_CUTS,
    INFORMED_ONLY,
    MAX_DEPTH,
    MIN_INSTANCES,
    PREDICTION_LEVEL,
    SPLIT_SIGNIFICANCE,
)
from quercus.trees.growth.batch import BatchGrowth, GrowthRules, NodePrediction, OpenNode, SplitChoice
from quercus.trees.growth.sample import ContourTable, Sample
from quercus.trees.learners.evidential_splits import BestTest, Cuts, stacked_cells
from quercus.trees.learners.learner import TreeLearner
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.pruning import prune_evidential
from quercus.trees.learners.splits import ByCode, root_node
from quercus.trees.learners.stopping_rules import Wrap, wrap_criterion
from quercus.trees.learners.table import Table
from quercus.trees.learners.weights import counted_or_weighed
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.stopping import stop_reason, stops_after, stops_before
from quercus.trees.rules.ties import first_largest
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node, Stop


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
    split_significance: float = 0.0,
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
        Pruning of the grown tree, see `quercus.trees.rules.pruning_statistics`; None for no pruning.
    prediction_level
        Level of the likelihood cut that belief and plausibility are bounds over, in [0, 1].
    split_significance
        Level of the test by which a split is earned (theory §12); 0: none has to be.
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
    SPLIT_SIGNIFICANCE.check(split_significance)
    rows, weights = counted_or_weighed(table)
    sample = _labels_of(rows, weights)
    solver = sample.table.solver(alpha)
    best = BestTest(rows, sample, solver, max_cuts, _checked_cuts(cuts, rows), split_significance)
    method = GrowthRules(
        criterion=wrap_criterion(best, wrap),
        branching=ByCode(rows),
        stopping=Stopping(sample, solver, min_instances, max_depth),
        leaf=Likeliest(sample, solver, PREDICTION_LEVEL.check(prediction_level)),
    )
    growth = BatchGrowth(root_node(rows), method)
    tree = growth.tree()
    if pruning is None:
        return tree
    leaves = [sample.counts(found.place.rows)[np.newaxis] for found, _, _ in growth.preorder() if found.stop]
    return prune_evidential(FlatTree.of(tree), stacked_cells(leaves), sample.table.contours, pruning).tree()


def e2m(
    table: Table,
    *,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int = CANDIDATE_CUTS.default,
    cuts: Cuts | None = None,
    pruning: Pruning | None = None,
    prediction_level: float = PREDICTION_LEVEL.default,
    split_significance: float = 0.0,
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
        split_significance=split_significance,
        wrap=wrap,
    )


@dataclass(frozen=True, slots=True)
class Stopping:
    """Stopping: too few rows, too deep, one class for certain, or nothing to gain (theory §3.4)."""

    sample: Sample
    solver: IntervalSolver
    min_instances: int
    max_depth: int | None

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split at any gain, or None."""
        estimates = self.solver.estimate_cells(Cells.of_dense(self.sample.counts(place.rows)[np.newaxis]))
        weight, depth = np.array([self.sample.weight(place.rows)]), np.array([place.depth])
        return stop_reason(stops_before(weight, estimates, depth, self.min_instances, self.max_depth)[0])

    def stop_after_choice(self, _place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no attribute can gain anything, `Stop.NOT_SIGNIFICANT` when none is earned."""
        most = np.array([[upper for _, upper in choice.intervals.values()]])
        return stop_reason(stops_after(np.array([choice.attribute]), most, np.array([choice.justified]))[0])


@dataclass(frozen=True, slots=True)
class Likeliest:
    """Leaf rule: the class of largest likelihood estimate, with bounds over the likelihood cut at a separate level.

    Where all labels are vacuous every estimate is a likeliest one, and that of the parent is taken, as where there is
    no row at all (theory §3.4).
    """

    sample: Sample
    solver: IntervalSolver
    prediction_level: float = PREDICTION_LEVEL.default

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction; with no row at all, that every class is possible."""
        size = self.sample.table.contours.shape[1]
        if not place.rows.size:
            return NodePrediction(0, (1 / size,) * size, (0.0,) * size, (1.0,) * size, silent=True)
        counts = self.sample.counts(place.rows)
        theta = tuple(self.solver.estimate(counts).theta.tolist())
        belief, plausibility = self.solver.class_bounds(counts, self.prediction_level)
        bounds = tuple(belief.tolist()), tuple(plausibility.tolist())
        silent = not (counts[~self.sample.table.vacuous] > 0).any()
        total = self.sample.weight(place.rows)
        weight = None if total == place.rows.size else total
        return NodePrediction(first_largest(theta), theta, *bounds, weight=weight, silent=silent)


def _labels_of(table: Table, weights: Floats | None = None) -> Sample:
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
    alpha: float = ALPHA.dataclass_field()
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int = CANDIDATE_CUTS.dataclass_field()
    pruning: Pruning | None = None
    prediction_level: float = PREDICTION_LEVEL.dataclass_field()
    split_significance: float = SPLIT_SIGNIFICANCE.dataclass_field()

    @property
    def engine(self) -> str:
        """The tree itself follows the log."""
        return "quercus.server.growth.engines:TreeEngine"

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return TreeModel.of(abc45(table, **values_of(self), wrap=wrap), table.attributes)


@parametric
class E2m(TreeLearner):
    """The E2M tree: ABC4.5 at level 1.

    Rows that say nothing weigh the branches of a split, though not its entropies. Where they are most rows, a tree
    without them (`informed_only`) is better.

    Parameters
    ----------
    pruning
        Pruning of the grown tree; None for none.
    """

    name: ClassVar[str] = "e2m"
    forgets: ClassVar[bool] = True
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int = CANDIDATE_CUTS.dataclass_field()
    pruning: Pruning | None = None
    informed_only: bool = INFORMED_ONLY.dataclass_field()
    prediction_level: float = PREDICTION_LEVEL.dataclass_field()
    split_significance: float = SPLIT_SIGNIFICANCE.dataclass_field()

    @property
    def engine(self) -> str:
        """A tree of all rows follows the log."""
        return "" if self.informed_only else "quercus.server.growth.engines:ActiveE2mEngine"

    def usable_rows(self, table: Table) -> Table | None:
        """Return all rows, or those whose label says anything."""
        if not self.informed_only:
            return table
        informed = ~is_vacuous(table.contours) & (table.weights > 0)
        return table.take(np.flatnonzero(informed)) if informed.any() else None

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        values = values_of(self)
        del values["informed_only"]  # `usable_rows` has seen to it
        return TreeModel.of(e2m(table, **values, wrap=wrap), table.attributes)
