import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.beliefs import (
    as_sets,
    classes_of,
    mask_of,
    mass_functions,
    slow_belief,
    slow_commonality,
    slow_plausibility,
    subsets,
)

from quercus.belief.mass import MassFunction
from quercus.belief.measures import belief, commonality, pignistic, plausibility
from quercus.belief.rules import conjunctive, discount

SIZES = st.integers(2, 5)
ANY_MASS = SIZES.flatmap(mass_functions)
WIDE_MASS = st.integers(6, 64).flatmap(mass_functions)


@given(ANY_MASS)
def test_measures_equal_the_sums_over_every_subset(m: MassFunction) -> None:
    sets = as_sets(m)
    for event in subsets(m.size):
        mask = mask_of(event)
        assert belief(m, mask) == pytest.approx(slow_belief(sets, event), abs=1e-12)
        assert plausibility(m, mask) == pytest.approx(slow_plausibility(sets, event), abs=1e-12)
        assert commonality(m, mask) == pytest.approx(slow_commonality(sets, event), abs=1e-12)


@given(ANY_MASS, ANY_MASS)
def test_measures_of_a_function_with_conflict(a: MassFunction, b: MassFunction) -> None:
    if a.size != b.size:
        b = MassFunction.vacuous(a.size)
    m = conjunctive(a, b)
    sets = as_sets(m)
    for event in subsets(m.size):
        assert belief(m, mask_of(event)) == pytest.approx(slow_belief(sets, event), abs=1e-12)
        assert commonality(m, mask_of(event)) == pytest.approx(slow_commonality(sets, event), abs=1e-12)


@given(ANY_MASS, st.data())
def test_belief_is_at_most_plausibility_and_they_are_dual(m: MassFunction, data: st.DataObject) -> None:
    mask = data.draw(st.integers(0, 2**m.size - 1))
    rest = (2**m.size - 1) & ~mask
    assert belief(m, mask) <= plausibility(m, mask) + 1e-12
    assert belief(m, mask) == pytest.approx(1.0 - plausibility(m, rest), abs=1e-9)


@given(WIDE_MASS)
def test_contour_is_the_plausibility_of_the_singletons(m: MassFunction) -> None:
    contour = m.contour()
    assert contour.shape == (m.size,)
    assert contour.max() <= 1.0
    expected = [sum(mass for mask, mass in m.focal if c in classes_of(mask)) for c in range(m.size)]
    assert contour == pytest.approx(np.array(expected), abs=1e-12)


@given(WIDE_MASS)
def test_pignistic_lies_between_belief_and_plausibility(m: MassFunction) -> None:
    betp = pignistic(m)
    assert betp.sum() == pytest.approx(1.0, abs=1e-12)
    for c in range(m.size):
        expected = sum(mass / len(classes_of(mask)) for mask, mass in m.focal if c in classes_of(mask))
        assert betp[c] == pytest.approx(expected, abs=1e-9)
        assert belief(m, 1 << c) - 1e-9 <= betp[c] <= plausibility(m, 1 << c) + 1e-9


@given(ANY_MASS, st.floats(0, 1))
def test_discounting_pulls_the_contour_towards_one(m: MassFunction, reliability: float) -> None:
    weaker = discount(m, reliability)
    expected = reliability * m.contour() + 1.0 - reliability
    assert weaker.contour() == pytest.approx(expected, abs=1e-9)
    whole = 2**m.size - 1
    for mask, mass in m.focal:
        if mask != whole:
            assert dict(weaker.focal).get(mask, 0.0) == pytest.approx(reliability * mass, abs=1e-15)
