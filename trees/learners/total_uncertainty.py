"""Belief decision trees by total uncertainty (theory §5; Vannoorenberghe, Denoeux 2002).

For two classes there is one tree. For more there is one tree per class against all others, and their masses are
combined.

λ, the weight of discord, is chosen by cross-validation. ``U_λ`` is linear in λ, and the sums below a cut do not depend
on it. λ is therefore treated as a further number that a tree may test (`lambda_path`): one tree is grown for all λ, and
a node is split by λ first if different λ would split it differently. Shared parts are grown only once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import ClassVar, Final, Self

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.sums import weighted_sum
from quercus.specification.attributes import Numeric
from quercus.specification.parameter import parametric
from quercus.specification.parameters import (
    COMBINE,
    FOLDS,
    LAM,
    MAX_CUTS,
    MAX_DEPTH,
    MAX_MASS_CLASSES,
    MIN_INSTANCES,
    SEED,
)
from quercus.trees.growth.batch import Draw, NodePrediction, OpenNode, SplitChoice, grow_tree
from quercus.trees.learners.cells import UncertainValues
from quercus.trees.learners.gain_rules import GainRules, stop_at_depth
from quercus.trees.learners.learner import TaskExecutor, TreeLearner
from quercus.trees.learners.one_against_rest import Combine, OneAgainstRest, pignistic_together
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.predictions import RepeatedMasses, first_most_likely
from quercus.trees.learners.sharing import node_weights
from quercus.trees.learners.splits import Candidates, candidate_splits, root_node, weighted_statistics
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.node import Stop
from quercus.trees.tree.splits import ABOVE, BELOW, NO_SPLIT

LAMBDAS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Values of λ that cross-validation tries. At 0, only the size of a node counts, and no split gains anything."""

DEFAULT_LAMBDA: Final = 0.5
"""λ if none is given and fewer than two rows have a weight, so that cross-validation is impossible."""


@parametric
class TotalUncertainty(TreeLearner):
    """Belief decision trees by total uncertainty (Vannoorenberghe 2002): one for two classes, else one per class.

    Source: theory §5. A nominal attribute splits by value, a numeric one at a threshold. A smaller λ gives a smaller
    tree. Dempster's rule produces up to ``2^l`` focal sets, so it is limited to 16 classes.
    """

    name: ClassVar[str] = "total-uncertainty"
    has_masses: ClassVar[bool] = True
    certain_alone: ClassVar[str] = ""
    lam: float | None = LAM.dataclass_field()
    combine: Combine = COMBINE.dataclass_field()
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    folds: int = FOLDS.dataclass_field()
    seed: int = SEED.dataclass_field()

    def check_classes(self, size: int) -> None:
        """Raise `InvalidInput` for more than 16 classes with Dempster's rule."""
        if size > MAX_MASS_CLASSES and self.combine == "dempster":
            raise InvalidInput(
                "combine", f"is 'dempster', of {size} classes; above {MAX_MASS_CLASSES} take 'mean'"
            )

    def learning_cost(self, size: int) -> Mapping[str, int]:
        """Return the number of trees grown; a fold counts once per λ that is tried, although these grow together."""
        each = size if size > 2 else 1
        return {"trees": each, "folds": 0 if self.lam is not None else self.folds * len(LAMBDAS) * each}

    def prepared(self, table: Table, executor: TaskExecutor | None) -> Self:
        """Return the learner with λ chosen once, from the whole table, for all trees of a forest."""
        if self.lam is not None:
            return self
        can_choose = np.count_nonzero(table.weights) > 1
        return replace(self, lam=choose_lambda(self, table, executor) if can_choose else DEFAULT_LAMBDA)

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        trees = [
            TreeModel.of(
                grow_tree(root_node(table), UncertaintyRules.of(table, self, c), draw), table.attributes
            )
            for c in range(1 if table.size == 2 else table.size)
        ]
        return (
            trees[0]
            if table.size == 2
            else OneAgainstRest(table.attributes, table.size, tuple(trees), self.combine)
        )


