"""ID3 (theory §7; Quinlan 1986): information gain, a branch per value."""

from typing import ClassVar

from quercus.specification.parameter import parametric
from quercus.specification.parameters import MAX_CUTS, MAX_DEPTH, MIN_INSTANCES, SIGNIFICANCE
from quercus.trees.growth.batch import Draw, grow_tree
from quercus.trees.learners.gain_rules import GainRules, precise_shares
from quercus.trees.learners.learner import TreeLearner, precise_rows
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.pruning import prune_chi_square
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.table import Table


@parametric
class Id3(TreeLearner):
    """ID3, from the rows whose label names one class.

    Source: theory §7. Growth ends at nodes of one class or without further attributes, as in Quinlan; the gain is
    ``H(T) - Σ f_h H(T_h)`` in bits. Numeric attributes, which ID3 does not have, are split in two at the threshold of
    largest gain; missing values form a separate branch.
    """

    name: ClassVar[str] = "id3"
    certain_alone: ClassVar[str] = ""
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    significance: float | None = SIGNIFICANCE.dataclass_field()

    def usable_rows(self, table: Table) -> Table | None:
        """See `TreeLearner`."""
        return precise_rows(table)

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`.

        Examples
        --------
        >>> from quercus.specification.attributes import Nominal
        >>> attributes = [Nominal("sky", ("clear", "grey")), Nominal("wind", ("weak", "strong"))]
        >>> table = Table.of_classes([[0, 0], [0, 1], [1, 0], [1, 1]], attributes, [0, 0, 1, 0], 2)
        >>> (tree,) = Id3().grow(table).trees
        >>> tree.attribute, tree.children[1].attribute, tree.children[0].theta
        (0, 1, (1.0, 0.0))
        """
        rules = GainRules(table, precise_shares(table), self, stop_without_gain=False)
        tree = grow_tree(root_node(table), rules, draw)
        if self.significance is not None:
            tree = prune_chi_square(tree, self.significance)
        return TreeModel.of(tree, table.attributes)
