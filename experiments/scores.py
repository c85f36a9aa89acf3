"""Scores of predictions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Ints
from quercus.experiments.problem import Prediction
from quercus.trees.learners.metrics import u65, u80


@dataclass(frozen=True)
class FoldScores:
    """Means over the rows of a test fold.

    Parameters
    ----------
    accuracy
        Share of rows whose class is the one predicted.
    u65, u80
        Utility-discounted accuracy of the set-valued prediction.
    brier
        Mean squared distance of the probabilities from the true class, in [0, 2].
    """

    accuracy: float
    u65: float
    u80: float
    brier: float


def score(said: Prediction, targets: Ints) -> FoldScores:
    """Return the scores of predictions for rows with these true classes (m,)."""
    truth = np.eye(said.probabilities.shape[1])[targets]
    return FoldScores(
        accuracy=float(np.mean(said.classes == targets)),
        u65=u65(said.possible, targets),
        u80=u80(said.possible, targets),
        brier=float(np.mean(np.sum((said.probabilities - truth) ** 2, axis=1))),
    )


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of the mean of independent values; NaN of a single value.

    Examples
    --------
    >>> standard_error([1.0, 2.0, 3.0, 4.0, 5.0])
    0.7071067811865476
    """
    count = len(values)
    return math.nan if count < 2 else float(np.std(values, ddof=1)) / math.sqrt(count)
