"""The evidential maximum likelihood estimate and its certificate (theory §2.2)."""

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.likelihood.maximiser import estimate


def test_precise_labels_give_relative_frequencies():
    found = estimate(np.eye(3)[[0, 0, 0, 1]])
    assert found.theta == pytest.approx([0.75, 0.25, 0.0], abs=1e-12)
    assert found.unique
    assert found.log_likelihood == pytest.approx(3 * np.log(0.75) + np.log(0.25), abs=1e-12)


def test_constant_rows_say_nothing():
    contours = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    vacuous = np.array([[1.0, 1.0], [0.4, 0.4]])
    assert estimate(np.vstack([contours, vacuous])).theta == pytest.approx(
        estimate(contours).theta, abs=1e-12
    )


def test_a_constant_factor_in_a_row_changes_nothing_but_the_constant():
    rng = np.random.default_rng(1)
    contours = rng.random((20, 4))
    factors = rng.random((20, 1))
    assert estimate(contours * factors).theta == pytest.approx(estimate(contours).theta, abs=1e-9)
    assert estimate(contours * factors).log_likelihood == pytest.approx(
        estimate(contours).log_likelihood + np.log(factors).sum(), abs=1e-9
    )


@pytest.mark.parametrize("seed", range(5))
def test_the_certificate_holds_and_em_agrees(seed):
    rng = np.random.default_rng(seed)
    l = int(rng.integers(2, 8))
    contours, weights = rng.random((30, l)), rng.integers(1, 9, 30).astype(float)
    found = estimate(contours, weights)
    g = (weights / (contours @ found.theta)) @ contours / weights.sum()
    assert g.max() <= 1 + 1e-12
    assert found.gap <= 1e-10
    theta = np.full(l, 1 / l)
    for _ in range(20_000):  # E2M, the slow way
        theta = theta * ((weights / (contours @ theta)) @ contours) / weights.sum()
    assert np.log(contours @ theta) @ weights <= found.log_likelihood + 1e-9
    assert found.theta == pytest.approx(theta, abs=1e-3)


def test_weights_count_rows():
    contours = np.random.default_rng(3).random((6, 3))
    weights = np.array([1.0, 2.0, 3.0, 0.0, 1.0, 2.0])
    repeated = np.repeat(contours, weights.astype(int), axis=0)
    assert estimate(contours, weights).theta == pytest.approx(estimate(repeated).theta, abs=1e-12)


@pytest.mark.parametrize("ratio", [1e-12, 1e-18, 1e-40, 1e-100])
@pytest.mark.parametrize(
    "l", [3, 4]
)  # with three classes, labels that exclude one have a method of their own
def test_no_label_is_impossible_however_little_it_weighs(ratio, l):
    """Weights that fall with age span many orders of magnitude; of the lightest label the likelihood is not 0."""
    contours = np.eye(l)[[0, 1, 2, 0]]
    contours[3, 1] = 1.0
    weights = np.array([ratio**2, 3 * ratio, 1.0, 5 * ratio])
    found = estimate(contours, weights)
    assert (contours @ found.theta > 0.0).all()
    assert -1e-6 < found.log_likelihood <= 0.0
    assert found.gap < 1e-9
    maxima = IntervalSolver(contours, 0.8).maximise_cells(Cells.of_dense(weights[np.newaxis]))
    assert -1e-6 < maxima.reached[0] <= maxima.bound[0] <= 0.0


@pytest.mark.parametrize(
    ("contours", "unique"),
    [
        ([[1.0, 1.0, 0.0]], False),  # any mixture of the first two
        ([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], True),
        ([[1.0, 1.0, 1.0]], False),
        ([[1.0, 0.5, 0.2]], True),  # the first class alone
        ([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]], True),  # the second explains both
    ],
)
def test_uniqueness(contours, unique):
    assert estimate(np.array(contours)).unique is unique


@pytest.mark.parametrize(
    ("contours", "weights", "message"),
    [
        ([0.5, 0.5], None, "contours: has shape (2,); it must be (rows, classes) with 2 classes or more"),
        ([[1.0]], None, "contours: has shape (1, 1)"),
        ([[1.0, 1.5]], None, "contours[0][1]: is 1.5; a plausibility lies in [0, 1]"),
        ([[1.0, -0.5]], None, "contours[0][1]: is -0.5"),
        ([[1.0, np.nan]], None, "contours[0][1]: is nan"),
        ([[1.0, 0.5], [0.0, 0.0]], None, "contours[1]: is all zero"),
        ([[1.0, 0.5]], [1.0, 2.0], "weights: has shape (2,); it must be (1,)"),
        ([[1.0, 0.5]], [-1.0], "weights[0]: is -1.0"),
        ([[1.0, 0.5]], [np.inf], "weights[0]: is inf"),
    ],
)
def test_bad_input_is_named(contours, weights, message):
    with pytest.raises(InvalidInput) as error:
        estimate(np.array(contours), None if weights is None else np.array(weights))
    assert message in str(error.value)
