"""Belief decision trees by total uncertainty (theory §5; Vannoorenberghe, Denoeux 2002).

Two classes make one tree. More make one tree a class, against all others, and their masses are combined.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.sums import weighted_sum
from quercus.specification.parameters import (
    COMBINE,
    LAM,
    MIN_INSTANCES,
)
from quercus.trees.growth.batch import (
    Criterion,
    GrowthRules,
    NodePrediction,
    OpenNode,
    SplitChoice,
    grow_tree,
)
from quercus.trees.learners.one_against_rest import Combine, OneAgainstRest, check_combine
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.splits import ByCode, LargestGain, root_node
from quercus.trees.learners.stopping_rules import Wrap, node_weight, wrap_criterion
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.node import Node, Stop

LAMBDAS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""λ that cross-validation tries. At 0 only the size of a node counts, and no split gains."""

DEFAULT_LAMBDA: Final = 0.5
"""λ where none is given and cross-validation cannot choose one: it needs two rows with a weight."""


def node_masses(sums: Floats) -> Floats:
    """Return the credal inference on Bernoulli trials, (..., 3): masses of ``{ω}``, ``{¬ω}`` and both.

    ``m({ω}) = Σ m_i({ω}) / (n + 1)``, ``m({¬ω}) = Σ m_i({¬ω}) / (n + 1)``, the rest on both (theory §5).

    Parameters
    ----------
    sums
        (..., 3): weight ``n``, ``Σ m_i({ω})``, ``Σ m_i({¬ω})``.

    Examples
    --------
    >>> node_masses(np.array([9.0, 6.0, 3.0])).round(6).tolist()
    [0.6, 0.3, 0.1]
    """
    masses = np.empty(sums.shape)
    np.divide(sums[..., 1:], sums[..., :1] + 1.0, out=masses[..., :2])
    masses[..., 2] = 1.0 - (masses[..., 0] + masses[..., 1])
    return masses


def node_uncertainties(masses: Floats) -> Floats:
    """Return nonspecificity ``N`` and discord ``D`` in bits of masses (..., 3) from `node_masses`: (..., 2).

    ``N`` is the mass of both (times log2 2); ``D = -Σ m log2 BetP``, to which the mass of both adds nothing
    since BetP of the whole is 1.
    """
    singles, both = masses[..., :2], masses[..., 2:]
    terms = singles * np.log2(np.where(singles > 0.0, singles + both / 2.0, 1.0))
    return np.stack([masses[..., 2], -(terms[..., 0] + terms[..., 1])], axis=-1)


def total_uncertainty(masses: Floats, lam: float) -> Floats:
    """Return ``U_λ = (1 - λ) N + λ D`` in bits of masses (..., 3) from `node_masses`."""
    both = node_uncertainties(masses)
    measure: Floats = (1.0 - lam) * both[..., 0] + lam * both[..., 1]
    return measure


@dataclass(frozen=True, slots=True)
class _Impurity:
    """``U_λ`` of sums of statistics; an object, so that it can travel to other processes."""

    lam: float

    def __call__(self, sums: Floats) -> Floats:
        return total_uncertainty(node_masses(sums), self.lam)


@dataclass(frozen=True, slots=True, eq=False)
class UntilNoGain:
    """Stop where nothing is gained: the nonspecificity of small nodes is what prunes the tree."""

    table: Table
    min_instances: int
    max_depth: int | None

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split at any gain, or None."""
        if self.table.weights[place.rows].sum() < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        return Stop.MAX_DEPTH if self.max_depth is not None and place.depth >= self.max_depth else None

    def stop_after_choice(self, _place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no split gains anything."""
        return Stop.NO_GAIN if choice.intervals[choice.attribute][1] <= TIE else None


