"""Fitting estimators to cells that are sets of values or ranges."""

import numpy as np
import pandas as pd
import pytest

from quercus.belief.errors import InvalidInput
from quercus.client import Between
from quercus.estimators import (
    ActiveForestClassifier,
    BeliefEntropyTreeClassifier,
    BeliefTreeClassifier,
    C45Classifier,
    ID3Classifier,
)

ROWS = [
    ["sun", 1.0],
    ["rain", 7.0],
    [{"sun", "rain"}, (2.0, 9.0)],
    ["sun", Between(0.0, 2.0)],
    ["rain", 8.0],
] * 4
CLASSES = np.array(["up", "down", "down", "up", "down"] * 4)


@pytest.mark.parametrize("kind", [ID3Classifier, C45Classifier, BeliefTreeClassifier, ActiveForestClassifier])
def test_sets_and_ranges_are_fitted(kind: type) -> None:
    model = kind().fit(ROWS, CLASSES)
    assert model.predict([["sun", 1.0], ["rain", 8.0]]).tolist() == ["up", "down"]
    frame = pd.DataFrame({"sky": [row[0] for row in ROWS], "wind": [row[1] for row in ROWS]})
    assert kind().fit(frame, CLASSES).predict(frame).tolist() == model.predict(ROWS).tolist()


def test_a_set_in_parts_is_worked_by_hand() -> None:
    """After two suns and one rain, a row of either is two thirds sun."""
    sky = [["sun"], ["sun"], ["rain"], [{"sun", "rain"}]]
    model = ID3Classifier(min_instances=1).fit(sky, ["up", "up", "down", "down"])
    assert model.predict_proba([["sun"], ["rain"]]) == pytest.approx(
        np.array([[(2 / 3) / (8 / 3), 2 / (8 / 3)], [1.0, 0.0]])
    )


def test_a_learner_of_known_values_refuses_by_name() -> None:
    with pytest.raises(InvalidInput, match="belief-entropy learns from known values alone"):
        BeliefEntropyTreeClassifier().fit(ROWS, CLASSES)


def test_later_batches_may_have_them() -> None:
    model = ActiveForestClassifier().partial_fit(ROWS[:5], CLASSES[:5], classes=["down", "up"])
    model.partial_fit([*ROWS[5:], [{"fog", "sun"}, 1.0]], [*CLASSES[5:], "up"])
    assert model.predict([["sun", 1.0], ["rain", 8.0]]).tolist() == ["up", "down"]
