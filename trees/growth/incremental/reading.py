"""The growing tree as it is read: as arrays for classification, and place by place for the choice of queries."""

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from quercus.trees.growth.batch import OpenNode
from quercus.trees.growth.incremental.arrays import Floats, Ints
from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.rules.ties import TIE, Interval
from quercus.trees.tree.flat import FlatTree, nearest_speaking
from quercus.trees.tree.indices import NONE
from quercus.trees.tree.node import Path
from quercus.trees.tree.splits import Splits


def flat_tree(tree: GrowingTree, edges: Sequence[Sequence[float]]) -> FlatTree:
    """Return the tree as arrays.

    Parameters
    ----------
    tree
        The tree to read.
    edges
        Cuts in force of every attribute that is split at cuts.
    """
    nodes, splits = tree.nodes, tree.layout.splits
    order, parent = nodes.preorder(tree.root)
    split = nodes.attribute[order].astype(np.int64)
    theta = nodes.theta[order[nearest_speaking(parent, nodes.silent[order])]]
    judged = nodes.judged[order]
    lower, upper = nodes.gain_lower[order], nodes.gain_upper[order]
    known = judged[:, np.newaxis] & ~np.isnan(lower)
    return FlatTree(
        attribute=np.where(split >= 0, splits.attribute[split], NONE),
        parent=parent,
        branch=nodes.code[order].astype(np.int64),
        klass=(theta >= theta.max(axis=1, keepdims=True) - TIE).argmax(axis=1),
        count=nodes.count[order].astype(np.int64),
        theta=theta,
        belief=nodes.belief[order],
        plausibility=nodes.plausibility[order],
        undecided=nodes.undecided[order],
        stop=nodes.stop[order],
        interval_start=np.concatenate([[0], np.cumsum(known.sum(axis=1))]),
        interval_attribute=np.nonzero(known)[1],
        interval_lower=lower[known],
        interval_upper=upper[known],
        threshold=_thresholds_of(splits, split, edges),
    )


def _thresholds_of(splits: Splits, split: Ints, edges: Sequence[Sequence[float]]) -> Floats:
    """Return where nodes with such splits (m,) split a number, NaN where they do not."""
    cuts = np.full(splits.split_count, np.nan)
    for k, first in enumerate(splits.first_splits.tolist()):
        if splits.cuts[k]:
            cuts[first : first + len(edges[k])] = edges[k]
    return np.where(split >= 0, cuts[split], np.nan)


class TreeView:
    """The present tree, for `quercus.trees.ask.query`: places are made on request.

    Good until the tree takes up the next change.

    Parameters
    ----------
    tree
        All rows taken up.
    """

    def __init__(self, tree: GrowingTree) -> None:
        self._tree = tree
        self._gains: dict[int, Mapping[int, Interval]] = {}

    def find_node(self, path: Path) -> OpenNode | None:
        """Return the place at `path`, or None when the tree has no such node."""
        node = self._node_at(path)
        return None if node == NONE else self._open_node(node, path)

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        nodes = self._tree.nodes
        order, _ = nodes.preorder(self._tree.root)
        for node in order[nodes.undecided[order]]:
            yield (
                self._open_node(int(node), self._path_of(int(node))),
                nodes.rivals_of(int(node)),
            )

    def row_leaves(self) -> tuple[Ints, Callable[[int], Path]]:
        """Return the leaf (n,) in which each row ends, numbered in pre-order, and what tells the path of a leaf."""
        nodes = self._tree.nodes
        order, _ = nodes.preorder(self._tree.root)
        ends = order[nodes.attribute[order] < 0]
        rows, leaf = self._tree.rows_of_leaves(ends)
        of = np.zeros(rows.size, np.int64)
        of[rows] = leaf
        return of, lambda number: self._path_of(int(ends[number]))

    def gain_intervals(self, place: OpenNode) -> Mapping[int, Interval]:
        """Return the exact gain-ratio interval of every candidate at a place, whether the tree needed it or not."""
        node = self._node_at(place.path)
        if node not in self._gains:
            lower, upper = self._tree.gain_bounds(node)
            known = np.flatnonzero(~np.isnan(lower))
            self._gains[node] = {int(k): (float(lower[k]), float(upper[k])) for k in known}
        return self._gains[node]

    def _node_at(self, path: Path) -> int:
        nodes, node = self._tree.nodes, self._tree.root
        for split, branch in path:
            if nodes.attribute[node] != split or not 0 <= branch < nodes.width[split]:
                return NONE
            node = int(nodes.kid[nodes.kids[node] + branch])
            if node == NONE:
                return NONE
        return node

    def _path_of(self, node: int) -> Path:
        nodes, steps = self._tree.nodes, []
        while nodes.parent[node] >= 0:
            parent = int(nodes.parent[node])
            steps.append((int(nodes.attribute[parent]), int(nodes.code[node])))
            node = parent
        return tuple(reversed(steps))

    def _open_node(self, node: int, path: Path) -> OpenNode:
        spent = {split for split, _ in path}
        left = tuple(k for k in range(self._tree.layout.splits.split_count) if k not in spent)
        return OpenNode(path, self._tree.rows_of_node(node).astype(np.int64), left)
