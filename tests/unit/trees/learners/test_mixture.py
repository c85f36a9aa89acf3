"""E2M for Gaussian mixtures: what must hold, and a slow computation that shares nothing with it."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.kernels.forest import FLOOR_SHARE, FREE_SHARE
from quercus.trees.learners.mixture import column_floor, fit_mixtures

Array = NDArray[np.float64]


def some(seed: int, n: int = 40, k: int = 3, classes: int = 3) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=n)
    values = rng.normal(truth[:, None] * np.arange(1, k + 1), 1.0)
    contours = np.where(rng.random((n, classes)) < 0.5, rng.random((n, classes)), 0.0)
    contours[np.arange(n), truth] = 1.0
    contours[rng.random(n) < 0.4] = 1.0
    return values, contours, rng.integers(0, 4, size=n).astype(float)


def slow_likelihood(x: Array, pl: Array, w: Array, pi: Array, mu: Array, sigma: Array) -> float:
    total = 0.0
    for value, row, weight in zip(x, pl, w, strict=True):
        if math.isnan(value) or not weight:
            continue
        inside = sum(
            row[c] * pi[c] * math.exp(-(((value - mu[c]) / sigma[c]) ** 2) / 2) / sigma[c]
            for c in range(len(row))
        )
        total += weight * (math.log(inside) - math.log(2 * math.pi) / 2)
    return total


def slow_step(
    x: Array, pl: Array, w: Array, pi: Array, mu: Array, sigma: Array, floor: float
) -> tuple[Array, Array, Array]:
    size, known = pl.shape[1], [i for i in range(len(x)) if not math.isnan(x[i])]
    t = {}
    for i in known:
        joint = [
            pl[i, c] * pi[c] * math.exp(-(((x[i] - mu[c]) / sigma[c]) ** 2) / 2) / sigma[c]
            for c in range(size)
        ]
        t[i] = [w[i] * j / sum(joint) for j in joint]
    total = [sum(t[i][c] for i in known) for c in range(size)]
    new_mu = [sum(t[i][c] * x[i] for i in known) / total[c] for c in range(size)]
    spread = [sum(t[i][c] * (x[i] - new_mu[c]) ** 2 for i in known) / total[c] for c in range(size)]
    return (
        np.array(total) / sum(total),
        np.array(new_mu),
        np.array([max(floor, math.sqrt(s)) for s in spread]),
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_likelihood_never_falls_and_is_that_of_the_parameters(seed: int) -> None:
    values, contours, weights = some(seed)
    before = np.full(3, -np.inf)
    for steps in range(12):
        fit = fit_mixtures(values, contours, weights, epsilon=1e-300, max_steps=steps)
        assert (fit.log_likelihood >= before - 1e-9).all()
        before = fit.log_likelihood
        for k in range(3):
            slow = slow_likelihood(
                values[:, k], contours, weights, fit.proportions[k], fit.means[k], fit.deviations[k]
            )
            assert fit.log_likelihood[k] == pytest.approx(slow, rel=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_a_step_is_that_of_the_formulas(seed: int) -> None:
    values, contours, weights = some(seed)
    values[3, 1] = values[9, 1] = np.nan
    floor = column_floor(values, contours, weights)
    fits = [fit_mixtures(values, contours, weights, epsilon=1e-300, max_steps=steps) for steps in (4, 5)]
    for k in range(3):
        state = (fits[0].proportions[k], fits[0].means[k], fits[0].deviations[k])
        pi, mu, sigma = slow_step(values[:, k], contours, weights, *state, float(floor[k]))
        assert fits[1].proportions[k] == pytest.approx(pi, rel=1e-9)
        assert fits[1].means[k] == pytest.approx(mu, rel=1e-9)
        assert fits[1].deviations[k] == pytest.approx(sigma, rel=1e-9)


def test_the_likelihood_never_falls_where_the_floor_binds() -> None:
    values = np.array([[0.0], [0.0], [0.0], [5.0], [9.0], [9.2], [0.1]])
    contours = np.array([[1, 0], [1, 0], [1, 0.2], [1, 1], [0, 1], [0.1, 1], [1, 1]], dtype=float)
    before = -np.inf
    for steps in range(30):
        fit = fit_mixtures(values, contours, floor=[1.0], epsilon=1e-300, max_steps=steps)
        assert fit.log_likelihood[0] >= before - 1e-9
        before = float(fit.log_likelihood[0])
    assert fit.deviations[0, 0] == 1.0


def test_precise_labels_give_class_means_and_deviations() -> None:
    rng = np.random.default_rng(1)
    values, classes = rng.normal(size=(60, 4)) * [1, 10, 0.1, 3], rng.integers(3, size=60)
    weights = rng.integers(1, 5, size=60).astype(float)
    fit = fit_mixtures(values, np.eye(3)[classes], weights)
    for c in range(3):
        rows = np.repeat(values[classes == c], weights[classes == c].astype(int), axis=0)
        np.testing.assert_allclose(fit.means[:, c], rows.mean(axis=0), rtol=1e-12)
        np.testing.assert_allclose(fit.deviations[:, c], rows.std(axis=0), rtol=1e-12)
        np.testing.assert_allclose(fit.proportions[:, c], len(rows) / weights.sum(), rtol=1e-12)
    assert (fit.steps == 1).all()


def test_weights_are_repeated_rows_and_columns_do_not_meddle() -> None:
    values, contours, weights = some(5)
    fit = fit_mixtures(values, contours, weights)
    times = weights.astype(int)
    repeated = fit_mixtures(np.repeat(values, times, axis=0), np.repeat(contours, times, axis=0))
    np.testing.assert_allclose(fit.means, repeated.means, rtol=1e-9)
    alone = [fit_mixtures(values[:, [k]], contours, weights) for k in range(3)]
    np.testing.assert_allclose(fit.means, np.concatenate([f.means for f in alone]), rtol=1e-12)
    assert fit.steps.tolist() == [int(f.steps[0]) for f in alone]


def test_vacuous_rows_are_drawn_to_the_class_they_look_like() -> None:
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1], 200)
    values = rng.normal(np.array([0.0, 6.0])[truth])[:, None]
    contours = np.ones((400, 2))
    labelled = np.r_[0:5, 200:205]
    contours[labelled] = np.eye(2)[truth[labelled]]
    fit = fit_mixtures(values, contours)
    assert fit.means[0] == pytest.approx([values[:200].mean(), values[200:].mean()], abs=0.1)
    assert fit.proportions[0] == pytest.approx([0.5, 0.5], abs=0.02)


def test_labels_that_say_nothing_give_equal_components() -> None:
    values = np.random.default_rng(3).normal(size=(20, 2))
    fit = fit_mixtures(values, np.full((20, 3), 0.5))
    np.testing.assert_allclose(fit.means, np.repeat(values.mean(axis=0)[:, None], 3, axis=1))
    np.testing.assert_allclose(fit.proportions, 1 / 3)


def test_a_class_that_no_row_can_have_has_no_density() -> None:
    fit = fit_mixtures([[1.0], [2.0], [5.0]], [[1, 0, 0], [1, 0, 0], [0, 0, 1]])
    assert fit.proportions[0].tolist() == pytest.approx([2 / 3, 0, 1 / 3])
    assert np.isneginf(fit.log_densities(np.array([[1.5]]))[0, 0]).tolist() == [False, True, False]


def test_missing_values_do_not_count_and_say_nothing() -> None:
    values = np.array([[1.0, np.nan], [3.0, np.nan], [10.0, np.nan], [np.nan, np.nan]])
    contours = np.eye(2)[[0, 0, 1, 1]]
    fit = fit_mixtures(values, contours)
    assert fit.means[0].tolist() == [2.0, 10.0]
    assert fit.log_likelihood[1] == 0.0
    assert fit.log_densities(values)[3].tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_the_floor_is_a_share_of_the_column_and_never_zero() -> None:
    values = np.array([[0.0, 7.0, 0.0], [2.0, 7.0, 0.0], [4.0, 7.0, 0.0], [np.nan, 7.0, 0.0]])
    precise, deviation = np.eye(2)[[0, 1, 1, 0]], math.sqrt(8 / 3)
    floor = column_floor(values, precise)
    assert floor[0] == pytest.approx(FLOOR_SHARE * deviation)
    assert (floor > 0).all()
    assert fit_mixtures(values, precise).deviations[1].tolist() == [floor[1], floor[1]]


@pytest.mark.parametrize("unit", [2.0**-10, 2.0**-40, 2.0**30])
@pytest.mark.parametrize("origin", [0.0, 2.0**20, -(2.0**30)])
def test_zero_and_the_unit_do_not_matter(unit: float, origin: float) -> None:
    values, contours, weights = some(3)
    values = np.round(values * 256) / 256  # shifts and scales by powers of 2 lose no digit
    values[2, 1] = np.nan
    moved = origin * unit + values * unit
    floor, there = column_floor(values, contours, weights), column_floor(moved, contours, weights)
    np.testing.assert_allclose(there, floor * unit, rtol=1e-9)
    fit, other = (fit_mixtures(x, contours, weights) for x in (values, moved))
    np.testing.assert_allclose(other.deviations, fit.deviations * unit, rtol=1e-6)
    np.testing.assert_allclose((other.means - origin * unit) / unit, fit.means, atol=1e-6)
    np.testing.assert_allclose(other.proportions, fit.proportions, atol=1e-6)
    apart, moved_apart = (
        np.diff(each.log_densities(x), axis=2) for each, x in ((fit, values), (other, moved))
    )
    np.testing.assert_allclose(moved_apart, apart, atol=1e-3)


def test_a_constant_far_from_zero_has_a_floor_of_rounding() -> None:
    values = np.full((4, 1), 1e9 + 0.1)
    floor = column_floor(values, np.eye(2)[[0, 1, 1, 0]])
    assert 0 < floor[0] < 1e-5


def test_the_floor_is_higher_the_freer_the_labels() -> None:
    values, precise = np.array([[0.0], [2.0], [4.0], [2.0]]), np.eye(2)[[0, 1, 1, 0]]
    free = precise.copy()
    free[0], free[1] = [0.5, 0.5], [0.2, 0.4]
    share = FLOOR_SHARE + FREE_SHARE * (1 + 0.5) / 4
    assert column_floor(values, free)[0] == pytest.approx(share * math.sqrt(2))
    once = np.array([0.0, 0.0, 1.0, 1.0])
    assert column_floor(values, free, once)[0] == pytest.approx(FLOOR_SHARE * 1.0)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"values": [1.0, 2.0]}, "values"),
        ({"values": [[1.0], [math.inf]]}, "values"),
        ({"contours": [[1, 0]]}, "contours"),
        ({"contours": [[1, 0], [0, 0]]}, "contours"),
        ({"weights": [1.0, -1.0]}, "weights"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"floor": [0.0]}, "floor"),
    ],
)
def test_bad_input_is_refused(change: dict[str, object], field: str) -> None:
    given = {"values": [[1.0], [2.0]], "contours": [[1, 0], [0, 1]], **change}
    with pytest.raises(InvalidInput) as caught:
        fit_mixtures(**given)  # type: ignore[arg-type]
    assert caught.value.field.startswith(field)
