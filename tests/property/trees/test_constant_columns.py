"""A column that does not vary changes nothing: no prediction, no bound, no query, whatever the labels."""

from dataclasses import replace

import numpy as np
import pytest
from contract.trees.test_learners import BASES
from numpy.typing import NDArray

from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.trees import Forest
from quercus.trees.learners.learner import fit
from quercus.trees.learners.table import Table
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.evidence import DistinctContours
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.naive_bayes import NaiveBayes
from quercus.trees.memory_forest.publishing import served_members

Floats = NDArray[np.float64]
CONSTANTS: dict[str, tuple[Attribute, float]] = {
    "tenth": (Numeric("tenth"), 0.1),
    "billion": (Numeric("billion"), 1e9),
    "tiny": (Numeric("tiny"), 1e-300),
    "time": (Numeric("time"), 1.7e9 + 0.123),
    "name": (Nominal("name", ("a", "b", "c", "d")), 3.0),
    "missing": (Numeric("missing"), np.nan),
}
KINDS = ("class", "set", "contour", "reliability", "mixed", "mass", "vacuous")


def rows_of(seed: int, count: int = 150) -> tuple[Floats, NDArray[np.int64]]:
    """Two numbers, one with values missing, and a name."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, 3, count)
    numbers = np.column_stack([classes + rng.normal(0, 0.6, count), rng.normal(0, 1, count)])
    numbers[rng.random(count) < 0.1, 1] = np.nan
    return np.column_stack([numbers, np.where(rng.random(count) < 0.3, 0, classes)]), classes


def contours_of(kind: str, classes: NDArray[np.int64], seed: int) -> Floats:
    rng = np.random.default_rng(seed)
    precise = np.eye(3)[classes]
    wrong = np.eye(3)[np.where(rng.random(len(classes)) < 0.2, rng.integers(0, 3, len(classes)), classes)]
    soft = np.maximum(precise, rng.random(precise.shape))
    found = {
        "class": precise,
        "set": np.maximum(precise, np.eye(3)[rng.integers(0, 3, len(classes))]),
        "contour": np.maximum(precise, 0.2),
        "reliability": 0.8 * wrong + 0.2,
        "mass": soft,
        "vacuous": np.ones(precise.shape),
        "mixed": np.where((np.arange(len(classes)) % 3 == 0)[:, np.newaxis], precise, soft),
    }[kind]
    found[rng.random(len(classes)) < 0.2] = 1.0
    return found


def with_constants(values: Floats, place: int) -> Floats:
    return np.insert(values, [place] * len(CONSTANTS), [x for _, x in CONSTANTS.values()], axis=1)


@pytest.mark.parametrize("place", [0, 2, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_the_forest_is_the_same_to_the_last_bit(kind: str, place: int) -> None:
    values, classes = rows_of(1)
    contours, wide = contours_of(kind, classes, 2), with_constants(values, place)
    named = np.array([False, False, True])
    without = MemoryForest(named, 3, trees=9, seed=5, level=0.75)
    beside = MemoryForest(
        np.insert(named, [place] * 6, [isinstance(a, Nominal) for a, _ in CONSTANTS.values()]),
        3, trees=9, seed=5, level=0.75,
    )  # fmt: skip
    others, _ = rows_of(3)
    for start, end in ((0, 4), (4, 90), (90, 150)):
        without.observe(values[start:end], contours[start:end])
        beside.observe(wide[start:end], contours[start:end])
        said, expected = beside.predict(with_constants(others, place)), without.predict(others)
        served = served_members(beside).predict(with_constants(others, place))
        for name in ("theta", "belief", "plausibility"):
            np.testing.assert_array_equal(getattr(said, name), getattr(expected, name))
            np.testing.assert_allclose(getattr(served, name), getattr(expected, name), atol=1e-12)
        candidates = np.flatnonzero(contours[:end].min(axis=1) == 1.0)
        chosen, plain = (list(choose_rows(each, candidates, 7)) for each in (beside, without))
        assert [each.row for each in chosen] == [each.row for each in plain]
        for mine, theirs in zip(chosen, plain, strict=True):
            np.testing.assert_array_equal(mine.scores, theirs.scores)


def test_many_columns_leave_as_many_rows_to_be_looked_at() -> None:
    """The sample of a query is smaller where rows are wide, but a column that does not vary costs no distance."""
    values, classes = rows_of(4, 1_100)
    wide = np.hstack([values[:, :2], np.full((1_100, 40), 0.1)])
    pools = []
    for some in (values[:, :2], wide):
        forest = MemoryForest(np.zeros(some.shape[1], dtype=bool), 3, trees=3, seed=5, level=0.75)
        forest.observe(some, np.where((np.arange(1_100) < 9)[:, np.newaxis], np.eye(3)[classes], 1.0))
        pools.append(next(iter(choose_rows(forest, np.arange(9, 1_100), 1))).pool.tolist())
    assert pools[0] == pools[1]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "vacuous"])
def test_what_labelled_rows_share_tells_naive_bayes_nothing(kind: str) -> None:
    """Even if other rows have other values: far from what was seen, they drown no other attribute."""
    values, classes = rows_of(6)
    found = DistinctContours(3)
    kinds = found.contour_numbers(contours_of(kind, classes, 7))
    rows = np.flatnonzero(kinds >= 0)
    wide = with_constants(values, 0)
    named = np.array([isinstance(a, Nominal) for a, _ in CONSTANTS.values()] + [False, False, True])
    without = NaiveBayes.of(values, rows, named[6:], kinds[rows], found)
    beside = NaiveBayes.of(wide, rows, named, kinds[rows], found)
    np.testing.assert_array_equal(beside.means[:5], np.repeat(beside.means[:5, :1], 3, axis=1))
    others, _ = rows_of(8)
    for factor in (1.0, 1.0 + 1e-9, 2.0, -1e6):
        seen = with_constants(others, 0)
        seen[:, :6] *= factor
        seen[:, 4] = 1.0 if factor != 1.0 else 3.0
        np.testing.assert_array_equal(beside.theta(seen), without.theta(others))


@pytest.mark.parametrize("offset", [1e9, 1.7e9, -4e12])
def test_an_offset_moves_no_class_by_rounding(offset: float) -> None:
    """A clock's seconds with a spread of a second tell classes apart as the seconds alone do."""
    rng = np.random.default_rng(1)
    classes = rng.integers(0, 2, 300)
    seconds = (np.rint((classes + rng.normal(0, 0.4, 300)) * 256) / 256)[
        :, np.newaxis
    ]  # exact beside the offset
    found = DistinctContours(2)
    kinds = found.contour_numbers(np.maximum(np.eye(2)[classes], 0.2))
    here, there = (
        NaiveBayes.of(some, np.arange(300), np.array([False]), kinds, found)
        for some in (seconds, seconds + offset)
    )
    np.testing.assert_allclose(there.means - offset, here.means, atol=1e-15 * abs(offset))
    np.testing.assert_allclose(there.deviations, here.deviations, rtol=1e-12)


