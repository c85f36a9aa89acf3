"""Two classes, where the likelihood cut is an interval whose ends bracketing finds (theory §2.3)."""

import numpy as np
import pytest
from scipy.optimize import brentq

from quercus.trees.likelihood.interval import entropy_interval
from quercus.trees.likelihood.maximiser import estimate


def entropy(t):
    return 0.0 if t <= 0 or t >= 1 else -(t * np.log2(t) + (1 - t) * np.log2(1 - t))


def expected(P, alpha):
    theta = estimate(P).theta[0]

    def above(t):
        with np.errstate(divide="ignore"):
            value = np.log((P @ [t, 1 - t]) / (P @ [theta, 1 - theta])).sum()
        return max(value, -1e300) - np.log(alpha)

    low = 0.0 if theta == 0 or above(0.0) >= 0 else brentq(above, 0.0, theta, xtol=1e-16)
    high = 1.0 if theta == 1 or above(1.0) >= 0 else brentq(above, theta, 1.0, xtol=1e-16)
    upper = 1.0 if low <= 0.5 <= high else max(entropy(low), entropy(high))
    return min(entropy(low), entropy(high)), upper


@pytest.mark.parametrize(
    "alpha",
    [0.05, 0.9, 1 - 1e-9, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.5, 0.999, 1 - 1e-6))],
)
def test_every_level(alpha):
    rng = np.random.default_rng(2)
    for _ in range(400):
        P = rng.choice([0, 0.1, 0.3, 0.5, 0.6, 0.9, 1], (rng.integers(1, 12), 2))
        P = P[P.max(axis=1) > 0]
        if not len(P) or (P[:, 0] == P[:, 1]).all():
            continue
        found = entropy_interval(P, None, alpha)
        assert found.gap <= 1e-6, (P, found)
        assert (found.lower, found.upper) == pytest.approx(expected(P, alpha), abs=1e-6), P
