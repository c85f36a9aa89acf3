"""Batch growth, for the learners of the literature: decide a node from its rows, split it, grow its children.

Learners differ in their `GrowthRules`: the choice of a split, the rows of each branch, the stopping rule, and the
prediction of a node. This module knows rows only by number; their labels and values are handled by the rules.

Incremental growth (`quercus.trees.growth.incremental`) keeps an ABC4.5 tree up to date without using this module. The
two implementations are kept separate on purpose, because each is a test of the other; they share the rules of a split
(`quercus.trees.rules`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from quercus.belief.mass import MassFunction
from quercus.trees.tree.node import Node, Path, Stop

Rows = NDArray[np.int64]  # numbers of rows, ascending


@dataclass(frozen=True, slots=True, eq=False)
class OpenNode:
    """A node that is not decided yet.

    Parameters
    ----------
    path
        Tests from the root.
    rows
        The rows that pass them.
    attributes
        Attributes that may still be tested, in declared order.
    weights
        Weight of each row here, if the learner sends parts of rows down its branches; None: the weights in the data.
    """

    path: Path
    rows: Rows
    attributes: tuple[int, ...]
    weights: NDArray[np.float64] | None = None

    @property
    def depth(self) -> int:
        """Number of tests above; 0 at the root."""
        return len(self.path)

    def child(
        self,
        attribute: int,
        code: int,
        rows: Rows,
        left: tuple[int, ...],
        weights: NDArray[np.float64] | None = None,
    ) -> "OpenNode":
        """Return the node below that passes one more test, with its rows and the attributes left to test."""
        return OpenNode((*self.path, (attribute, code)), rows, left, weights)


@dataclass(frozen=True, slots=True)
class SplitChoice:
    """The choice of a split; a learner may return a subclass with more information for its branches.

    Parameters
    ----------
    attribute
        The attribute to split on.
    intervals
        Gain of every candidate, by attribute; both ends are equal if the gain is exact.
    undecided
        Whether there is more than one rival, "do not split" included, and labels could still decide between them.
    threshold
        Threshold of a split of a numeric attribute; None for a split by codes.
    justified
        Whether the split is significant, or need not be; if not, the node is better left unsplit (theory §12).
    """

    attribute: int
    intervals: Mapping[int, tuple[float, float]]
    undecided: bool = False
    threshold: float | None = None
    justified: bool = True


@dataclass(frozen=True, slots=True)
class NodePrediction:
    """The prediction of a node; for the fields see `quercus.trees.tree.node.Node`."""

    klass: int
    theta: tuple[float, ...]
    belief: tuple[float, ...]
    plausibility: tuple[float, ...]
    mass: MassFunction | None = None
    conflict: bool = False
    weight: float | None = None  # None: the number of rows
    silent: bool = False  # nothing is known of the class: the node predicts like its parent


class GrowthRules(ABC):
    """The rules by which a learner grows its trees."""

    @abstractmethod
    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split whatever the gain, or None."""

    @abstractmethod
    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None if no attribute can split the node."""

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return the reason why the gains do not justify a split, or None."""
        return None

    @abstractmethod
    def branches(self, place: OpenNode, choice: SplitChoice) -> Sequence[OpenNode]:
        """Return the populated children, in order of code."""

    @abstractmethod
    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of the node as a leaf."""

    def inner_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of an inner node, for rows whose branch is empty or unknown."""
        return self.leaf_prediction(place)


Draw = Callable[[OpenNode], Iterable[OpenNode]]
"""A forest's random attributes at a node: yields the node with a few of its attributes, then with others, until one of
them splits it."""


@dataclass(frozen=True, slots=True, eq=False)
class Decision:
    """A decided node: split by the choice's attribute, or a leaf for the reason `stop`.

    Parameters
    ----------
    place
        The node.
    choice
        None if the node stopped before its gains were computed.
    stop
        None if the node is split.
    children
        The child nodes, in order of code; empty for a leaf.
    """

    place: OpenNode
    choice: SplitChoice | None
    stop: Stop | None
    children: Sequence[OpenNode] = ()

    @property
    def undecided(self) -> bool:
        """True if labels may still change the decision: the split, or that no split is significant."""
        choice = self.choice
        return choice is not None and choice.undecided and self.stop in {None, Stop.NOT_SIGNIFICANT}


def decide_node(place: OpenNode, rules: GrowthRules, draw: Draw | None = None) -> Decision:
    """Decide whether and how a node is split; without `draw`, all its attributes are considered."""
    stop = rules.stop_before_split(place)
    if stop is not None:
        return Decision(place, None, stop)
    for some in (place,) if draw is None else draw(place):
        choice = rules.choose_split(some)
        if choice is not None:
            break
    else:
        return Decision(place, None, Stop.NO_ATTRIBUTE)
    stop = rules.stop_after_choice(place, choice)
    return Decision(place, choice, stop, () if stop is not None else rules.branches(place, choice))


def decide_nodes(
    root: OpenNode, rules: GrowthRules, draw: Draw | None = None
) -> Iterator[tuple[Decision, int]]:
    """Yield the decisions of all nodes in pre-order, each with the index of its parent, -1 for the root.

    The algorithm is not recursive, because a tree may be deeper than Python's limit of recursion.
    """
    pending = [(root, -1)]
    index = 0
    while pending:
        place, parent = pending.pop()
        decision = decide_node(place, rules, draw)
        yield decision, parent
        pending.extend((child, index) for child in reversed(decision.children))
        index += 1


def grow_tree(root: OpenNode, rules: GrowthRules, draw: Draw | None = None) -> Node:
    """Return the tree that `rules` grow from the rows and attributes of `root`."""
    return tree_of(list(decide_nodes(root, rules, draw)), rules)


def tree_of(decided: Sequence[tuple[Decision, int]], rules: GrowthRules) -> Node:
    """Return the tree of decisions in pre-order, see `decide_nodes`."""
    said: list[NodePrediction] = []
    for decision, parent in decided:
        predict = rules.inner_prediction if decision.stop is None else rules.leaf_prediction
        own = predict(decision.place)
        if own.silent and parent >= 0:
            own = replace(own, klass=said[parent].klass, theta=said[parent].theta)
        said.append(own)
    below: list[dict[int, Node]] = [{} for _ in decided]
    for index in range(len(decided) - 1, -1, -1):  # children before their parents
        (decision, parent), own = decided[index], said[index]
        place, choice, split = decision.place, decision.choice, decision.stop is None
        node = Node(
            attribute=choice.attribute if choice is not None and split else None,
            klass=own.klass,
            theta=own.theta,
            count=int(place.rows.size),
            intervals=dict(choice.intervals) if choice is not None else {},
            children=dict(reversed(below[index].items())),
            undecided=decision.undecided,
            stop=decision.stop,
            belief=own.belief,
            plausibility=own.plausibility,
            threshold=choice.threshold if choice is not None and split else None,
            mass=own.mass,
            conflict=own.conflict,
            weight=None if own.weight == place.rows.size else own.weight,
        )
        if parent < 0:
            break
        below[parent][place.path[-1][1]] = node
    return node