@dataclass(frozen=True, slots=True, eq=False)
class NodeMass:
    """The node's mass, and what follows from it."""

    table: Table
    shares: Floats

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction."""
        weights = self.table.weights[place.rows]
        total = float(weights.sum())
        for_it, against = (weighted_sum(weights, self.shares[place.rows]) / (total + 1.0)).tolist()
        for_it = min(for_it, 1.0)  # of rows that weigh so much that n + 1 is n, rounding may make more than 1
        against = min(against, 1.0 - for_it)
        both = max(1.0 - (for_it + against), 0.0)
        mass = MassFunction(2, ((0b01, for_it), (0b10, against), (0b11, both)))
        theta = for_it + both / 2.0, against + both / 2.0
        weight = node_weight(place, total)
        return NodePrediction(
            first_largest(theta),
            theta,
            (for_it, against),
            (for_it + both, against + both),
            mass,
            weight=weight,
        )


def two_class_shares(table: Table, klass: int) -> Floats:
    """Return ``m_i({ω})`` and ``m_i({¬ω})`` of every label, (n, 2), coarsened to the class ω and the rest.

    ``m({¬ω}) = Σ_{A ⊆ ¬ω} m(A) = 1 - pl(ω)``. A label given as a contour is taken as its consonant mass function
    (`quercus.belief.mass.consonant_mass`), for which ``m({ω}) = 1 - max_{c ≠ ω} pl(c)``.
    """
    pl = table.plausibilities
    if table.given is None:
        others = np.delete(pl, klass, axis=1).max(axis=1)
        return np.column_stack([1.0 - others, 1.0 - pl[:, klass]])
    alone = {mass: dict(mass.focal).get(1 << klass, 0.0) for mass in set(table.given)}
    return np.column_stack([[alone[mass] for mass in table.given], 1.0 - pl[:, klass]])


def total_uncertainty_tree(
    table: Table,
    lam: float = DEFAULT_LAMBDA,
    *,
    klass: int = 0,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int | None = None,
    wrap: Wrap | None = None,
) -> Node:
    """Grow the tree that tells one class from the rest (theory §5).

    Parameters
    ----------
    table
        The rows. A nominal attribute splits by value, a numeric one at a threshold.
    lam
        λ in [0, 1]: weight of discord, 1 - λ that of nonspecificity. The smaller, the smaller the tree.
    klass
        The class ω. The masses of the nodes are on ω (class 0) and its complement (class 1).
    min_instances
        A node of less weight is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    max_cuts
        Most thresholds of a numeric attribute at a node, see `quercus.trees.tree.splits.midpoints`.
    wrap
        Put around the criterion: a forest's choice among random attributes.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    check_lambda(lam)
    if not 0 <= klass < table.size:
        raise InvalidInput("klass", f"is {klass}, must lie in [0, {table.size})")
    MIN_INSTANCES.check(min_instances)
    shares = two_class_shares(table, klass)
    criterion: Criterion = LargestGain(table, shares, _Impurity(float(lam)), max_cuts)
    method = GrowthRules(
        criterion=wrap_criterion(criterion, wrap),
        branching=ByCode(table),
        stopping=UntilNoGain(table, min_instances, max_depth),
        leaf=NodeMass(table, shares),
    )
    return grow_tree(root_node(table), method)


def fit_total_uncertainty(
    table: Table,
    lam: float = DEFAULT_LAMBDA,
    *,
    combine: Combine = COMBINE.default,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int | None = None,
    wrap: Wrap | None = None,
) -> TreeModel | OneAgainstRest:
    """Grow one tree for two classes, else one tree a class against the rest (theory §5).

    Parameters
    ----------
    combine
        Combination of the trees' masses. Dempster's rule makes up to ``2^l`` focal sets: at most 16 classes.
    table, lam, min_instances, max_depth, max_cuts, wrap
        See `total_uncertainty_tree`.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    check_combine(combine, table.size)
    models = tuple(
        TreeModel.of(
            total_uncertainty_tree(
                table,
                lam,
                klass=c,
                min_instances=min_instances,
                max_depth=max_depth,
                max_cuts=max_cuts,
                wrap=wrap,
            ),
            table.attributes,
        )
        for c in range(1 if table.size == 2 else table.size)
    )
    return models[0] if table.size == 2 else OneAgainstRest(table.attributes, table.size, models, combine)


def check_lambda(lam: float) -> None:
    """Raise unless λ lies in [0, 1]."""
    LAM.with_changes(meaning_of_none="").check(lam)
