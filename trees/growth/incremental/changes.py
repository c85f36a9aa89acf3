"""The changes on one level of the tree."""

from dataclasses import dataclass

import numpy as np

from quercus.kernels.growth import sum_groups
from quercus.trees.growth.incremental.arrays import Bools, Deltas, Ids, Ints


@dataclass(frozen=True, slots=True, eq=False)
class RowChanges:
    """The changes below the nodes of one level: rows, group by group.

    Attributes
    ----------
    nodes : (g,) the nodes, each with at least one row
    start : (g + 1,) start of each node's rows
    rows : (m,) rows
    was : (m,) contour under which each row is counted so far, -1 for a row that is new to the node
    opened : (m,) change in the number of rows that may be asked about
    """

    nodes: Ids
    start: Ints
    rows: Ids
    was: Ids
    opened: Deltas

    def totals_by_node(self) -> tuple[Ids, Ids, Bools]:
        """Return the number of new rows of each node, the change in those to ask about, and whether rows were altered.

        The last marks the nodes in which the contour of an earlier row changed; (g,) each.
        """
        arriving, opening = sum_groups(self.was, self.opened, self.start)
        return arriving, opening, arriving < np.diff(self.start)

    @property
    def first_new(self) -> Ids:
        """Return the smallest number of a row that is new to each node: (g,)."""
        rows = np.where(self.was < 0, self.rows, np.iinfo(np.int32).max)
        return np.minimum.reduceat(rows, self.start[:-1])

    def of_groups(self, chosen: Bools) -> "RowChanges":
        """Return the changes of the chosen groups (g,)."""
        if chosen.all():
            return self
        sizes = np.diff(self.start)
        mask = np.repeat(chosen, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[chosen])])
        return RowChanges(self.nodes[chosen], start, self.rows[mask], self.was[mask], self.opened[mask])
