"""Belief-entropy trees (theory §6; Gao, Wang, Ma 2022): OBE, LBE and IBE.

A node fits, for each attribute, one density a class (`quercus.trees.learners.components`), turns every value
into a nested mass function, and splits by the attribute whose masses have the smallest mean Deng entropy.
There is a branch a class; a row goes where its densest class is. The three trees are the same, they differ in
what they predict: OBE from the labels of the node's rows, LBE from the masses that led these rows there, IBE
from the masses of the very instance that is classified.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.sums import weighted_sum
from quercus.specification.parameter import parametric, values_of
from quercus.specification.parameters import (
    INSTANCES_PER_CLASS,
    LEAF,
    MAX_DEPTH,
    MAX_MASS_CLASSES,
    MIN_WEIGHT,
)
from quercus.trees.growth.batch import (
    Branch,
    Criterion,
    GrowthRules,
    NodePrediction,
    OpenNode,
    SplitChoice,
    grow_tree,
)
from quercus.trees.learners.averaging import mass_summary, mean_mass, total_weights
from quercus.trees.learners.components import Component, branch_of, fit_components
from quercus.trees.learners.entropy_model import BeliefEntropyModel, Rule, check_size
from quercus.trees.learners.learner import TreeLearner
from quercus.trees.learners.mixture import column_floor
from quercus.trees.learners.nested import (
    ConsonantMasses,
    log_commonalities,
    log_commonalities_of,
    mass_function,
    normalised_masses,
)
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.stopping_rules import Wrap, node_weight, wrap_criterion
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import two_class_shares
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node, Path, Stop


@dataclass(frozen=True, slots=True)
class EntropyChoice(SplitChoice):
    """The attribute of smallest entropy, and its densities."""

    component: Component | None = None


@dataclass(frozen=True, slots=True, eq=False)
class LeastEntropy:
    """Criterion: smallest mean Deng entropy; of tied attributes, the first declared.

    The gain of an attribute, as the tree shows it, is minus its mean entropy.
    """

    table: Table
    floor: Floats

    def choose_split(self, place: OpenNode) -> EntropyChoice | None:
        """Return the choice, or None when no attribute is left."""
        if not place.attributes:
            return None
        components = fit_components(self.table, place.rows, place.attributes, self.floor)
        columns = self.table.values[place.rows][:, place.attributes].T
        logs = np.stack([c.log_densities(x) for c, x in zip(components, columns, strict=True)])
        weights = self.table.weights[place.rows]
        mean = (ConsonantMasses.of(logs).deng_entropy() * weights).sum(axis=1) / weights.sum()
        at = first_largest((-mean).tolist())
        gains = {k: (-bits, -bits) for k, bits in zip(place.attributes, mean.tolist(), strict=True)}
        return EntropyChoice(place.attributes[at], gains, (place.attributes[at],), component=components[at])


@dataclass(frozen=True, slots=True, eq=False)
class ByDensestClass:
    """Branching: a branch for every class that is densest for some row; the attribute is spent.

    The fitted splits are kept: prediction needs them.
    """

    table: Table
    components: dict[Path, Component] = field(default_factory=dict)
    log_contours: dict[Path, tuple[Ints, Floats]] = field(default_factory=dict)

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[Branch]:
        """Return the populated branches, in order of class."""
        if not isinstance(choice, EntropyChoice) or choice.component is None:
            raise TypeError("the criterion must be LeastEntropy, or wrap it")
        k, component = choice.attribute, choice.component
        column = self.table.values[place.rows, k]
        logs = component.log_densities(column)
        codes = branch_of(component, column, logs)
        self.components[place.path] = component
        self.log_contours[place.path] = place.rows, ConsonantMasses.of(logs).log_contours()
        left = tuple(a for a in place.attributes if a != k)
        return [Branch(k, int(code), place.rows[codes == code], left) for code in np.unique(codes)]


@dataclass(frozen=True, slots=True, eq=False)
class _UntilOneClass:
    table: Table
    min_instances: int
    max_depth: int | None

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        if self.table.weights[place.rows].sum() < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        contours = self.table.contours[place.rows] > 0.0
        if self.table.precise[place.rows].all() and (contours == contours[0]).all():
            return Stop.PURE
        return Stop.MAX_DEPTH if self.max_depth is not None and place.depth >= self.max_depth else None

    def stop_after_choice(self, _place: OpenNode, _choice: SplitChoice) -> Stop | None:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class ObeLeaf:
    """Leaf rule of OBE: ``argmax_k Σ_i w_i pl_ik``.

    Belief, plausibility and probability (BetP) are those of the mean of the labels' mass functions, so the probability
    lies between the other two, and the class is the most plausible one. Plausibilities normalised to sum 1, the paper's
    numbers, can lie outside both. A contour stands for its consonant mass function: its largest plausibility counts as
    1, for a contour has no absolute height (theory §1.3).
    """

    table: Table
    possible: Floats  # (n, l) pl_i(c) = 1 - m_i(sets without c)
    alone: Floats  # (n, l) m_i({c})

    @classmethod
    def of(cls, table: Table) -> "ObeLeaf":
        """Make the rule for a table."""
        alone = np.column_stack([two_class_shares(table, c)[:, 0] for c in range(table.size)])
        return cls(table, table.plausibilities, alone)

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of the node, were it a leaf."""
        weights = self.table.weights[place.rows]
        total = float(weights.sum())
        share = weights / total
        belief = np.minimum(weighted_sum(share, self.alone[place.rows]), 1.0)
        plausibility = np.minimum(weighted_sum(share, self.possible[place.rows]), 1.0)
        theta = np.clip(
            weighted_sum(share, self.table.pignistic[place.rows]), belief, plausibility
        )  # but for rounding inside
        return NodePrediction(
            first_largest(plausibility.tolist()),
            tuple(theta.tolist()),
            tuple(belief.tolist()),
            tuple(plausibility.tolist()),
            weight=node_weight(place, total),
        )


