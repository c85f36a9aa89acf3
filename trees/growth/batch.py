"""Batch growth: decide a node from its rows, split it, grow its children. The learners of the literature use it.

What differs between learners is in four pieces (`GrowthRules`): how a split is chosen, which rows go down
which branch, when a node is a leaf, and what a node predicts. The skeleton knows rows only by their
numbers, so labels, codes or raw numbers are the pieces' own affair.

Incremental growth (`quercus.trees.growth.incremental`) keeps one tree of ABC4.5 up to date, and does not use this
skeleton. The two stay two on purpose, because each is the test of the other. The rules of a split they share
(`quercus.trees.rules`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from quercus.belief.mass import MassFunction
from quercus.trees.tree.node import Node, Path, Stop

Rows = NDArray[np.int64]  # numbers of rows, ascending


@dataclass(frozen=True, slots=True, eq=False)
class OpenNode:
    """A node before it is decided.

    Parameters
    ----------
    path
        Tests from the root.
    rows
        The rows that pass them.
    attributes
        Attributes that may still be tested, in declared order.
    weights
        How much each row counts here, where a learner sends parts of rows down its branches; None where every
        row counts as it does in the data.
    """

    path: Path
    rows: Rows
    attributes: tuple[int, ...]
    weights: NDArray[np.float64] | None = None

    @property
    def depth(self) -> int:
        """Number of tests above; 0 at the root."""
        return len(self.path)


@dataclass(frozen=True, slots=True)
class SplitChoice:
    """The result of a criterion.

    A learner that must tell its branching more returns a subclass.

    Parameters
    ----------
    attribute
        The one to split on.
    intervals
        Gain of every candidate, by attribute; of equal ends where the learner knows it exactly.
    rivals
        Attributes that may be the best, in declared order.
    undecided
        There is more than one rival, "do not split" among them, and labels could still settle it.
    threshold
        Threshold of a split of a numeric attribute; None for a split by codes.
    justified
        The split is earned, or need not be; else the node is better left whole (theory §12).
    """

    attribute: int
    intervals: Mapping[int, tuple[float, float]]
    rivals: tuple[int, ...]
    undecided: bool = False
    threshold: float | None = None
    justified: bool = True


@dataclass(frozen=True, slots=True)
class NodePrediction:
    """The prediction of a node; see `quercus.trees.tree.node.Node`."""

    klass: int
    theta: tuple[float, ...]
    belief: tuple[float, ...]
    plausibility: tuple[float, ...]
    mass: MassFunction | None = None
    conflict: bool = False
    weight: float | None = None
    silent: bool = False  # nothing is known of the class: the node predicts as its parent does


@dataclass(frozen=True, slots=True, eq=False)
class Branch:
    """A future child: the test it passed, its rows, the attributes left to test, and weights as in `OpenNode`."""

    attribute: int
    code: int
    rows: Rows
    left: tuple[int, ...]
    weights: NDArray[np.float64] | None = None


class Criterion(Protocol):
    """The rule that chooses a split."""

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None if no attribute can split the node."""


class Branching(Protocol):
    """The rule that distributes rows among branches."""

    def branches(self, place: OpenNode, choice: SplitChoice) -> Sequence[Branch]:
        """Return the populated branches, in order of code."""


class StoppingRule(Protocol):
    """The rule that makes a node a leaf."""

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split at any gain, or None."""

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return the reason why the gains do not justify a split, or None."""


class LeafRule(Protocol):
    """The rule by which a node predicts."""

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of the node, were it a leaf."""


@dataclass(frozen=True, slots=True)
class GrowthRules:
    """A learner: its four pieces.

    Parameters
    ----------
    criterion, branching, stopping, leaf
        The pieces.
    inner
        What a node predicts that is split, for rows whose branch is empty or was never seen; None where that is
        what it would predict as a leaf.
    """

    criterion: Criterion
    branching: Branching
    stopping: StoppingRule
    leaf: LeafRule
    inner: LeafRule | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A node as decided: split by the choice's attribute, or a leaf when `stop` says why.

    Parameters
    ----------
    place
        The node.
    choice
        None when the node stopped before its gains were looked at.
    stop
        None when the node is split.
    branches
        The children to be, empty for a leaf.
    """

    place: OpenNode
    choice: SplitChoice | None
    stop: Stop | None
    branches: tuple[Branch, ...] = ()

    @property
    def undecided(self) -> bool:
        """True if labels may still change the decision of the node: its split, or that no split is earned."""
        choice = self.choice
        return choice is not None and choice.undecided and self.stop in {None, Stop.NOT_SIGNIFICANT}

    def children(self) -> Iterator[OpenNode]:
        """Yield the places below, in order of code."""
        for branch in self.branches:
            path = (*self.place.path, (branch.attribute, branch.code))
            yield OpenNode(path, branch.rows, branch.left, branch.weights)


