"""The trees by total uncertainty for many λ at once, and the choice of one by cross-validation (theory §5).

``U_λ`` is linear in λ, and what adds up below a cut does not depend on it. So λ is taken for one more number that a
tree may test: the tree is grown for all λ together, and where they would not split a node alike, it is split by λ
first. What most of them share is grown once.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Numeric
from quercus.specification.parameters import COMBINE, FOLDS, MIN_INSTANCES
from quercus.trees.growth.batch import Branch, GrowthRules, OpenNode, SplitChoice, grow_tree
from quercus.trees.learners.executor import TaskExecutor
from quercus.trees.learners.one_against_rest import Combine, check_combine, pignistic_together
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.predictions import Predictions, RepeatedMasses, first_most_likely
from quercus.trees.learners.splits import ByCode, Candidates, candidate_splits, root_node, weighted_statistics
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import (
    LAMBDAS,
    NodeMass,
    UntilNoGain,
    check_lambda,
    node_masses,
    node_uncertainties,
    two_class_shares,
)
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.node import Stop
from quercus.trees.tree.splits import ABOVE, BELOW, NO_SPLIT


@dataclass(frozen=True, slots=True, eq=False)
class _Lambdas:
    """The λ of a node: number ``j`` is among its attributes as ``K + j``, K attributes being those of the rows.

    In the tree, λ is attribute K.
    """

    table: Table
    tried: Floats

    @property
    def lambda_attribute(self) -> int:
        return len(self.table.attributes)

    def split_lambda(self, place: OpenNode) -> tuple[OpenNode, Floats]:
        """Return the place without λ, and its λ."""
        count = self.lambda_attribute
        plain = tuple(k for k in place.attributes if k < count)
        numbers = [k - count for k in place.attributes[len(plain) :]]
        return OpenNode(place.path, place.rows, plain), self.tried[numbers]


@dataclass(frozen=True, slots=True, eq=False)
class _Choices:
    """Criterion: the split of largest gain; where that is not the same one for all λ, the first λ with another."""

    lambdas: _Lambdas
    shares: Floats
    max_cuts: int | None
    cached: dict[bytes, tuple[Candidates, Floats]] = field(default_factory=dict)

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        plain, lam = self.lambdas.split_lambda(place)
        key = plain.rows.tobytes()
        if key not in self.cached:
            self.cached[key] = self._measure_gains(plain)
        found, gained = self.cached[key]
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
            return self._split_choice(found, int(best[0, at[0]]), float(gain[0]))
        k = self.lambdas.lambda_attribute
        other = float(lam[np.argmax(split != split[0])])
        return SplitChoice(k, {k: (np.inf, np.inf)}, (k,), threshold=other)  # no reason to stop

    def _split_choice(self, found: Candidates, split: int, gain: float) -> SplitChoice:
        k = int(found.attributes[split])
        return SplitChoice(k, {k: (gain, gain)}, (k,), threshold=found.threshold(split))

    def _measure_gains(self, place: OpenNode) -> tuple[Candidates, Floats]:
        """Return the splits of a node, and what each gains of nonspecificity and of discord, (2, s)."""
        statistics = weighted_statistics(self.lambdas.table, place, self.shares)
        found = Candidates.joined(
            list(candidate_splits(self.lambdas.table, place, statistics, self.max_cuts)), statistics.shape[1]
        )
        total = statistics.sum(axis=0)
        share = found.sizes / total[0]
        below = node_uncertainties(node_masses(found.sums))
        parent = node_uncertainties(node_masses(total))
        return found, (parent - (share[..., np.newaxis] * below).sum(axis=1)).T


@dataclass(frozen=True, slots=True, eq=False)
class _Branching:
    lambdas: _Lambdas
    plain: ByCode

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[Branch]:
        k = choice.attribute
        if k != self.lambdas.lambda_attribute or choice.threshold is None:
            return self.plain.branches(place, choice)
        of_rows = tuple(a for a in place.attributes if a < k)
        below = tuple(a for a in place.attributes if a >= k and self.lambdas.tried[a - k] < choice.threshold)
        above = tuple(a for a in place.attributes if a >= k and a not in below)
        return [
            Branch(k, code, place.rows, of_rows + some) for code, some in ((BELOW, below), (ABOVE, above))
        ]


@dataclass(frozen=True, slots=True, eq=False)
class _UntilNoGain:
    lambdas: _Lambdas
    plain: UntilNoGain

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        tests = tuple(step for step in place.path if step[0] != self.lambdas.lambda_attribute)
        return self.plain.stop_before_split(replace(place, path=tests))

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        return self.plain.stop_after_choice(place, choice)


def lambda_path(
    table: Table,
    lambdas: Sequence[float],
    *,
    klass: int = 0,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int | None = None,
) -> TreeModel:
    """Return the trees that tell one class from the rest for many λ, as one tree; λ is its last attribute.

    Parameters
    ----------
    lambdas
        Ascending, in [0, 1].
    table, klass, min_instances, max_depth, max_cuts
        See `quercus.trees.learners.total_uncertainty.total_uncertainty_tree`.
    """
    tried = _Lambdas(table, np.array(lambdas))
    shares = two_class_shares(table, klass)
    method = GrowthRules(
        criterion=_Choices(tried, shares, max_cuts),
        branching=_Branching(tried, ByCode(table)),
        stopping=_UntilNoGain(tried, UntilNoGain(table, min_instances, max_depth)),
        leaf=NodeMass(table, shares),
    )
    place = replace(root_node(table), attributes=tuple(range(tried.lambda_attribute + len(lambdas))))
    return TreeModel.of(grow_tree(place, method), (*table.attributes, Numeric("λ")))


def choose_lambda(
    table: Table,
    seed: int,
    *,
    lambdas: Sequence[float] = LAMBDAS,
    folds: int = FOLDS.default,
    combine: Combine = COMBINE.default,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    max_cuts: int | None = None,
    executor: TaskExecutor | None = None,
) -> float:
    """Return the λ of least expected error in cross-validation; of tied ones the smallest, for the smaller tree.

    The error of a decision for a row with an uncertain label is ``1 - BetP_i(decided class)``: its expectation
    under the label's pignistic probability, the plain error where labels are precise.

    Parameters
    ----------
    seed
        Seed of the folds.
    lambdas
        Values of λ to try.
    folds
        Number of folds, 2 to the number of rows.
    table, combine, min_instances, max_depth, max_cuts
        See `quercus.trees.learners.total_uncertainty.fit_total_uncertainty`.
    executor
        Does the folds; default this process. The choice is the same.

    Raises
    ------
    InvalidInput
        When a parameter lies outside its bounds.
    """
    rows = np.flatnonzero(table.weights)
    FOLDS.check(folds)
    if not lambdas or len(rows) < 2:
        raise InvalidInput("lambdas", "must be at least one, and rows to cross-validate on at least two")
    check_combine(combine, table.size)
    MIN_INSTANCES.check(min_instances)
    for lam in lambdas:
        check_lambda(lam)
    parts = np.array_split(np.random.default_rng(seed).permutation(rows), min(folds, len(rows)))
    tried = sorted(float(lam) for lam in lambdas)
    grow = partial(lambda_path, min_instances=min_instances, max_depth=max_depth, max_cuts=max_cuts)
    run = map if executor is None else executor.map
    errors = np.zeros(len(tried))
    for of_fold in run(partial(_errors_of_fold, table, rows, tried, grow=grow, combine=combine), parts):
        errors += of_fold
    return tried[first_largest((-errors / table.weights.sum()).tolist())]


def _errors_of_fold(
    table: Table,
    rows: Ints,
    tried: Sequence[float],
    part: Ints,
    *,
    grow: Callable[..., TreeModel],
    combine: Combine,
) -> Floats:
    """Return the error of each λ on the rows of a part, of trees grown from the other rows."""
    rest = table.take(np.setdiff1d(rows, part))
    paths = [grow(rest, tried, klass=c) for c in range(1 if table.size == 2 else table.size)]
    decided = _decided_classes(paths, table.values[part], tried, combine)
    errors: Floats = ((1.0 - table.pignistic[part, decided]) * table.weights[part]).sum(axis=1)
    return errors


def _decided_classes(
    paths: Sequence[TreeModel], values: Floats, lambdas: Sequence[float], combine: Combine
) -> Ints:
    """Return the class of every row for every λ, (lambdas, rows)."""
    each = np.column_stack([np.tile(values, (len(lambdas), 1)), np.repeat(lambdas, len(values))])
    predicted = [path.predict(each) for path in paths]
    if len(predicted) == 1:
        klass = predicted[0].klass
    else:
        klass = first_most_likely(
            pignistic_together(np.stack([_node_class_masses(one) for one in predicted], axis=1), combine)
        )
    return klass.reshape(len(lambdas), -1)


def _node_class_masses(predicted: Predictions) -> Floats:
    """Return the masses of ``{ω}``, ``{¬ω}`` and both, (n, 3)."""
    if not isinstance(predicted.masses, RepeatedMasses):
        raise TypeError("a tree with masses shares them")
    focal = [dict(mass.focal) for mass in predicted.masses.distinct]
    return np.array([[f.get(0b01, 0.0), f.get(0b10, 0.0), f.get(0b11, 0.0)] for f in focal])[
        predicted.masses.which
    ]
