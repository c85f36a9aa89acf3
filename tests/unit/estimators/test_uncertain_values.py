"""Rows with sets, ranges and unknown values: every estimator takes them, and predicts as the served model does."""

from typing import Any

import numpy as np
import pandas as pd
import pytest

from quercus import estimators
from quercus.client import Between as GivenBetween
from quercus.estimators import ActiveBeliefTreeClassifier, ActiveForestClassifier
from quercus.estimators.base import BeliefClassifier, TableClassifier, seed_of
from quercus.specification.learners import learner_classes
from quercus.trees import ActiveForest
from quercus.trees.learners.cells import Between
from quercus.trees.learners.learner import fit
from quercus.trees.learners.predicting import LearnedModel
from quercus.trees.learners.table import Table

RNG = np.random.default_rng(3)
CLASSES = ["a", "b", "c"]
TRUTH = RNG.integers(0, 3, 60)
KNOWN = pd.DataFrame(
    {
        "colour": np.where(RNG.random(60) < 0.8, np.array(["red", "green", "blue"])[TRUTH], "red"),
        "length": TRUTH + RNG.normal(0, 0.3, 60),
        "noise": RNG.normal(size=60),
    }
)
LABELS: list[Any] = [[CLASSES[c], {CLASSES[c], "a"}, None][max(0, i % 5 - 2)] for i, c in enumerate(TRUTH)]
ROWS: list[list[Any]] = [
    [{"red", "green"}, 1.1, 0.0],
    ["blue", (0.2, 1.9), None],
    [None, Between(-np.inf, 0.5), {0.1, 1.5}],
    [frozenset({"blue"}), GivenBetween(0.0, 2.0), np.nan],
    ["red", 0.1, 0.2],
]
ARRAY = np.empty((5, 3), dtype=object)
for place in np.ndindex(ARRAY.shape):
    ARRAY[place] = ROWS[place[0]][place[1]]
FORMS = {"lists": ROWS, "array": ARRAY, "frame": pd.DataFrame(ARRAY, columns=[*KNOWN.columns])}
FEW: dict[str, Any] = {"n_estimators": 5, "random_state": 0, "lam": 0.5, "classes": CLASSES}
KINDS: list[type[BeliefClassifier]] = [getattr(estimators, name) for name in estimators.__all__]


def made(kind: type[BeliefClassifier]) -> BeliefClassifier:
    """An estimator with few trees and a seed, if it has such parameters."""
    own = kind._get_param_names()
    return kind(**{name: value for name, value in FEW.items() if name in own})


def learner_of(kind: type[BeliefClassifier]) -> str:
    estimator = made(kind)
    if isinstance(estimator, TableClassifier):
        return estimator._make_learner().name
    return {ActiveBeliefTreeClassifier: "abc45", ActiveForestClassifier: "active-forest"}[kind]


def test_there_is_an_estimator_of_every_learner() -> None:
    assert {learner_of(kind) for kind in KINDS} == set(learner_classes())


def served_model(fitted: BeliefClassifier) -> LearnedModel:
    """The model of the same evidence as the grower publishes it."""
    if not isinstance(fitted, ActiveForestClassifier):
        return fitted.model_
    table = Table.of_contours(
        fitted._columns.values(KNOWN.to_numpy(dtype=object)),
        fitted._columns.attributes,
        [[1.0] * 3 if y is None else [float(c in y) for c in CLASSES] for y in LABELS],
    )
    return fit(ActiveForest(5, seed_of(0), fitted.prediction_level), table)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_predictions_are_those_of_the_served_model(kind: type[BeliefClassifier], form: str) -> None:
    known = KNOWN if form == "frame" else KNOWN.to_numpy(dtype=object)
    fitted = made(kind).fit(known, LABELS)
    code = fitted._columns.codes[0]
    assert code is not None
    red, green, blue = (code.index(name) for name in ("red", "green", "blue"))
    wanted = served_model(fitted).predict_rows(
        [
            [frozenset({red, green}), 1.1, 0.0],
            [blue, Between(0.2, 1.9), None],
            [None, Between(-np.inf, 0.5), frozenset({0.1, 1.5})],
            [blue, Between(0.0, 2.0), None],
            [red, 0.1, 0.2],
        ]
    )
    X = FORMS[form]
    assert fitted.predict(X).tolist() == [CLASSES[c] for c in wanted.klass]
    for predict, column in (
        (fitted.predict_proba, wanted.theta),
        (fitted.predict_belief, wanted.belief),
        (fitted.predict_contour, wanted.plausibility),
    ):
        np.testing.assert_allclose(predict(X), column, rtol=0, atol=1e-12)
    assert fitted.predict_set(X).tolist() == wanted.classes.tolist()
    assert fitted.score(X, fitted.predict(X)) == 1.0
    if wanted.masses is not None:
        assert [mass.focal for mass in fitted.predict_mass(X)] == [mass.focal for mass in wanted.masses]


def test_too_many_combinations_are_refused_by_row() -> None:
    forest = made(ActiveForestClassifier).fit(KNOWN, LABELS)
    many = pd.DataFrame([["red", 1.0, 1.0], ["red", (0, 1), set(range(500))]], columns=[*KNOWN.columns])
    with pytest.raises(ValueError, match=r"rows\[1\]: has 4,500 combinations of values, at most 4,096"):
        forest.predict(many)
