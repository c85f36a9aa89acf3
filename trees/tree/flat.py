"""A tree as arrays: for the wire, for snapshots and for routing many rows at once.

The fields of `FlatTree` declare its columns in their annotations. The declarations determine the conversion between a
tree and its arrays, the columns of a stored tree, and which of these only people read. A column has one entry per node
(`Column`), or a node has a range of entries in several columns (`Ragged`).
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Annotated, Any, get_type_hints

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.mass import MassFunction
from quercus.trees.tree.node import Node, Stop
from quercus.trees.tree.splits import NO_NUMBER

NOT_STOPPED = 0  # in `FlatTree.stop`: an inner node


@dataclass(frozen=True)
class Column:
    """A column with one entry per node.

    Parameters
    ----------
    dtype
        Type of the entries.
    of
        Returns the entry of a node; None for what a `Node` does not know (parent and branch).
    values
        Converts the column to the values that `Node` has in the field of the same name.
    absent
        Returns the default column, given the numbers of instances (nodes,). A column that equals its default is not
        stored. None: the column has no default, and is always stored.
    people_read
        Whether only people read the column, and no prediction needs it. It is stored separately, and is all zeros in a
        tree that was loaded for classification only.
    """

    dtype: str
    of: Callable[[Node], Any] | None = None
    values: Callable[[NDArray[Any]], list[Any]] = lambda column: column.tolist()
    absent: Callable[[Ints], NDArray[Any]] | None = None
    people_read: bool = False


@dataclass(frozen=True)
class Ragged:
    """Columns in which each node has a range of entries; the declaring field has the start of each, (nodes + 1,).

    Parameters
    ----------
    count
        Name of the column that is stored in place of the starts: the length of each range.
    columns
        Name and type of each column.
    of
        Returns the entries of a node, as tuples with one item per column.
    optional
        Whether the columns are left out of a stored tree in which no node has an entry.
    people_read
        See `Column`.
    """

    count: str
    columns: Mapping[str, str]
    of: Callable[[Node], Sequence[tuple[Any, ...]]]
    optional: bool = False
    people_read: bool = False


def table_rows(table: NDArray[Any]) -> list[tuple[float, ...]]:
    """Return the rows of a table (nodes, l) as tuples."""
    return list(map(tuple, table.tolist()))


def or_none(missing: Callable[[Any], bool]) -> Callable[[NDArray[Any]], list[Any]]:
    """Return a function that converts a column to values, with None for those that are `missing`."""
    return lambda column: [None if missing(value) else value for value in column.tolist()]


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
    threshold
        (nodes,) threshold of a split of a number, NaN for a split by codes and for a leaf; by default all NaN.
    weight
        (nodes,) weight of the instances; by default their number.
    conflict
        (nodes,) bool, see `Node`; by default all false.
    mass_start
        (nodes + 1,) where the focal sets of a node's mass function begin in the two columns that follow; by default no
        node has a mass function.
    mass_set, mass_value
        (focal sets,) bit mask and mass.
    """

    attribute: Annotated[
        Ints,
        Column(
            "i8",
            lambda node: -1 if node.attribute is None else node.attribute,
            values=or_none(lambda k: bool(k < 0)),
        ),
    ]
    parent: Annotated[Ints, Column("i8")]
    branch: Annotated[Ints, Column("i8")]
    klass: Annotated[Ints, Column("i8", lambda node: node.klass)]
    count: Annotated[Ints, Column("i8", lambda node: node.count)]
    theta: Annotated[Floats, Column("f8", lambda node: node.theta, values=table_rows)]
    belief: Annotated[Floats, Column("f8", lambda node: node.belief, values=table_rows)]
    plausibility: Annotated[Floats, Column("f8", lambda node: node.plausibility, values=table_rows)]
    undecided: Annotated[Bools, Column("?", lambda node: node.undecided, people_read=True)]
    stop: Annotated[
        NDArray[np.int8],
        Column(
            "i1",
            lambda node: NOT_STOPPED if node.stop is None else node.stop.value,
            values=lambda stops: [Stop(stop) if stop else None for stop in stops.tolist()],
            people_read=True,
        ),
    ]
    interval_start: Annotated[
        Ints,
        Ragged(
            "interval_count",
            {"interval_attribute": "i8", "interval_lower": "f8", "interval_upper": "f8"},
            lambda node: [(k, *ends) for k, ends in sorted(node.intervals.items())],
            people_read=True,
        ),
    ]
    interval_attribute: Ints
    interval_lower: Floats
    interval_upper: Floats
    threshold: Annotated[
        Floats,
        Column(
            "f8",
            lambda node: np.nan if node.threshold is None else node.threshold,
            values=or_none(math.isnan),
            absent=lambda count: np.full(count.size, np.nan),
        ),
    ] = field(default_factory=lambda: np.zeros(0))
    weight: Annotated[
        Floats, Column("f8", lambda node: node.size, absent=lambda count: count.astype(np.float64))
    ] = field(default_factory=lambda: np.zeros(0))
    conflict: Annotated[
        Bools, Column("?", lambda node: node.conflict, absent=lambda count: np.zeros(count.size, dtype=bool))
    ] = field(default_factory=lambda: np.zeros(0, dtype=bool))
    mass_start: Annotated[
        Ints,
        Ragged(
            "mass_count",
            {"mass_set": "u8", "mass_value": "f8"},
            lambda node: () if node.mass is None else node.mass.focal,
            optional=True,
        ),
    ] = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    mass_set: NDArray[np.uint64] = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    mass_value: Floats = field(default_factory=lambda: np.zeros(0))
    _column: NDArray[np.intp] = field(init=False, repr=False)  # the column of a row that a node tests
    _width: NDArray[np.int32] = field(init=False, repr=False)  # codes that a node's block of _target covers
    _first: NDArray[np.int32] = field(init=False, repr=False)  # where the block begins
    _target: NDArray[np.int32] = field(init=False, repr=False)  # node that follows each code

    def __post_init__(self) -> None:
        for name, each in PLAIN.items():
            if each.absent is not None and not getattr(self, name).size:
                object.__setattr__(self, name, each.absent(self.count))
        if not self.mass_start.size:
            object.__setattr__(self, "mass_start", np.zeros(self.size + 1, dtype=np.int64))
        # A node's block has an entry for each code up to its last child's, and one more for all other codes. Where a
        # child is missing, the entry is the node itself, so the row stays there; the block of a leaf is that one
        # entry. A step is therefore the same few gathers for every row.
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
        preorder = list(root.preorder())
        nodes = [node for node, _, _ in preorder]
        found = {
            "parent": np.array([parent for _, parent, _ in preorder], "i8"),
            "branch": np.array([branch for _, _, branch in preorder], "i8"),
        }
        for name, plain in PLAIN.items():
            if plain.of is not None:
                found[name] = np.array([plain.of(node) for node in nodes], plain.dtype)
        for start, ragged in RAGGED.items():
            parts = [ragged.of(node) for node in nodes]
            found[start] = np.cumsum(np.array([0, *map(len, parts)], "i8"))
            for at, (name, dtype) in enumerate(ragged.columns.items()):
                found[name] = np.array([entry[at] for part in parts for entry in part], dtype)
        return cls(**found)

    def tree(self) -> Node:
        """Return the tree as a value."""
        values = {
            name: plain.values(getattr(self, name)) for name, plain in PLAIN.items() if plain.of is not None
        }
        values["weight"] = [
            None if weight == count else weight
            for weight, count in zip(values["weight"], values["count"], strict=True)
        ]
        children: list[dict[int, Node]] = [{} for _ in range(self.size)]
        root = None
        for index in range(self.size - 1, -1, -1):  # children before their parents, the last before the first
            root = Node(
                **{name: column[index] for name, column in values.items()},
                intervals={k: (lower, upper) for k, lower, upper in self.intervals(index)},
                children=dict(reversed(children[index].items())),
                mass=self.masses[index] if self.has_masses else None,
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

    @cached_property
    def has_thresholds(self) -> bool:
        """True if some node splits a number at a threshold."""
        return not bool(np.isnan(self.threshold).all())

    @property
    def has_masses(self) -> bool:
        """True if the nodes have mass functions: all of them do, or none."""
        return bool(self.mass_start[-1])

    @cached_property
    def masses(self) -> tuple[MassFunction, ...]:
        """The mass function of each node; empty if the nodes have none."""
        if not self.has_masses:
            return ()
        size = self.theta.shape[1]
        pairs = list(zip(self.mass_set.tolist(), self.mass_value.tolist(), strict=True))
        starts = self.mass_start.tolist()
        return tuple(MassFunction(size, tuple(pairs[a:b])) for a, b in pairwise(starts))

    @cached_property
    def children(self) -> tuple[Ints, Ints]:
        """The start of each node's children, (nodes + 1,), and all children, (nodes - 1,), in order of code."""
        starts = np.zeros(self.size + 1, dtype=np.int64)
        np.cumsum(np.bincount(self.parent[1:], minlength=self.size), out=starts[1:])
        return starts, np.argsort(self.parent[1:], kind="stable") + 1

    @cached_property
    def last_below(self) -> Ints:
        """The last node of each node's subtree, (nodes,): in pre-order, a subtree is a range of nodes."""
        last = np.arange(self.size)
        for node in range(self.size - 1, 0, -1):
            parent = self.parent[node]
            last[parent] = max(last[parent], last[node])
        return last

    def route(self, codes: NDArray[np.integer], values: Floats | None = None) -> Ints:
        """Return the node in which each row ends.

        Parameters
        ----------
        codes
            (n, K), see `quercus.trees.tree.encoding`.
        values
            (n, K) the numbers themselves, NaN for missing ones; needed where the tree has thresholds.

        Returns
        -------
        (n,) index of a node: a leaf, or the node at which the row's branch is empty or was never seen
        (theory §3.4).

        Raises
        ------
        ValueError
            If the tree has thresholds and `values` is None.

        Notes
        -----
        NumPy gathers, one level of the tree at a time, are as fast as scikit-learn's compiled loop on the same tree, so
        there is no kernel for this.
        """
        if values is None and self.has_thresholds:
            raise ValueError("a tree with thresholds needs the numbers themselves, not only their codes")
        count = codes.shape[0]
        at = np.zeros(count, dtype=np.int64)
        if codes.size == 0:
            return at
        if count == 1:
            at[0] = self.end_of_row(
                codes[0].tolist().__getitem__, None if values is None else values[0].tolist()
            )
            return at
        # as an unsigned number a negative code (UNKNOWN) is larger than any other, and so beyond every block
        flat = codes.astype(np.int16, copy=False).view(np.uint16).T.reshape(-1)
        numbers = values.T.reshape(-1) if values is not None and self.has_thresholds else None
        moving, node = np.arange(count), np.zeros(count, dtype=np.int32)
        while moving.size:
            cell = self._column.take(node) * count + moving
            code = flat.take(cell)
            if numbers is not None:
                code = self._sides_of_thresholds(node, numbers.take(cell), code)
            step = np.minimum(code, self._width.take(node)) + self._first.take(node)
            child = self._target.take(step)
            moved = np.flatnonzero(child != node)
            moving, node = moving.take(moved), child.take(moved)
            at[moving] = node
        return at

    def end_of_row(self, code_of: Callable[[int], int], values: Sequence[float] | None) -> int:
        """Return the node in which one row ends: plain numbers are faster than arrays of length 1.

        Parameters
        ----------
        code_of
            Returns the code of an attribute; it is called for those that the row meets on its path.
        values
            (K,) the numbers themselves, see `route`.
        """
        node = 0
        while True:
            column, width = self._column.item(node), self._width.item(node)
            code = code_of(column)
            if values is not None and self.has_thresholds:
                threshold, number = self.threshold.item(node), values[column]
                if not math.isnan(threshold):
                    code = NO_NUMBER if math.isnan(number) else int(number >= threshold)
            child = self._target.item(self._first.item(node) + (code if 0 <= code < width else width))
            if child == node:
                return node
            node = child

    def _sides_of_thresholds(
        self, node: NDArray[np.int32], number: Floats, code: NDArray[np.uint16]
    ) -> NDArray[np.uint16]:
        threshold = self.threshold.take(node)
        side = np.where(np.isnan(number), NO_NUMBER, number >= threshold).astype(np.uint16)
        return np.where(np.isnan(threshold), code, side)

    def intervals(self, node: int) -> tuple[tuple[int, float, float], ...]:
        """Return the gain-ratio intervals at `node`: attribute, lower and upper end, in order of attribute."""
        here = slice(int(self.interval_start[node]), int(self.interval_start[node + 1]))
        columns = (self.interval_attribute, self.interval_lower, self.interval_upper)
        return tuple(zip(*(column[here].tolist() for column in columns), strict=True))

    def path(self, node: int) -> tuple[tuple[int, int], ...]:
        """Return the tests from the root to `node`: attribute and code of each."""
        return tuple(
            (int(self.attribute[self.parent[at]]), int(self.branch[at])) for at in self.path_nodes(node)
        )

    def path_nodes(self, node: int) -> tuple[int, ...]:
        """Return the nodes on the path from the root, which is left out, to `node`."""
        steps: list[int] = []
        while self.parent[node] >= 0:
            steps.append(int(node))
            node = int(self.parent[node])
        return tuple(reversed(steps))

    @cached_property
    def as_parent(self) -> NDArray[np.bool_]:
        """(nodes,) whether a node has no evidence, and so predicts as its parent does (theory §3.4)."""
        above = np.maximum(self.parent, 0)
        vacuous = (self.belief <= 0).all(axis=1) & (self.plausibility >= 1).all(axis=1)
        found: NDArray[np.bool_] = vacuous & (self.theta == self.theta[above]).all(axis=1)
        return found & (self.parent >= 0) & (not self.has_masses)

    @property
    def depth(self) -> int:
        """Tests on the longest path."""
        depth, above = 0, self.parent
        while (above := above[above >= 0]).size:
            depth, above = depth + 1, self.parent[above]
        return depth


_DECLARED = {
    name: each
    for name, hint in get_type_hints(FlatTree, include_extras=True).items()
    for each in getattr(hint, "__metadata__", ())
}
PLAIN = {name: each for name, each in _DECLARED.items() if isinstance(each, Column)}
RAGGED = {name: each for name, each in _DECLARED.items() if isinstance(each, Ragged)}


def nearest_speaking(parent: Ints, silent: NDArray[np.bool_]) -> Ints:
    """Return, for each node, the nearest node at or above it that is not `silent`, or the root if all are: (nodes,).

    The node predicts with the estimate of the one returned. A silent node has only vacuous labels, under which all
    estimates are equally likely, so it inherits its parent's estimate as an empty branch does (theory §3.4).

    Examples
    --------
    >>> nearest_speaking(np.array([-1, 0, 1, 1, 0]), np.array([False, True, True, False, False])).tolist()
    [0, 0, 0, 3, 4]
    """
    at = np.where(silent & (parent >= 0), parent, np.arange(parent.size))
    while not np.array_equal(further := at[at], at):
        at = further
    return at
