"""The conclusions of a soak test about memory."""

import numpy as np
import pytest
from support.soak import Trend, trend

SECONDS = np.arange(600.0)
SAWTOOTH = 4e6 * (SECONDS % 70) / 70
NOISE = 1e6 * np.random.default_rng(0).normal(size=600)


@pytest.mark.parametrize(
    ("mb_h", "said"), [(0.0, "flat"), (10.0, "flat"), (30.0, "too short to tell"), (60.0, "grows")]
)
def test_growth_is_distinguished_from_noise_and_from_emptied_caches(mb_h: float, said: str) -> None:
    growing = 3e8 + mb_h * 1e6 / 3600 * SECONDS
    found = trend(SECONDS, growing + SAWTOOTH + NOISE, limit=30.0)
    assert found.verdict == said
    assert found.low < mb_h < found.high


def test_one_large_step_is_no_trend() -> None:
    """Memory that is taken once, such as a heap that grew, is not taken again and again."""
    assert trend(SECONDS, NOISE + 5e6 * (SECONDS > 40), limit=30.0).verdict == "flat"


def test_a_moment_tells_nothing() -> None:
    found = trend(SECONDS[:50], SAWTOOTH[:50], limit=30.0)
    assert found.verdict == "too short to tell"
    assert str(Trend(1.0, 0.0, 2.0, 30.0)) == "+1.0 MB/h, 95 % between +0.0 and +2.0, at most +30.0: flat"
