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

from quercus.belief.errors import InvalidInput, TotalConflict
from quercus.belief.mass import MassFunction
from quercus.belief.rules import combine_repeatedly, conjunctive, dempster, disjunctive


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


Parts = dict[int, int]  # whole numbers in proportion to the masses of sets


def exactly(size: int, some: list[Parts], counts: list[int]) -> dict[int, float]:
    """Dempster's rule in whole numbers: products of commonalities (theory §1.1), and what they leave for each set."""
    sets = range(1, 1 << size)
    q = {
        s: math.prod(
            sum(m for t, m in parts.items() if t & s == s) ** n for parts, n in zip(some, counts, strict=True)
        )
        for s in sets
    }
    masses = {s: sum((-1) ** (t ^ s).bit_count() * q[t] for t in sets if t & s == s) for s in sets}
    total = sum(masses.values())
    return {s: (m << 60) // total / 2**60 for s, m in masses.items()}


def parts_of_sets(size: int) -> st.SearchStrategy[tuple[int, list[Parts]]]:
    parts = st.dictionaries(st.integers(1, (1 << size) - 1), st.integers(1, 20), min_size=1, max_size=4)
    return st.tuples(st.just(size), st.lists(parts, min_size=3, max_size=3))


@given(
    st.integers(2, 4).flatmap(parts_of_sets),
    st.lists(st.sampled_from([1, 2, 3, 400, 10_000]), min_size=3, max_size=3),
)
def test_many_labels_are_combined_as_exactly_as_few(
    problem: tuple[int, list[Parts]], counts: list[int]
) -> None:
    size, some = problem
    times: dict[MassFunction, int] = {}
    for parts, count in zip(some, counts, strict=True):
        mass = MassFunction.of(size, {s: m / sum(parts.values()) for s, m in parts.items()})
        times[mass] = times.get(mass, 0) + count
    try:
        expected = exactly(size, some, counts)
    except ZeroDivisionError:
        with pytest.raises(TotalConflict):
            combine_repeatedly(times)
        return
    for found in (combine_repeatedly(times), combine_repeatedly(dict(reversed(times.items())))):
        for s, mass in expected.items():
            assert dict(found.focal).get(s, 0.0) == pytest.approx(mass, abs=1e-9)


def test_doubt_that_no_number_can_hold_still_counts() -> None:
    """After 400 labels of .9 on one side, its doubt is 1e-400; the other side has as many, but for one."""
    red, green = MassFunction(2, ((1, 0.9), (3, 0.1))), MassFunction(2, ((2, 0.9), (3, 0.1)))
    found = combine_repeatedly({red: 400, green: 399})
    assert found.contour() == pytest.approx([10 / 11, 1 / 11], abs=1e-9)
    assert combine_repeatedly({red: 1}) is red


def test_what_cannot_be_combined_repeatedly_is_refused() -> None:
    with pytest.raises(InvalidInput, match="times: is empty"):
        combine_repeatedly({})
    with pytest.raises(InvalidInput, match=r"times: are on frames of \[2, 3\] classes"):
        combine_repeatedly({MassFunction.vacuous(2): 1, MassFunction.vacuous(3): 1})
