"""Belief decision trees, averaging approach (theory §4; Elouedi, Mellouli, Smets 2000)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quercus.belief.errors import TooManyFocalSets, TotalConflict
from quercus.belief.mass import MAX_FOCAL_SETS, MassFunction, consonant_mass
from quercus.belief.measures import pignistic
from quercus.belief.rules import combine_repeatedly
from quercus.belief.sums import weighted_sum
from quercus.specification.parameter import parametric, values_of
from quercus.specification.parameters import MAX_CUTS, MAX_DEPTH, MIN_INSTANCES
from quercus.trees.growth.batch import GrowthRules, NodePrediction, OpenNode, grow_tree
from quercus.trees.learners.learner import TreeLearner
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import singleton_beliefs
from quercus.trees.learners.splits import ByCode, LargestGain, class_entropy, root_node
from quercus.trees.learners.stopping_rules import Limits, UntilPure, Wrap, node_weight, wrap_criterion
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import first_largest
from quercus.trees.tree.node import Node


def averaging(
    table: Table,
    *,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    stop_without_gain: bool = True,
    max_cuts: int | None = None,
    wrap: Wrap | None = None,
) -> Node:
    """Grow a belief decision tree by the averaging approach.

    A node holds the mean of its rows' mass functions, ``m_S``; ``Info(S) = H(BetP[m_S])``. It is split by the
    attribute of largest gain, ``Info(T) - Σ f_h Info(T_h)``. A leaf combines its rows by Dempster's rule.

    Parameters
    ----------
    table
        The rows. Numeric attributes, which the paper has not, are split in two at the threshold of largest
        gain; missing values form a separate branch.
    min_instances, max_depth, stop_without_gain
        See `Limits`. The paper's leaves are of one row, or have no attribute left, or nothing to gain: the
        defaults.
    max_cuts
        Most thresholds that are looked at a numeric attribute and node, see `quercus.trees.tree.splits.midpoints`.
    wrap
        Put around the criterion by a forest, see `quercus.trees.learners.forest`.

    Returns
    -------
    Node
        Every node has a mass: the combination in a leaf (the mean and `Node.conflict`, where its rows are in
        total conflict), the mean in an inner node, for rows whose branch was never seen. ``theta`` is its BetP,
        belief and plausibility are those of the mass.

    Examples
    --------
    >>> from quercus.specification.attributes import Nominal
    >>> sky = Nominal("sky", ("clear", "grey"))
    >>> masses = [MassFunction.of(2, {1: 0.6, 3: 0.4}), MassFunction.of(2, {2: 0.5, 3: 0.5})]
    >>> tree = averaging(Table.of_masses([[0], [1]], [sky], masses))
    >>> tree.mass.focal, tree.children[0].mass.focal
    (((1, 0.3), (2, 0.25), (3, 0.45)), ((1, 0.6), (3, 0.4)))
    """
    shares = table.pignistic  # BetP is linear: the mean's BetP is the mean of the rows' BetP
    limits = Limits(min_instances, max_depth, stop_without_gain)
    method = GrowthRules(
        criterion=wrap_criterion(LargestGain(table, shares, class_entropy, max_cuts), wrap),
        branching=ByCode(table),
        stopping=UntilPure(table, shares, limits),
        leaf=CombinedMass(table),
        inner=MeanMass(table),
    )
    return grow_tree(root_node(table), method)


@dataclass(frozen=True, slots=True, eq=False)
class MeanMass:
    """Rule of inner nodes: the mean mass function."""

    table: Table

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction."""
        weights = _weights_of(self.table, place)
        return mass_summary(mean_mass(weights), place, sum(weights.values()))


@dataclass(frozen=True, slots=True, eq=False)
class CombinedMass:
    """Leaf rule: Dempster's rule over the rows; their mean where they are in total conflict, or have too many.

    A row is combined as often as its weight says, rounded, and at least once.
    """

    table: Table

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction."""
        weights = _weights_of(self.table, place)
        size = sum(weights.values())
        try:
            mass = combine_repeatedly({m: max(1, round(w)) for m, w in weights.items()})
        except TotalConflict:
            return mass_summary(mean_mass(weights), place, size, conflict=True)
        except TooManyFocalSets:
            return mass_summary(mean_mass(weights), place, size)
        return mass_summary(mass, place, size)


def mass_summary(
    mass: MassFunction, place: OpenNode, size: float, *, conflict: bool = False
) -> NodePrediction:
    """Return the prediction of a node with this mass and this weight: its BetP, and its belief and plausibility.

    Parameters
    ----------
    mass
        Mass function of the node.
    place
        The node.
    size
        Its weight.
    conflict
        See `Node.conflict`.
    """
    theta = tuple(pignistic(mass).tolist())
    belief = singleton_beliefs(mass)
    plausibility = tuple(mass.contour().tolist())
    weight = node_weight(place, size)
    return NodePrediction(first_largest(theta), theta, belief, plausibility, mass, conflict, weight)


def mean_mass(weights: Mapping[MassFunction, float]) -> MassFunction:
    """Return the weighted mean of mass functions on one frame.

    One of more than 65,536 focal sets is replaced by the consonant mass function of its contour.

    Examples
    --------
    >>> a, b = MassFunction.of(2, {1: 1.0}), MassFunction.vacuous(2)
    >>> mean_mass({a: 3.0, b: 1.0}).focal
    ((1, 0.75), (3, 0.25))
    """
    sums: dict[int, float] = {}
    for mass, weight in weights.items():
        for focal, value in mass.focal:
            sums[focal] = sums.get(focal, 0.0) + weight * value
    total = sum(sums.values())
    if len(sums) > MAX_FOCAL_SETS:
        contours = np.array([mass.contour() for mass in weights])
        return consonant_mass(weighted_sum(np.array(list(weights.values())), contours))
    return MassFunction.of(next(iter(weights)).size, {focal: value / total for focal, value in sums.items()})


def _weights_of(table: Table, place: OpenNode) -> dict[MassFunction, float]:
    return total_weights((table.masses[row], float(table.weights[row])) for row in place.rows)


def total_weights(pairs: Iterable[tuple[MassFunction, float]]) -> dict[MassFunction, float]:
    """Return the weight of each different mass function."""
    totals: dict[MassFunction, float] = {}
    for mass, weight in pairs:
        totals[mass] = totals.get(mass, 0.0) + weight
    return totals


@parametric
class Averaging(TreeLearner):
    """The belief decision tree, averaging approach (Elouedi 2000).

    Source: theory §4.
    """

    name: ClassVar[str] = "averaging"
    has_masses: ClassVar[bool] = True
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return TreeModel.of(averaging(table, **values_of(self), wrap=wrap), table.attributes)