LEARNERS = {
    **BASES,
    "votes of e2m": Forest(BASES["e2m"], 4, "label"),
    "votes of OBE": Forest(BASES["OBE"], 4, "label"),
}  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", ["class", "contour", "mass"])
@pytest.mark.parametrize("name", LEARNERS)
def test_other_learners_are_the_same(name: str, kind: str) -> None:
    values, classes = rows_of(9, 60)
    attributes = (Numeric("x"), Numeric("y"), Nominal("z", ("a", "b", "c")))
    if kind == "mass":
        masses = [MassFunction.of(3, {1 << c: 0.6, 7: 0.4}) for c in classes.tolist()]
        table = Table.of_masses(values, attributes, masses)
    else:
        table = Table.of_contours(values, attributes, contours_of(kind, classes, 10))
    constants = tuple(attribute for attribute, _ in CONSTANTS.values())
    wide = replace(table, values=with_constants(values, 0), attributes=(*constants, *attributes))
    others, _ = rows_of(11, 40)
    expected = fit(LEARNERS[name], table).predict(others)
    said = fit(LEARNERS[name], wide).predict(with_constants(others, 0))
    for each in ("theta", "belief", "plausibility"):
        np.testing.assert_allclose(getattr(said, each), getattr(expected, each), atol=1e-12)
