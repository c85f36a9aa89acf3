"""Batch growth: decide a node from its rows, split it, grow its children. The learners of the literature use it.

What differs between learners are their `GrowthRules`: how a split is chosen, which rows go down which branch, when a
node is a leaf, and what a node predicts. The skeleton knows rows only by their numbers, so labels, codes or raw numbers
are the rules' own affair.

Incremental growth (`quercus.trees.growth.incremental`) keeps one tree of ABC4.5 up to date, and does not use this
skeleton. The two stay two on purpose, because each is the test of the other. The rules of a split they share
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
    """The choice of a split; a learner that must tell its branches more returns a subclass.

    Parameters
    ----------
    attribute
        The one to split on.
    intervals
        Gain of every candidate, by attribute; of equal ends where the learner knows it exactly.
    undecided
        There is more than one rival, "do not split" among them, and labels could still settle it.
    threshold
        Threshold of a split of a numeric attribute; None for a split by codes.
    justified
        The split is earned, or need not be; else the node is better left whole (theory §12).
    """

    attribute: int
    intervals: Mapping[int, tuple[float, float]]
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
    weight: float | None = None  # None: that of the rows, 1 each
    silent: bool = False  # nothing is known of the class: the node predicts as its parent does


class GrowthRules(ABC):
    """The rules by which a learner grows its trees."""

    @abstractmethod
    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return the reason why the node must not be split at any gain, or None."""

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
        """Return the prediction of the node, were it a leaf."""

    def inner_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the prediction of a node that is split, for rows whose branch is empty or was never seen."""
        return self.leaf_prediction(place)


Draw = Callable[[OpenNode], Iterable[OpenNode]]
"""Draws of a forest at a node: the same node with a few of its attributes, then with others until one splits it."""


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
    children
        The nodes below, in order of code; none of a leaf.
    """

    place: OpenNode
    choice: SplitChoice | None
    stop: Stop | None
    children: Sequence[OpenNode] = ()

    @property
    def undecided(self) -> bool:
        """True if labels may still change the decision of the node: its split, or that no split is earned."""
        choice = self.choice
        return choice is not None and choice.undecided and self.stop in {None, Stop.NOT_SIGNIFICANT}


def decide_node(place: OpenNode, rules: GrowthRules, draw: Draw | None = None) -> Decision:
    """Return whether and how a node is split; without `draw`, all its attributes are looked at."""
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

    Never recursive: a tree may be as deep as it has attributes.
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
