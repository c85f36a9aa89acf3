"""The leaves in which rows end, for queries that do not belong to a round at a node."""

from functools import cached_property

import numpy as np

from quercus.belief.arrays import Bools, Ints
from quercus.trees.ask.query import Query, QueryContext, QueryPosition
from quercus.trees.ask.reasons import Reason
from quercus.trees.ask.strategies.row_sample import row_hashes
from quercus.trees.growth.batch import OpenNode


def by_lot(context: QueryContext, rows: Ints, free: Bools, best: int) -> int:
    """Return, of those `rows` that are `free` (n,) and have the same label as row `best`, the one of least hash.

    The published score breaks ties between equal labels by the order of the rows (theory §3.5), and files are often
    sorted by class. A strategy that stays in one leaf would then learn about one class only.
    """
    ids = context.sample.ids
    same = rows[free[rows] & (ids[rows] == ids[best])]
    return int(same[row_hashes(same).argmin()])


class LeafRows:
    """The leaves of the tree, numbered in pre-order, and their rows.

    Parameters
    ----------
    context
        The tree and its candidates.

    Attributes
    ----------
    of : (n,) number of the leaf in which each row ends
    count : (leaves,) number of rows in each leaf
    """

    def __init__(self, context: QueryContext) -> None:
        self.of, self._path = context.growth.row_leaves()
        self.count: Ints = np.bincount(self.of, minlength=1)
        self._end = np.cumsum(self.count)

    @cached_property
    def _order(self) -> Ints:
        """The rows, sorted by leaf."""
        return np.argsort(self.of, kind="stable")

    def rows_of_leaf(self, leaf: int) -> Ints:
        """Return the rows of a leaf, ascending."""
        end = int(self._end[leaf])
        rows: Ints = self._order[end - int(self.count[leaf]) : end]
        return rows

    def query_about(self, instance: int, score: float, reason: Reason) -> Query:
        """Return the query about `instance`, which stands for the leaf in which it ends."""
        leaf = int(self.of[instance])
        path = self._path(leaf)
        return Query(
            instance=instance,
            path=path,
            attribute=None,
            code=None,
            score=score,
            rivals=(),
            asked=QueryPosition(path, None, None, ()),
            node_count=int(self.count[leaf]),
            reason=reason,
        )


def query_of_child(
    context: QueryContext,
    node: tuple[OpenNode, tuple[int, ...]],
    child: tuple[int, int],
    instance: int,
    score: float,
    reason: Reason,
) -> Query:
    """Return the query about `instance`, which stands for a `child` (attribute, code) of an undecided node.

    `node` is the undecided node with its rivals.
    """
    place, rivals = node
    gains = context.growth.gain_intervals(place)
    return Query(
        instance=instance,
        path=place.path,
        attribute=child[0],
        code=child[1],
        score=score,
        rivals=tuple((k, *gains[k]) for k in rivals if k in gains),
        asked=QueryPosition(place.path, None, None, ()),
        node_count=int(place.rows.size),
        reason=reason,
    )
