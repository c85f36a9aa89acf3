"""Uncertain values of the rows of a log, each completed by every member for itself (theory §14.4).

A completion is a draw among the values that are known of the attribute in the rows before it, the last 1,000, and that
the cell allows; without any such value, a draw among the allowed values, each as likely. Rows that come later change
nothing, so it is drawn once, and what a forest makes of the log does not depend on the batches in which it came. The
draw is a keyed hash of the seed, the member, the row and the attribute.
"""

from bisect import bisect_left
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Floats, Ints
from quercus.kernels.forest import member_key
from quercus.trees.memory_forest.codes import Codebook, Codes
from quercus.trees.tree.encoding import Parts, Range

WINDOW: Final = 1_000
"""Rows before an uncertain value, among whose values it is drawn."""
PIECE: Final = 1_000
"""Cells that are coded at once: each takes a number for every attribute meanwhile."""
CELLS: Final = -2
"""Number that makes a member's key that of its completions; those of its trees are 0 and above."""
Keys = NDArray[np.uint64]


def derived_keys(keys: Keys, number: int) -> Keys:
    """Return the keys of what a number names below each key, as `derived_key` in `kernels/forest/draws.hpp` does.

    Examples
    --------
    >>> from quercus.kernels.forest import derived_key
    >>> int(derived_keys(np.array([7], np.uint64), 3)[0]) == derived_key(7, 3)
    True
    """
    z = keys + np.uint64(((number + 1) * 0x9E3779B97F4A7C15) & (2**64 - 1))
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Keys = z ^ (z >> np.uint64(31))
    return found


class Completions:
    """The uncertain cells of a log, and what each member takes for their values.

    Parameters
    ----------
    seed, members
        Of the draws, and the number of those who draw; one more draw of each cell is everybody's.
    """

    def __init__(self, seed: int, members: int) -> None:
        keys = np.array([member_key(seed, m) for m in range(members + 1)], np.uint64)
        self._keys = derived_keys(keys, CELLS)
        self._rows: dict[int, list[int]] = {}  # with an uncertain cell of each attribute, ascending
        self._cells: list[tuple[int, int]] = []
        self._drawn: list[Floats] = []

    def __bool__(self) -> bool:
        return bool(self._cells)

    def complete(self, values: Floats, first: int, end: int, parts: Parts) -> None:
        """Complete the uncertain cells of new rows, in place, by the draws that are everybody's.

        Parameters
        ----------
        values
            (end, K) values of all rows, or more.
        first, end
            The new rows.
        parts
            Ranges that their values may lie in, by row of the log and attribute.
        """
        for row, k in sorted(parts):
            mine = self._rows.setdefault(k, [])
            start = max(0, row - WINDOW)
            before = values[start:row, k]
            known = ~np.isnan(before)
            known[[other - start for other in mine[bisect_left(mine, start) :]]] = False
            keys = derived_keys(derived_keys(self._keys, row), k)
            drawn = _draw(keys, before[known], parts[row, k])
            mine.append(row)
            self._cells.append((row, k))
            self._drawn.append(drawn[:-1])
            values[row, k] = drawn[-1]

    def codes_of_member(self, member: int, book: Codebook, rows: int) -> tuple[Ints, Ints, Codes]:
        """Return rows, attributes and codes of the completions of a member, of the first `rows` rows of the log."""
        count = bisect_left(self._cells, (rows, -1))
        at = np.array(self._cells[:count], np.int64).reshape(-1, 2)
        codes: Codes = np.empty(count, np.uint16)
        for begun in range(0, count, PIECE):
            here = slice(begun, min(begun + PIECE, count))
            values = np.full((here.stop - begun, len(book.named)), np.nan)
            place = np.arange(len(values)), at[here, 1]
            values[place] = [drawn[member] for drawn in self._drawn[here]]
            codes[here] = book.codes(values)[place]
        return at[:, 0], at[:, 1], codes


def _draw(keys: Keys, before: Floats, ranges: tuple[Range, ...]) -> Floats:
    """Return a value of each key (m,): among those `before` that lie in a range, or anywhere in the ranges."""
    chance = (keys >> np.uint64(11)) * 2.0**-53
    allowed = np.zeros(before.size, dtype=bool)
    for low, high in ranges:
        allowed |= (low <= before) & (before <= high)
    found = before[allowed]
    if found.size:
        drawn: Floats = found[(chance * found.size).astype(np.int64)]
        return drawn
    ends, place = np.array(ranges), chance * len(ranges)
    which = place.astype(np.int64)
    low, high = ends[which, 0], ends[which, 1]
    # By halves: high - low may be beyond the largest number.
    half: Floats = low / 2 + (place - which) * (high / 2 - low / 2)
    anywhere: Floats = np.clip(2 * half, low, high)
    return anywhere
