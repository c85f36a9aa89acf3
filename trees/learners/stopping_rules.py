"""Stopping and leaf rules that several learners share; criteria and branching are in `splits`."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Floats
from quercus.belief.errors import InvalidInput
from quercus.specification.parameters import MAX_DEPTH, MIN_INSTANCES
from quercus.trees.growth.batch import Criterion, NodePrediction, OpenNode, SplitChoice
from quercus.trees.learners.splits import weighted_statistics
from quercus.trees.learners.table import Table
from quercus.trees.rules.ties import TIE, first_largest
from quercus.trees.tree.node import Stop

Wrap = Callable[[Criterion], Criterion]  # a forest's wrapper of a criterion


def wrap_criterion(criterion: Criterion, wrap: Wrap | None) -> Criterion:
    """Return the criterion, in the forest's wrapper if there is one."""
    return criterion if wrap is None else wrap(criterion)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a tree's growth.

    Parameters
    ----------
    min_instances
        A node of lower weight is a leaf; at least 1.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    stop_without_gain
        A node that no split gains anything is a leaf. Otherwise it is split by the first attribute (which may
        help further down, as in an exclusive or) as long as it is not of one class.

    Raises
    ------
    InvalidInput
        When a number is out of bounds.
    """

    min_instances: int = MIN_INSTANCES.default
    max_depth: int | None = None
    stop_without_gain: bool = True

    def __post_init__(self) -> None:
        MIN_INSTANCES.check(self.min_instances)
        MAX_DEPTH.check(self.max_depth)


@dataclass(frozen=True, slots=True, eq=False)
class UntilPure:
    """Stopping: of one class for certain, too little weight, too deep, or nothing to gain.

    Parameters
    ----------
    table
        The rows.
    shares
        (n, l) share of each class in each row, summing to 1.
    limits
        The limits of growth.
    """

    table: Table
    shares: Floats
    limits: Limits

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split at any gain, or None."""
        sums = weighted_statistics(self.table, place, self.shares).sum(axis=0)
        if sums[0] < self.limits.min_instances - TIE:
            return Stop.FEW_INSTANCES
        if sums[1:].max() >= sums[0] * (1 - TIE):
            return Stop.PURE
        if self.limits.max_depth is not None and place.depth >= self.limits.max_depth:
            return Stop.MAX_DEPTH
        return None

    def stop_after_choice(self, _place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no attribute gains anything, and that matters."""
        idle = max(upper for _, upper in choice.intervals.values()) <= TIE
        return Stop.NO_GAIN if idle and self.limits.stop_without_gain else None


@dataclass(frozen=True, slots=True, eq=False)
class MeanShares:
    """Leaf rule: the mean share of each class; the class of the largest.

    Parameters
    ----------
    table
        The rows.
    shares
        (n, l) share of each class in each row, summing to 1.
    """

    table: Table
    shares: Floats

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction; belief and plausibility are the probability itself."""
        sums = weighted_statistics(self.table, place, self.shares).sum(axis=0)
        theta = tuple((sums[1:] / sums[1:].sum()).tolist())
        return NodePrediction(
            first_largest(theta), theta, theta, theta, weight=node_weight(place, float(sums[0]))
        )


def node_weight(place: OpenNode, total: float) -> float | None:
    """Return the weight of a node, None when it is the number of its rows."""
    return None if total == place.rows.size else total


def precise_shares(table: Table) -> Floats:
    """Return the classes as shares (n, l), for learners that need a class for every row.

    Raises
    ------
    InvalidInput
        When a label does not name one class.
    """
    if not table.precise.all():
        row = int(np.argmin(table.precise))
        raise InvalidInput(
            f"labels[{row}]",
            "does not name one class, must do so for this learner: take the precise rows only",
        )
    return (table.contours > 0).astype(np.float64)
