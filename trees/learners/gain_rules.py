"""Rules that several learners share: splits of largest gain, a branch per code, leaves with the mean class shares."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal
from quercus.trees.growth.batch import GrowthRules, NodePrediction, OpenNode, SplitChoice
from quercus.trees.learners.sharing import OpenCells, node_weights
from quercus.trees.learners.splits import (
    Codes,
    branch_codes,
    candidate_splits,
    class_entropy,
    gains_of,
    weighted_statistics,
)
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.node import Stop


class GainLearner(Protocol):
    """The parameters of a learner that limit its trees."""

    @property
    def min_instances(self) -> int:
        """A node of lower weight is a leaf; at least 1."""

    @property
    def max_depth(self) -> int | None:
        """Depth at which every node is a leaf; None for no limit."""

    @property
    def max_cuts(self) -> int | None:
        """Maximum thresholds of an attribute at a node (None: all), see `quercus.trees.tree.splits.midpoints`."""


@dataclass(frozen=True, eq=False)
class GainRules(GrowthRules):
    """Rules: the split of largest gain; ties go to the first attribute, then to the middle threshold.

    Parameters
    ----------
    table
        The rows.
    shares
        (n, l) share of each class in each row, summing to 1.
    learner
        Limits of the tree.
    stop_without_gain
        Whether a node is a leaf if no split gains anything. If false, it is split by the first attribute, unless all
        its rows are of one class; this may help further down, as with an exclusive or.
    """

    table: Table
    shares: Floats
    learner: GainLearner
    stop_without_gain: bool = True

    def impurity(self, sums: Floats) -> Floats:
        """Return the impurity of sums (..., 1 + l) of weights and weighted shares: the entropy of the classes."""
        return class_entropy(sums)

    def node_sums(self, place: OpenNode) -> Floats:
        """Return the weight of a node and its weighted shares, (1 + l,)."""
        sums: Floats = weighted_statistics(self.table, place, self.shares).sum(axis=0)
        return sums

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split: too little weight, one class for certain, too deep."""
        sums = self.node_sums(place)
        if sums[0] < self.learner.min_instances - TIE:
            return Stop.FEW_INSTANCES
        if sums[1:].max() >= sums[0] * (1 - TIE):
            return Stop.PURE
        return stop_at_depth(place, self.learner.max_depth)

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when no attribute can split the node."""
        statistics = weighted_statistics(self.table, place, self.shares)
        parent = float(self.impurity(statistics.sum(axis=0)))
        best: dict[int, tuple[float, float | None]] = {}
        for found in candidate_splits(self.table, place, statistics, self.learner.max_cuts):
            gained = gains_of(found, parent, self.impurity)
            for split in found.best_of_attributes(gained).tolist():
                best[int(found.attributes[split])] = float(gained[split]), found.threshold(split)
        if not best:
            return None
        gains = {k: (best[k][0], best[k][0]) for k in sorted(best)}
        attribute = list(gains)[first_largest([gain for gain, _ in gains.values()])]
        return SplitChoice(attribute, gains, threshold=best[attribute][1])

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` if no attribute gains anything and the rules require a gain."""
        idle = max(upper for _, upper in choice.intervals.values()) <= TIE
        return Stop.NO_GAIN if idle and self.stop_without_gain else None

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return the populated children by code; only a nominal attribute is used up."""
        return code_branches(self.table, place, choice)

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the mean share of each class, which is also its belief and plausibility."""
        sums = self.node_sums(place)
        theta = tuple((sums[1:] / sums[1:].sum()).tolist())
        return NodePrediction(first_largest(theta), theta, theta, theta, weight=float(sums[0]))


def code_branches(table: Table, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
    """Return the populated children of a node by code; only a nominal attribute is used up.

    A row whose value is uncertain goes down all branches that it may take, in parts.
    """
    k = choice.attribute
    declared = table.attributes[k]
    codes = branch_codes(declared, choice.threshold, table.values[place.rows, k])
    left = tuple(a for a in place.attributes if a != k or not isinstance(declared, Nominal))
    cells = OpenCells.of(table, place, k)
    if cells is not None:
        return _shared_branches(table, place, choice, codes, left, cells)
    found = []
    for code in np.flatnonzero(np.bincount(codes)).tolist():
        here = codes == code
        weights = None if place.weights is None else place.weights[here]
        found.append(place.child(k, code, place.rows[here], left, weights))
    return found


def _shared_branches(
    table: Table,
    place: OpenNode,
    choice: SplitChoice,
    codes: Codes,
    left: tuple[int, ...],
    cells: OpenCells,
) -> list[OpenNode]:
    """Return the populated children of a node if some rows go down several branches in parts."""
    k, weights = choice.attribute, node_weights(table, place)
    threshold = np.array([np.nan if choice.threshold is None else choice.threshold])
    (shares,) = cells.shares(table.attributes[k], table.values[place.rows, k], weights, threshold)
    codes[cells.at] = -1
    found = []
    for code in range(max(shares.shape[1], int(codes.max(initial=-1)) + 1)):
        here = codes == code
        parts = np.where(here, weights, 0.0)
        if code < shares.shape[1]:
            parts[cells.at] = weights[cells.at] * shares[:, code]
            here[cells.at] = parts[cells.at] > 0.0
        if here.any():
            found.append(place.child(k, code, place.rows[here], left, parts[here]))
    return found


def stop_at_depth(place: OpenNode, max_depth: int | None) -> Stop | None:
    """Return `Stop.MAX_DEPTH` for a node at that depth."""
    return Stop.MAX_DEPTH if max_depth is not None and place.depth >= max_depth else None


def precise_shares(table: Table) -> Floats:
    """Return the classes as shares (n, l), for learners that need a class for every row.

    Raises
    ------
    InvalidInput
        If a label does not name a single class.
    """
    if not table.precise.all():
        row = int(np.argmin(table.precise))
        raise InvalidInput(
            f"labels[{row}]",
            "does not name one class, must do so for this learner: take the precise rows only",
        )
    return (table.contours > 0).astype(np.float64)
