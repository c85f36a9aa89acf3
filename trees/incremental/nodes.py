"""The tree as growing columns: nodes are numbers, given back when a subtree falls."""

import numpy as np

from quercus.trees.incremental.arrays import NONE, Bools, Ids, Ints
from quercus.trees.splits import Splits


class Nodes:
    """Nodes of a tree, column by column.

    Parameters
    ----------
    splits
        What a node can be split by.
    classes
        Size of the frame.

    Attributes
    ----------
    width : (T,) number of branches of each split
    attribute : number of the split, see `quercus.trees.splits`, -1 for a leaf
    parent, code, depth : where the node stands; -1 for the root's parent and code
    count : rows
    open : rows that an oracle may still be asked about
    stop : why the node is a leaf, as the number of a `Stop`; 0 for an inner node
    first : first row in the list of a leaf, -1 for none
    block : block of counts, -1 for none
    shelf : whether a subtree of the node stands on its shelf, see `quercus.trees.incremental.shelves`
    kids : where the children of each code stand in `kid`
    judged : whether the gains were looked at
    gain_lower, gain_upper : (K,) gain ratio of each candidate attribute, NaN for the others
    rivals : (T,) splits that may be the best, in bits
    contested : whether these are two or more
    kid, rank : child at each place, -1 for none; and scratch of the same length, all -1
    silent : whether all labels are vacuous, so that the node predicts as its parent, see `quercus.trees.flat.heard`
    theta, belief, plausibility : (l,) see `quercus.trees.tree.Node`
    """

    def __init__(self, splits: Splits, classes: int) -> None:
        self.width = splits.branches
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
        self.rivals = np.zeros((0, (splits.count + 7) // 8), np.uint8)
        self.contested = np.zeros(0, bool)
        self.silent = np.zeros(0, bool)
        self.theta = np.zeros((0, classes))
        self.belief = np.zeros((0, classes))
        self.plausibility = np.zeros((0, classes))
        self._columns = tuple(name for name in vars(self) if name != "width")
        self._free: list[int] = []
        self.kid = np.zeros(0, np.int32)
        self.rank = np.zeros(0, np.int32)
        self._kid_top = 0
        self._kid_free: dict[int, list[int]] = {}  # places of so many children that were given back

    @property
    def undecided(self) -> Bools:
        """Whether a node's split is provisional: it has rivals, and labels could still settle it."""
        undecided: Bools = (self.attribute >= 0) & (self.open > 0) & self.contested
        return undecided

    def rivals_of(self, node: int) -> tuple[int, ...]:
        """Return the splits that may be the best at a node that was judged."""
        bits = np.unpackbits(self.rivals[node], count=self.width.size)
        return tuple(np.flatnonzero(bits).tolist())

    @property
    def taken(self) -> int:
        """Number of nodes that are not free."""
        return self.attribute.size - len(self._free)

    def add(self, parent: Ids, code: Ids, depth: Ids) -> Ids:
        """Return the numbers of new leaves without rows."""
        while len(self._free) < parent.size:
            self._more()
        nodes = np.array([self._free.pop() for _ in range(parent.size)], np.int32)
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

    def _more(self) -> None:
        known = self.attribute.size
        total = max(16, known + known // 2)
        self._free.extend(range(total - 1, known - 1, -1))
        for name in self._columns:
            old = getattr(self, name)
            new = np.zeros((total, *old.shape[1:]), old.dtype)
            new[:known] = old
            setattr(self, name, new)

    def split(self, nodes: Ids, attributes: Ids) -> None:
        """Make nodes inner ones, with no child yet."""
        for k in np.unique(attributes):
            chosen = nodes[attributes == k]
            width = int(self.width[k])
            places = np.array([self._kid_place(width) for _ in range(chosen.size)])
            self.kid[places[:, np.newaxis] + np.arange(width)] = NONE
            self.kids[chosen] = places
        self.attribute[nodes] = attributes

    def _kid_place(self, width: int) -> int:
        free = self._kid_free.setdefault(width, [])
        if free:
            return free.pop()
        if self._kid_top + width > self.kid.size:
            grown = np.zeros(16 + (self._kid_top + width) * 3 // 2, np.int32)
            grown[: self._kid_top] = self.kid[: self._kid_top]
            self.kid = grown
            self.rank = np.full(grown.size, NONE, np.int32)
        place = self._kid_top
        self._kid_top += width
        return place

    def children(self, nodes: Ids) -> tuple[Ids, Ints]:
        """Return all children of inner nodes, in order of node and code, and which of `nodes` each is a child of."""
        widths = self.width[self.attribute[nodes]]
        first = np.cumsum(widths) - widths
        which = np.repeat(np.arange(nodes.size), widths)
        kids = self.kid[self.kids[nodes][which] + np.arange(which.size) - first[which]]
        there = kids >= 0
        return kids[there], which[there]

    def below(self, nodes: Ids) -> tuple[Ids, Ids, Ints, Ints]:
        """Return what stands below nodes, themselves excluded: inner nodes, leaves, and the index of the root of each.

        A leaf among `nodes` is returned as a leaf of its own.

        Returns
        -------
        inner, leaves : (a,), (b,) nodes
        owner : (b,) of each leaf, which of `nodes` it stands below
        weight : (m,) how many nodes stand below each of `nodes`, itself not counted
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

    def fold(self, nodes: Ids) -> None:
        """Make nodes leaves without rows; what was below them is the caller's to `drop`."""
        inner = nodes[self.attribute[nodes] >= 0]
        widths = self.width[self.attribute[inner]]
        for width in np.unique(widths):
            self._kid_free.setdefault(int(width), []).extend(self.kids[inner[widths == width]].tolist())
        self.attribute[nodes] = NONE
        self.first[nodes] = NONE

    def detach(self, node: int) -> None:
        """Cut off what is below an inner node, which becomes a leaf without rows."""
        self.attribute[node] = NONE
        self.first[node] = NONE

    def attach(self, node: int, attribute: int, place: int) -> None:
        """Make a leaf an inner node, with the children that stand from `place` on."""
        self.attribute[node] = attribute
        self.kids[node] = place

    def at_place(self, place: int, attribute: int) -> Ids:
        """Return the children by an attribute that stand from `place` on."""
        kids = self.kid[place : place + int(self.width[attribute])]
        return kids[kids >= 0]

    def give_back(self, place: int, attribute: int) -> None:
        """Give the places of children by an attribute back."""
        self._kid_free.setdefault(int(self.width[attribute]), []).append(place)

    def drop(self, nodes: Ids) -> None:
        """Give nodes back."""
        self.fold(nodes)
        self._free.extend(nodes.tolist())

    def preorder(self, root: int) -> tuple[Ids, Ints]:
        """Return the nodes of a tree in pre-order, children in order of code, and the index of each one's parent."""
        levels = [np.array([root], np.int32)]
        while levels[-1].size:
            here = levels[-1]
            levels.append(self.children(here[self.attribute[here] >= 0])[0])
        order = np.concatenate(levels)
        index = np.empty(self.attribute.size, np.int64)
        index[order] = np.arange(order.size)
        parent = np.where(self.parent[order] >= 0, index[self.parent[order]], NONE)
        weight = np.ones(order.size, np.int64)  # nodes of the subtree
        end = order.size
        for level in reversed(levels[1:]):
            begin = end - level.size
            np.add.at(weight, parent[begin:end], weight[begin:end])
            end = begin
        position = np.zeros(order.size, np.int64)
        begin = 1
        for level in levels[1:]:
            part = slice(begin, begin + level.size)
            ahead = np.cumsum(weight[part]) - weight[part]  # of all elder nodes of the level
            eldest = np.flatnonzero(np.diff(parent[part], prepend=-1))
            elder = np.repeat(ahead[eldest], np.diff(eldest, append=level.size))
            position[part] = position[parent[part]] + 1 + ahead - elder
            begin += level.size
        ranked = np.empty(order.size, np.int32)
        ranked[position] = order
        above = np.empty(order.size, np.int64)
        above[position] = np.where(parent >= 0, position[parent], NONE)
        return ranked, above
