"""Shelves for removed subtrees, in case their split wins again.

Where only noise is left to split on, attributes overtake each other repeatedly. A removed subtree is put on its node's
shelf with its nodes, counts and solved intervals, but without rows, which go to the new subtree. When it is restored,
only the rows that it has not seen are counted into it.

Rows keep their values, and a node keeps its rows while it exists. A shelved subtree therefore lacks only the rows that
have arrived since. When the label of a row of its node changes, the shelf is cleared.
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
        The subtree has counted exactly the rows with smaller numbers.
    size
        Its number of nodes.
    """

    place: int
    since: int
    size: int


class SubtreeShelves:
    """The shelves of all nodes, with a bound on their total size.

    Parameters
    ----------
    nodes
        The tree, and the detached subtrees.
    let_go
        Releases nodes, with everything that belongs to them.
    """

    def __init__(self, nodes: NodeColumns, let_go: Callable[[Ids], None]) -> None:
        self._nodes = nodes
        self._let_go = let_go
        self._of: dict[int, dict[int, ShelvedSubtree]] = {}
        self._age: dict[tuple[int, int], None] = {}  # least recently used first
        self.size = 0

    def shelve_subtree(self, node: int, since: int, size: int) -> None:
        """Shelve the subtree below an inner node, and make the node a leaf; the caller must move its rows."""
        nodes = self._nodes
        attribute = int(nodes.attribute[node])
        self._of.setdefault(node, {})[attribute] = ShelvedSubtree(int(nodes.kids[node]), since, size)
        self._age[node, attribute] = None
        self.size += size
        nodes.shelf[node] = True
        nodes.detach_subtree(node)

    def restore_subtree(self, node: int, attribute: int) -> int | None:
        """Restore the subtree of a split below a leaf; return the first row that it has not counted.

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
