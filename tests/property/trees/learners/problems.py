"""Small random tables, full of ties, and how to compare trees with slow ones."""

import numpy as np
import pytest

from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node

ATTRIBUTES = (Nominal("a", ("p", "q", "r")), Numeric("x"), Nominal("b", ("u", "v")), Numeric("y"))
ARITIES = (3, None, 2, None)


def values(rng: np.random.Generator, rows: int, missing: float) -> np.ndarray:
    columns = [
        rng.integers(0, 3, rows),
        rng.integers(0, 6, rows) / 2,
        rng.integers(0, 2, rows),
        rng.normal(size=rows),
    ]
    array = np.column_stack(columns).astype(float)
    array[rng.random(array.shape) < missing] = np.nan
    return array


def table_of_classes(seed: int, missing: float = 0.0, *, weighted: bool = False) -> Table:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 25))
    weights = rng.integers(1, 4, rows) / 2 if weighted else None
    return Table.of_classes(values(rng, rows, missing), ATTRIBUTES, rng.integers(0, 3, rows), 3, weights)


def slow_rows(table: Table, shares: np.ndarray) -> list:
    return [
        (tuple(None if np.isnan(v) else float(v) for v in row), share, weight)
        for row, share, weight in zip(table.values, shares.tolist(), table.weights.tolist(), strict=True)
    ]


def assert_same(node: Node, slow: tuple) -> None:
    attribute, cut, tally, children = slow
    assert node.attribute == attribute
    assert node.threshold == (None if cut is None else pytest.approx(cut, abs=1e-12))
    assert node.size == pytest.approx(sum(tally), abs=1e-9)
    if node.mass is None or not node.is_leaf:
        assert node.theta == pytest.approx([c / sum(tally) for c in tally], abs=1e-9)
    assert list(node.children) == [int(value) for value in children]
    for value, child in children.items():
        assert_same(node.children[int(value)], child)
