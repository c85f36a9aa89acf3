"""Nested masses and their combination, against the rules of `quercus.belief`."""

from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.measures import commonality, deng_entropy, pignistic
from quercus.belief.rules import dempster
from quercus.trees.learners.nested import (
    ConsonantMasses,
    log_commonalities,
    log_commonalities_of,
    mass_function,
    normalised_masses,
    pignistic_of,
)


def combine_logs(summed: NDArray[np.float64]) -> MassFunction:
    return mass_function(normalised_masses(summed)[0])


def densities(seed: int, n: int, size: int) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(scale=2.0, size=(n, size))


def test_the_ranked_densities_go_to_nested_sets() -> None:
    nested = ConsonantMasses.of(np.log([[1.0, 5.0, 2.0]]))
    assert nested.order.tolist() == [[1, 2, 0]]
    assert dict(nested.mass_function(0).focal) == pytest.approx({0b010: 0.625, 0b110: 0.25, 0b111: 0.125})


@pytest.mark.parametrize(
    ("values", "expected", "order"),
    [
        ([1, 3, 3, 1], {0b0110: 0.75, 0b1111: 0.25}, [1, 2, 0, 3]),
        ([2, 2, 2, 2], {0b1111: 1.0}, [0, 1, 2, 3]),
        ([4, 1, 4 * (1 + 1e-12), 1], {0b0101: 0.8, 0b1111: 0.2}, [0, 2, 1, 3]),
        ([1, 3, 0, 0], {0b0010: 0.75, 0b0011: 0.25}, [1, 0, 2, 3]),
    ],
)
def test_tied_ones_go_together_to_the_largest_of_their_sets(
    values: list[float], expected: dict[int, float], order: list[int]
) -> None:
    with np.errstate(divide="ignore"):
        nested = ConsonantMasses.of(np.log(np.array([values])))
    assert dict(nested.mass_function(0).focal) == pytest.approx(expected)
    assert nested.order[0].tolist() == order


def test_a_mass_that_underflows_keeps_its_contour() -> None:
    nested = ConsonantMasses.of(np.array([[0.0, -2000.0, -1000.0]]))
    np.testing.assert_allclose(nested.log_contours(), [[0.0, -2000.0, -1000.0]])
    assert nested.mass_function(0).focal == ((0b001, 1.0),)


@pytest.mark.parametrize("size", [2, 3, 5, 8])
def test_entropy_and_contour_are_those_of_the_masses(size: int) -> None:
    logs = densities(size, 30, size)
    logs[::3, 1] = logs[::3, 0]
    nested = ConsonantMasses.of(logs)
    for row in range(30):
        mass = nested.mass_function(row)
        assert nested.deng_entropy()[row] == pytest.approx(deng_entropy(mass), abs=1e-12)
        np.testing.assert_allclose(np.exp(nested.log_contours()[row]), mass.contour(), rtol=1e-12)


def test_commonality_is_the_least_plausibility_in_the_set() -> None:
    nested = ConsonantMasses.of(densities(1, 5, 4))
    logs = log_commonalities(nested.log_contours())
    for row in range(5):
        expected = [commonality(nested.mass_function(row), mask) for mask in range(16)]
        np.testing.assert_allclose(np.exp(logs[row]), expected, rtol=1e-12)
        np.testing.assert_allclose(
            np.exp(log_commonalities_of(nested.mass_function(row))), expected, rtol=1e-12
        )


@pytest.mark.parametrize("size", [2, 3, 5])
def test_summed_commonalities_are_dempsters_rule(size: int) -> None:
    nested = ConsonantMasses.of(densities(size, 6, size))
    slow = reduce(dempster, [nested.mass_function(row) for row in range(6)])
    fast = combine_logs(log_commonalities(nested.log_contours()).sum(axis=0))
    masses = dict(slow.focal)
    assert {mask for mask, mass in slow.focal if mass > 1e-12} <= {mask for mask, _ in fast.focal}
    for mask, mass in fast.focal:
        assert mass == pytest.approx(masses.get(mask, 0.0), abs=1e-13)


def test_ten_thousand_rows_combine_without_underflow() -> None:
    logs = np.tile([[0.0, -0.5, -3.0]], (10_000, 1))
    mass = combine_logs(log_commonalities(ConsonantMasses.of(logs).log_contours()).sum(axis=0))
    assert dict(mass.focal) == pytest.approx({0b001: 1.0})
    clash = np.array([[0.0, -500.0, -900.0], [-900.0, -500.0, 0.0], [-900.0, 0.0, -900.0]])
    assert combine_logs(log_commonalities(ConsonantMasses.of(clash).log_contours()).sum(axis=0)).focal == (
        (0b010, 1.0),
    )


def test_too_many_classes_to_combine_are_refused() -> None:
    with pytest.raises(InvalidInput, match="at most 16"):
        log_commonalities(np.zeros((1, 17)))
    with pytest.raises(InvalidInput, match="at most 16"):
        log_commonalities_of(MassFunction.vacuous(17))


def test_rows_are_normalised_together_and_conflict_is_reported_by_row() -> None:
    with np.errstate(divide="ignore"):
        logs = np.log([[[1.0, 2.0, 4.0], [3.0, 1.0, 0.0]], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]])
    summed = log_commonalities(ConsonantMasses.of(logs).log_contours()).sum(axis=1)
    masses, conflict = normalised_masses(summed)
    assert conflict.tolist() == [False, True]
    assert np.isnan(masses[1]).all()
    assert mass_function(masses[0]) == combine_logs(summed[0])
    np.testing.assert_allclose(pignistic_of(masses)[0], pignistic(combine_logs(summed[0])), rtol=1e-14)
