"""Numbers of theory §5 worked out by hand.

Ten rows: a number 1 to 10, the class ω for those up to 6 but for row 3, λ = 1/2. The node has masses 5/11, 5/11,
1/11; N = 1/11, D = -10/11 log2(1/2) = 10/11; U = (1/11 + 10/11) / 2 = 1/2. Cut at 6.5: below are 5 of ω and one
not, masses 5/7, 1/7, 1/7, BetP 11/14, 3/14; above are 4 that are not, masses 0, 4/5, 1/5, BetP 1/10, 9/10.
"""

from math import log2

import numpy as np
import pytest
from support.growing import total_uncertainty_tree

from quercus.belief.mass import MassFunction
from quercus.belief.rules import dempster
from quercus.specification.attributes import Numeric
from quercus.trees.learners.one_against_rest import OneAgainstRest
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node

CLASSES = [0, 0, 1, 0, 0, 0, 1, 1, 1, 1]
TABLE = Table.of_classes([[float(i)] for i in range(1, 11)], [Numeric("x")], CLASSES, 2)


def test_the_first_split() -> None:
    root = total_uncertainty_tree(TABLE, 0.5)
    below = (1 / 7 - 5 / 7 * log2(11 / 14) - 1 / 7 * log2(3 / 14)) / 2
    above = (1 / 5 - 4 / 5 * log2(9 / 10)) / 2
    gain = 0.5 - 0.6 * below - 0.4 * above
    assert gain == pytest.approx(0.223022, abs=1e-6)
    assert (root.attribute, root.threshold) == (0, 6.5)
    assert root.intervals[0] == pytest.approx((gain, gain), abs=1e-12)
    assert root.mass is not None
    assert dict(root.mass.focal) == pytest.approx({1: 5 / 11, 2: 5 / 11, 3: 1 / 11})
    assert root.children[0].theta == pytest.approx((11 / 14, 3 / 14))
    assert root.children[1].theta == pytest.approx((1 / 10, 9 / 10))


def test_three_trees_of_one_leaf_each() -> None:
    # 4, 3 and 1 rows of three classes: each tree says m({ω}) = n_ω / 9, m({¬ω}) = (8 - n_ω) / 9, 1/9 open
    def leaf(for_it: int) -> TreeModel:
        mass = MassFunction(2, ((1, for_it / 9), (2, (8 - for_it) / 9), (3, 1 / 9)))
        bounds = {"belief": (0.0, 0.0), "plausibility": (1.0, 1.0)}
        node = Node(attribute=None, klass=0, theta=(0.5, 0.5), count=8, mass=mass, **bounds)
        return TreeModel.of(node, [Numeric("x")])

    leaves = tuple(leaf(n) for n in (4, 3, 1))
    averaged, combined = (
        said[0]
        for combine in ("mean", "dempster")
        if (said := OneAgainstRest((Numeric("x"),), 3, leaves, combine).predict([[0.0]]).masses) is not None
    )
    expected = {0b001: 4, 0b010: 3, 0b100: 1, 0b110: 4, 0b101: 5, 0b011: 7, 0b111: 3}
    assert dict(averaged.focal) == pytest.approx({mask: n / 27 for mask, n in expected.items()})
    first, second, third = (
        MassFunction(3, ((1 << c, n / 9), (7 & ~(1 << c), (8 - n) / 9), (7, 1 / 9)))
        for c, n in enumerate((4, 3, 1))
    )
    assert dict(combined.focal) == pytest.approx(dict(dempster(dempster(first, second), third).focal))
    # plausibility of class c, up to a constant: (1 - m_c(¬c)) Π_{k≠c} (1 - m_k(k))
    products = np.array(
        [(5 / 9) * (6 / 9) * (8 / 9), (4 / 9) * (5 / 9) * (8 / 9), (2 / 9) * (5 / 9) * (6 / 9)]
    )
    contour = combined.contour()
    np.testing.assert_allclose(contour / contour[0], products / products[0])