def two_class_shares(table: Table, klass: int) -> Floats:
    """Return ``m_i({ω})`` and ``m_i({¬ω})`` of every label, (n, 2), coarsened to the class ω and the rest.

    ``m({¬ω}) = Σ_{A ⊆ ¬ω} m(A) = 1 - pl(ω)``. A label given as a contour stands for its consonant mass function
    (`quercus.belief.mass.consonant_mass`), for which ``m({ω}) = 1 - max_{c ≠ ω} pl(c)``.
    """
    pl = table.plausibilities
    if table.given is None:
        others = np.delete(pl, klass, axis=1).max(axis=1)
        return np.column_stack([1.0 - others, 1.0 - pl[:, klass]])
    alone = {mass: dict(mass.focal).get(1 << klass, 0.0) for mass in set(table.given)}
    return np.column_stack([[alone[mass] for mass in table.given], 1.0 - pl[:, klass]])


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

    ``N`` is the mass of both (times log2 2); ``D = -Σ m log2 BetP``, to which the mass of both adds nothing, since BetP
    of the whole is 1.
    """
    singles, both = masses[..., :2], masses[..., 2:]
    terms = singles * np.log2(np.where(singles > 0.0, singles + both / 2.0, 1.0))
    return np.stack([masses[..., 2], -(terms[..., 0] + terms[..., 1])], axis=-1)


def total_uncertainty(masses: Floats, lam: float) -> Floats:
    """Return ``U_λ = (1 - λ) N + λ D`` in bits of masses (..., 3) from `node_masses`."""
    both = node_uncertainties(masses)
    measure: Floats = (1.0 - lam) * both[..., 0] + lam * both[..., 1]
    return measure


@dataclass(frozen=True, eq=False)
class UncertaintyRules(GainRules):
    """Rules of the tree that distinguishes a class ω (class 0) from the rest (class 1): the largest gain of ``U_λ``.

    The nonspecificity of small nodes limits the tree: a node without any gain is a leaf.
    """

    learner: TotalUncertainty

    @classmethod
    def of(cls, table: Table, learner: TotalUncertainty, klass: int) -> Self:
        """Return the rules of the tree of one class."""
        return cls(table, two_class_shares(table, klass), learner)

    def impurity(self, sums: Floats) -> Floats:
        """Return ``U_λ``."""
        lam = DEFAULT_LAMBDA if self.learner.lam is None else self.learner.lam
        return total_uncertainty(node_masses(sums), lam)

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split: too little weight, or too deep."""
        if node_weights(self.table, place).sum() < self.learner.min_instances - TIE:
            return Stop.FEW_INSTANCES
        return stop_at_depth(place, self.learner.max_depth)

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when the split gains nothing."""
        return Stop.NO_GAIN if choice.intervals[choice.attribute][1] <= TIE else None

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction that follows from the node's mass."""
        weights = node_weights(self.table, place)
        total = float(weights.sum())
        for_it, against = (weighted_sum(weights, self.shares[place.rows]) / (total + 1.0)).tolist()
        for_it = min(for_it, 1.0)  # rounding may exceed 1 if the weights are so large that n + 1 equals n
        against = min(against, 1.0 - for_it)
        both = max(1.0 - (for_it + against), 0.0)
        mass = MassFunction(2, ((0b01, for_it), (0b10, against), (0b11, both)))
        theta = for_it + both / 2.0, against + both / 2.0
        plausibility = for_it + both, against + both
        return NodePrediction(
            first_largest(theta), theta, (for_it, against), plausibility, mass, weight=total
        )


def choose_lambda(
    learner: TotalUncertainty,
    table: Table,
    executor: TaskExecutor | None = None,
    lambdas: Sequence[float] = LAMBDAS,
) -> float:
    """Return the λ with the smallest expected error in cross-validation; the smallest if tied, for the smaller tree.

    The error of a decision for a row with an uncertain label is ``1 - BetP_i(decided class)``: its expectation under
    the label's pignistic probability, and the plain error for precise labels.

    Parameters
    ----------
    learner
        The learner; all of its parameters except λ are used, including the folds and their seed.
    table
        A table with at least two rows of positive weight.
    executor
        Runs the folds; by default, this process does. The choice does not depend on it.
    lambdas
        Values of λ to try.
    """
    rows, tried = np.flatnonzero(table.weights), sorted(lambdas)
    shuffled = np.random.default_rng(learner.seed).permutation(rows)
    parts = np.array_split(shuffled, min(learner.folds, len(rows)))
    run = map if executor is None else executor.map
    errors = np.zeros(len(tried))
    for of_fold in run(partial(_errors_of_fold, learner, table, rows, tried), parts):
        errors += of_fold
    return tried[first_largest((-errors / table.weights.sum()).tolist())]


