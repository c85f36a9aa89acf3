"""The learning curve, and the answers that an accuracy still needs: compared with worlds whose curve is known."""

import math

import numpy as np
import pytest

from quercus.client.results import AccuracyBlock, RecentAccuracy
from quercus.specification.shares import CONFIDENCE
from quercus.view.learning import (
    CurvePoint,
    answers_needed,
    curve_points,
    fit_curve,
    is_of_unasked,
)

BLOCK = 50


def world(random: np.random.Generator, level: float, slope: float, blocks: int) -> list[CurvePoint]:
    """Blocks of labels, whose rows are right with log-odds level + slope * log(labels)."""
    points = []
    for k in range(blocks):
        labels = np.arange(BLOCK * k + 1, BLOCK * k + BLOCK + 1)
        shares = 1 / (1 + np.exp(-(level + slope * np.log(labels))))
        points.append(
            CurvePoint(BLOCK * k + 1, BLOCK * k + BLOCK, BLOCK, float((random.random(BLOCK) < shares).sum()))
        )
    return points


def test_the_band_and_the_answers_needed_cover_the_truth_as_often_as_they_say() -> None:
    """400 worlds of 8 blocks that learn: the accuracy now, and the labels at which it reaches 85 %."""
    random = np.random.default_rng(4)
    level, slope, labels = -2.0, 0.55, 8 * BLOCK
    now = 1 / (1 + math.exp(-(level + slope * math.log(labels))))
    reached = math.exp((math.log(0.85 / 0.15) - level) / slope) - labels
    assert 400 < reached < 1_000
    covered, told, right = 0, 0, 0
    for _ in range(400):
        curve = fit_curve(world(random, level, slope, 8))
        assert curve is not None
        lower, _, upper = curve.accuracy(labels)
        covered += lower <= now <= upper
        needed = answers_needed(curve, 0.85)
        if needed.state in ("needed", "reached"):
            told += 1
            right += needed.least <= reached <= (math.inf if needed.most is None else needed.most)
    assert covered / 400 >= CONFIDENCE - 0.05
    assert told > 200
    assert right / told >= CONFIDENCE - 0.05


def test_nothing_is_told_of_a_model_that_does_not_learn() -> None:
    random = np.random.default_rng(5)
    states = [answers_needed(fit_curve(world(random, 0.4, 0.0, 10)), 0.9).state for _ in range(100)]
    assert states.count("unknown") >= 90


@pytest.mark.parametrize(
    "points",
    [
        [],
        [CurvePoint(11, 50, 40, 20.0), CurvePoint(51, 100, 50, 25.0)],  # two blocks
        [CurvePoint(k, k + 9, 10, 5.0) for k in (1, 11, 21)],  # few rows
        [CurvePoint(50 * k + 1, 50 * k + 50, 50, 50.0) for k in range(4)],  # all right
    ],
)
def test_without_enough_there_is_no_curve(points: list[CurvePoint]) -> None:
    assert fit_curve(points) is None
    assert answers_needed(fit_curve(points), 0.9).state == "unknown"


def test_the_curve_is_of_rows_that_came_labelled_where_there_are_enough() -> None:
    mixed = AccuracyBlock(50, 50, 30, 30.0, 30, 27.0)
    recent = RecentAccuracy((mixed,) * 4, 210)
    assert is_of_unasked(recent)
    assert [(each.first, each.last, each.rows, each.share) for each in curve_points(recent)] == [
        (11 + 50 * k, 60 + 50 * k, 30, pytest.approx(0.9)) for k in range(4)
    ]
    few = RecentAccuracy((mixed,) * 3, 160)
    assert not is_of_unasked(few)
    assert [each.share for each in curve_points(few)] == [pytest.approx(0.6)] * 3
