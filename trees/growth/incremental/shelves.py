"""Subtrees that were overtaken, put by in case their split wins again.

Where nothing but noise is left to split, attributes overtake each other again and again. A subtree that falls is put
on its node's shelf as it stands: inner nodes, counts, solved intervals, but no rows, for these go on to the subtree
that took its place. When it comes back only the rows that it has not seen are counted into it.

A row keeps its values, and its node keeps its rows as long as it stands. So a subtree on a shelf is wrong in nothing
but the rows that came since, until what is known of a row of its node changes: then the shelf is cleared.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from quercus.trees.growth.incremental.nodes import NodeColumns
from quercus.trees.growth.incremental.numbered import Ids


@dataclass(frozen=True, slots=True)
class ShelvedSubtree:
    """A subtree without its root.

    Parameters
    ----------
    place
        Place of the root's children in `NodeColumns.kid`.
    since
        It knows the rows with smaller numbers than this, all of them.
    size
        Its nodes.
    """

    place: int
    since: int
    size: int


class SubtreeShelves:
    """The shelves of all nodes, and a bound of their sizes.

    Parameters
    ----------
    nodes
        The tree, and the subtrees that were cut off from it.
    let_go
        Gives nodes back, with all that they hold.
    """

    def __init__(self, nodes: NodeColumns, let_go: Callable[[Ids], None]) -> None:
        self._nodes = nodes
        self._let_go = let_go
        self._of: dict[int, dict[int, ShelvedSubtree]] = {}
        self._age: dict[tuple[int, int], None] = {}  # the longest unused come first
        self.size = 0

    def shelve_subtree(self, node: int, since: int, size: int) -> None:
        """Shelve the subtree below an inner node, and make the node a leaf; the caller must take its rows."""
        nodes = self._nodes
        attribute = int(nodes.attribute[node])
        self._of.setdefault(node, {})[attribute] = ShelvedSubtree(int(nodes.kids[node]), since, size)
        self._age[node, attribute] = None
        self.size += size
        nodes.shelf[node] = True
        nodes.detach_subtree(node)

    def restore_subtree(self, node: int, attribute: int) -> int | None:
        """Put the subtree of a split back below a leaf; return the first row that it does not know, if there is one.

        None means that there is no such subtree.
        """
        if attribute not in self._of.get(node, ()):
            return None
        found = self._remove_subtree(node, attribute)
        self._nodes.attach_children(node, attribute, found.place)
        return found.since

    def clear_shelves(self, nodes: Ids) -> None:
        """Drop everything on the shelves of these nodes."""
        with_shelf = nodes[self._nodes.shelf[nodes]].tolist()
        self._drop_subtrees([(node, attribute) for node in with_shelf for attribute in self._of[node]])

    def shrink_to(self, room: int) -> None:
        """Drop the least recently used subtrees until at most `room` nodes are left."""
        excess = self.size - room
        chosen = []
        for node, attribute in self._age:
            if excess <= 0:
                break
            chosen.append((node, attribute))
            excess -= self._of[node][attribute].size
        self._drop_subtrees(chosen)

    def _drop_subtrees(self, chosen: list[tuple[int, int]]) -> None:
        if not chosen:
            return
        nodes = self._nodes
        kids = []
        for node, attribute in chosen:
            place = self._remove_subtree(node, attribute).place
            kids.append(nodes.at_place(place, attribute))
            nodes.give_back(place, attribute)
        roots = np.concatenate(kids)
        inner, leaves, _, _ = nodes.nodes_below(roots)
        self._let_go(np.concatenate([roots[nodes.attribute[roots] >= 0], inner, leaves]))

    def _remove_subtree(self, node: int, attribute: int) -> ShelvedSubtree:
        shelf = self._of[node]
        found = shelf.pop(attribute)
        del self._age[node, attribute]
        self.size -= found.size
        if not shelf:
            del self._of[node]
            self._nodes.shelf[node] = False
        return found
