"""The tree as growing columns: nodes are numbers, which are reused after a subtree is removed."""

import numpy as np

from quercus.belief.arrays import Bools, Ints
from quercus.kernels.growth import NONE, preorder
from quercus.trees.growth.incremental.numbered import FreeNumbers, Ids, NumberedColumns
from quercus.trees.tree.node import Stop
from quercus.trees.tree.splits import Splits


class NodeColumns(NumberedColumns):
    """Nodes of a tree, column by column.

    Parameters
    ----------
    splits
        The possible splits of a node.
    classes
        Size of the frame.

    Attributes
    ----------
    width : (T,) number of branches of each split
    attribute : number of the split, see `quercus.trees.tree.splits`, -1 for a leaf
    parent, code, depth : position of the node; -1 for the root's parent and code
    count : rows
    open : rows that an oracle may still be asked about
    stop : number of the `Stop` that made the node a leaf; 0 for an inner node
    first : first row in the list of a leaf, -1 for none
    block : block of counts, -1 for none
    shelf : whether the node's shelf holds a subtree, see `quercus.trees.growth.incremental.shelves`
    kids : place in `kid` where the node's children begin, in order of code
    judged : whether the gains were computed
    gain_lower, gain_upper : (K,) ends of the gain ratio of each attribute with a candidate, NaN for the others
    rivals : (T,) splits that no other dominates, as bits
    contested : whether there are two or more rivals, counting "do not split" if no split is significant
    silent : whether all labels are vacuous, so that the node predicts as its parent does, see
        `quercus.trees.tree.flat.nearest_speaking`
    kid : child at each place, -1 for none; not a column of the nodes
    theta, belief, plausibility : (l,) see `quercus.trees.tree.node.Node`
    """

    least_room = 16

    def __init__(self, splits: Splits, classes: int) -> None:
        super().__init__()
        made_before = {*vars(self)}
        K = len(splits.arities)
        self.attribute = np.zeros(0, np.int32)
        self.parent = np.zeros(0, np.int32)
        self.code = np.zeros(0, np.int32)
        self.depth = np.zeros(0, np.int32)
        self.count = np.zeros(0, np.int32)
        self.open = np.zeros(0, np.int32)
        self.stop = np.zeros(0, np.int8)
        self.first = np.zeros(0, np.int32)
        self.block = np.zeros(0, np.int32)
        self.shelf = np.zeros(0, bool)
        self.kids = np.zeros(0, np.int64)
        self.judged = np.zeros(0, bool)
        self.gain_lower = np.zeros((0, K))
        self.gain_upper = np.zeros((0, K))
        self.rivals = np.zeros((0, (splits.split_count + 7) // 8), np.uint8)
        self.contested = np.zeros(0, bool)
        self.silent = np.zeros(0, bool)
        self.theta = np.zeros((0, classes))
        self.belief = np.zeros((0, classes))
        self.plausibility = np.zeros((0, classes))
        self.columns = tuple(name for name in vars(self) if name not in made_before)
        self.width = splits.branches
        self.kid = np.zeros(0, np.int32)
        self._kid_top = 0
        self._kid_free: dict[int, FreeNumbers] = {}  # free places by number of children

    @property
    def undecided(self) -> Bools:
        """(nodes,) whether a node's decision is provisional: it is contested, and more rows may be asked about."""
        judged = (self.attribute >= 0) | (self.stop == Stop.NOT_SIGNIFICANT.value)
        undecided: Bools = judged & (self.open > 0) & self.contested
        return undecided

    def rivals_of(self, node: int) -> tuple[int, ...]:
        """Return the splits of a judged node that no other dominates."""
        bits = np.unpackbits(self.rivals[node], count=self.width.size)
        return tuple(np.flatnonzero(bits).tolist())

    def add_leaves(self, parent: Ids, code: Ids, depth: Ids) -> Ids:
        """Return the numbers of new leaves without rows."""
        nodes = self.take_numbers(parent.size)
        self.attribute[nodes] = NONE
        self.parent[nodes] = parent
        self.code[nodes] = code
        self.depth[nodes] = depth
        self.count[nodes] = 0
        self.open[nodes] = 0
        self.stop[nodes] = 0
        self.first[nodes] = NONE
        self.block[nodes] = NONE
        self.shelf[nodes] = False
        self.judged[nodes] = False
        self.contested[nodes] = False
        return nodes

    def split_leaves(self, nodes: Ids, attributes: Ids) -> None:
        """Turn leaves into inner nodes without children."""
        widths = self.width[attributes]
        for width in np.unique(widths).tolist():
            chosen = nodes[widths == width]
            places = self._kid_places(width, chosen.size)
            self.kid[places[:, np.newaxis] + np.arange(width)] = NONE
            self.kids[chosen] = places
        self.attribute[nodes] = attributes

    def _kid_places(self, width: int, count: int) -> Ints:
        free = self._kid_free.setdefault(width, FreeNumbers())
        missing = count - len(free)
        if missing > 0:
            top = self._kid_top + missing * width
            if top > self.kid.size:
                grown = np.zeros(16 + top * 3 // 2, np.int32)
                grown[: self._kid_top] = self.kid[: self._kid_top]
                self.kid = grown
            free.give_back(np.arange(self._kid_top, top, width)[::-1])
            self._kid_top = top
        return free.take(count)

    def children(self, nodes: Ids) -> tuple[Ids, Ints]:
        """Return all children of inner nodes, in order of node and code, and the index of each parent in `nodes`."""
        widths = self.width[self.attribute[nodes]]
        first = np.cumsum(widths) - widths
        which = np.repeat(np.arange(nodes.size), widths)
        kids = self.kid[self.kids[nodes][which] + np.arange(which.size) - first[which]]
        there = kids >= 0
        return kids[there], which[there]

    def nodes_below(self, nodes: Ids) -> tuple[Ids, Ids, Ints, Ints]:
        """Return the nodes below some nodes: inner nodes, leaves, and the index of each leaf's root.

        A leaf among `nodes` is returned as its own leaf.

        Returns
        -------
        inner, leaves : (a,), (b,) nodes
        owner : (b,) the index in `nodes` of each leaf's root
        weight : (m,) number of nodes below each of `nodes`, which is not counted itself
        """
        owner = np.arange(nodes.size)
        inner, leaves, owners = [], [], []
        weight = np.zeros(nodes.size, np.int64)
        first = True
        while nodes.size:
            split = self.attribute[nodes] >= 0
            leaves.append(nodes[~split])
            owners.append(owner[~split])
            nodes, owner = nodes[split], owner[split]
            if not first:
                inner.append(nodes)
            first = False
            nodes, which = self.children(nodes)
            owner = owner[which]
            weight += np.bincount(owner, minlength=weight.size)
        none = np.zeros(0, np.int32)
        return (
            np.concatenate([none, *inner]),
            np.concatenate([none, *leaves]),
            np.concatenate([np.zeros(0, np.int64), *owners]),
            weight,
        )

    def fold_to_leaves(self, nodes: Ids) -> None:
        """Turn nodes into leaves without rows; the caller must `free_nodes` the nodes that were below them."""
        inner = nodes[self.attribute[nodes] >= 0]
        widths = self.width[self.attribute[inner]]
        for width in np.unique(widths).tolist():
            self._kid_free[width].give_back(self.kids[inner[widths == width]])
        self.attribute[nodes] = NONE
        self.first[nodes] = NONE

    def detach_subtree(self, node: int) -> None:
        """Detach the subtree below an inner node, which becomes a leaf without rows."""
        self.attribute[node] = NONE
        self.first[node] = NONE

    def attach_children(self, node: int, attribute: int, place: int) -> None:
        """Turn a leaf into an inner node, with the children from `place` on."""
        self.attribute[node] = attribute
        self.kids[node] = place

    def at_place(self, place: int, attribute: int) -> Ids:
        """Return the children of a split by `attribute`, which begin at `place`."""
        kids = self.kid[place : place + int(self.width[attribute])]
        return kids[kids >= 0]

    def give_back(self, place: int, attribute: int) -> None:
        """Free the places of the children of a split by `attribute`."""
        self._kid_free[int(self.width[attribute])].give_back(np.array([place]))

    def free_nodes(self, nodes: Ids) -> None:
        """Free nodes for reuse."""
        self.fold_to_leaves(nodes)
        self.free.give_back(nodes)

    def preorder(self, root: int) -> tuple[Ids, Ints]:
        """Return the nodes of a tree in pre-order, children in order of code, and the index of each node's parent."""
        return preorder(root, self.attribute, self.width, self.kids, self.kid)
