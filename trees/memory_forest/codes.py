"""Values as codes: bins between quantile cuts, and names; 0 for a missing value."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.trees.memory_forest.unpickled import WritableArrays
from quercus.trees.tree.splits import midpoints

Codes = NDArray[np.uint16]

NUMBER_CUTS = 200  # of a number, at most
SETTLED_ROWS = 1_000  # from which on the cuts change only when the rows have doubled
LAST_NAME = 0xFFFE  # that has a separate code


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
        none = np.empty(0)
        return cls(
            named,
            tuple(
                none if name else midpoints(column, NUMBER_CUTS)
                for column, name in zip(values.T, named, strict=True)
            ),
            varying,
        )

    def codes(self, values: Floats) -> Codes:
        """Return the codes (n, K) of values (n, K)."""
        codes = np.zeros(values.shape, np.uint16)
        for k, cuts in enumerate(self.cuts):
            column = values[:, k]
            known = ~np.isnan(column)
            if self.named[k]:
                codes[known, k] = np.minimum(column[known].astype(np.int64), LAST_NAME) + 1
            else:
                codes[known, k] = np.searchsorted(cuts, column[known], side="right") + 1
        return codes

    def bin_counts(self) -> NDArray[np.int64]:
        """Return the number of bins of each number, 0 for names: (K,)."""
        return np.array(
            [0 if name else len(cuts) + 1 for cuts, name in zip(self.cuts, self.named, strict=True)]
        )
