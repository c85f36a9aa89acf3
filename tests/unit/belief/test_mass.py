import math
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput, TotalConflict
from quercus.belief.mass import MAX_FOCAL_SETS, MassFunction
from quercus.belief.measures import belief, commonality, pignistic, plausibility
from quercus.belief.rules import MAX_PAIRS, conjunctive, dempster, discount, disjunctive


def test_focal_sets_are_sorted_and_zeros_dropped() -> None:
    m = MassFunction(3, ((0b111, 0.5), (0b010, 0.0), (0b001, 0.5)))
    assert m.focal == ((0b001, 0.5), (0b111, 0.5))
    assert m == MassFunction.of(3, {0b001: 0.5, 0b111: 0.5})
    with pytest.raises(FrozenInstanceError):
        m.size = 4  # type: ignore[misc]


def test_numpy_numbers_become_python_numbers() -> None:
    ((mask, mass),) = MassFunction(64, ((np.uint64(2**63), np.float64(1.0)),)).focal  # type: ignore[arg-type]
    assert (type(mask), type(mass)) == (int, float)
    assert mask == 2**63


@pytest.mark.parametrize(
    ("size", "focal", "field", "words"),
    [
        (1, ((1, 1.0),), "size", "is 1, must lie in [2, 64]"),
        (65, ((1, 1.0),), "size", "is 65, must lie in [2, 64]"),
        (3, (), "focal", "the masses sum to 0.0, must sum to 1 within 1e-09"),
        (3, ((1, 0.5), (2, 0.4)), "focal", "the masses sum to 0.9, must sum to 1 within 1e-09"),
        (3, ((1, 0.5), (2, 0.5 + 2e-9)), "focal", "must sum to 1"),
        (3, ((8, 1.0),), "focal[0]", "is 0x8, must lie in [0x0, 0x7] for 3 classes"),
        (3, ((-1, 1.0),), "focal[0]", "must lie in [0x0, 0x7]"),
        (3, ((1, 0.5), (1, 0.5)), "focal[1]", "names the set 0x1 a second time"),
        (3, ((1, 1.5), (2, -0.5)), "focal[0]", "its mass is 1.5, must lie in [0, 1]"),
        (3, ((1, math.nan),), "focal[0]", "its mass is nan, must lie in [0, 1]"),
        (3, ((1, "much"),), "focal[0]", "its mass is 'much', must be a number"),
        (3, ((1.0, 1.0),), "focal[0]", "its set is 1.0, must be an integer bit mask"),
        (3, ((0, 0.25), (1, 0.75)), "focal", "the empty set has mass 0.25, must have none"),
    ],
)
def test_bad_masses(size: int, focal: tuple[tuple[int, float], ...], field: str, words: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        MassFunction(size, focal)
    assert caught.value.field == field
    assert words in caught.value.reason


def test_sum_within_tolerance_is_kept_as_given() -> None:
    assert MassFunction(2, ((1, 0.5), (2, 0.5 + 5e-10))).focal == ((1, 0.5), (2, 0.5 + 5e-10))
    assert MassFunction(2, ((1, 0.5), (3, 0.5 + 5e-10))).contour().max() <= 1.0


def test_measures_of_known_masses() -> None:
    m = MassFunction(3, ((0b001, 0.3), (0b011, 0.4), (0b111, 0.3)))
    assert belief(m, 0b011) == pytest.approx(0.7)
    assert belief(m, 0b110) == 0.0
    assert plausibility(m, 0b110) == pytest.approx(0.7)
    assert commonality(m, 0b011) == pytest.approx(0.7)
    assert (belief(m, 0), plausibility(m, 0), commonality(m, 0)) == (0.0, 0.0, 1.0)
    assert m.contour() == pytest.approx([1.0, 0.7, 0.3])
    with pytest.raises(InvalidInput, match="mask: is 0x8"):
        plausibility(m, 0b1000)


def test_conjunctive_conflict_and_its_normalisation() -> None:
    a = MassFunction(2, ((0b01, 0.6), (0b11, 0.4)))
    b = MassFunction(2, ((0b10, 0.5), (0b11, 0.5)))
    raw = conjunctive(a, b)
    assert raw.conflict == pytest.approx(0.3)
    assert dict(raw.focal) == pytest.approx({0: 0.3, 0b01: 0.3, 0b10: 0.2, 0b11: 0.2})
    assert pignistic(raw) == pytest.approx([0.4 / 0.7, 0.3 / 0.7])
    assert dict(dempster(a, b).focal) == pytest.approx({0b01: 3 / 7, 0b10: 2 / 7, 0b11: 2 / 7})


def test_total_conflict_is_an_error_never_a_nan() -> None:
    a, b = MassFunction(2, ((0b01, 1.0),)), MassFunction(2, ((0b10, 1.0),))
    with pytest.raises(TotalConflict, match="total conflict"):
        dempster(a, b)
    with pytest.raises(TotalConflict, match="empty set"):
        pignistic(conjunctive(a, b))
    assert disjunctive(a, b).focal == ((0b11, 1.0),)


def test_conflict_short_of_total_is_normalised_exactly() -> None:
    tiny = 1e-200
    a = MassFunction(2, ((0b01, 1.0), (0b11, tiny)))
    b = MassFunction(2, ((0b10, 1.0),))
    assert dempster(a, b).focal == ((0b10, 1.0),)


def test_what_is_hardly_possible_is_no_total_conflict() -> None:
    tiny = 5e-324
    first = MassFunction(3, ((0b001, 1.0), (0b011, tiny)))
    assert dempster(first, MassFunction(3, ((0b110, 1.0),))).focal == ((0b010, 1.0),)
    second = MassFunction(3, ((0b100, 1.0), (0b110, 3e-310), (0b101, 1e-310)))
    assert dempster(first, second).contour() == pytest.approx([1.0, 0.0, 0.0], abs=1e-300)
    third = MassFunction(3, ((0b100, 1.0), (0b010, tiny)))
    assert dempster(first, third).focal == ((0b010, 1.0),)  # the product of their masses is not a number


def test_discount() -> None:
    m = MassFunction(2, ((0b01, 0.8), (0b11, 0.2)))
    assert discount(m, 1.0) == m
    assert discount(m, 0.0) == MassFunction.vacuous(2)
    assert dict(discount(m, 0.5).focal) == pytest.approx({0b01: 0.4, 0b11: 0.6})


@pytest.mark.parametrize("reliability", [-0.1, 1.1, math.nan, pytest.param(10**5000, id="many digits")])
def test_bad_reliability(reliability: float) -> None:
    with pytest.raises(InvalidInput, match=r"reliability: is .*, must lie in \[0, 1\]"):
        discount(MassFunction.vacuous(2), reliability)


def test_a_mass_that_no_float_holds_is_refused() -> None:
    with pytest.raises(InvalidInput, match=r"focal\[0\]: its mass is 10+\.\.\., must be a number"):
        MassFunction(2, ((1, 10**400),))


def test_frames_must_agree() -> None:
    with pytest.raises(InvalidInput, match="have 2 and 3 classes"):
        conjunctive(MassFunction.vacuous(2), MassFunction.vacuous(3))


def uniform(size: int, masks: list[int]) -> MassFunction:
    return MassFunction(size, tuple((mask, 1.0 / len(masks)) for mask in masks))


def test_bound_on_the_focal_sets_of_an_input() -> None:
    assert len(uniform(64, list(range(1, MAX_FOCAL_SETS + 1))).focal) == MAX_FOCAL_SETS
    with pytest.raises(InvalidInput, match="has 65537 focal sets, at most 65536 are allowed"):
        uniform(64, list(range(1, MAX_FOCAL_SETS + 2)))


def test_bound_on_the_focal_sets_of_a_result() -> None:
    # 300 singletons-with-padding in the low half, 300 in the high half: every union is a different set.
    low = uniform(64, list(range(1, 301)))
    high = uniform(64, [k << 32 for k in range(1, 301)])
    with pytest.raises(InvalidInput, match="the combination has 90000 focal sets, at most 65536 are allowed"):
        disjunctive(low, high)
    assert dict(conjunctive(low, high).focal) == pytest.approx({0: 1.0})


def test_bound_on_the_work_of_a_combination() -> None:
    a, b = uniform(64, list(range(1, 4097))), uniform(64, list(range(1, 1026)))
    assert len(a.focal) * len(b.focal) > MAX_PAIRS
    with pytest.raises(InvalidInput, match="4096 and 1025 focal sets make 4198400 pairs, at most 4194304"):
        conjunctive(a, b)


def test_sixty_four_classes_stay_sparse() -> None:
    top = 1 << 63
    a = MassFunction(64, ((top | 1, 0.5), (2**64 - 1, 0.5)))
    b = MassFunction(64, ((top, 0.25), (2**64 - 1, 0.75)))
    assert dict(dempster(a, b).focal) == {top: 0.25, top | 1: 0.375, 2**64 - 1: 0.375}
