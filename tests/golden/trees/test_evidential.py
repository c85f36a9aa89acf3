"""Equalities of theory §3.6 on iris and wine, numbers as they are."""

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.datasets import load_iris, load_wine
from support.growing import abc45, c45, e2m

from quercus.specification.attributes import Numeric
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node


def table(load: Callable) -> Table:
    data = load()
    attributes = [Numeric(name) for name in data.feature_names]
    return Table.of_classes(data.data, attributes, data.target, len(data.target_names))


def shape(tree: Node) -> list[tuple]:
    return [
        (*place, n.attribute, n.threshold, n.klass, n.count, n.stop, n.undecided)
        for n, *place in tree.preorder()
    ]


@pytest.mark.parametrize("cap", [1, 8, 32, 1000])
@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_precise_labels_at_level_1_give_the_gain_ratio_tree_of_c45(load, cap):
    given = table(load)
    mine = abc45(given, alpha=1.0, max_cuts=cap)
    theirs = c45(
        given,
        max_cuts=cap,
        min_branch=1,
        min_side=0.0,
        threshold_cost=False,
        average_gain=False,
        confidence=None,
    )
    assert shape(mine) == shape(theirs)
    assert len(shape(mine)) > 3
    for (a, *_), (b, *_) in zip(mine.preorder(), theirs.preorder(), strict=True):
        np.testing.assert_allclose(a.theta, b.theta, atol=1e-12)
        assert a.intervals.keys() == b.intervals.keys()
        for k, ends in a.intervals.items():
            assert ends == pytest.approx(b.intervals[k], abs=1e-9)


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_e2m_is_abc45_at_level_1(load):
    given = table(load)
    rng = np.random.default_rng(3)
    soft = np.maximum(given.contours, np.where(rng.random(given.contours.shape) < 0.4, rng.random(), 0.0))
    uncertain = Table.of_contours(given.values, given.attributes, soft)
    assert e2m(uncertain) == abc45(uncertain, alpha=1.0)


def test_the_root_of_iris():
    """Petal length below 2.45 takes all setosas: gain .918296 bits, as much as the split informs."""
    tree = e2m(table(load_iris))
    assert (tree.attribute, tree.threshold) == (2, pytest.approx(2.45))
    assert tree.intervals[2] == pytest.approx((1.0, 1.0), abs=1e-9)
    assert [child.count for child in tree.children.values()] == [50, 100]
