"""Utility-discounted accuracy and interval dominance."""

import itertools
import math

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.trees.learners.metrics import (
    discounted_accuracy,
    expected_accuracy,
    set_scores,
    u65,
    u80,
    undominated,
    undominated_mask,
)


def row(*members: int, size: int = 4) -> list[bool]:
    return [c in members for c in range(size)]


@pytest.mark.parametrize(
    ("members", "x", "worth65", "worth80"),
    [
        ((1,), 1, 1, 1),
        ((2,), 0, 0, 0),
        ((0, 1), 1 / 2, 0.65, 0.80),  # the values that define the two
        ((0, 2), 0, 0, 0),
        ((0, 1, 2), 1 / 3, 7 / 15, 3 / 5),  # 1.6/3 - .6/9 and 2.2/3 - 1.2/9
        ((0, 1, 2, 3), 1 / 4, 0.3625, 0.475),
    ],
)
def test_one_row(members: tuple[int, ...], x: float, worth65: float, worth80: float) -> None:
    assert discounted_accuracy([row(*members)], [1]).tolist() == pytest.approx([x])
    assert u65([row(*members)], [1]) == pytest.approx(worth65)
    assert u80([row(*members)], [1]) == pytest.approx(worth80)


def test_of_precise_predictions_all_are_the_accuracy() -> None:
    predicted, truth = np.array([0, 1, 2, 2, 1]), np.array([0, 1, 1, 2, 0])
    sets = np.eye(3, dtype=bool)[predicted]
    assert u65(sets, truth) == u80(sets, truth) == discounted_accuracy(sets, truth).mean() == 0.6
    scores = set_scores(sets, truth)
    assert (scores.determinacy, scores.single_accuracy) == (1, 0.6)
    assert math.isnan(scores.set_accuracy)
    assert math.isnan(scores.set_size)


def test_scores_of_a_mixture() -> None:
    sets = [row(0), row(1), row(0, 1), row(0, 1, 2), row(2, 3)]
    scores = set_scores(sets, [0, 0, 1, 3, 2])
    assert scores.discounted_accuracy == pytest.approx((1 + 0 + 0.5 + 0 + 0.5) / 5)
    assert scores.u65 == pytest.approx((1 + 0.65 + 0.65) / 5)
    assert scores.u80 == pytest.approx((1 + 0.8 + 0.8) / 5)
    assert (scores.determinacy, scores.single_accuracy) == (0.4, 0.5)
    assert (scores.set_accuracy, scores.set_size) == (pytest.approx(2 / 3), pytest.approx(7 / 3))


def test_interval_dominance_against_its_definition() -> None:
    draws = np.random.default_rng(1).uniform(size=(200, 5, 2))
    lower, upper = draws.min(axis=2), draws.max(axis=2)
    found = undominated(lower, upper)
    for i, c in itertools.product(range(200), range(5)):
        assert found[i, c] == (not any(lower[i, d] > upper[i, c] for d in range(5)))
    assert found.any(axis=1).all()


def test_a_touch_is_no_dominance() -> None:
    assert undominated([[0.3, 0.3 + 1e-12]], [[0.3, 0.7]]).tolist() == [[True, True]]
    assert undominated([[0.7, 0.0]], [[0.7, 0.3]]).tolist() == [[True, False]]


@pytest.mark.parametrize(
    ("sets", "truth", "words"),
    [
        ([[True, False]], [2], r"truth\[0\]: is 2, must lie in \[0, 2\)"),
        ([[True, False]], [-1], r"truth\[0\]: is -1"),
        ([[True, False], [False, False]], [0, 0], r"sets\[1\]: is empty"),
        ([[1, 0]], [0], "sets: must be bool"),
        ([[True, False]], [0, 1], "truth: must be 1 > 0 whole numbers"),
        ([[True, False]], [0.0], "truth: must be"),
        (np.zeros((0, 2), dtype=bool), [], "truth: must be 0 > 0"),
    ],
)
def test_what_cannot_be_scored(sets: object, truth: object, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        discounted_accuracy(sets, truth)  # type: ignore[arg-type]


def test_bounds_that_do_not_fit() -> None:
    with pytest.raises(InvalidInput, match="plausibility"):
        undominated([[0.1, 0.2]], [[0.3]])


def test_expected_accuracy() -> None:
    pignistic = [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [1 / 3] * 3, [0.1, 0.2, 0.7]]
    assert expected_accuracy(pignistic, [0, 2, 1, 2]) == pytest.approx((1 + 0 + 1 / 3 + 0.7) / 4)
    assert expected_accuracy(pignistic, [0, 2, 1, 2], [1, 1, 0, 2]) == pytest.approx((1 + 0 + 1.4) / 4)
    with pytest.raises(InvalidInput, match=r"truth\[1\]: is 3"):
        expected_accuracy(pignistic[:2], [0, 3])


def test_one_row_has_the_set_of_many() -> None:
    rng = np.random.default_rng(0)
    lower = rng.integers(0, 4, (300, 5)) / 4
    upper = lower + rng.integers(0, 3, (300, 5)) / 4 + rng.choice([-2e-9, -1e-10, 0.0], (300, 5))
    sets = undominated(lower, upper) @ (1 << np.arange(5))
    assert [*map(undominated_mask, lower.tolist(), upper.tolist())] == sets.tolist()
    assert len(set(sets.tolist())) > 10