@dataclass(slots=True, eq=False)
class BatchGrowth:
    """A tree that is decided as far as it is looked at, each node once.

    Parameters
    ----------
    root
        All rows and all attributes.
    method
        The learner.
    """

    root: OpenNode
    method: GrowthRules
    _decided: dict[Path, Decision] = field(default_factory=dict)

    def decide(self, place: OpenNode) -> Decision:
        """Return whether and how the node at `place` is split."""
        decision = self._decided.get(place.path)
        if decision is None:
            decision = self._decided[place.path] = self._make_decision(place)
        return decision

    def _make_decision(self, place: OpenNode) -> Decision:
        stop = self.method.stopping.stop_before_split(place)
        if stop is not None:
            return Decision(place, None, stop)
        choice = self.method.criterion.choose_split(place)
        if choice is None:
            return Decision(place, None, Stop.NO_ATTRIBUTE)
        stop = self.method.stopping.stop_after_choice(place, choice)
        if stop is not None:
            return Decision(place, choice, stop)
        return Decision(place, choice, None, tuple(self.method.branching.branches(place, choice)))

    def preorder(self) -> Iterator[tuple[Decision, int, int]]:
        """Yield every decision, parents first, with its parent's index and its branch's code.

        These are -1, -1 for the root. Lazy, and never recursive: a tree may be as deep as it has attributes.
        """
        pending = [(self.root, -1, -1)]
        index = 0
        while pending:
            place, parent, code = pending.pop()
            decision = self.decide(place)
            yield decision, parent, code
            below = [(child, index, child.path[-1][1]) for child in decision.children()]
            pending.extend(reversed(below))
            index += 1

    def find_node(self, path: Path) -> OpenNode | None:
        """Return the place at `path`, or None when the tree has no such node."""
        place = self.root
        for step in path:
            below = (child for child in self.decide(place).children() if child.path[-1] == step)
            found = next(below, None)
            if found is None:
                return None
            place = found
        return place

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        """Yield the undecided nodes, in pre-order, with their rivals; lazy as `preorder`."""
        for decision, _, _ in self.preorder():
            if decision.choice is not None and decision.undecided:
                yield decision.place, decision.choice.rivals

    def row_leaves(self) -> tuple[Rows, Callable[[int], Path]]:
        """Return the leaf (n,) in which each row ends, numbered in pre-order, and what tells the path of a leaf.

        Of learners that send a row down one branch.
        """
        ends = [decision.place for decision, _, _ in self.preorder() if decision.stop is not None]
        of = np.zeros(self.root.rows.size, dtype=np.int64)
        for number, place in enumerate(ends):
            of[place.rows] = number
        return of, lambda number: ends[number].path

    def gain_intervals(self, place: OpenNode) -> Mapping[int, tuple[float, float]]:
        """Return the interval of every candidate at a place, also where the tree did not need them."""
        choice = self.decide(place).choice or self.method.criterion.choose_split(place)
        return {} if choice is None else choice.intervals

    def tree(self) -> Node:
        """Return the whole tree."""
        rows = list(self.preorder())
        summaries: list[NodePrediction] = []
        for decision, parent, _ in rows:
            summaries.append(self._node_prediction(decision, summaries[parent] if parent >= 0 else None))
        below: list[list[tuple[int, Node]]] = [[] for _ in rows]
        for index in range(len(rows) - 1, 0, -1):  # children before their parents
            decision, parent, code = rows[index]
            below[parent].append((code, _node_of(decision, summaries[index], below[index])))
        return _node_of(rows[0][0], summaries[0], below[0])

    def _node_prediction(self, decision: Decision, above: NodePrediction | None) -> NodePrediction:
        split = decision.stop is None
        rule = self.method.inner if split and self.method.inner is not None else self.method.leaf
        summary = rule.leaf_prediction(decision.place)
        if summary.silent and above is not None:
            return replace(summary, klass=above.klass, theta=above.theta)
        return summary


def grow_tree(root: OpenNode, method: GrowthRules) -> Node:
    """Return the tree that `method` grows from the rows and attributes of `root`."""
    return BatchGrowth(root, method).tree()


def _node_of(decision: Decision, summary: NodePrediction, below: list[tuple[int, Node]]) -> Node:
    choice, split = decision.choice, decision.stop is None
    return Node(
        attribute=choice.attribute if choice is not None and split else None,
        klass=summary.klass,
        theta=summary.theta,
        count=int(decision.place.rows.size),
        intervals=dict(choice.intervals) if choice is not None else {},
        children=dict(reversed(below)),
        undecided=decision.undecided,
        stop=decision.stop,
        belief=summary.belief,
        plausibility=summary.plausibility,
        threshold=choice.threshold if choice is not None and split else None,
        mass=summary.mass,
        conflict=summary.conflict,
        weight=summary.weight,
    )
