"""Weights of rows: one of weight 2 is two rows, two of weight .5 are one, whatever the labels (theory §2.1)."""

import numpy as np
import pytest
from support.growing import abc45, e2m

from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning
from quercus.trees.learners.table import Table
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node

ATTRIBUTES = (Nominal("a", ("p", "q", "r")), Numeric("x"), Numeric("y"))


def table(seed: int, *, precise: bool = False) -> Table:
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 3, 30)
    values = np.column_stack([rng.integers(0, 3, 30), truth + rng.normal(0, 0.7, 30), rng.normal(0, 1, 30)])
    values[rng.random(values.shape) < 0.05] = np.nan
    contours = np.eye(3)[truth]
    if not precise:
        contours[rng.random(30) < 0.3] = 1.0
        some = rng.random(30) < 0.3
        contours[some] = np.maximum(contours[some], rng.random((30, 3))[some])
    return Table.of_contours(values, ATTRIBUTES, contours)


def weighted(source: Table, rows: np.ndarray, weights: np.ndarray) -> Table:
    return Table.of_contours(source.values[rows], ATTRIBUTES, source.contours[rows], weights)


def assert_same(one: Node, other: Node) -> None:
    mine, theirs = FlatTree.of(one), FlatTree.of(other)
    assert mine.attribute.tolist() == theirs.attribute.tolist()
    assert mine.stop.tolist() == theirs.stop.tolist()
    for name in (
        "threshold",
        "theta",
        "belief",
        "plausibility",
        "weight",
        "interval_lower",
        "interval_upper",
    ):
        np.testing.assert_allclose(getattr(mine, name), getattr(theirs, name), atol=1e-7, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("pruning", [None, Pruning("likelihood", 0.3)])
def test_halves_make_wholes(seed: int, pruning: Pruning | None) -> None:
    source = table(seed, precise=seed % 2 == 0)
    every = np.arange(30)
    whole = e2m(source, min_instances=3, max_cuts=5, pruning=pruning)
    halves = weighted(source, np.repeat(every, 2), np.full(60, 0.5))
    assert_same(e2m(halves, min_instances=3, max_cuts=5, pruning=pruning), whole)
    parts = weighted(source, np.concatenate([every, every, [3]]), np.repeat([0.25, 0.75, 0.0], [30, 30, 1]))
    assert_same(e2m(parts, min_instances=3, max_cuts=5, pruning=pruning), whole)


@pytest.mark.parametrize("seed", range(4))
def test_twice_and_a_half_is_five_halves(seed: int) -> None:
    source = table(seed)
    times = np.random.default_rng(seed).integers(1, 6, 30)
    weights = times / 2
    assert (weights != np.floor(weights)).any()
    again = np.repeat(np.arange(30), times)
    parts = weighted(source, again, np.full(len(again), 0.5))
    for alpha in (1.0, 0.8):
        assert_same(
            abc45(weighted(source, np.arange(30), weights), alpha=alpha, max_depth=2),
            abc45(parts, alpha=alpha, max_depth=2),
        )


def test_the_estimate_of_a_weighted_leaf_is_that_of_the_weighted_likelihood() -> None:
    contours = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.3, 1.0]])
    weights = np.array([0.3, 0.5, 1.7, 0.9])
    leaf = e2m(Table.of_contours(np.zeros((4, 1)), [Numeric("x")], contours, weights), max_depth=0)
    theta = np.full(3, 1 / 3)
    for _ in range(20_000):  # the EM step of theory §2
        shares = theta * contours
        theta = weights @ (shares / shares.sum(axis=1, keepdims=True)) / weights.sum()
    np.testing.assert_allclose(leaf.theta, theta, atol=1e-6)
    assert leaf.size == pytest.approx(3.4)
