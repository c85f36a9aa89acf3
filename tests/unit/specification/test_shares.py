"""Shares as text, and their confidence intervals."""

import pytest
from scipy.stats import binomtest

from quercus.specification.shares import CONFIDENCE, wilson_interval


@pytest.mark.parametrize("rows", range(1, 201))
def test_an_interval_contains_its_share(rows: int) -> None:
    for right in (0, rows // 2, rows):
        lower, upper = wilson_interval(right, rows)
        assert 0.0 <= lower <= right / rows <= upper <= 1.0
        expected = binomtest(right, rows).proportion_ci(CONFIDENCE, "wilson")
        assert (lower, upper) == pytest.approx((expected.low, expected.high), abs=1e-12)
