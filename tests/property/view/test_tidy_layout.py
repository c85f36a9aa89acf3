"""The positions of the nodes of a picture: laws for every tree, and known pictures."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quercus.view.trees.svg import tidy_layout


@st.composite
def parents(draw: st.DrawFn) -> np.ndarray:
    """A tree in pre-order: each next node hangs on the node before it, or on one of its ancestors."""
    parent = [-1]
    for node in range(1, draw(st.integers(1, 60))):
        ancestor = node - 1
        for _ in range(draw(st.integers(0, 4))):
            ancestor = parent[ancestor] if parent[ancestor] >= 0 else ancestor
        parent.append(ancestor)
    return np.array(parent)


@given(parents())
def test_a_layout_is_tidy(parent: np.ndarray) -> None:
    level, rows = tidy_layout(parent)
    for node in range(1, len(parent)):
        assert level[node] == level[parent[node]] + 1
    for depth in range(level.max() + 1):  # pre-order is the order of every column
        assert (np.diff(rows[level == depth]) >= 1 - 1e-9).all()
    for node in range(len(parent)):
        children = np.flatnonzero(parent == node)
        if children.size:
            assert rows[node] == pytest.approx((rows[children[0]] + rows[children[-1]]) / 2)
    assert rows.min() == 0


@given(parents())
def test_no_subtree_could_stand_nearer_to_those_above(parent: np.ndarray) -> None:
    level, rows = tidy_layout(parent)
    under = [{node} for node in range(len(parent))]
    for node in range(len(parent) - 1, 0, -1):
        under[parent[node]] |= under[node]
    for node in range(len(parent)):
        children = np.flatnonzero(parent == node)
        for at, child in enumerate(children[1:], start=1):
            above = set().union(*(under[other] for other in children[:at]))
            gaps = [
                rows[one] - rows[other]
                for one in under[child]
                for other in above
                if level[one] == level[other]
            ]
            assert min(gaps) == pytest.approx(1)


def test_a_shallow_tree_stands_beside_a_deep_one() -> None:
    # 0 has 1 (with 2 and 3 below it) and 4, whose children 5 and 6 keep 4 away from 1
    _, rows = tidy_layout(np.array([-1, 0, 1, 1, 0, 4, 4]))
    assert rows.tolist() == [1.5, 0.5, 0, 1, 2.5, 2, 3]
    # without them 4 stands right below 1
    _, rows = tidy_layout(np.array([-1, 0, 1, 1, 0]))
    assert rows.tolist() == [1.0, 0.5, 0, 1, 1.5]
