"""The one-coin model, one accuracy per labeller: the prior of the confusion matrices (theory §13.2)."""

from typing import Final

import numpy as np

from quercus.belief.arrays import Floats

PRIOR_RIGHT, PRIOR_WRONG = 4.0, 1.0
PRIOR_RELIABILITY: Final = PRIOR_RIGHT / (PRIOR_RIGHT + PRIOR_WRONG)
"""Reliability of an unknown labeller."""

CELL: Final = 0.25
"""Weight of the prior in answers, per cell of a confusion matrix."""

LEAST, MOST = 0.01, 0.99
HALVINGS = 40


def prior_cells(coins: Floats, size: int) -> Floats:
    """Return the parameters (m, l, l) of the Dirichlet priors by coins (m,); each row weighs as much as l/4 answers."""
    wrong = (1.0 - np.eye(size)) / (size - 1)
    rows = coins[:, np.newaxis, np.newaxis] * np.eye(size) + np.multiply.outer(1.0 - coins, wrong)
    cells: Floats = CELL * size * rows
    return cells


def log_prior(coins: Floats) -> float:
    """Return the log prior density of coins (m,), up to a constant: the weight of four right answers and one wrong."""
    return float((PRIOR_RIGHT * np.log(coins) + PRIOR_WRONG * np.log1p(-coins)).sum())


def likeliest_coins(logs: Floats) -> Floats:
    """Return the coins (m,) in [.01, .99] that best fit matrices with the expected logarithms `logs` (m, l, l).

    The objective is concave, so the root of its derivative is found by bisection.
    """
    from scipy.special import digamma  # noqa: PLC0415  (a server that estimates nothing starts without SciPy)

    size = logs.shape[1]
    right = np.einsum("jcc->jc", logs)
    wrong = (logs.sum(axis=2) - right) / (size - 1)
    gap = (right - wrong).sum(axis=1)
    weight = CELL * size
    low, high = np.full(len(logs), LEAST), np.full(len(logs), MOST)
    for _ in range(HALVINGS):
        r = (low + high) / 2
        spread = digamma(weight * (1.0 - r) / (size - 1)) - digamma(weight * r)
        slope = weight * (gap + size * spread) + PRIOR_RIGHT / r - PRIOR_WRONG / (1.0 - r)
        low, high = np.where(slope > 0.0, r, low), np.where(slope > 0.0, high, r)
    found: Floats = (low + high) / 2
    return found
