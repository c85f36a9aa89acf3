"""The update of covering for a candidate that is asked about equals a new computation."""

import numpy as np
import pytest

from quercus.kernels.forest import best_candidate, covering_gains, take_candidate


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.int64])
def test_gains_equal_those_computed_from_all_rows(kind: type[np.integer]) -> None:
    chance = np.random.default_rng(7)
    far = chance.integers(0, 3_000, (40, 60)).astype(kind)
    near = chance.integers(1_000, 70_000, 60)  # also beyond 16 bits
    gains = covering_gains(far, near)
    assert gains.tolist() == np.maximum(near - far.astype(np.int64), 0).sum(axis=1).tolist()
    expected = near.copy()
    for candidate in (3, 17, 3, 39):  # one of them twice: it brings nothing more
        take_candidate(far, near, gains, candidate)
        expected = np.minimum(expected, far[candidate])
        assert np.array_equal(near, expected)
        assert np.array_equal(gains, covering_gains(far, expected))
    assert gains[3] == 0


@pytest.mark.parametrize("kind", [np.uint16, np.int32, np.int64])
def test_the_best_candidate_is_the_first_with_the_greatest_score(kind: type[np.integer]) -> None:
    chance = np.random.default_rng(8)
    far, near = chance.integers(0, 3_000, (40, 60)).astype(kind), chance.integers(1_000, 3_000, 60)
    gains, lines, counted = covering_gains(far, near), chance.permutation(40)[:30], chance.random(60) < 0.5
    far[lines[20]], gains[lines[20]] = far[lines[4]], gains[lines[4]]
    for _ in range(20):
        worths = np.where(chance.random(30) < 0.3, -np.inf, chance.random(30))
        worths[20] = worths[4] = 2.0 + worths.max()
        scores = 0.05 * (gains[lines] / gains[lines].max()) + worths
        found = best_candidate(far, near, gains, lines, worths, counted, 0.05, 1e-12)
        assert found[:2] == (4, np.count_nonzero(counted & (far[lines[4]] < near)))
        assert found[2].tolist() == scores.tolist()


@pytest.mark.parametrize("shape", [(0, 5), (3, 0)])
def test_nothing_to_cover_and_nobody_to_cover_it(shape: tuple[int, int]) -> None:
    far, near = np.zeros(shape, np.uint16), np.ones(shape[1], np.int64)
    gains = covering_gains(far, near)
    assert gains.tolist() == [shape[1]] * shape[0]
    if shape[0]:
        take_candidate(far, near, gains, 0)
    assert gains.tolist() == [0] * shape[0]
