"""Nonspecificity, discord and Deng entropy (theory §1.2)."""

import math
from collections.abc import Callable

import pytest

from quercus.belief.errors import TotalConflict
from quercus.belief.mass import MassFunction
from quercus.belief.measures import deng_entropy, discord, nonspecificity

MEASURES: list[Callable[[MassFunction], float]] = [nonspecificity, discord, deng_entropy]


def test_a_small_case_by_hand() -> None:
    # m({1}) = .5, m({1,2}) = .25, m(C) = .25 on three classes: BetP = (17/24, 5/24, 2/24)
    m = MassFunction(3, ((0b001, 0.5), (0b011, 0.25), (0b111, 0.25)))
    assert nonspecificity(m) == pytest.approx(0.25 + 0.25 * math.log2(3))
    assert discord(m) == pytest.approx(-0.5 * math.log2(17 / 24) - 0.25 * math.log2(22 / 24))
    assert deng_entropy(m) == pytest.approx(0.5 * 1 + 0.25 * (2 + math.log2(3)) + 0.25 * (2 + math.log2(7)))


def test_of_a_bayesian_mass_both_entropies_are_shannons() -> None:
    m = MassFunction(4, ((0b0001, 0.5), (0b0010, 0.25), (0b0100, 0.125), (0b1000, 0.125)))
    assert nonspecificity(m) == 0.0
    assert discord(m) == pytest.approx(1.75)
    assert deng_entropy(m) == pytest.approx(1.75)


@pytest.mark.parametrize("size", [2, 5, 64])
def test_ignorance_and_certainty_are_the_extremes(size: int) -> None:
    nothing, certain = MassFunction.vacuous(size), MassFunction(size, ((0b10, 1.0),))
    assert nonspecificity(nothing) == pytest.approx(math.log2(size))
    assert discord(nothing) == 0.0
    assert deng_entropy(nothing) == pytest.approx(math.log2(2**size - 1))
    assert [measure(certain) for measure in MEASURES] == [0.0, 0.0, 0.0]


def test_deng_entropy_is_largest_where_masses_are_as_the_numbers_of_subsets() -> None:
    weights = {mask: 2 ** mask.bit_count() - 1 for mask in range(1, 8)}
    total = sum(weights.values())
    largest = MassFunction.of(3, {mask: weight / total for mask, weight in weights.items()})
    assert deng_entropy(largest) == pytest.approx(math.log2(total))
    assert deng_entropy(largest) > deng_entropy(MassFunction.vacuous(3))


@pytest.mark.parametrize("measure", MEASURES)
def test_mass_on_the_empty_set_is_normalised_away(measure: Callable[[MassFunction], float]) -> None:
    m = MassFunction(3, ((0b000, 0.6), (0b001, 0.1), (0b110, 0.3)), allow_empty=True)
    assert measure(m) == pytest.approx(measure(MassFunction(3, ((0b001, 0.25), (0b110, 0.75)))))
    with pytest.raises(TotalConflict):
        measure(MassFunction(3, ((0b000, 1.0),), allow_empty=True))
