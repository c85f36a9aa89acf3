"""Belief decision trees, averaging approach (theory §4; Elouedi, Mellouli, Smets 2000)."""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from quercus.belief.errors import TooManyFocalSets, TotalConflict
from quercus.belief.mass import MAX_FOCAL_SETS, MassFunction, consonant_mass
from quercus.belief.measures import pignistic
from quercus.belief.rules import combine_repeatedly, discount
from quercus.belief.sums import weighted_sum
from quercus.specification.parameter import parametric
from quercus.specification.parameters import MAX_CUTS, MAX_DEPTH, MIN_INSTANCES
from quercus.trees.growth.batch import Draw, NodePrediction, OpenNode, grow_tree
from quercus.trees.learners.gain_rules import GainRules
from quercus.trees.learners.learner import TreeLearner
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import singleton_beliefs
from quercus.trees.learners.sharing import node_weights
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest


@parametric
class Averaging(TreeLearner):
    """The belief decision tree, averaging approach (Elouedi 2000).

    Source: theory §4. A node has the mean of its rows' mass functions, ``m_S``; ``Info(S) = H(BetP[m_S])``. It is
    split by the attribute of largest gain, ``Info(T) - Σ f_h Info(T_h)``. A node is a leaf if it has one row, no
    attribute left, or nothing to gain; it combines its rows by Dempster's rule. Numeric attributes, which the paper
    does not cover, are split in two at the threshold of largest gain; missing values form a separate branch.
    """

    name: ClassVar[str] = "averaging"
    has_masses: ClassVar[bool] = True
    certain_alone: ClassVar[str] = ""
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`; every node has a mass, whose BetP is its ``theta``.

        Examples
        --------
        >>> from quercus.specification.attributes import Nominal
        >>> sky = Nominal("sky", ("clear", "grey"))
        >>> masses = [MassFunction.of(2, {1: 0.6, 3: 0.4}), MassFunction.of(2, {2: 0.5, 3: 0.5})]
        >>> (tree,) = Averaging().grow(Table.of_masses([[0], [1]], [sky], masses)).trees
        >>> tree.mass.focal, tree.children[0].mass.focal
        (((1, 0.3), (2, 0.25), (3, 0.45)), ((1, 0.6), (3, 0.4)))
        """
        # BetP is linear: the mean's BetP is the mean of the rows' BetP
        rules = AveragingRules(table, table.pignistic, self)
        return TreeModel.of(grow_tree(root_node(table), rules, draw), table.attributes)


class AveragingRules(GainRules):
    """Rules: the gain in the entropy of pignistic probabilities; nodes predict with their rows' mass functions."""

    def inner_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of the mean mass, for rows whose branch was never seen."""
        weights = mass_weights(self.table, place)
        return mass_summary(mean_mass(weights), sum(weights.values()))

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction by Dempster's rule over the rows.

        A row is combined as often as its rounded weight, and at least once. The mass function of a row that is here in
        part is discounted by that part, the probability that the row belongs here. If the rows are in total conflict,
        or have too many focal sets, their mean is used instead.
        """
        weights = mass_weights(self.table, place)
        size, conflict = sum(weights.values()), False
        try:
            mass = combine_repeatedly(
                {m: max(1, round(w)) for m, w in weights.items()}
                if place.weights is None
                else discounted_masses(self.table, place)
            )
        except (TotalConflict, TooManyFocalSets) as error:
            mass, conflict = mean_mass(weights), isinstance(error, TotalConflict)
        return mass_summary(mass, size, conflict=conflict)


def mass_weights(table: Table, place: OpenNode) -> dict[MassFunction, float]:
    """Return the weight of each distinct mass function of a node's rows."""
    totals: dict[MassFunction, float] = {}
    for row, weight in zip(place.rows.tolist(), node_weights(table, place).tolist(), strict=True):
        mass = table.masses[row]
        totals[mass] = totals.get(mass, 0.0) + weight
    return totals


def discounted_masses(table: Table, place: OpenNode) -> dict[MassFunction, int]:
    """Return the rows' mass functions, each discounted at the part of its row that is here, with multiplicities."""
    totals: dict[MassFunction, float] = {}
    parts = node_weights(table, place) / table.weights[place.rows]
    for row, part in zip(place.rows.tolist(), parts.tolist(), strict=True):
        mass = table.masses[row] if part >= 1 - TIE else discount(table.masses[row], part)
        totals[mass] = totals.get(mass, 0.0) + float(table.weights[row])
    return {mass: max(1, round(weight)) for mass, weight in totals.items()}


def mean_mass(weights: Mapping[MassFunction, float]) -> MassFunction:
    """Return the weighted mean of mass functions on one frame.

    A mean with more than 65,536 focal sets is replaced by the consonant mass function of its contour.

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


def mass_summary(mass: MassFunction, weight: float, *, conflict: bool = False) -> NodePrediction:
    """Return the prediction of a node with this mass function and weight: its BetP, belief and plausibility."""
    theta = tuple(pignistic(mass).tolist())
    plausibility = tuple(mass.contour().tolist())
    return NodePrediction(
        first_largest(theta), theta, singleton_beliefs(mass), plausibility, mass, conflict, weight
    )
