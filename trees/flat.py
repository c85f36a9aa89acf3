"""A tree as arrays: for the wire, for snapshots and for routing many rows at once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quercus.trees.tree import Node, Stop

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
NOT_STOPPED = 0  # in `FlatTree.stop`: an inner node


@dataclass(frozen=True, eq=False)
class FlatTree:
    """The nodes of a tree in pre-order, column by column.

    Parameters
    ----------
    attribute
        (nodes,) splitting attribute, -1 for a leaf.
    parent
        (nodes,) index of the parent, -1 for the root.
    branch
        (nodes,) code of the branch from the parent, -1 for the root.
    klass
        (nodes,) predicted class.
    count
        (nodes,) instances.
    theta, belief, plausibility
        (nodes, l) see `Node`.
    undecided
        (nodes,) bool.
    stop
        (nodes,) number of the `Stop` that makes a node a leaf, 0 for an inner node.
    interval_start
        (nodes + 1,) where the gain-ratio intervals of a node's candidates begin in the three columns that
        follow; they end where the next node's begin.
    interval_attribute, interval_lower, interval_upper
        (intervals,) candidate and ends of each interval; within a node in order of attribute.
    """

    attribute: Ints
    parent: Ints
    branch: Ints
    klass: Ints
    count: Ints
    theta: Floats
    belief: Floats
    plausibility: Floats
    undecided: NDArray[np.bool_]
    stop: NDArray[np.int8]
    interval_start: Ints
    interval_attribute: Ints
    interval_lower: Floats
    interval_upper: Floats
    _first: Ints = field(init=False, repr=False)  # where a node's block of _target begins
    _width: Ints = field(init=False, repr=False)  # and how many codes it covers
    _target: Ints = field(init=False, repr=False)  # child of each code, -1 for none

    def __post_init__(self) -> None:
        children = np.arange(1, self.parent.size)
        width = np.zeros(self.parent.size, dtype=np.int64)
        np.maximum.at(width, self.parent[1:], self.branch[1:] + 1)
        first = np.cumsum(width) - width
        target = np.full(int(width.sum()), -1, dtype=np.int64)
        target[first[self.parent[1:]] + self.branch[1:]] = children
        for name, value in (("_first", first), ("_width", width), ("_target", target)):
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, root: Node) -> "FlatTree":
        """Return the arrays of the tree at `root`."""
        rows = list(root.preorder())
        nodes = [node for node, _, _ in rows]
        found = [(k, *ends) for node in nodes for k, ends in sorted(node.intervals.items())]

        def ints(values: list[int]) -> Ints:
            return np.array(values, dtype=np.int64)

        def floats(values: list[tuple[float, ...]]) -> Floats:
            return np.array(values, dtype=np.float64)

        return cls(
            attribute=ints([-1 if node.attribute is None else node.attribute for node in nodes]),
            parent=ints([parent for _, parent, _ in rows]),
            branch=ints([branch for _, _, branch in rows]),
            klass=ints([node.klass for node in nodes]),
            count=ints([node.count for node in nodes]),
            theta=floats([node.theta for node in nodes]),
            belief=floats([node.belief for node in nodes]),
            plausibility=floats([node.plausibility for node in nodes]),
            undecided=np.array([node.undecided for node in nodes], dtype=bool),
            stop=np.array(
                [NOT_STOPPED if node.stop is None else node.stop.value for node in nodes], dtype=np.int8
            ),
            interval_start=np.cumsum(ints([0] + [len(node.intervals) for node in nodes])),
            interval_attribute=ints([k for k, _, _ in found]),
            interval_lower=np.array([lower for _, lower, _ in found], dtype=np.float64),
            interval_upper=np.array([upper for _, _, upper in found], dtype=np.float64),
        )

    def tree(self) -> Node:
        """Return the tree as a value."""
        children: list[dict[int, Node]] = [{} for _ in range(self.size)]
        root = None
        for index in range(
            self.size - 1, -1, -1
        ):  # children before their parents, and the last before the first
            attribute, stop = int(self.attribute[index]), int(self.stop[index])
            root = Node(
                attribute=attribute if attribute >= 0 else None,
                klass=int(self.klass[index]),
                theta=tuple(self.theta[index].tolist()),
                count=int(self.count[index]),
                intervals={k: (lower, upper) for k, lower, upper in self.intervals(index)},
                children=dict(reversed(children[index].items())),
                undecided=bool(self.undecided[index]),
                stop=Stop(stop) if stop else None,
                belief=tuple(self.belief[index].tolist()),
                plausibility=tuple(self.plausibility[index].tolist()),
            )
            if index:
                children[self.parent[index]][int(self.branch[index])] = root
        if root is None:
            raise ValueError("a tree has a root")
        return root

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.attribute.size)

    @property
    def leaf_count(self) -> int:
        """Number of leaves."""
        return int((self.attribute < 0).sum())

    def route(self, codes: NDArray[np.integer]) -> Ints:
        """Return the node in which each row of `codes` (n, K) ends.

        That is a leaf, or the node where the row's branch is empty or was never seen (ALGORITHMS §3.4).

        Returns
        -------
        (n,) index of a node.
        """
        at = np.zeros(codes.shape[0], dtype=np.int64)
        moving = np.arange(codes.shape[0])
        while moving.size:
            node = at[moving]
            attribute = self.attribute[node]
            code = codes[moving, attribute].astype(np.int64)  # a leaf reads column -1 and then does not move
            known = (attribute >= 0) & (code >= 0) & (code < self._width[node])
            moving, node, code = moving[known], node[known], code[known]
            child = self._target[self._first[node] + code]
            moving, child = moving[child >= 0], child[child >= 0]
            at[moving] = child
        return at

    def intervals(self, node: int) -> tuple[tuple[int, float, float], ...]:
        """Return the gain-ratio intervals at `node`: attribute, lower and upper end, in order of attribute."""
        here = slice(int(self.interval_start[node]), int(self.interval_start[node + 1]))
        columns = (self.interval_attribute, self.interval_lower, self.interval_upper)
        return tuple(zip(*(column[here].tolist() for column in columns), strict=True))

    def path(self, node: int) -> tuple[tuple[int, int], ...]:
        """Return the tests from the root to `node`: attribute and code of each."""
        steps: list[tuple[int, int]] = []
        while self.parent[node] >= 0:
            parent = int(self.parent[node])
            steps.append((int(self.attribute[parent]), int(self.branch[node])))
            node = parent
        return tuple(reversed(steps))
