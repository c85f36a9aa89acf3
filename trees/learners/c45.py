"""C4.5 (Quinlan 1993; thresholds of release 8, Quinlan 1996): gain ratio, and fractional rows for missing values."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from quercus.belief.arrays import Bools, Floats
from quercus.specification.parameter import parametric
from quercus.specification.parameters import CONFIDENCE, MAX_CUTS, MAX_DEPTH, MIN_BRANCH, MIN_INSTANCES
from quercus.trees.growth.batch import Draw, OpenNode, SplitChoice, grow_tree
from quercus.trees.learners.gain_rules import GainRules, code_branches, precise_shares
from quercus.trees.learners.learner import TreeLearner, precise_rows
from quercus.trees.learners.predicting import LearnedModel, TreeModel
from quercus.trees.learners.pruning import collapse_errors, prune_and_raise
from quercus.trees.learners.sharing import OpenCells
from quercus.trees.learners.splits import (
    Candidates,
    candidate_splits,
    class_entropy,
    root_node,
    share_entropy,
    weighted_statistics,
)
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest

MOST_BESIDE_A_THRESHOLD = 25.0  # rows; as in the C4.5 program


@parametric
class C45(TreeLearner):
    """C4.5 (Quinlan 1993), from the rows whose label names one class.

    Source: theory §7, after Quinlan's book and program. A nominal attribute has a branch per value; a number is split
    in two at the threshold of largest gain. A row whose value is missing goes down every branch, in proportion to the
    branch's weight of rows with a value. With a `min_branch` of 1, no `average_gain` and no `confidence`, the trees of
    nominal attributes are those of ABC4.5 at α = 1 without queries. With a `min_side` of 0 and no `threshold_cost`, so
    are those of numbers, except that of thresholds of equal gain C4.5 takes the lowest.
    """

    name: ClassVar[str] = "c45"
    certain_alone: ClassVar[str] = ""
    min_side: ClassVar[float] = 0.1
    """Both sides of a threshold must have this share of the known rows divided by the number of classes, or 25 rows."""
    threshold_cost: ClassVar[bool] = True
    """The gain of a number is reduced by ``log2(t) / |T|``, the cost of encoding one of its ``t`` admitted thresholds
    (minimum description length, Quinlan 1996)."""
    average_gain: ClassVar[bool] = True
    """Only tests with at least the mean of all non-negative gains are considered, since the ratio alone favours
    very unbalanced splits."""
    min_instances: int = MIN_INSTANCES.dataclass_field()
    max_depth: int | None = MAX_DEPTH.dataclass_field()
    max_cuts: int | None = MAX_CUTS.dataclass_field()
    min_branch: int = MIN_BRANCH.dataclass_field()
    confidence: float | None = CONFIDENCE.dataclass_field()

    def usable_rows(self, table: Table) -> Table | None:
        """See `TreeLearner`."""
        return precise_rows(table)

    def grow(self, table: Table, *, draw: Draw | None = None) -> LearnedModel:
        """See `TreeLearner`.

        Examples
        --------
        >>> from quercus.specification.attributes import Numeric
        >>> table = Table.of_classes([[1.0], [2.0], [3.0], [4.0]], [Numeric("size")], [0, 0, 1, 1], 2)
        >>> (tree,) = C45().grow(table).trees
        >>> tree.threshold, tree.children[0].theta, tree.children[1].theta
        (2.5, (1.0, 0.0), (0.0, 1.0))
        """
        rules, place = RatioRules(table, precise_shares(table), self), root_node(table)
        tree = grow_tree(place, rules, draw)
        if self.confidence is not None:
            tree = prune_and_raise(collapse_errors(tree), place, rules, self.confidence)
        return TreeModel.of(tree, table.attributes)


@dataclass(frozen=True, eq=False)
class RatioRules(GainRules):
    """Rules: the test of largest gain ratio; ties go to the first attribute, then to the lowest threshold.

    With ``K`` the rows of ``T`` whose value is known, the gain is ``|K|/|T| (H(K) - Σ f_h H(K_h))``, and the split
    information counts the rows without a value as a separate branch.
    """

    learner: C45

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no test is admitted."""
        statistics = weighted_statistics(self.table, place, self.shares)
        tests: dict[int, tuple[float, float, float | None]] = {}  # gain, gain ratio and threshold
        cuts = self.learner.max_cuts
        for every in candidate_splits(self.table, place, statistics, cuts, divides=False):
            found = every.take_splits(np.flatnonzero(self._admitted_tests(every)))
            gains = known_gains(found.sums)
            best, firsts = found.lowest_best(gains), found.first_splits()
            gain = gains[best]
            if self.learner.threshold_cost:  # a single test, as nominal attributes have, costs nothing
                count = np.append(firsts[1:], gains.size)[: len(firsts)] - firsts
                gain -= np.log2(count) / found.sizes[best].sum(axis=1)
            ratio = gain / share_entropy(found.sizes[best])
            for i, split in enumerate(best.tolist()):
                tests[int(found.attributes[split])] = float(gain[i]), float(ratio[i]), found.threshold(split)
        if not tests:
            return None
        tests = dict(sorted(tests.items()))
        fair = [gain for gain, _, _ in tests.values() if gain >= -TIE]
        least = math.fsum(fair) / len(fair) if fair and self.learner.average_gain else -math.inf
        able = [k for k, (gain, _, _) in tests.items() if gain >= least - TIE]
        attribute = able[first_largest([tests[k][1] for k in able])]
        intervals = {k: (ratio, ratio) for k, (_, ratio, _) in tests.items()}
        return SplitChoice(attribute, intervals, threshold=tests[attribute][2])

    def _admitted_tests(self, found: Candidates) -> Bools:
        """Return the tests with two branches of enough weight (C4.5's ``-m``), (s,)."""
        known = found.sizes[:, :-1]
        share = self.learner.min_side * known.sum(axis=1) / self.table.size
        beside = np.where(np.isnan(found.thresholds), 0.0, np.minimum(share, MOST_BESIDE_A_THRESHOLD))
        least = np.maximum(self.learner.min_branch, beside)[:, np.newaxis]
        wide = (known > 0) & (known >= least - TIE)
        admitted: Bools = np.count_nonzero(wide, axis=1) > 1
        return admitted

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return the populated children; a row whose value is missing goes down every branch in parts.

        The parts are proportional to the branches' weights of rows whose value is known.
        """
        lost = np.isnan(self.table.values[place.rows, choice.attribute])
        cells = OpenCells.of(self.table, place, choice.attribute)
        if cells is not None:
            lost[cells.at] = False
        weights = self.table.weights[place.rows] if place.weights is None else place.weights
        own = None if place.weights is None else weights[~lost]
        known = OpenNode(place.path, place.rows[~lost], place.attributes, own)
        branches = code_branches(self.table, known, choice)
        if not lost.any():
            return branches
        total = float(weights[~lost].sum())
        opened = np.zeros(0, np.int64) if cells is None else place.rows[cells.at]
        if opened.size:
            total -= float(weights[np.isin(place.rows, opened)].sum())
        found = []
        for branch in branches:
            own = self.table.weights[branch.rows] if branch.weights is None else branch.weights
            seen = float(own.sum() if not opened.size else own[~np.isin(branch.rows, opened)].sum())
            if opened.size and not seen:  # no row with a known value goes down it
                found.append(branch)
                continue
            rows = np.concatenate([branch.rows, place.rows[lost]])
            order = np.argsort(rows)
            parts = np.concatenate([own, weights[lost] * (seen / total)])
            found.append(OpenNode(branch.path, rows[order], branch.attributes, parts[order]))
        return found


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