def _errors_of_fold(
    learner: TotalUncertainty, table: Table, rows: Ints, tried: Sequence[float], part: Ints
) -> Floats:
    """Return the error of each λ on the rows of a fold, with trees grown from the other rows."""
    rest = table.take(np.setdiff1d(rows, part))
    paths = [lambda_path(rest, learner, tried, c) for c in range(1 if table.size == 2 else table.size)]
    cells = table.cells.take(np.tile(part, len(tried)))
    each = np.column_stack([cells.values, np.repeat(tried, len(part))])
    predicted = [path.predict_cells(UncertainValues(each, cells.parts)) for path in paths]
    klass = predicted[0].klass
    if len(predicted) > 1:
        of_trees = []
        for one in predicted:
            if not isinstance(one.masses, RepeatedMasses):
                raise TypeError("a tree with masses must provide them")
            focal = [dict(mass.focal) for mass in one.masses.distinct]
            masses = np.array([[f.get(0b01, 0.0), f.get(0b10, 0.0), f.get(0b11, 0.0)] for f in focal])
            of_trees.append(masses[one.masses.which])
        klass = first_most_likely(pignistic_together(np.stack(of_trees, axis=1), learner.combine))
    wrong = 1.0 - table.pignistic[part, klass.reshape(len(tried), -1)]
    errors: Floats = (wrong * table.weights[part]).sum(axis=1)
    return errors


def lambda_path(
    table: Table, learner: TotalUncertainty, lambdas: Sequence[float], klass: int = 0
) -> TreeModel:
    """Return the trees that distinguish one class from the rest for many λ, ascending, as one tree.

    λ is its last attribute.
    """
    rules = PathRules(table, two_class_shares(table, klass), learner, tried=np.array(lambdas))
    place = root_node(table)
    every = tuple(range(len(table.attributes) + len(lambdas)))
    tree = grow_tree(replace(place, attributes=every), rules)
    return TreeModel.of(tree, (*table.attributes, Numeric("λ")))


@dataclass(frozen=True, eq=False)
class PathRules(UncertaintyRules):
    """Rules for many λ: the split of largest gain or, if the λ differ in it, a split at the first λ with another.

    At a node, λ number ``j`` is represented by the attribute ``K + j``, where K is the number of attributes of the
    rows. In the tree, λ is attribute K.
    """

    tried: Floats = field(kw_only=True)
    _gains: dict[bytes, tuple[Candidates, Floats]] = field(default_factory=dict, init=False)

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split; a split by λ makes it no deeper."""
        tests = tuple(step for step in place.path if step[0] != len(self.table.attributes))
        return super().stop_before_split(replace(place, path=tests))

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no attribute can split the node."""
        k = len(self.table.attributes)
        plain = tuple(a for a in place.attributes if a < k)
        lam = self.tried[[a - k for a in place.attributes[len(plain) :]]]
        key = place.rows.tobytes() + (b"" if place.weights is None else place.weights.tobytes())
        if key not in self._gains:
            self._gains[key] = self._measure_gains(replace(place, attributes=plain))
        found, gained = self._gains[key]
        if not found.attributes.size:
            return None
        gains = np.multiply.outer(1.0 - lam, gained[0]) + np.multiply.outer(lam, gained[1])
        best = found.best_of_attributes(gains)
        values = np.take_along_axis(gains, best, axis=1)
        at = first_most_likely(values)
        every = np.arange(len(lam))
        split, gain = best[every, at], values[every, at]
        split[gain <= TIE] = NO_SPLIT
        if (split == split[0]).all():
            first, most = int(best[0, at[0]]), float(gain[0])
            attribute = int(found.attributes[first])
            return SplitChoice(attribute, {attribute: (most, most)}, threshold=found.threshold(first))
        other = float(lam[np.argmax(split != split[0])])
        return SplitChoice(k, {k: (np.inf, np.inf)}, threshold=other)  # no reason to stop

    def _measure_gains(self, place: OpenNode) -> tuple[Candidates, Floats]:
        """Return the splits of a node, and the gain of each in nonspecificity and in discord, (2, s)."""
        statistics = weighted_statistics(self.table, place, self.shares)
        some = list(candidate_splits(self.table, place, statistics, self.learner.max_cuts))
        found = Candidates.joined(some, statistics.shape[1])
        total = statistics.sum(axis=0)
        share = found.sizes / total[0]
        below = node_uncertainties(node_masses(found.sums))
        parent = node_uncertainties(node_masses(total))
        return found, (parent - (share[..., np.newaxis] * below).sum(axis=1)).T

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return the populated children; children of a split by λ have the same rows, and the λ of their side."""
        k = choice.attribute
        if k != len(self.table.attributes) or choice.threshold is None:
            return super().branches(place, choice)
        of_rows = tuple(a for a in place.attributes if a < k)
        below = tuple(a for a in place.attributes if a >= k and self.tried[a - k] < choice.threshold)
        above = tuple(a for a in place.attributes if a >= k and a not in below)
        return [
            place.child(k, code, place.rows, of_rows + some, place.weights)
            for code, some in ((BELOW, below), (ABOVE, above))
        ]
