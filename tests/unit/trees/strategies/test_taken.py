"""The update of covering for a candidate that is asked about equals a new computation."""

import numpy as np

from quercus.kernels.forest import covering_gains, take_candidate


def test_gains_equal_those_computed_from_all_rows() -> None:
    chance = np.random.default_rng(7)
    far = chance.integers(0, 3_000, (40, 60))
    near = chance.integers(1_000, 4_000, 60)
    gains = covering_gains(far, near)
    expected = near.copy()
    for candidate in (3, 17, 3, 39):  # one of them twice: it brings nothing more
        take_candidate(far, near, gains, candidate)
        expected = np.minimum(expected, far[candidate])
        assert np.array_equal(near, expected)
        assert np.array_equal(gains, covering_gains(far, expected))
    assert gains[3] == 0
