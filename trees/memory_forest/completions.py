"""Completions of uncertain values: every member draws a value of its own for each uncertain cell (theory §14.4).

A completion is drawn from those known values of the attribute in the 1,000 rows before it that the cell allows; if
there is none, uniformly from the allowed values. Later rows change nothing, and the forest does not depend on the
batches in which the log arrived. The draw is a keyed hash of the seed, the member, the row and the attribute. It is
therefore not stored, but repeated for the rows that a member remembers whenever the member grows.
"""

from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.kernels.forest import member_key
from quercus.trees.memory_forest.codes import Codebook, Codes
from quercus.trees.tree.encoding import Parts
from quercus.trees.tree.uncertain import UncertainCells

WINDOW: Final = 1_000
"""A completion is drawn from the values of this many rows before its own."""
PIECE: Final = 1_000
"""Number of cells that are completed at once, for all members of a memory."""
CELLS: Final = -2
"""Number from which the key of a member's completions is derived; the numbers 0 and above are those of its tree."""
Keys = NDArray[np.uint64]


def derived_keys(keys: Keys, number: int | Ints) -> Keys:
    """Return the key that a number derives from each of `keys`, as `derived_key` in `kernels/forest/draws.hpp` does.

    For an array of numbers, the result has the axes of the array before that of the keys.

    Examples
    --------
    >>> from quercus.kernels.forest import derived_key
    >>> key = np.array([7], np.uint64)
    >>> int(derived_keys(key, 3)[0]) == derived_key(7, 3)
    True
    >>> derived_keys(key, np.array([3, 4])).tolist() == [[derived_key(7, 3)], [derived_key(7, 4)]]
    True
    """
    step = (np.asarray(number, np.int64) + 1).astype(np.uint64)[..., np.newaxis]
    z = keys + step * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Keys = z ^ (z >> np.uint64(31))
    return found


class Completions:
    """The uncertain cells of a log, and the values that each member assumes for them.

    Parameters
    ----------
    seed, members
        The seed of the draws, and the number of trees. One more draw of each cell is shared by all members.
    """

    def __init__(self, seed: int, members: int) -> None:
        keys = np.array([member_key(seed, m) for m in range(members + 1)], np.uint64)
        self._keys = derived_keys(keys, CELLS)
        self._rows, self._attributes, self._until, self._ends = (array(kind) for kind in "qqqd")

    def add_cells(self, cells: UncertainCells) -> None:
        """Append uncertain cells; their rows must come after those of the present ones."""
        until = cells.until + len(self._ends) // 2
        for kept, more in zip(self._places, (cells.rows, cells.attributes, until), strict=True):
            kept.frombytes(more.tobytes())
        self._ends.frombytes(cells.ends.tobytes())

    @property
    def cells(self) -> UncertainCells:
        """Copies of all uncertain cells."""
        return self._cells_since(0)

    def _cells_since(self, row: int) -> UncertainCells:
        """Return copies of the cells in the rows from `row` on."""
        first = bisect_left(self._rows, row)
        before = self._until[first - 1] if first else 0
        rows, attributes, until = (np.array(each[first:], np.int64) for each in self._places)
        return UncertainCells(
            rows, attributes, until - before, np.array(self._ends[2 * before :]).reshape(-1, 2)
        )

    @property
    def _places(self) -> "tuple[array[int], array[int], array[int]]":
        return self._rows, self._attributes, self._until

    def complete(self, values: Floats, parts: Parts) -> None:
        """Complete the uncertain cells of new rows, in place, by the shared draws.

        Parameters
        ----------
        values
            (n, K) values of all rows, possibly followed by unused room.
        parts
            Ranges in which values of the new rows may lie, by row of the log and attribute.
        """
        if not parts:
            return
        self.add_cells(UncertainCells.of(parts))
        cells = self._cells_since(min(parts)[0] - WINDOW)
        fresh = np.arange(len(cells.rows) - len(parts), len(cells.rows))
        for mine, drawn in self._draws(cells, fresh, values, self._keys[-1:]):
            values[cells.rows[mine], cells.attributes[mine]] = drawn[:, 0]

    def codes_of_members(
        self, members: Sequence[int], rows: Ints, values: Floats, book: Codebook
    ) -> tuple[Ints, Ints, Codes]:
        """Return the codes of the completions of some members in some rows.

        Parameters
        ----------
        members
            Numbers of the members.
        rows
            Numbers of the rows in the log, ascending.
        values
            (n, K) values of all rows.
        book
            The codebook.

        Returns
        -------
        For the c uncertain cells of these rows: row (c,), attribute (c,), and the members' codes (c, members).
        """
        cells, keys = self.cells, self._keys[np.asarray(members)]
        wanted = np.flatnonzero(np.isin(cells.rows, rows))
        at, codes = np.empty(len(wanted), np.int64), np.empty((len(wanted), len(keys)), np.uint16)
        begun = 0
        for mine, drawn in self._draws(cells, wanted, values, keys):
            k, here = cells.attributes[mine[0]], slice(begun, begun := begun + len(mine))
            alone = Codebook(book.named[k : k + 1], book.cuts[k : k + 1], book.varying[:0])
            at[here], codes[here] = mine, alone.codes(drawn.reshape(-1, 1)).reshape(drawn.shape)
        return cells.rows[at], cells.attributes[at], codes

    def _draws(
        self, cells: UncertainCells, wanted: Ints, values: Floats, keys: Keys
    ) -> Iterator[tuple[Ints, Floats]]:
        """Yield, in pieces, the wanted cells of one attribute, and the values drawn for them (cells, keys)."""
        for k in np.unique(cells.attributes[wanted]).tolist():
            mine, others = wanted[cells.attributes[wanted] == k], cells.rows[cells.attributes == k]
            start = max(0, int(cells.rows[mine[0]]) - WINDOW)
            column = values[start : cells.rows[mine[-1]], k]
            is_known = ~np.isnan(column)
            is_known[others[(others >= start) & (others < start + len(column))] - start] = False
            known = start + np.flatnonzero(is_known)
            before = column[is_known]
            for piece in np.split(mine, range(PIECE, len(mine), PIECE)):
                rows = cells.rows[piece]
                windows = np.searchsorted(known, [rows - WINDOW, rows]).T.tolist()
                draws = derived_keys(derived_keys(keys, rows), k)
                yield (
                    piece,
                    np.array(
                        [
                            _draw(draws[i], before[slice(*windows[i])], cells.ranges(cell))
                            for i, cell in enumerate(piece.tolist())
                        ]
                    ),
                )


def _draw(keys: Keys, before: Floats, ranges: Floats) -> Floats:
    """Return a value for each key (m,): one of those `before` that lie in the ranges (r, 2), else anywhere in these."""
    chance = (keys >> np.uint64(11)) * 2.0**-53
    low, high = ranges.T
    allowed = (low[0] <= before) & (before <= high[0])
    for one in range(1, len(ranges)):
        allowed |= (low[one] <= before) & (before <= high[one])
    found = before[allowed]
    if found.size:
        drawn: Floats = found[(chance * found.size).astype(np.int64)]
        return drawn
    place = chance * len(ranges)
    which = place.astype(np.int64)
    # computed by halves, since high - low may overflow
    half: Floats = low[which] / 2 + (place - which) * (high[which] / 2 - low[which] / 2)
    anywhere: Floats = np.clip(2 * half, low[which], high[which])
    return anywhere
