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

from quercus.trees.learners.predicting import TreeModel

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
