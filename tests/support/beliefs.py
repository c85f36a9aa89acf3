"""Hypothesis strategies for labels, and slow, independent belief functions on sets of class numbers."""

from itertools import combinations

from hypothesis import strategies as st

from quercus.belief.label import ClassSet, Label, Masses, Plausibilities
from quercus.belief.mass import MassFunction

SetMasses = dict[frozenset[int], float]


@st.composite
def mass_functions(draw: st.DrawFn, size: int, max_focal: int = 6) -> MassFunction:
    masks = draw(st.lists(st.integers(1, 2**size - 1), min_size=1, max_size=max_focal, unique=True))
    weights = [draw(st.integers(1, 1000)) for _ in masks]
    return MassFunction(size, tuple((mask, w / sum(weights)) for mask, w in zip(masks, weights, strict=True)))


def contours(size: int) -> st.SearchStrategy[list[float]]:
    values = st.one_of(st.sampled_from([0.0, 1.0]), st.floats(0, 1))
    return st.lists(values, min_size=size, max_size=size).filter(any)


def labels(size: int) -> st.SearchStrategy[Label]:
    return st.one_of(
        st.integers(1, 2**size - 1).map(ClassSet),
        contours(size).map(lambda values: Plausibilities(tuple(values))),
        mass_functions(size).map(Masses),
    )


def classes_of(mask: int) -> frozenset[int]:
    return frozenset(c for c, digit in enumerate(reversed(bin(mask)[2:])) if digit == "1")


def mask_of(classes: frozenset[int]) -> int:
    return sum(2**c for c in classes)


def subsets(size: int) -> list[frozenset[int]]:
    return [frozenset(chosen) for k in range(size + 1) for chosen in combinations(range(size), k)]


def as_sets(m: MassFunction) -> SetMasses:
    return {classes_of(mask): mass for mask, mass in m.focal}


def slow_belief(m: SetMasses, event: frozenset[int]) -> float:
    return sum(mass for focal, mass in m.items() if focal and focal.issubset(event))


def slow_plausibility(m: SetMasses, event: frozenset[int]) -> float:
    return sum(mass for focal, mass in m.items() if not focal.isdisjoint(event))


def slow_commonality(m: SetMasses, event: frozenset[int]) -> float:
    return sum(mass for focal, mass in m.items() if focal.issuperset(event))


def from_commonality(q: dict[frozenset[int], float], size: int) -> SetMasses:
    """Möbius inversion: m(A) = sum over B containing A of (-1)^|B - A| Q(B)."""
    every = subsets(size)
    return {a: sum((-1) ** len(b - a) * q[b] for b in every if b >= a) for a in every}


def from_implicability(b: dict[frozenset[int], float], size: int) -> SetMasses:
    """Möbius inversion: m(A) = sum over B inside A of (-1)^|A - B| b(B), with b(B) = Bel(B) + m(empty)."""
    every = subsets(size)
    return {a: sum((-1) ** len(a - c) * b[c] for c in every if c <= a) for a in every}
