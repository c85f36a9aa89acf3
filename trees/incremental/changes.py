"""What changed on one level of the tree."""

from dataclasses import dataclass

import numpy as np

from quercus.trees.incremental.arrays import Bools, Deltas, Ids, Ints


@dataclass(frozen=True, slots=True, eq=False)
class Changes:
    """What changed below the nodes of one level: rows, group by group.

    Attributes
    ----------
    nodes : (g,) the nodes, each with a row at least
    start : (g + 1,) where each node's rows begin
    rows : (m,) rows
    was : (m,) contour each is counted under so far, -1 for a row that is new to the node
    opened : (m,) by how much the number of rows that may be asked about changes
    """

    nodes: Ids
    start: Ints
    rows: Ids
    was: Ids
    opened: Deltas

    @property
    def arriving(self) -> Bools:
        """Which rows are new to their node: (m,)."""
        return self.was < 0

    @property
    def altered(self) -> Bools:
        """At which nodes something else is known of a row that was there: (g,)."""
        return np.logical_or.reduceat(self.was >= 0, self.start[:-1])

    @property
    def first_new(self) -> Ids:
        """Smallest number of a row that is new to each node: (g,)."""
        rows = np.where(self.arriving, self.rows, np.iinfo(np.int32).max)
        return np.minimum.reduceat(rows, self.start[:-1])

    def of(self, chosen: Bools) -> "Changes":
        """Return the changes of the chosen groups (g,)."""
        if chosen.all():
            return self
        sizes = np.diff(self.start)
        mask = np.repeat(chosen, sizes)
        start = np.concatenate([[0], np.cumsum(sizes[chosen])])
        return Changes(self.nodes[chosen], start, self.rows[mask], self.was[mask], self.opened[mask])
