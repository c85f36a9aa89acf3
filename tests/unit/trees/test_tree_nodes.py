from dataclasses import replace

from quercus.belief.mass import MassFunction
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node

LEAF = Node(attribute=None, klass=0, theta=(1.0, 0.0), count=3, belief=(1.0, 0.0), plausibility=(1.0, 0.0))


def test_nodes_differ_when_threshold_mass_conflict_or_weight_do():
    for change in (
        {"threshold": 1.5},
        {"mass": MassFunction.vacuous(2)},
        {"conflict": True},
        {"weight": 2.5},
    ):
        assert replace(LEAF, **change) != LEAF
        assert replace(LEAF, **change) == replace(LEAF, **change)


def test_the_size_of_a_node_is_its_weight_where_rows_do_not_count_one_each():
    assert LEAF.size == 3
    assert replace(LEAF, weight=2.5).size == 2.5


def test_arrays_carry_all_of_a_node():
    node = replace(LEAF, threshold=1.5, mass=MassFunction.vacuous(2), conflict=True, weight=2.5)
    assert FlatTree.of(node).tree() == node
    assert FlatTree.of(LEAF).tree() == LEAF
