"""Densities of one attribute under each class."""

import math

import numpy as np
import pytest

from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.components import (
    Frequencies,
    Gaussians,
    branch_of,
    fit_components,
    fit_frequencies,
)
from quercus.trees.learners.mixture import column_floor, fit_mixtures
from quercus.trees.learners.table import Table


def test_precise_labels_give_the_frequencies_of_values_with_one_pseudo_count() -> None:
    column, contours = np.array([0.0, 0, 1, 2, 2, 2]), np.eye(2)[[0, 0, 0, 1, 1, 1]]
    fitted = fit_frequencies(column, 3, contours, np.array([1.0, 1, 2, 1, 1, 1]))
    third = 1 / 3
    expected = np.array([[2 + third, 2 + third, third], [third, third, 3 + third]]) / [[5], [4]]
    np.testing.assert_allclose(np.exp(fitted.log_table), expected, rtol=1e-12)
    assert fitted.proportions.tolist() == pytest.approx([4 / 7, 3 / 7])


@pytest.mark.parametrize("seed", range(4))
def test_the_likelihood_with_its_pseudo_counts_never_falls(seed: int) -> None:
    rng = np.random.default_rng(seed)
    column, weights = rng.integers(4, size=30).astype(float), rng.integers(0, 3, size=30).astype(float)
    contours = np.where(rng.random((30, 3)) < 0.5, 1.0, rng.random((30, 3)))
    before = -math.inf
    for steps in range(1, 15):
        fitted = fit_frequencies(column, 4, contours, weights, epsilon=1e-300, max_steps=steps)
        inside = [
            sum(
                contours[i, c] * fitted.proportions[c] * math.exp(fitted.log_table[c, int(column[i])])
                for c in range(3)
            )
            for i in range(30)
        ]
        now = sum(w * math.log(x) for w, x in zip(weights, inside, strict=True)) + fitted.log_table.sum() / 4
        assert now >= before - 1e-9
        before = now


def test_missing_values_say_nothing_and_take_the_branch_of_the_commonest_class() -> None:
    column, contours = np.array([0.0, 1, 1, np.nan]), np.eye(2)[[0, 1, 1, 0]]
    fitted = fit_frequencies(column, 2, contours, np.ones(4))
    logs = fitted.log_densities(column)
    assert logs[3].tolist() == [0.0, 0.0]
    assert branch_of(fitted, column, logs).tolist() == [0, 1, 1, 1]
    nothing = fit_frequencies(np.full(4, np.nan), 2, contours, np.ones(4))
    assert nothing.log_densities(np.array([0.0, 1.0])).tolist() == [[-math.log(2)] * 2] * 2


def test_a_class_that_no_row_can_have_has_no_density() -> None:
    fitted = fit_frequencies(np.array([0.0, 1.0]), 2, np.eye(3)[[0, 2]], np.ones(2))
    assert np.isneginf(fitted.log_densities(np.array([1.0]))).tolist() == [[False, True, False]]


def test_each_attribute_has_its_own_kind_in_declared_order() -> None:
    attributes = (Numeric("x"), Nominal("c", ("p", "q")), Numeric("y"))
    rng = np.random.default_rng(0)
    values = np.column_stack([rng.normal(size=20), rng.integers(2, size=20), rng.normal(size=20)])
    table = Table.of_classes(values, attributes, rng.integers(2, size=20), 2)
    rows = np.arange(3, 18)
    floor = column_floor(table.values, table.contours)
    x, c, y = fit_components(table, rows, (0, 1, 2), floor)
    assert isinstance(c, Frequencies)
    alone = fit_mixtures(values[rows][:, [0, 2]], table.contours[rows], floor=floor[[0, 2]])
    for at, (component, column) in enumerate([(x, 0), (y, 2)]):
        assert isinstance(component, Gaussians)
        expected = alone.log_densities(values[:, [0, 2]])[:, at]
        np.testing.assert_allclose(component.log_densities(values[:, column]), expected, rtol=1e-12)
