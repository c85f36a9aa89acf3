"""The recent accuracy of a model, on rows whose label arrived after the prediction (theory §10.7)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Bools, Floats, Ints
from quercus.belief.contour import consonant_pignistic, is_precise

BLOCK = 50  # rows per block
BLOCKS = 20  # number of blocks that are kept


@dataclass(frozen=True, slots=True)
class AccuracyBlock:
    """The accuracy of the predictions of some rows.

    Parameters
    ----------
    rows
        Number of rows.
    precise_rows
        Number of rows whose label is one class.
    right
        Number of precise rows whose class was predicted.
    expected
        Sum over all rows of the pignistic probability, under the row's label, of the class that was predicted.
    unasked_rows, unasked_expected
        `rows` and `expected` for the rows whose label no query asked for, that is, which no strategy selected.
    confusion
        The precise rows by class, as tuples: predicted class, class of the label, number of rows; in order, without
        empty cells.
    """

    rows: int = 0
    precise_rows: int = 0
    right: int = 0
    expected: float = 0.0
    unasked_rows: int = 0
    unasked_expected: float = 0.0
    confusion: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def of(cls, predicted: Ints, contours: Floats, asked: Bools | None = None) -> "AccuracyBlock":
        """Return the accuracy of predicted classes (n,), given the contours (n, l) of the later labels.

        `asked` (n,): whether a query asked for the label; None: a query asked for all.

        Examples
        --------
        >>> found = AccuracyBlock.of(np.array([0, 1, 0]), np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.5]]))
        >>> found.rows, found.precise_rows, found.right, found.expected, found.confusion
        (3, 2, 1, 1.75, ((0, 0, 1), (1, 0, 1)))
        """
        likely = consonant_pignistic(contours / contours.max(axis=1, keepdims=True))
        of_predicted = likely[np.arange(len(predicted)), predicted]
        precise = is_precise(contours)
        right = precise & (of_predicted == 1.0)
        came = np.zeros(len(predicted), np.bool_) if asked is None else ~asked
        pairs = np.column_stack([predicted, contours.argmax(axis=1)])[precise]
        cells, counts = np.unique(pairs, axis=0, return_counts=True)
        return cls(
            len(predicted),
            int(precise.sum()),
            int(right.sum()),
            float(of_predicted.sum()),
            int(came.sum()),
            float(of_predicted[came].sum()),
            tuple((int(a), int(b), int(count)) for (a, b), count in zip(cells, counts, strict=True)),
        )

    def __add__(self, other: "AccuracyBlock") -> "AccuracyBlock":
        return AccuracyBlock(
            self.rows + other.rows,
            self.precise_rows + other.precise_rows,
            self.right + other.right,
            self.expected + other.expected,
            self.unasked_rows + other.unasked_rows,
            self.unasked_expected + other.unasked_expected,
            sum_of_cells([*self.confusion, *other.confusion]),
        )


def sum_of_cells(cells: Iterable[tuple[int, int, int]]) -> tuple[tuple[int, int, int], ...]:
    """Return the cells of a confusion matrix in order, with cells of the same classes added up."""
    found: Counter[tuple[int, int]] = Counter()
    for said, holds, count in cells:
        found[said, holds] += count
    return tuple((said, holds, count) for (said, holds), count in sorted(found.items()))


def count_rows(
    blocks: Sequence[AccuracyBlock], predicted: Ints, contours: Floats, asked: Bools | None = None
) -> tuple[AccuracyBlock, ...]:
    """Return the last `BLOCKS` blocks after more rows; a block is filled up to 50 rows before the next one begins.

    Parameters
    ----------
    blocks
        The earlier blocks, oldest first.
    predicted
        (n,) the predicted classes.
    contours
        (n, l) contours of the labels that arrived afterwards.
    asked
        (n,) whether a query asked for the label; None: a query asked for all.
    """
    found = list(blocks)
    at = max(0, len(predicted) - (BLOCKS + 1) * BLOCK)  # earlier rows would be dropped anyway
    while at < len(predicted):
        if not found or found[-1].rows >= BLOCK:
            found.append(AccuracyBlock())
        end = at + BLOCK - found[-1].rows
        found[-1] += AccuracyBlock.of(
            predicted[at:end], contours[at:end], None if asked is None else asked[at:end]
        )
        at = end
    return tuple(found[-BLOCKS:])


def in_all(blocks: Iterable[AccuracyBlock]) -> AccuracyBlock:
    """Return the sum of blocks."""
    return sum(blocks, AccuracyBlock())
