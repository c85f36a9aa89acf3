"""C4.5's collapse and subtree raising."""

import numpy as np
import pytest
from numpy.typing import NDArray
from support.growing import c45

from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.pruning import collapse_errors, subtree_errors
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node, Stop

NAMES = ("u", "v", "w")
ATTRIBUTES = [Nominal("a", NAMES), Nominal("b", NAMES), Numeric("x"), Numeric("y")]


def noisy(seed: int, lost: float = 0.0, count: int = 160) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    values = np.column_stack([*rng.integers(0, 3, (2, count)), *rng.normal(size=(2, count)).round(1)])
    classes = (values[:, 2] + (values[:, 0] == 1) > 0.5).astype(int) + (values[:, 1] == 2)
    classes = np.where(rng.random(count) < 0.25, rng.integers(0, 3, count), classes)
    values[rng.random(values.shape) < lost] = np.nan
    return values, classes


def grown(seed: int, lost: float = 0.0, **options: object) -> Node:
    values, classes = noisy(seed, lost)
    return c45(Table.of_classes(values, ATTRIBUTES, classes, 3), **options)  # type: ignore[arg-type]


def test_a_subtree_that_is_no_better_than_a_leaf_collapses() -> None:
    def leaf(first: float, count: int) -> Node:
        theta = (first, 1 - first)
        return Node(None, int(first < 0.5), theta, count, stop=Stop.PURE, belief=theta, plausibility=theta)

    def above(*below: Node) -> Node:
        count = sum(node.count for node in below)
        first = sum(node.theta[0] * node.count for node in below) / count
        theta = (first, 1 - first)
        children = dict(enumerate(below))
        return Node(0, int(first < 0.5), theta, count, {}, children, belief=theta, plausibility=theta)

    same = above(leaf(0.9, 10), leaf(0.6, 10))  # 1 + 4 errors below, 5 as a leaf
    assert collapse_errors(same).stop is Stop.PRUNED
    better = above(leaf(0.9, 10), leaf(0.4, 10))
    assert collapse_errors(better) == better
    mixed = collapse_errors(above(same, leaf(0.0, 30)))
    assert [child.is_leaf for child in mixed.children.values()] == [True, True]
    assert not mixed.is_leaf


@pytest.mark.parametrize("lost", [0.0, 0.15])
@pytest.mark.parametrize("seed", range(12))
def test_a_raised_subtree_holds_all_rows_of_the_node_it_replaces(seed: int, lost: float) -> None:
    values, classes = noisy(seed, lost)
    tree = grown(seed, lost)
    for node, _, _ in tree.preorder():
        if not node.is_leaf:
            assert sum(child.size for child in node.children.values()) == pytest.approx(node.size)
            mean = sum(np.array(child.theta) * child.size for child in node.children.values()) / node.size
            assert node.theta == pytest.approx(mean)
            assert node.stop is None
    assert tree.size == pytest.approx(len(values))
    if not lost:  # each node's shares are those of the rows that reach it
        model = TreeModel.of(tree, ATTRIBUTES)
        ends = model.flat.route(model.encoder.codes(values), values)
        for end in np.unique(ends):
            here = np.bincount(classes[ends == end], minlength=3)
            assert model.flat.theta[end] == pytest.approx(here / here.sum())


def test_trees_are_raised_and_not_only_cut() -> None:
    changed = 0
    for seed in range(24):
        raised, cut = grown(seed), grown(seed, raising=False)
        changed += raised != cut
        whole = grown(seed, confidence=None)
        assert sum(1 for _ in raised.preorder()) <= sum(1 for _ in whole.preorder())
        assert subtree_errors(raised, 0.25) <= subtree_errors(cut, 0.25) + 1.0
    assert changed > 0


def test_a_level_out_of_bounds_is_named() -> None:
    with pytest.raises(InvalidInput, match="confidence"):
        grown(0, confidence=1.5)
