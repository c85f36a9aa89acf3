"""The recent accuracy of a model, on rows whose label came after the prediction (theory §10.7)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.belief.contour import consonant_pignistic, is_precise

BLOCK = 50  # rows
BLOCKS = 20  # that are kept


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
    """

    rows: int = 0
    precise_rows: int = 0
    right: int = 0
    expected: float = 0.0

    @classmethod
    def of(cls, predicted: Ints, contours: Floats) -> "AccuracyBlock":
        """Return how right the classes (n,) were, given the contours (n, l) of the labels that came after them.

        Examples
        --------
        >>> AccuracyBlock.of(np.array([0, 1, 0]), np.array([[1.0, 0.0], [1.0, 0.0], [1.0, 0.5]]))
        AccuracyBlock(rows=3, precise_rows=2, right=1, expected=1.75)
        """
        likely = consonant_pignistic(contours / contours.max(axis=1, keepdims=True))
        of_predicted = likely[np.arange(len(predicted)), predicted]
        precise = is_precise(contours)
        right = precise & (of_predicted == 1.0)
        return cls(len(predicted), int(precise.sum()), int(right.sum()), float(of_predicted.sum()))

    def __add__(self, other: "AccuracyBlock") -> "AccuracyBlock":
        return AccuracyBlock(
            self.rows + other.rows,
            self.precise_rows + other.precise_rows,
            self.right + other.right,
            self.expected + other.expected,
        )


def count_rows(
    blocks: Sequence[AccuracyBlock], predicted: Ints, contours: Floats
) -> tuple[AccuracyBlock, ...]:
    """Return the last `BLOCKS` blocks after more rows: the newest block is filled up to 50 rows before the next begins.

    Parameters
    ----------
    blocks
        Those before, the oldest first.
    predicted
        (n,) the classes that were predicted.
    contours
        (n, l) of the labels that came after.
    """
    found = list(blocks)
    at = max(0, len(predicted) - (BLOCKS + 1) * BLOCK)  # earlier rows of a large batch do not count
    while at < len(predicted):
        if not found or found[-1].rows >= BLOCK:
            found.append(AccuracyBlock())
        end = at + BLOCK - found[-1].rows
        found[-1] += AccuracyBlock.of(predicted[at:end], contours[at:end])
        at = end
    return tuple(found[-BLOCKS:])


def in_all(blocks: Iterable[AccuracyBlock]) -> AccuracyBlock:
    """Return the sum of blocks."""
    return sum(blocks, AccuracyBlock())
