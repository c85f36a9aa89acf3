"""The tests of one node as arrays: their branches, the labels counted in them, and their gains."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from quercus.trees.learners.table import Floats, Ints
from quercus.trees.likelihood.cells import Cells
from quercus.trees.rules.gain import best_splits


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The tests of a node, of ``t`` tests ``c`` cells in all; in order of attribute, then of cut.

    Parameters
    ----------
    attribute
        (t,) of each test.
    threshold
        (t,) its cut, NaN for a nominal attribute.
    test, cell
        (b,) the populated branches: test, and the cell that its rows are counted in.
    cells
        (1 + c) cells: the node's own, and those of the branches; a cell may serve many tests.
    size
        (1 + c,) rows of each, or what these weigh.
    """

    attribute: Ints
    threshold: Floats
    test: Ints
    cell: Ints
    cells: Cells
    size: NDArray[Any]

    def gains(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats]:
        """Return the ends of the gain ratio of each test (theory §3.1), given those of the cells' entropy."""
        share = self.size[self.cell] / self.size[0]
        information = self._sums(-share * np.log2(share))
        least = (lower[0] - self._sums(share * upper[self.cell])) / information
        most = (upper[0] - self._sums(share * lower[self.cell])) / information
        return least, most

    @property
    def firsts(self) -> Ints:
        """First test of each attribute."""
        return np.unique(self.attribute, return_index=True)[1]

    def best(self, entropy: Floats) -> "Tests":
        """Return of each attribute the test of largest gain, of tied cuts the middle one, given entropies of cells."""
        left = self._sums(self.size[self.cell] / self.size[0] * entropy[self.cell])
        below = self.size[self.cell[np.unique(self.test, return_index=True)[1]]]
        return self._take(best_splits(-left, self.firsts, below))

    def _take(self, chosen: Ints) -> "Tests":
        """Return some of the tests, ascending, and the cells that they need."""
        here = np.isin(self.test, chosen)
        needed = np.zeros(len(self.cells), dtype=bool)
        needed[0] = needed[self.cell[here]] = True
        return Tests(
            attribute=self.attribute[chosen],
            threshold=self.threshold[chosen],
            test=np.searchsorted(chosen, self.test[here]),
            cell=(np.cumsum(needed) - 1)[self.cell[here]],
            cells=self.cells.of(needed),
            size=self.size[needed],
        )

    def _sums(self, values: Floats) -> Floats:
        return np.bincount(self.test, weights=values, minlength=self.attribute.size).astype(np.float64)


@dataclass(frozen=True, slots=True, eq=False)
class Labels:
    """Labels of the rows of a node.

    Parameters
    ----------
    ids
        (n,) number of each row's contour, in [0, `width`).
    weights
        (n,) how much each row counts; None: 1 each.
    width
        Number of contours.
    """

    ids: Ints
    weights: Floats | None
    width: int

    def counts(self, codes: Ints, codes_count: int) -> NDArray[Any]:
        """Return how often each contour occurs with each code, or what these rows weigh: (codes, contours)."""
        pairs = np.bincount(codes * self.width + self.ids, self.weights, minlength=codes_count * self.width)
        number = np.int64 if self.weights is None else np.float64
        return pairs.reshape(codes_count, self.width).astype(number)


def stacked(counts: Sequence[NDArray[Any]], used: NDArray[np.int32] | None = None) -> Cells:
    """Return cells from tables of counts; their columns are the contours `used`, all where there is none."""
    parts = [Cells.of_dense(part) for part in counts]
    lengths = np.concatenate([np.diff(part.start) for part in parts])
    start = np.zeros(lengths.size + 1, dtype=np.int64)
    np.cumsum(lengths, out=start[1:])
    ids = np.concatenate([part.ids for part in parts])
    return Cells(start, ids if used is None else used[ids], np.concatenate([part.counts for part in parts]))
