"""A tree with a bounded memory: it learns from the last labelled rows, and from all unlabelled ones.

Forgetting is exact: once a row is forgotten, each look grows the tree anew from the remembered rows. So it is the tree
of these rows, however the log was divided into calls.
"""

import numpy as np

from quercus.belief.arrays import Bools, Ints

NO_MOMENT = -1


class RowMemory:
    """The order in which rows were first labelled.

    A row whose label is withdrawn is removed, and an older one is remembered instead.

    Parameters
    ----------
    most
        Maximum number of labelled rows that are remembered.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self._moment: Ints = np.empty(0, np.int64)
        self._count = 0
        self._next = 0

    @property
    def label_moments(self) -> Ints:
        """(rows,) when each row was first labelled, `NO_MOMENT` for unlabelled rows; read only."""
        return self._moment[: self._count]

    def restore(self, moments: Ints) -> None:
        """Continue from the `label_moments` of another memory."""
        self._moment, self._count = moments, moments.size
        self._next = int(moments.max(initial=NO_MOMENT)) + 1

    def append(self, labelled: Bools) -> None:
        """Append rows, some of them labelled."""
        end = self._count + labelled.size
        if end > self._moment.size:
            room = np.full(max(64, end + end // 2), NO_MOMENT, np.int64)
            room[: self._count] = self._moment[: self._count]
            self._moment = room
        rows = self._count + np.flatnonzero(labelled)
        self._moment[rows] = self._next + np.arange(rows.size)
        self._next += rows.size
        self._count = end

    def set_labelled(self, row: int, *, labelled: bool) -> None:
        """Record whether a row has a label now."""
        if not labelled:
            self._moment[row] = NO_MOMENT
        elif self._moment[row] == NO_MOMENT:
            self._moment[row] = self._next
            self._next += 1

    def remembered_rows(self) -> Ints:
        """Return the rows that are remembered, ascending."""
        moments = self._moment[: self._count]
        labelled = np.flatnonzero(moments != NO_MOMENT)
        forgotten = labelled.size - self.most
        if forgotten <= 0:
            return np.arange(self._count)
        kept = np.ones(self._count, bool)
        kept[labelled[np.argpartition(moments[labelled], forgotten - 1)[:forgotten]]] = False
        rows: Ints = np.flatnonzero(kept)
        return rows
