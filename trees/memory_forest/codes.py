"""The codes of the forest: bins between quantile cuts, and names, both counted from 1; 0 for a missing value.

The codes of other trees differ: there a missing value comes last (`quercus.trees.tree.encoding`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.kernels.forest import codes_of
from quercus.trees.memory_forest.unpickled import WritableArrays
from quercus.trees.tree.splits import midpoints

Codes = NDArray[np.uint16]

NUMBER_CUTS = 200  # greatest number of cuts of a numeric attribute
SETTLED_ROWS = 1_000  # from this many rows on, the cuts change only when the rows have doubled


def rows_that_cut(rows: int) -> int:
    """Return how many rows, from the first on, set the cuts of numbers when there are `rows` rows.

    All rows do up to 1,000, then the first 1,000, 2,000, 4,000, ...; so codes change ever more rarely, and are a
    function of the log.

    Examples
    --------
    >>> [rows_that_cut(rows) for rows in (7, 1_000, 1_999, 2_000, 5_000)]
    [7, 1000, 1000, 2000, 4000]
    """
    return rows if rows < SETTLED_ROWS else SETTLED_ROWS << ((rows // SETTLED_ROWS).bit_length() - 1)


def later_rows_that_cut(rows: int) -> int:
    """Return how many rows set the cuts of an attribute that was added later, when there are `rows` rows since then.

    Their number is a power of two, because the codes of all rows change with the cuts.

    Examples
    --------
    >>> [later_rows_that_cut(rows) for rows in (0, 1, 3, 1_000, 5_000)]
    [0, 1, 2, 512, 4096]
    """
    return 1 << (rows.bit_length() - 1) if rows else 0


@dataclass(frozen=True, eq=False)
class Codebook(WritableArrays):
    """The codebook: how values become codes.

    Parameters
    ----------
    named
        (K,) whether an attribute is nominal: its values are indices of names.
    cuts
        Ascending cuts of each attribute; none for a nominal one.
    varying
        (A,) numbers, ascending, of the attributes that vary among the rows of the log, from which trees draw. Empty if
        the codes are for predictions only.
    """

    named: Bools
    cuts: tuple[Floats, ...]
    varying: Ints

    @classmethod
    def of(cls, values: Floats, named: Bools, varying: Ints) -> "Codebook":
        """Return the codebook whose cuts are quantiles of `values` (n, K)."""
        return cls.of_columns(values.T, named, varying)

    @classmethod
    def of_columns(cls, columns: Iterable[Floats], named: Bools, varying: Ints) -> "Codebook":
        """Return the codebook whose cuts are quantiles of `columns`, one per attribute, which may differ in length."""
        none = np.empty(0)
        return cls(
            named,
            tuple(
                none if name else midpoints(column, NUMBER_CUTS)
                for column, name in zip(columns, named, strict=True)
            ),
            varying,
        )

    def codes(self, values: Floats) -> Codes:
        """Return the codes (n, K) of values (n, K)."""
        return codes_of(np.ascontiguousarray(values), self.named, *self.joined_cuts)

    @cached_property
    def joined_cuts(self) -> tuple[Floats, Ints]:
        """The cuts of all attributes, concatenated, and the number of cuts of each attribute (K,)."""
        return np.concatenate([np.empty(0), *self.cuts]), np.array(
            [len(cuts) for cuts in self.cuts], np.int64
        )

    def bin_counts(self) -> NDArray[np.int64]:
        """Return the number of bins of each numeric attribute, and 0 for a nominal one: (K,)."""
        return np.array(
            [0 if name else len(cuts) + 1 for cuts, name in zip(self.cuts, self.named, strict=True)]
        )

    def is_same(self, other: "Codebook") -> bool:
        """Return whether another codebook has the same cuts, and the same attributes vary."""
        return self is other or (
            np.array_equal(self.named, other.named)
            and np.array_equal(self.varying, other.varying)
            and all(np.array_equal(a, b) for a, b in zip(self.cuts, other.cuts, strict=True))
        )
