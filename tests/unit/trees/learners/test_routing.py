"""Rows sent down a tree by hand."""

import numpy as np

from quercus.trees.learners.routing import reached
from quercus.trees.specification import Nominal, Numeric
from quercus.trees.tree import Node


def leaf(klass: int) -> Node:
    return Node(attribute=None, klass=klass, theta=(0.5, 0.5), count=1)


def test_each_row_ends_where_its_values_lead() -> None:
    low, red, green = leaf(0), leaf(1), leaf(0)
    above = Node(attribute=1, klass=1, theta=(0.5, 0.5), count=2, children={0: red, 1: green})
    root = Node(attribute=0, klass=0, theta=(0.5, 0.5), count=3, children={0: low, 1: above}, threshold=2.5)
    attributes = (Numeric("x"), Nominal("colour", ("red", "green", "blue")))
    values = np.array([[2.0, 0], [2.5, 0], [9.0, 1], [9.0, 2], [9.0, np.nan], [np.nan, 0], [1.0, np.nan]])
    nodes, index = reached(root, attributes, values)
    expected = [low, red, green, above, above, root, low]
    assert all(nodes[at] is node for at, node in zip(index, expected, strict=True))
    assert reached(root, attributes, values[:0])[1].tolist() == []
