"""ID3 and the averaging approach against trees grown row by row, and against each other."""

import numpy as np
import pytest
from property.trees.learners.problems import (
    ARITIES,
    ATTRIBUTES,
    assert_same,
    slow_rows,
    table_of_classes,
    values,
)
from property.trees.learners.slow_trees import Rules, grow
from support.growing import averaging, id3

from quercus.belief.errors import TotalConflict
from quercus.belief.mass import MassFunction
from quercus.belief.rules import combine_repeatedly, dempster
from quercus.trees.learners.averaging import mean_mass
from quercus.trees.learners.table import Table


def masses(rng: np.random.Generator, rows: int) -> list[MassFunction]:
    def one() -> MassFunction:
        sets = rng.choice(np.arange(1, 8), size=int(rng.integers(1, 4)), replace=False)
        parts = rng.integers(1, 4, len(sets))
        return MassFunction.of(3, {int(s): p / parts.sum() for s, p in zip(sets, parts, strict=True)})

    return [one() for _ in range(rows)]


def table_of_masses(seed: int, missing: float = 0.1) -> Table:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 20))
    return Table.of_masses(values(rng, rows, missing), ATTRIBUTES, masses(rng, rows))


@pytest.mark.parametrize("stop_without_gain", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_id3_is_the_tree_grown_row_by_row(seed, stop_without_gain):
    table = table_of_classes(seed, missing=0.15, weighted=seed % 2 == 0)
    slow = grow(slow_rows(table, table.contours), Rules(ARITIES, stop_without_gain=stop_without_gain))
    assert_same(id3(table, stop_without_gain=stop_without_gain), slow)


@pytest.mark.parametrize("seed", range(20))
def test_averaging_is_the_tree_grown_row_by_row_from_pignistic_probabilities(seed):
    table = table_of_masses(seed)
    assert_same(averaging(table), grow(slow_rows(table, table.pignistic), Rules(ARITIES)))


@pytest.mark.parametrize("stop_without_gain", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_averaging_precise_labels_is_id3(seed, stop_without_gain):
    table = table_of_classes(seed, missing=0.1)
    by_masses = averaging(table, stop_without_gain=stop_without_gain)
    by_classes = id3(table, stop_without_gain=stop_without_gain)
    for (one, *place), (other, *there) in zip(by_masses.preorder(), by_classes.preorder(), strict=True):
        assert place == there
        for name in ("attribute", "threshold", "klass", "count", "intervals", "stop", "weight"):
            assert getattr(one, name) == getattr(other, name)
        for name in ("theta", "belief", "plausibility"):  # the mean of masses may differ in the last digit
            assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-12)
        assert one.conflict == (one.is_leaf and max(one.theta) < 1)


@pytest.mark.parametrize("seed", range(20))
def test_leaves_combine_their_rows_one_after_the_other(seed):
    table = table_of_masses(seed)
    tree = averaging(table, max_depth=1)
    for code, child in tree.children.items():
        column = table.values[:, tree.attribute or 0]
        codes = np.where(np.isnan(column), ARITIES[tree.attribute] or 2, column)
        if tree.threshold is not None:
            codes = np.where(np.isnan(column), 2, column >= tree.threshold)
        below = [table.masses[row] for row in np.flatnonzero(codes == code)]
        assert len(below) == child.count
        try:
            combined = below[0]
            for mass in below[1:]:
                combined = dempster(combined, mass)
        except TotalConflict:
            assert child.conflict
            combined = mean_mass({mass: float(below.count(mass)) for mass in below})
        assert dict(child.mass.focal) == pytest.approx(dict(combined.focal), abs=1e-9)


@pytest.mark.parametrize("times", range(1, 9))
def test_powers_are_repeated_combinations(times):
    mass = MassFunction.of(3, {1: 0.2, 3: 0.5, 6: 0.2, 7: 0.1})
    combined = mass
    for _ in range(times - 1):
        combined = dempster(combined, mass)
    assert dict(combine_repeatedly({mass: times}).focal) == pytest.approx(dict(combined.focal), abs=1e-12)


def test_a_row_of_weight_two_is_two_rows():
    rng = np.random.default_rng(1)
    given, array = masses(rng, 8), values(rng, 8, 0.1)
    twice = Table.of_masses(array, ATTRIBUTES, given, [2] * 8)
    repeated = Table.of_masses(np.repeat(array, 2, axis=0), ATTRIBUTES, [m for m in given for _ in range(2)])
    for one, other in zip(averaging(twice).preorder(), averaging(repeated).preorder(), strict=True):
        assert one[1:] == other[1:]
        assert one[0].theta == pytest.approx(other[0].theta, abs=1e-12)
        assert one[0].size == other[0].size


@pytest.mark.parametrize("order", [1, -1])
def test_a_large_leaf_is_certain_of_nothing_that_its_rows_doubt(order):
    """400 rows say one class and 399 the other, each with doubt .1: ten to one, whatever comes first."""
    contours = np.array([[1.0, 0.1]] * 400 + [[0.1, 1.0]] * 399)[::order]
    leaf = averaging(Table.of_contours(np.zeros((799, 1)), ATTRIBUTES[:1], contours))
    assert not leaf.conflict
    assert leaf.plausibility == pytest.approx((10 / 11, 1 / 11), abs=1e-9)
    assert leaf.klass == 0
