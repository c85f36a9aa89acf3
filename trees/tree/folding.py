"""The top of a tree: its nodes down to a depth, and how many nodes below each of them are hidden."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.belief.errors import InvalidInput
from quercus.trees.tree.flat import PLAIN, RAGGED, FlatTree
from quercus.trees.tree.node import Node


@dataclass(frozen=True, eq=False)
class FoldedTree:
    """A tree without the nodes below a depth.

    Attributes
    ----------
    flat : the nodes that are left, in pre-order. One whose children are hidden keeps its attribute.
    number : (nodes,) the index of each node in the whole tree.
    hidden : (nodes,) how many nodes of the whole tree are hidden below each; 0 unless it is at the depth of the fold.
    """

    flat: FlatTree
    number: Ints
    hidden: Ints


def fold_tree(tree: FlatTree | Node, depth: int | None = None) -> FoldedTree:
    """Return the top of a tree.

    Parameters
    ----------
    tree : the whole tree.
    depth : greatest depth of the nodes to keep, at least 0; None: keep the whole tree.

    Raises
    ------
    InvalidInput
        If `depth` is negative.
    """
    flat = FlatTree.of(tree) if isinstance(tree, Node) else tree
    if depth is not None and depth < 0:
        raise InvalidInput("depth", f"is {depth}, must be at least 0")
    level = np.zeros(flat.size, np.int64)
    for node in range(1, flat.size):
        level[node] = level[flat.parent[node]] + 1
    kept = np.arange(flat.size) if depth is None else np.flatnonzero(level <= depth)
    if kept.size == flat.size:
        return FoldedTree(flat, kept, np.zeros(flat.size, np.int64))
    hidden = np.where(level[kept] == depth, flat.last_below[kept] - kept, 0)
    return FoldedTree(_part_of_tree(flat, kept), kept, hidden)


def _part_of_tree(flat: FlatTree, kept: Ints) -> FlatTree:
    """Return the tree of the nodes `kept`, which include the parent of each."""
    columns: dict[str, NDArray[Any]] = {name: getattr(flat, name)[kept] for name in PLAIN}
    columns["parent"] = np.concatenate([[-1], np.searchsorted(kept, columns["parent"][1:])])
    for start, ragged in RAGGED.items():
        begins = getattr(flat, start)
        counts = np.diff(begins)
        columns[start] = np.concatenate([[0], np.cumsum(counts[kept])])
        inside = np.repeat(np.isin(np.arange(flat.size), kept), counts)
        columns |= {name: getattr(flat, name)[: begins[-1]][inside] for name in ragged.columns}
    return FlatTree(**columns)
