"""A tree as arrays: for the wire, for snapshots and for routing many rows at once."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from quercus.trees.encoding import Codes
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
    _column: NDArray[np.intp] = field(init=False, repr=False)  # that a row is asked for at a node
    _width: NDArray[np.int32] = field(init=False, repr=False)  # codes that a node's block of _target covers
    _first: NDArray[np.int32] = field(init=False, repr=False)  # where the block begins
    _target: NDArray[np.int32] = field(init=False, repr=False)  # node that follows each code

    def __post_init__(self) -> None:
        # A node's block has an entry for each code up to its last child's, and one more for all other codes;
        # where no child is, the node itself stands: there a row stays, as it does in a leaf, whose block is
        # that one entry. So a step is the same few gathers for every row.
        parent, branch = self.parent[1:], self.branch[1:]
        width = np.zeros(self.size, dtype=np.int32)
        np.maximum.at(width, parent, branch.astype(np.int32) + 1)
        end = np.cumsum(width + 1, dtype=np.int32)
        first = end - (width + 1)
        target = np.repeat(np.arange(self.size, dtype=np.int32), width + 1)
        target[first[parent] + branch] = np.arange(1, self.size, dtype=np.int32)
        column = np.maximum(self.attribute, 0).astype(np.intp)
        for name, value in (("_column", column), ("_width", width), ("_first", first), ("_target", target)):
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

    def route(self, codes: Codes) -> Ints:
        """Return the node in which each row of `codes` (n, K), see `quercus.trees.encoding`, ends.

        That is a leaf, or the node where the row's branch is empty or was never seen (ALGORITHMS §3.4).
        Gathers of NumPy, a level of the tree at a time: twice the rate of scikit-learn's compiled loop on the
        same tree, so no kernel is compiled for it, and the server need not load Numba.

        Returns
        -------
        (n,) index of a node.
        """
        count = codes.shape[0]
        at = np.zeros(count, dtype=np.int64)
        if codes.size == 0:
            return at
        # as an unsigned number a negative code (UNKNOWN) is larger than any other, and so beyond every block
        flat = codes.astype(np.int16, copy=False).view(np.uint16).T.reshape(-1)
        moving, node = np.arange(count), np.zeros(count, dtype=np.int32)
        while moving.size:
            code = flat.take(self._column.take(node) * count + moving)
            step = np.minimum(code, self._width.take(node)) + self._first.take(node)
            child = self._target.take(step)
            moved = np.flatnonzero(child != node)
            moving, node = moving.take(moved), child.take(moved)
            at[moving] = node
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
