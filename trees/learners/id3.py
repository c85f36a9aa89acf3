"""ID3 (theory §7; Quinlan 1986): information gain, a branch a value."""

from typing import ClassVar

from quercus.specification.parameter import parametric, values_of
from quercus.specification.parameters import MAX_CUTS, MAX_DEPTH, MIN_INSTANCES, SIGNIFICANCE
from quercus.trees.growth.batch import GrowthRules, grow_tree
from quercus.trees.learners.learner import TreeLearner, precise_rows
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.pruning import prune_chi_square
from quercus.trees.learners.splits import ByCode, LargestGain, class_entropy, root_node
from quercus.trees.learners.stopping_rules import (
    Limits,
    MeanShares,
    UntilPure,
    Wrap,
    precise_shares,
    wrap_criterion,
)
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node


def id3(
    table: Table,
    *,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    stop_without_gain: bool = False,
    max_cuts: int | None = None,
    significance: float | None = None,
    wrap: Wrap | None = None,
) -> Node:
    """Grow a tree by information gain, ``H(T) - Σ f_h H(T_h)`` in bits.

    Parameters
    ----------
    table
        The rows; every label names one class. Numeric attributes, which ID3 has not, are split in two at the
        threshold of largest gain; missing values form a separate branch.
    min_instances, max_depth, stop_without_gain
        See `Limits`. By default, as in Quinlan, growth ends when a node has one class or no attribute left.
    max_cuts
        Most thresholds that are looked at a numeric attribute and node, see `quercus.trees.tree.splits.midpoints`.
    significance
        Level of χ² pruning, see `pruning.prune_chi_square`; None for no pruning.
    wrap
        Put around the criterion by a forest, see `quercus.trees.learners.forest`.

    Raises
    ------
    InvalidInput
        When a label does not name one class, or a parameter is out of bounds.

    Examples
    --------
    >>> from quercus.specification.attributes import Nominal
    >>> attributes = [Nominal("sky", ("clear", "grey")), Nominal("wind", ("weak", "strong"))]
    >>> tree = id3(Table.of_classes([[0, 0], [0, 1], [1, 0], [1, 1]], attributes, [0, 0, 1, 0], 2))
    >>> tree.attribute, tree.children[1].attribute, tree.children[0].theta
    (0, 1, (1.0, 0.0))
    """
    shares = precise_shares(table)
    method = GrowthRules(
        criterion=wrap_criterion(LargestGain(table, shares, class_entropy, max_cuts), wrap),
        branching=ByCode(table),
        stopping=UntilPure(table, shares, Limits(min_instances, max_depth, stop_without_gain)),
        leaf=MeanShares(table, shares),
    )
    tree = grow_tree(root_node(table), method)
    return tree if significance is None else prune_chi_square(tree, significance)


@parametric
class Id3(TreeLearner):
    """ID3, from the rows whose label names one class.

    Source: theory §7, `id3`.
    """

    name: ClassVar[str] = "id3"
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    significance: float | None = SIGNIFICANCE.dataclass_field()

    def usable_rows(self, table: Table) -> Table | None:
        """See `TreeLearner`."""
        return precise_rows(table)

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return TreeModel.of(id3(table, **values_of(self), wrap=wrap), table.attributes)