@dataclass(frozen=True, slots=True, eq=False)
class LbeLeaf:
    """Leaf rule of LBE: Dempster's rule over the masses along the path, and over the node's rows.

    A root has no path: there it is the mean of the rows' labels. Total conflict cannot occur: each mass
    function leaves some plausibility to every class that is possible for a row of the node, and logarithms do not
    underflow.
    """

    labels: ObeLeaf
    branching: ByDensestClass
    commonalities: dict[Path, Floats] = field(default_factory=dict)

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of the node, were it a leaf."""
        table = self.labels.table
        weights = table.weights[place.rows]
        if not place.path:
            mean = mean_mass(
                total_weights((table.masses[row], w) for row, w in zip(place.rows, weights, strict=True))
            )
            self.commonalities[()] = log_commonalities_of(mean)
            return mass_summary(mean, place, float(weights.sum()))
        total = np.zeros(1 << table.size)
        for depth in range(len(place.path)):
            rows, logs = self.branching.log_contours[place.path[:depth]]
            here = log_commonalities(logs[np.searchsorted(rows, place.rows)])
            total += weighted_sum(weights, here)
        masses, _ = normalised_masses(total)
        self.commonalities[place.path] = total - total[1 << np.arange(table.size)].max()
        return mass_summary(mass_function(masses), place, float(weights.sum()))


def fit_belief_entropy(
    table: Table,
    leaf: Rule = "LBE",
    *,
    min_instances: int | None = None,
    max_depth: int | None = None,
    wrap: Wrap | None = None,
) -> BeliefEntropyModel:
    """Grow a belief-entropy tree (theory §6).

    Parameters
    ----------
    table
        The rows. Numeric attributes have Gaussians, nominal ones frequencies.
    leaf
        ``"OBE"``, ``"LBE"`` or ``"IBE"``; the latter two for at most 16 classes.
    min_instances
        A node of less weight is a leaf; default 5 a class, for a deviation cannot be told from less.
    max_depth
        Depth at which every node is a leaf; None for no limit. No path tests an attribute twice.
    wrap
        Put around the criterion: a forest's choice among random attributes.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    LEAF.check(leaf)
    if leaf != "OBE":
        check_size(table.size)
    least = MIN_WEIGHT.check(min_instances) or INSTANCES_PER_CLASS * table.size
    criterion: Criterion = LeastEntropy(table, column_floor(table.values, table.contours, table.weights))
    branching, labels = ByDensestClass(table), ObeLeaf.of(table)
    paths = LbeLeaf(labels, branching)
    method = GrowthRules(
        criterion=wrap_criterion(criterion, wrap),
        branching=branching,
        stopping=_UntilOneClass(table, least, max_depth),
        leaf=paths if leaf == "LBE" else labels,
    )
    tree = grow_tree(root_node(table), method)
    at = [path for path, _ in _nodes_with_paths(tree)]
    return BeliefEntropyModel(
        attributes=table.attributes,
        size=table.size,
        kind=leaf,
        flat=FlatTree.of(tree),
        components=tuple(branching.components.get(path) for path in at),
        commonalities=np.array(
            [paths.commonalities[path] for path in at if path in paths.commonalities]
        ).reshape(-1, 1 << min(table.size, MAX_MASS_CLASSES)),
    )


def _nodes_with_paths(tree: Node) -> Iterator[tuple[Path, Node]]:
    """Yield every node with its path, in pre-order."""
    pending: list[tuple[Path, Node]] = [((), tree)]
    while pending:
        path, node = pending.pop()
        yield path, node
        below = [((*path, (node.attribute or 0, code)), child) for code, child in node.children.items()]
        pending.extend(reversed(below))


@parametric
class BeliefEntropy(TreeLearner):
    """The belief-entropy trees (Gao 2022).

    Source: theory §6.
    """

    name: ClassVar[str] = "belief-entropy"
    has_masses: ClassVar[bool] = True
    leaf: Rule = LEAF.dataclass_field()
    min_instances: int | None = MIN_WEIGHT.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()

    def check_classes(self, size: int) -> None:
        """Refuse more than 16 classes for LBE and IBE."""
        if size > MAX_MASS_CLASSES and self.leaf != "OBE":
            raise InvalidInput(
                "leaf", f"is {self.leaf!r}, of {size} classes; above {MAX_MASS_CLASSES} take 'OBE'"
            )

    def own_defaults(self, size: int) -> dict[str, float]:
        """Return the defaults: 5 rows a class for the smallest node that is split."""
        own = super().own_defaults(size)
        return own | (
            {"min_instances": max(1, INSTANCES_PER_CLASS * size)} if self.min_instances is None else {}
        )

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return fit_belief_entropy(table, **values_of(self), wrap=wrap)
