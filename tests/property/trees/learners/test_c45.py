"""C4.5 against a tree grown row by row, and against ABC4.5."""

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
from property.trees.learners.slow_trees import Rules, grow, predict
from support.growing import c45

from quercus.specification.attributes import Nominal
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.table import Table

OPTIONS = {
    "plain": {"min_branch": 1, "min_side": 0.0, "threshold_cost": False, "average_gain": False},
    "average gain": {"min_branch": 1, "min_side": 0.0, "threshold_cost": False, "average_gain": True},
    "cost": {"min_branch": 1, "min_side": 0.0, "threshold_cost": True, "average_gain": False},
    "all": {"min_branch": 2, "min_side": 0.9, "threshold_cost": True, "average_gain": True},
}


def slow_rules(options: dict) -> Rules:
    return Rules(
        ARITIES,
        fractional=True,
        middle=False,
        ratio=True,
        average_gain=options["average_gain"],
        penalty=options["threshold_cost"],
        min_branch=options["min_branch"],
        min_side=options["min_side"],
    )


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("seed", range(25))
def test_trees_are_those_grown_row_by_row(seed, options):
    table = table_of_classes(seed, missing=(0.0, 0.1, 0.3)[seed % 3], weighted=seed % 5 == 0)
    slow = grow(slow_rows(table, table.contours), slow_rules(options))
    assert_same(c45(table, confidence=None, **options), slow)


@pytest.mark.parametrize("seed", range(20))
def test_rows_with_missing_values_are_predicted_as_one_by_one(seed):
    table = table_of_classes(seed, missing=0.2)
    rules = slow_rules(OPTIONS["plain"])
    slow = grow(slow_rows(table, table.contours), rules)
    rows = values(np.random.default_rng(seed + 1000), 15, 0.3)
    expected = [predict(slow, [None if np.isnan(v) else v for v in row], rules) for row in rows]
    tree = c45(table, confidence=None, **OPTIONS["plain"])
    np.testing.assert_allclose(TreeModel.of(tree, ATTRIBUTES).predict(rows).theta, expected, atol=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_on_nominal_values_it_is_abc45_at_level_1_without_queries(seed):
    rng = np.random.default_rng(seed)
    arities = rng.integers(1, 5, rng.integers(1, 6))
    rows = int(rng.integers(1, 40))
    codes = np.column_stack([rng.integers(0, r, rows) for r in arities])
    classes = rng.integers(0, 3, rows)
    attributes = [Nominal(f"a{k}", tuple("pqrs"[:r])) for k, r in enumerate(arities)]
    tree = c45(
        Table.of_classes(codes, attributes, classes, 3), min_branch=1, average_gain=False, confidence=None
    )
    other = induce(codes, arities, np.eye(3)[classes], alpha=1.0, prediction_level=1.0).tree
    for (mine, *place), (theirs, *there) in zip(tree.preorder(), other.preorder(), strict=True):
        assert place == there
        for name in ("attribute", "klass", "count", "stop", "threshold", "weight"):
            assert getattr(mine, name) == getattr(theirs, name)
        for name in ("theta", "belief", "plausibility"):
            assert getattr(mine, name) == pytest.approx(getattr(theirs, name), abs=1e-6)
        assert mine.intervals.keys() == theirs.intervals.keys()
        for k, ends in mine.intervals.items():
            assert ends == pytest.approx(theirs.intervals[k], abs=1e-6)
