"""C4.5 (Quinlan 1993; thresholds of release 8, Quinlan 1996): gain ratio, and parts of rows for missing values."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.errors import InvalidInput, shown
from quercus.specification.parameter import parametric, values_of
from quercus.specification.parameters import CONFIDENCE, MAX_CUTS, MAX_DEPTH, MIN_BRANCH, MIN_INSTANCES
from quercus.trees.growth.batch import Branch, GrowthRules, OpenNode, SplitChoice, grow_tree
from quercus.trees.learners.learner import TreeLearner, precise_rows
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.pruning import prune_pessimistic
from quercus.trees.learners.splits import (
    ByCode,
    Candidates,
    candidate_splits,
    class_entropy,
    root_node,
    share_entropy,
    weighted_statistics,
)
from quercus.trees.learners.stopping_rules import (
    Limits,
    MeanShares,
    UntilPure,
    Wrap,
    precise_shares,
    wrap_criterion,
)
from quercus.trees.learners.subtree_raising import collapse_errors, prune_and_raise
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.node import Node

MOST_BESIDE_A_THRESHOLD = 25.0  # rows; of C4.5's program


@dataclass(frozen=True, slots=True)
class Admission:
    """The conditions on a test that C4.5 may choose.

    Parameters
    ----------
    min_branch
        At least two branches must have this weight of rows (C4.5's ``-m``), 1 or more.
    min_side
        Both sides of a threshold must hold this share of the known rows over the number of classes, but never
        more than 25 rows need be there; in [0, 1], 0 for no such rule.
    threshold_cost
        The gain of a number is lowered by ``log2(t) / |T|``, what it costs to name one of its ``t`` admitted
        thresholds (minimum description length, Quinlan 1996).
    average_gain
        Of the tests, only those are looked at whose gain is at least the mean gain of all that gain something or
        nothing: the ratio alone favours splits that cut off next to nothing.
    """

    min_branch: int = MIN_BRANCH.default
    min_side: float = 0.1
    threshold_cost: bool = True
    average_gain: bool = True

    def __post_init__(self) -> None:
        MIN_BRANCH.check(self.min_branch)
        if isinstance(self.min_side, bool) or not 0 <= self.min_side <= 1:
            raise InvalidInput("min_side", f"is {shown(self.min_side)}, must lie in [0, 1]")


def c45(
    table: Table,
    *,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    min_branch: int = MIN_BRANCH.default,
    min_side: float = 0.1,
    threshold_cost: bool = True,
    average_gain: bool = True,
    max_cuts: int | None = None,
    confidence: float | None = CONFIDENCE.default,
    raising: bool = True,
    wrap: Wrap | None = None,
) -> Node:
    """Grow a tree by gain ratio.

    The defaults are C4.5's. ``min_branch=1, average_gain=False, confidence=None`` gives on nominal attributes the
    tree of ABC4.5 at α = 1 without queries; on numbers ``min_side=0, threshold_cost=False`` does, but for thresholds of
    equal gain: C4.5's program takes the lowest.

    Parameters
    ----------
    table
        The rows; every label names one class. A nominal attribute makes a branch a value, a number is split in
        two at the threshold of largest gain. A row whose value is missing goes down every branch, with the share
        of its weight that the branch has of the rows with a value.
    min_instances, max_depth
        See `Limits`.
    min_branch, min_side, threshold_cost, average_gain
        See `Admission`.
    max_cuts
        Most thresholds that are looked at a numeric attribute and node, see `quercus.trees.tree.splits.midpoints`.
    confidence
        Confidence factor of pessimistic error pruning, see `quercus.trees.learners.subtree_raising`; None: none.
    raising
        Subtrees are raised, as in C4.5's program, not only replaced.
    wrap
        Put around the criterion by a forest, see `quercus.trees.learners.forest`.

    Raises
    ------
    InvalidInput
        When a label does not name one class, or a parameter is out of bounds.

    Examples
    --------
    >>> from quercus.specification.attributes import Numeric
    >>> tree = c45(Table.of_classes([[1.0], [2.0], [3.0], [4.0]], [Numeric("size")], [0, 0, 1, 1], 2))
    >>> tree.threshold, tree.children[0].theta, tree.children[1].theta
    (2.5, (1.0, 0.0), (0.0, 1.0))
    """
    shares = precise_shares(table)
    admission = Admission(min_branch, min_side, threshold_cost, average_gain)
    method = GrowthRules(
        criterion=wrap_criterion(LargestRatio(table, shares, admission, max_cuts), wrap),
        branching=FractionalBranching(table),
        stopping=UntilPure(table, shares, Limits(min_instances, max_depth)),
        leaf=MeanShares(table, shares),
    )
    place = root_node(table)
    tree = grow_tree(place, method)
    if confidence is None:
        return tree
    tree = collapse_errors(tree)
    if not raising:
        return prune_pessimistic(tree, confidence)
    return prune_and_raise(tree, place, method.branching, method.leaf, confidence)


@dataclass(frozen=True, slots=True)
class AttributeTest:
    """The best test of one attribute: its gain, the gain over the split information, its threshold."""

    gain: float
    ratio: float
    threshold: float | None


@dataclass(frozen=True, slots=True, eq=False)
class LargestRatio:
    """Criterion: the test of largest gain ratio; of tied ones the first attribute, then the lowest threshold.

    With ``K`` the rows of ``T`` whose value is known, the gain is ``|K|/|T| (H(K) - Σ f_h H(K_h))``, and the split
    information counts the rows without a value as a separate branch.

    Parameters
    ----------
    table
        The rows.
    shares
        (n, l) share of each class in each row.
    admission
        The tests that may be chosen.
    max_cuts
        Most thresholds of a numeric attribute.
    """

    table: Table
    shares: Floats
    admission: Admission
    max_cuts: int | None = None

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no test is admitted."""
        statistics = weighted_statistics(self.table, place, self.shares)
        tests: dict[int, AttributeTest] = {}
        for found in candidate_splits(self.table, place, statistics, self.max_cuts):
            tests |= self._best_tests(found.take_splits(np.flatnonzero(self._admitted_tests(found))))
        if not tests:
            return None
        tests = dict(sorted(tests.items()))
        bar = self._least_gain([test.gain for test in tests.values()])
        able = [k for k, test in tests.items() if test.gain >= bar - TIE]
        attribute = able[first_largest([tests[k].ratio for k in able])]
        intervals = {k: (test.ratio, test.ratio) for k, test in tests.items()}
        return SplitChoice(attribute, intervals, (attribute,), threshold=tests[attribute].threshold)

    def _best_tests(self, found: Candidates) -> dict[int, AttributeTest]:
        """Return the best test of each attribute that has any."""
        gains = known_gains(found.sums)
        best = found.lowest_best(gains)
        firsts = found.first_splits()
        count = np.append(firsts[1:], gains.size)[: len(firsts)] - firsts
        gain = gains[best]
        if self.admission.threshold_cost:
            gain -= np.log2(count) / found.sizes[best].sum(
                axis=1
            )  # of one test, as of a nominal attribute, nothing
        ratio = gain / share_entropy(found.sizes[best])
        return {
            int(found.attributes[split]): AttributeTest(
                float(gain[i]), float(ratio[i]), found.threshold(split)
            )
            for i, split in enumerate(best.tolist())
        }

    def _admitted_tests(self, found: Candidates) -> Bools:
        known = found.sizes[:, :-1]
        share = self.admission.min_side * known.sum(axis=1) / self.table.size
        beside = np.where(np.isnan(found.thresholds), 0.0, np.minimum(share, MOST_BESIDE_A_THRESHOLD))
        least = np.maximum(self.admission.min_branch, beside)[:, np.newaxis]
        wide = (known > 0) & (known >= least - TIE)
        admitted: Bools = np.count_nonzero(wide, axis=1) > 1
        return admitted

    def _least_gain(self, gains: list[float]) -> float:
        fair = [gain for gain in gains if gain >= -TIE]
        return math.fsum(fair) / len(fair) if fair and self.admission.average_gain else -math.inf


def known_gains(sums: Floats) -> Floats:
    """Return ``|K|/|T| (H(K) - Σ f_h H(K_h))`` of splits whose last branch has the rows without a value, (s,).

    Parameters
    ----------
    sums
        (s, branches, 1 + l) weight and weight of each class below each branch.
    """
    known = sums[:, :-1]
    total = known.sum(axis=1)
    inside = (known[..., 0] * class_entropy(known)).sum(axis=1)
    gains: Floats = (total[:, 0] * class_entropy(total) - inside) / sums[..., 0].sum(axis=1)
    return gains


@dataclass(frozen=True, slots=True, eq=False)
class FractionalBranching:
    """Branching: by code, but a row whose value is missing goes down every branch in parts."""

    table: Table

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[Branch]:
        """Return the populated branches, in order of code."""
        column = self.table.values[place.rows, choice.attribute]
        lost = np.isnan(column)
        weights = self.table.weights[place.rows] if place.weights is None else place.weights
        known = OpenNode(
            place.path, place.rows[~lost], place.attributes, None if place.weights is None else weights[~lost]
        )
        branches = ByCode(self.table).branches(known, choice)
        if not lost.any():
            return branches
        total = float(weights[~lost].sum())
        return [self._with_missing(branch, place.rows[lost], weights[lost], total) for branch in branches]

    def _with_missing(self, branch: Branch, rows: Ints, lost: Floats, total: float) -> Branch:
        own = self.table.weights[branch.rows] if branch.weights is None else branch.weights
        share = float(own.sum()) / total
        together = np.concatenate([branch.rows, rows])
        order = np.argsort(together)
        weights = np.concatenate([own, lost * share])
        return Branch(branch.attribute, branch.code, together[order], branch.left, weights[order])


@parametric
class C45(TreeLearner):
    """C4.5 (Quinlan 1993), from the rows whose label names one class.

    Source: `c45`.
    """

    name: ClassVar[str] = "c45"
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    min_branch: int = MIN_BRANCH.dataclass_field()
    confidence: float | None = CONFIDENCE.dataclass_field()

    def usable_rows(self, table: Table) -> Table | None:
        """See `TreeLearner`."""
        return precise_rows(table)

    def grow(self, table: Table, *, wrap: Wrap | None = None) -> LearnedModel:
        """See `TreeLearner`."""
        return TreeModel.of(c45(table, **values_of(self), wrap=wrap), table.attributes)
