"""The numbers of theory §1, §3.7 and §4 that rest on belief functions alone."""

import pytest

from quercus.belief.contour import check_contour, is_precise, is_vacuous
from quercus.belief.mass import MassFunction
from quercus.belief.measures import pignistic
from quercus.belief.rules import disjunctive

# Elouedi, Mellouli, Smets 2000, the worked case of theory §4; bit 0 is class 1.
M1 = MassFunction(3, ((0b001, 0.3), (0b011, 0.4), (0b111, 0.3)))
M2 = MassFunction(3, ((0b010, 0.5), (0b011, 0.2), (0b111, 0.3)))
M3 = MassFunction(3, ((0b001, 0.8), (0b111, 0.2)))
M4 = MassFunction(3, ((0b010, 0.1), (0b100, 0.3), (0b110, 0.2), (0b111, 0.4)))
M5 = MassFunction(3, ((0b010, 0.7), (0b111, 0.3)))


def test_disjunction_of_the_two_leaves() -> None:
    union = dict(disjunctive(M2, M4).focal)
    assert union == pytest.approx({0b010: 0.05, 0b011: 0.02, 0b110: 0.25, 0b111: 0.68}, abs=1e-12)


def test_pignistic_probability_of_the_disjunction() -> None:
    assert pignistic(disjunctive(M2, M4)) == pytest.approx([0.236667, 0.411667, 0.351667], abs=5e-7)


def test_pignistic_probability_of_the_mean_mass() -> None:
    sums: dict[int, float] = {}
    for m in (M1, M2, M3, M4, M5):
        for mask, mass in m.focal:
            sums[mask] = sums.get(mask, 0.0) + mass / 5
    assert pignistic(MassFunction.of(3, sums)) == pytest.approx([0.38, 0.44, 0.18], abs=1e-12)


def test_labels_of_table_t() -> None:
    first, eighth, ninth = (check_contour(c, 3) for c in ([0.8, 0.3, 0.3], [1, 1, 1], [0, 1, 0]))
    assert first.max() < 1.0  # a contour need not reach 1
    assert [bool(is_vacuous(c)) for c in (first, eighth, ninth)] == [False, True, False]
    assert [bool(is_precise(c)) for c in (first, eighth, ninth)] == [False, False, True]
