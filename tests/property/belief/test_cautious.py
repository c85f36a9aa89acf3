"""The cautious rule: published numbers, laws, and the slow way over all sets of the frame."""

import math
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.belief.cautious import cautious, decompose
from quercus.belief.errors import InvalidInput, TooManyFocalSets
from quercus.belief.mass import MassFunction
from quercus.belief.measures import commonality
from quercus.belief.rules import dempster, discount

L = 3
SETS = range(1 << L)
ONE = MassFunction(L, ((0b011, 0.3), (0b110, 0.5), (0b111, 0.2)))
OTHER = MassFunction(L, ((0b010, 0.3), (0b110, 0.4), (0b111, 0.3)))


@st.composite
def undogmatic(draw: st.DrawFn) -> MassFunction:
    parts = draw(st.dictionaries(st.integers(1, 6), st.integers(1, 9), max_size=4))
    rest = draw(st.integers(1, 9))
    total = rest + sum(parts.values())
    return MassFunction(L, (*((mask, n / total) for mask, n in parts.items()), (7, rest / total)))


def slow_weights(m: MassFunction) -> dict[int, float]:
    """``w(A) = prod_{B ⊇ A} q(B)^((-1)^(|B|-|A|+1))`` over all sets."""
    return {
        a: math.prod(
            commonality(m, b) ** (-1) ** (b.bit_count() - a.bit_count() + 1) for b in SETS if b & a == a
        )
        for a in SETS
        if a != 7
    }


def slow_cautious(masses: list[MassFunction]) -> dict[int, float]:
    """The conjunction of ``A^w`` by least weights, as commonalities over all sets, inverted and normalised."""
    weights = [slow_weights(m) for m in masses]
    least = {a: min(w[a] for w in weights) for a in SETS if a != 7}
    q = [math.prod(w for a, w in least.items() if b & a != b) for b in SETS]
    mass = {
        a: sum((-1) ** (b.bit_count() - a.bit_count()) * q[b] for b in SETS if b & a == a) for a in SETS if a
    }
    total = sum(mass.values())
    return {a: m / total for a, m in mass.items() if m / total > 1e-9}


def test_published_numbers() -> None:
    """Denoeux 2008, §4: the weights of two mass functions, and what the rule makes of them."""
    assert {mask: math.exp(log) for mask, log in decompose(ONE).items()} == pytest.approx(
        {0b010: 1.75, 0b011: 0.4, 0b110: 2 / 7}
    )
    assert {mask: math.exp(log) for mask, log in decompose(OTHER).items()} == pytest.approx(
        {0b010: 0.7, 0b110: 3 / 7}
    )
    assert dict(cautious([ONE, OTHER]).focal) == pytest.approx(
        {0b010: 0.6, 0b011: 0.12, 0b110: 0.2, 0b111: 0.08}
    )


@settings(deadline=None)
@given(st.lists(undogmatic(), min_size=1, max_size=4))
def test_slowly(masses: list[MassFunction]) -> None:
    found = dict(cautious(masses).focal)
    expected = slow_cautious(masses)
    for mask in {*found, *expected}:
        assert found.get(mask, 0.0) == pytest.approx(expected.get(mask, 0.0), abs=1e-8)


@settings(deadline=None)
@given(undogmatic(), undogmatic(), undogmatic())
def test_laws(a: MassFunction, b: MassFunction, c: MassFunction) -> None:
    """Any order gives the same bits, and a repetition changes nothing."""
    together = cautious([a, b, c])
    for order in permutations([a, b, c, a]):
        assert cautious(order) == together
    assert dict(cautious([a]).focal) == pytest.approx(dict(a.focal))
    assert (together.contour() <= 1.0).all()


@given(st.lists(st.tuples(st.integers(0, 2), st.floats(0.05, 0.95)), min_size=1, max_size=6))
def test_who_says_the_same_counts_once(answers: list[tuple[int, float]]) -> None:
    """Discounted single classes: the most reliable answer for each is combined by Dempster's rule."""
    said = [discount(MassFunction(L, ((1 << c, 1.0),)), r) for c, r in answers]
    best = {c: max(r for k, r in answers if k == c) for c, _ in answers}
    expected = MassFunction.vacuous(L)
    for c, r in best.items():
        expected = dempster(expected, discount(MassFunction(L, ((1 << c, 1.0),)), r))
    found = dict(cautious(said).focal)
    for mask in {*found, *dict(expected.focal)}:
        assert found.get(mask, 0.0) == pytest.approx(dict(expected.focal).get(mask, 0.0), abs=1e-9)


def test_large_frames() -> None:
    """Sixty-four classes: only intersections of focal sets are looked at."""
    low, high = (
        MassFunction(64, (((1 << 40) - 1, 0.5), ((1 << 64) - 1, 0.5))),
        MassFunction(64, (((1 << 64) - (1 << 30), 0.8), ((1 << 64) - 1, 0.2))),
    )
    assert dict(cautious([low, high, low]).focal) == pytest.approx(dict(dempster(low, high).focal))


def test_errors() -> None:
    dogmatic = MassFunction(L, ((1, 1.0),))
    with pytest.raises(InvalidInput, match=r"mass: is dogmatic.*Discount it first, by a reliability of \.99"):
        cautious([ONE, dogmatic])
    with pytest.raises(InvalidInput, match="masses: is empty"):
        cautious([])
    with pytest.raises(InvalidInput, match=r"are on frames of \[2, 3\] classes"):
        cautious([ONE, MassFunction.vacuous(2)])
    whole = (1 << 12) - 1
    many = MassFunction(12, (*((whole ^ (1 << c), 1 / 13) for c in range(12)), (whole, 1 / 13)))
    with pytest.raises(TooManyFocalSets, match="more than 1,024 intersections"):
        cautious([many])
