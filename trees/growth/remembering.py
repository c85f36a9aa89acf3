"""A tree with a bounded memory: it learns from the last told rows, and from all rows that are not told.

Rows leave such a tree exactly: once it forgets rows, each look grows it from the remembered ones. So it is the tree of
these rows for any division of the log, and the trees of a longer log cost no more.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from quercus.trees.growth.incremental.live_tree import LiveTree
from quercus.trees.growth.sample import Bools, Ints

UNTOLD = -1


class RowMemory:
    """The order in which rows were first told.

    A row whose label is withdrawn leaves, and an older one is remembered in its place.

    Parameters
    ----------
    most
        Most told rows that are remembered.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._moment: Ints = np.empty(0, np.int64)
        self._count = 0
        self._next = 0

    @property
    def moments(self) -> Ints:
        """(rows,) when each row was first told, `UNTOLD` where nothing is known of it; read only."""
        return self._moment[: self._count]

    def restore(self, moments: Ints) -> None:
        """Continue from the `moments` of another memory."""
        self._moment, self._count = moments, moments.size
        self._next = int(moments.max(initial=UNTOLD)) + 1

    def append(self, told: Bools) -> None:
        """Rows arrive, some of them told."""
        end = self._count + told.size
        if end > self._moment.size:
            room = np.full(max(64, end + end // 2), UNTOLD, np.int64)
            room[: self._count] = self._moment[: self._count]
            self._moment = room
        rows = self._count + np.flatnonzero(told)
        self._moment[rows] = self._next + np.arange(rows.size)
        self._next += rows.size
        self._count = end

    def set_told(self, row: int, *, told: bool) -> None:
        """Note whether the evidence of a row is informative now."""
        if not told:
            self._moment[row] = UNTOLD
        elif self._moment[row] == UNTOLD:
            self._moment[row] = self._next
            self._next += 1

    def remembered(self) -> Ints:
        """Return the rows that are remembered, ascending."""
        moments = self._moment[: self._count]
        told = np.flatnonzero(moments != UNTOLD)
        forgotten = told.size - self.most
        if forgotten <= 0:
            return np.arange(self._count)
        kept = np.ones(self._count, bool)
        kept[told[np.argpartition(moments[told], forgotten - 1)[:forgotten]]] = False
        rows: Ints = np.flatnonzero(kept)
        return rows


def tree_of(live: LiveTree, rows: NDArray[np.integer], empty: Callable[[], LiveTree]) -> LiveTree:
    """Return the tree of some rows of another, grown from an `empty` one."""
    sample, tree = live.sample, empty()
    tree.append(sample.codes[rows], sample.table.contours[sample.ids[rows]])
    tree.sample.askable[:] = sample.askable[rows]  # nothing is grown yet, so nothing has counted them
    return tree
