"""A tree as a value, for all learners."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import Enum

from quercus.belief.mass import MassFunction

Path = tuple[tuple[int, int], ...]  # (attribute, code) of each test from the root


class Stop(Enum):
    """The reason why a node is a leaf (theory §3.4). The numbers are those of the wire format."""

    PURE = 1
    NO_ATTRIBUTE = 2
    FEW_INSTANCES = 3
    MAX_DEPTH = 4
    NO_GAIN = 5
    PRUNED = 6
    NOT_SIGNIFICANT = 7


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
    """A node and all below it.

    Parameters
    ----------
    attribute
        Index of the attribute that splits the node, None for a leaf.
    klass
        Index of the predicted class.
    theta
        (l,) maximum evidential likelihood estimate of the class probabilities.
    count
        Number of instances that reached the node.
    intervals
        Gain-ratio interval of every candidate attribute that was considered, by attribute.
    children
        Subtree of every populated branch, by code, in order of code.
    undecided
        True if the decision is provisional and more labels could settle it: several attributes are non-dominated, or no
        split is earned yet.
    stop
        Why the node is a leaf, None for an inner node.
    belief, plausibility
        (l,) bounds of each class's probability: over the likelihood cut, or of `mass` where there is one.
    threshold
        Threshold of a split: code 0 below it, code 1 at or above it. None for a split by codes.
    mass
        Mass function of the node, for learners whose leaves have one.
    conflict
        True if the labels of the node conflict totally, so that `mass` is their mean.
    weight
        Weight of the instances that reached the node; None if it is their number. It differs for weighted rows, and for
        parts of rows whose value at a split above is missing or uncertain.
    """

    attribute: int | None
    klass: int
    theta: tuple[float, ...]
    count: int
    intervals: Mapping[int, tuple[float, float]] = field(default_factory=dict)
    children: Mapping[int, "Node"] = field(default_factory=dict)
    undecided: bool = False
    stop: Stop | None = None
    belief: tuple[float, ...] = ()
    plausibility: tuple[float, ...] = ()
    threshold: float | None = None
    mass: MassFunction | None = None
    conflict: bool = False
    weight: float | None = None

    @property
    def size(self) -> float:
        """Weight of the instances that reached the node; their number, where they all count 1."""
        return self.count if self.weight is None else self.weight

    @property
    def is_leaf(self) -> bool:
        """True if the node has no split."""
        return self.attribute is None

    def preorder(self) -> Iterator[tuple["Node", int, int]]:
        """Yield every node, parents first, with the index of its parent and the code of its branch (root: -1, -1).

        The algorithm is not recursive, because a tree may be deeper than Python's limit of recursion.
        """
        pending = [(self, -1, -1)]
        index = 0
        while pending:
            node, parent, branch = pending.pop()
            yield node, parent, branch
            pending.extend((child, index, code) for code, child in reversed(tuple(node.children.items())))
            index += 1

    def __eq__(self, other: object) -> bool:
        """Return whether both trees are the same, node for node, number for number."""
        if not isinstance(other, Node):
            return NotImplemented
        mine = [(parent, branch, *_field_values(node)) for node, parent, branch in self.preorder()]
        return mine == [(parent, branch, *_field_values(node)) for node, parent, branch in other.preorder()]

    def __hash__(self) -> int:
        return hash((self.attribute, self.klass, self.theta, self.count, self.undecided))

    def __repr__(self) -> str:
        what = "leaf" if self.is_leaf else f"attribute={self.attribute}, children={list(self.children)}"
        return f"Node({what}, klass={self.klass}, count={self.count})"


def _field_values(node: Node) -> tuple[object, ...]:
    """Return all fields of a node except its children."""
    own = (getattr(node, name) for name in VALUES)
    return dict(node.intervals), *own


VALUES = tuple(each.name for each in fields(Node) if each.name not in {"intervals", "children"})
