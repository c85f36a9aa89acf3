import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.beliefs import (
    as_sets,
    from_commonality,
    from_implicability,
    mass_functions,
    slow_belief,
    slow_commonality,
    subsets,
)

from quercus.belief.errors import TotalConflict
from quercus.belief.mass import MassFunction
from quercus.belief.rules import conjunctive, dempster, disjunctive


def several(count: int, low: int = 2, high: int = 4) -> st.SearchStrategy[list[MassFunction]]:
    return st.integers(low, high).flatmap(
        lambda size: st.lists(mass_functions(size), min_size=count, max_size=count)
    )


def assert_same(a: MassFunction, b: MassFunction) -> None:
    left, right = dict(a.focal), dict(b.focal)
    for mask in left.keys() | right.keys():
        assert left.get(mask, 0.0) == pytest.approx(right.get(mask, 0.0), abs=1e-9)


def combined(a: MassFunction, b: MassFunction) -> MassFunction | None:
    try:
        return dempster(a, b)
    except TotalConflict:
        return None


@given(several(2))
def test_conjunctive_multiplies_commonalities(pair: list[MassFunction]) -> None:
    a, b = map(as_sets, pair)
    q = {s: slow_commonality(a, s) * slow_commonality(b, s) for s in subsets(pair[0].size)}
    expected = from_commonality(q, pair[0].size)
    result = as_sets(conjunctive(*pair))
    for s, mass in expected.items():
        assert result.get(s, 0.0) == pytest.approx(mass, abs=1e-9)


@given(several(2))
def test_disjunctive_multiplies_beliefs(pair: list[MassFunction]) -> None:
    a, b = map(as_sets, pair)  # normalised: implicability is belief
    product = {s: slow_belief(a, s) * slow_belief(b, s) for s in subsets(pair[0].size)}
    expected = from_implicability(product, pair[0].size)
    result = as_sets(disjunctive(*pair))
    for s, mass in expected.items():
        assert result.get(s, 0.0) == pytest.approx(mass, abs=1e-9)


@given(several(2, high=64))
def test_every_rule_gives_masses_that_sum_to_one(pair: list[MassFunction]) -> None:
    for result in (conjunctive(*pair), disjunctive(*pair), combined(*pair)):
        if result is not None:
            assert math.fsum(mass for _, mass in result.focal) == pytest.approx(1.0, abs=1e-9)


@given(several(2))
def test_dempster_is_the_conjunctive_rule_without_its_conflict(pair: list[MassFunction]) -> None:
    raw, normal = conjunctive(*pair), combined(*pair)
    if normal is None:
        assert raw.conflict == pytest.approx(1.0, abs=1e-12)
        return
    for mask, mass in normal.focal:
        assert mass * (1.0 - raw.conflict) == pytest.approx(dict(raw.focal)[mask], abs=1e-12)


@given(several(2))
def test_rules_are_commutative(pair: list[MassFunction]) -> None:
    a, b = pair
    assert_same(conjunctive(a, b), conjunctive(b, a))
    assert_same(disjunctive(a, b), disjunctive(b, a))
    ab, ba = combined(a, b), combined(b, a)
    assert (ab is None) == (ba is None)
    if ab is not None and ba is not None:
        assert_same(ab, ba)


@given(several(3))
def test_rules_are_associative(three: list[MassFunction]) -> None:
    a, b, c = three
    assert_same(conjunctive(conjunctive(a, b), c), conjunctive(a, conjunctive(b, c)))
    assert_same(disjunctive(disjunctive(a, b), c), disjunctive(a, disjunctive(b, c)))
    ab, bc = combined(a, b), combined(b, c)
    left = combined(ab, c) if ab is not None else None
    right = combined(a, bc) if bc is not None else None
    assert (left is None) == (right is None)
    if left is not None and right is not None:
        assert_same(left, right)


@given(several(2))
def test_contours_multiply_under_dempster(pair: list[MassFunction]) -> None:
    a, b = pair
    result = combined(a, b)
    if result is None:
        return
    product = a.contour() * b.contour()
    scale = 1.0 - conjunctive(a, b).conflict
    assert result.contour() * scale == pytest.approx(product, abs=1e-12)


@given(several(1, high=64))
def test_the_vacuous_function_is_neutral_and_absorbing(single: list[MassFunction]) -> None:
    (m,) = single
    nothing = MassFunction.vacuous(m.size)
    assert_same(dempster(m, nothing), m)
    assert disjunctive(m, nothing) == nothing


@given(several(1))
def test_long_chains_stay_normalised(single: list[MassFunction]) -> None:
    (m,) = single
    biased = MassFunction(m.size, tuple((mask, mass * (1.0 - 0.9e-9)) for mask, mass in m.focal))
    result = biased
    for _ in range(50):
        result = dempster(result, biased)
    assert np.isfinite(result.contour()).all()
    assert math.fsum(mass for _, mass in result.focal) == pytest.approx(1.0, abs=1e-12)
