"""Values as codes: bins between quantile cuts, and names, both counted from 1; 0 for a missing value.

The codes of the other trees are different: there a missing value comes last (`quercus.trees.tree.encoding`).
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

NUMBER_CUTS = 200  # of a number, at most
SETTLED_ROWS = 1_000  # from which on the cuts change only when the rows have doubled


def rows_that_cut(rows: int) -> int:
    """Return how many of the first `rows` rows the cuts of numbers are quantiles of.

    All of them up to 1,000, then 1,000, 2,000, 4,000, ...: so codes change ever more rarely, and are a function of the
    log.

    Examples
    --------
    >>> [rows_that_cut(rows) for rows in (7, 1_000, 1_999, 2_000, 5_000)]
    [7, 1000, 1000, 2000, 4000]
    """
    return rows if rows < SETTLED_ROWS else SETTLED_ROWS << ((rows // SETTLED_ROWS).bit_length() - 1)


def later_rows_that_cut(rows: int) -> int:
    """Return how many of the first `rows` rows with an attribute that came later its cuts are quantiles of.

    As many as a power of two: the codes of all rows change with them.

    Examples
    --------
    >>> [later_rows_that_cut(rows) for rows in (0, 1, 3, 1_000, 5_000)]
    [0, 1, 2, 512, 4096]
    """
    return 1 << (rows.bit_length() - 1) if rows else 0


@dataclass(frozen=True, eq=False)
class Codebook(WritableArrays):
    """The codes of values.

    Parameters
    ----------
    named
        (K,) whether the attribute is nominal: its values are indices of names.
    cuts
        Ascending cuts of each attribute; none for a nominal one.
    varying
        (A,) numbers, rising, of the attributes that vary among the rows of the log: trees draw among these. None where
        the codes are for predictions alone.
    """

    named: Bools
    cuts: tuple[Floats, ...]
    varying: Ints

    @classmethod
    def of(cls, values: Floats, named: Bools, varying: Ints) -> "Codebook":
        """Return the codes whose cuts are quantiles of `values` (n, K)."""
        return cls.of_columns(values.T, named, varying)

    @classmethod
    def of_columns(cls, columns: Iterable[Floats], named: Bools, varying: Ints) -> "Codebook":
        """Return the codes whose cuts are quantiles of columns, one of each attribute, which may differ in length."""
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
        """The cuts of all attributes, one after the other, and the number of each attribute's (K,)."""
        return np.concatenate([np.empty(0), *self.cuts]), np.array(
            [len(cuts) for cuts in self.cuts], np.int64
        )

    def bin_counts(self) -> NDArray[np.int64]:
        """Return the number of bins of each number, 0 for names: (K,)."""
        return np.array(
            [0 if name else len(cuts) + 1 for cuts, name in zip(self.cuts, self.named, strict=True)]
        )

    def is_same(self, other: "Codebook") -> bool:
        """Return whether another book gives the same codes, of the same attributes that vary."""
        return self is other or (
            np.array_equal(self.named, other.named)
            and np.array_equal(self.varying, other.varying)
            and all(np.array_equal(a, b) for a, b in zip(self.cuts, other.cuts, strict=True))
        )
