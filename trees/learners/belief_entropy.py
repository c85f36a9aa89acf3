"""Belief-entropy trees (theory §6; Gao, Wang, Ma 2022): OBE, LBE and IBE.

A node fits one density per class for each attribute (`quercus.trees.learners.components`), turns every value into a
nested mass function, and splits by the attribute whose masses have the smallest mean Deng entropy. There is a branch
per class; a row goes to the class of highest density. The three variants have the same tree but different predictions:
OBE from the labels of the node's rows, LBE from the masses of these rows along the path, IBE from the masses of the
classified instance itself.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.sums import weighted_sum
from quercus.specification.parameter import parametric
from quercus.specification.parameters import (
    INSTANCES_PER_CLASS,
    LEAF,
    MAX_DEPTH,
    MAX_MASS_CLASSES,
    MIN_WEIGHT,
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
from quercus.trees.learners.averaging import mass_summary, mass_weights, mean_mass
from quercus.trees.learners.components import Component, branch_of, fit_components
from quercus.trees.learners.entropy_model import BeliefEntropyModel, Rule
from quercus.trees.learners.gain_rules import stop_at_depth
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
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import two_class_shares
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Path, Stop


@parametric
class BeliefEntropy(TreeLearner):
    """The belief-entropy trees (Gao 2022).

    Source: theory §6. Numeric attributes have Gaussians, nominal ones frequencies. No path tests an attribute twice.
    """

    name: ClassVar[str] = "belief-entropy"
    has_masses: ClassVar[bool] = True
    certain_alone: ClassVar[str] = "its densities are fitted to values that are known (Gao, Wang, Ma 2022)"
    leaf: Rule = LEAF.dataclass_field()
    min_instances: int | None = MIN_WEIGHT.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()

    def check_classes(self, size: int) -> None:
        """Raise `InvalidInput` for more than 16 classes with LBE or IBE."""
        if size > MAX_MASS_CLASSES and self.leaf != "OBE":
            raise InvalidInput(
                "leaf", f"is {self.leaf!r}, of {size} classes; above {MAX_MASS_CLASSES} take 'OBE'"
            )

    def own_defaults(self, size: int) -> dict[str, float]:
        """Return the defaults: the smallest node that is split has 5 rows per class."""
        own = super().own_defaults(size)
        return own if self.min_instances is not None else own | {"min_instances": self.least_weight(size)}

    def least_weight(self, size: int) -> int:
        """Return the weight below which a node is a leaf; by default 5 per class, as fewer determine no deviation."""
        return self.min_instances or max(1, INSTANCES_PER_CLASS * size)

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        rules = EntropyRules.of(table, self)
        decided = list(decide_nodes(root_node(table), rules, draw))
        tree = tree_of(decided, rules)
        chosen = [decision.choice for decision, _ in decided]
        logs = [
            rules.commonalities[decision.place.path]
            for decision, _ in decided
            if decision.place.path in rules.commonalities
        ]
        return BeliefEntropyModel(
            attributes=table.attributes,
            size=table.size,
            kind=self.leaf,
            flat=FlatTree.of(tree),
            components=tuple(c.component if isinstance(c, EntropyChoice) else None for c in chosen),
            commonalities=np.array(logs).reshape(-1, 1 << min(table.size, MAX_MASS_CLASSES)),
        )


@dataclass(frozen=True, slots=True)
class EntropyChoice(SplitChoice):
    """The attribute of smallest entropy, with its densities."""

    component: Component | None = None


@dataclass(frozen=True, eq=False)
class EntropyRules(GrowthRules):
    """Rules: the smallest mean Deng entropy; a branch for every class that has the highest density for some row.

    The tree shows minus the mean entropy of an attribute as its gain. Of tied attributes, the first is chosen. An
    attribute is tested at most once on a path.

    Parameters
    ----------
    table
        The rows.
    learner
        The leaf rule and the limits of growth.
    floor
        (K,) minimum deviation of every column, see `quercus.trees.learners.mixture.column_floor`.
    alone
        (n, l) ``m_i({c})``, mass of each class alone under each label.
    log_contours
        Rows of each inner node, and their log contours by its densities.
    commonalities
        (2^l,) log commonalities of the nodes' masses, for LBE.
    """

    table: Table
    learner: BeliefEntropy
    floor: Floats
    alone: Floats
    log_contours: dict[Path, tuple[Ints, Floats]] = field(default_factory=dict)
    commonalities: dict[Path, Floats] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, learner: BeliefEntropy) -> "EntropyRules":
        """Return the rules for a table."""
        floor = column_floor(table.values, table.contours, table.weights)
        alone = np.column_stack([two_class_shares(table, c)[:, 0] for c in range(table.size)])
        return cls(table, learner, floor, alone)

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split: too little weight, one class for certain, too deep."""
        if self.table.weights[place.rows].sum() < self.learner.least_weight(self.table.size) - TIE:
            return Stop.FEW_INSTANCES
        possible = self.table.contours[place.rows] > 0.0
        if self.table.precise[place.rows].all() and (possible == possible[0]).all():
            return Stop.PURE
        return stop_at_depth(place, self.learner.max_depth)

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
        return EntropyChoice(place.attributes[at], gains, component=components[at])

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return the populated children, in order of class."""
        if not isinstance(choice, EntropyChoice) or choice.component is None:
            raise TypeError("the choice must come from these rules")
        k = choice.attribute
        column = self.table.values[place.rows, k]
        logs = choice.component.log_densities(column)
        codes = branch_of(choice.component, column, logs)
        self.log_contours[place.path] = place.rows, ConsonantMasses.of(logs).log_contours()
        left = tuple(a for a in place.attributes if a != k)
        return [place.child(k, code, place.rows[codes == code], left) for code in np.unique(codes).tolist()]

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction by the leaf rule. IBE needs an instance to predict, so its nodes show that of OBE."""
        return self._from_path(place) if self.learner.leaf == "LBE" else self._from_labels(place)

    def _from_labels(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of OBE: ``argmax_k Σ_i w_i pl_ik``.

        Belief, plausibility and probability (BetP) are those of the mean of the labels' mass functions, so the
        probability lies between the other two, and the class is the most plausible one. The paper's normalised
        plausibilities can lie outside these bounds. A contour stands for its consonant mass function: its largest
        plausibility counts as 1, since a contour has no absolute height (theory §1.3).
        """
        weights = self.table.weights[place.rows]
        total = float(weights.sum())
        share = weights / total
        belief = np.minimum(weighted_sum(share, self.alone[place.rows]), 1.0)
        plausibility = np.minimum(weighted_sum(share, self.table.plausibilities[place.rows]), 1.0)
        theta = weighted_sum(share, self.table.pignistic[place.rows])
        theta = np.clip(theta, belief, plausibility)  # already inside, except for rounding
        shares, low, high = (tuple(column.tolist()) for column in (theta, belief, plausibility))
        return NodePrediction(first_largest(high), shares, low, high, weight=total)

    def _from_path(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of LBE: Dempster's rule over the masses along the path, and over the node's rows.

        A root has no path; its prediction is the mean of the rows' labels. Total conflict cannot occur: each mass
        function leaves some plausibility to every class that is possible for a row of the node, and logarithms do not
        underflow.
        """
        table = self.table
        weights = table.weights[place.rows]
        if not place.path:
            mean = mean_mass(mass_weights(table, place))
            self.commonalities[()] = log_commonalities_of(mean)
            return mass_summary(mean, float(weights.sum()))
        total = np.zeros(1 << table.size)
        for depth in range(len(place.path)):
            rows, logs = self.log_contours[place.path[:depth]]
            here = log_commonalities(logs[np.searchsorted(rows, place.rows)])
            total += weighted_sum(weights, here)
        masses, _ = normalised_masses(total)
        self.commonalities[place.path] = total - total[1 << np.arange(table.size)].max()
        return mass_summary(mass_function(masses), float(weights.sum()))
