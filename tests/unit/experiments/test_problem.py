"""The input of learners: bins from the training rows alone, columns as scikit-learn needs them."""

import numpy as np
import pytest

from quercus.experiments.baselines import ek_nn, forest_hard, forest_pignistic, forest_precise
from quercus.experiments.problem import Prediction, problem_of
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.table import Table

COLOUR = Nominal("colour", ("red", "green", "blue"))
SEED = np.random.SeedSequence(3)


def problem(bins=0, contours=None):
    values = np.array([[0.0, 0], [8.0, 1], [4.0, 2], [np.nan, np.nan]])
    labels = np.eye(2)[[0, 1, 0, 1]] if contours is None else contours
    table = Table.of_contours(values, (Numeric("size"), COLOUR), labels)
    return problem_of(table, np.array([0, 1, 0, 1]), np.array([[-5.0, 2], [99.0, 0], [6.0, 1]]), bins, SEED)


def test_bins_come_from_the_training_rows_and_hold_what_lies_outside():
    binned = problem(bins=4)
    np.testing.assert_equal(binned.train.values[:, 0], [0, 3, 2, np.nan])
    assert binned.test[:, 0].tolist() == [0, 3, 3]
    assert binned.train.attributes[1] is COLOUR
    assert len(binned.train.attributes[0].values) == 4


@pytest.mark.parametrize("bins", [0, 4])
def test_numbers_stay_one_column_and_nominal_values_become_one_each(bins):
    matrix = problem(bins).matrix(problem(bins).test)
    assert matrix[:, 1:].tolist() == [[0, 0, 1], [1, 0, 0], [0, 1, 0]]
    assert matrix.shape == (3, 4)


def test_what_is_said_of_ties_is_the_first_class():
    said = Prediction.of_probabilities(np.array([[0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.7, 0.0]]))
    assert said.classes.tolist() == [0, 2]
    assert said.possible.sum(axis=1).tolist() == [1, 1]


def test_scores_of_a_cautious_prediction():
    both = Prediction(np.array([0]), np.array([[0.5, 0.5]]), np.array([[True, True]]))
    wanted = {"accuracy": 0, "u65": 0.65, "u80": 0.8, "brier": 0.5}
    assert both.scores(np.array([1])) == pytest.approx(wanted)


def clouds(contours):
    """Two clouds of rows apart from each other, with such labels; the classes of new rows near them."""
    rng = np.random.default_rng(0)
    targets = np.arange(40) % 2
    values = rng.normal(size=(40, 2)) + 20 * targets[:, np.newaxis]
    table = Table.of_contours(values, (Numeric("x"), Numeric("y")), contours(targets))
    return problem_of(table, targets, np.array([[0.0, 0], [20, 20]]), 0, SEED)


@pytest.mark.parametrize("fit", [forest_precise, forest_pignistic, forest_hard, ek_nn])
def test_baselines_learn_and_do_not_need_every_label(fit):
    def some(targets):
        return np.where(np.arange(40)[:, np.newaxis] < 30, np.eye(2)[targets], 1.0)

    given = clouds(some)
    assert fit(given).predict(given.test).classes.tolist() == [0, 1]


@pytest.mark.parametrize("fit", [forest_pignistic, forest_hard, ek_nn])
def test_baselines_that_take_plausibilities_learn_from_them(fit):
    given = clouds(lambda targets: np.where(np.eye(2)[targets] == 1, 1.0, 0.6))
    assert fit(given).predict(given.test).classes.tolist() == [0, 1]


@pytest.mark.parametrize("fit", [forest_precise, forest_hard, ek_nn])
def test_without_any_label_every_class_is_as_likely(fit):
    given = clouds(lambda targets: np.ones((len(targets), 2)))
    assert (fit(given).predict(given.test).probabilities == 0.5).all()


def test_rows_at_the_same_place_are_no_distance_apart():
    """Binned rows often are: what rounding left between them counted as a distance of 1e-8."""
    places = np.random.default_rng(1).random((5, 6))
    values = np.repeat(places, 8, axis=0)
    classes = np.arange(40) // 8 % 2
    table = Table.of_classes(values, [Numeric(f"x{k}") for k in range(6)], classes, 2)
    near = problem_of(table, classes, places + 0.01, 0, SEED)
    said = ek_nn(near, k=7).predict(near.test)
    assert said.classes.tolist() == [0, 1, 0, 1, 0]
    assert (said.probabilities.max(axis=1) > 0.9).all()
