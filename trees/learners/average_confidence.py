"""The average confidence of a model: its own estimate of its accuracy, on rows with and without labels."""

from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Floats, Ints
from quercus.trees.tree.flat import FlatTree

CONFIDENCE_ROWS = 1_000  # greatest number of rows that are predicted for it
_LEAF = -1


@dataclass(frozen=True, slots=True)
class AverageConfidence:
    """Mean probability that a model gives to the classes it predicts.

    This is the average confidence (Guillory et al., Predicting with confidence on unseen distributions, ICCV 2021). It
    needs no labels, and is only as accurate as the probabilities.

    Parameters
    ----------
    rows
        Number of rows, at least one.
    mean
        Mean over these rows, in [0, 1].
    """

    rows: int
    mean: float

    @classmethod
    def of(cls, predicted: Ints, theta: Floats) -> "AverageConfidence | None":
        """Return the average confidence in the predicted classes (n,), given probabilities (n, l); None without rows.

        Examples
        --------
        >>> AverageConfidence.of(np.array([0, 1]), np.array([[0.9, 0.1], [0.5, 0.5]]))
        AverageConfidence(rows=2, mean=0.7)
        """
        chosen = theta[np.arange(len(predicted)), predicted]
        return cls(len(chosen), float(chosen.mean())) if len(chosen) else None

    @classmethod
    def of_tree(cls, flat: FlatTree) -> "AverageConfidence | None":
        """Return the average confidence of a tree in the rows from which it grew; None if there are none."""
        leaves = np.flatnonzero((flat.attribute == _LEAF) & (flat.count > 0))
        count = flat.count[leaves]
        if not leaves.size:
            return None
        chosen = flat.theta[leaves, flat.klass[leaves]]
        return cls(int(count.sum()), float((count * chosen).sum() / count.sum()))


def spread_rows(count: int, most: int = CONFIDENCE_ROWS) -> Ints:
    """Return the positions of at most `most` of `count` rows, evenly spread.

    Examples
    --------
    >>> spread_rows(3), spread_rows(10, 4)
    (array([0, 1, 2]), array([0, 2, 5, 7]))
    """
    taken = min(count, most)
    return np.arange(taken, dtype=np.int64) * count // max(1, taken)
