from dataclasses import fields, replace

import numpy as np
import pytest

from quercus.belief.mass import MassFunction
from quercus.server.wire.trees import encode_nodes
from quercus.trees.learners.stored import join_trees, part_trees
from quercus.trees.tree.flat import PLAIN, RAGGED, FlatTree
from quercus.trees.tree.node import Node, Stop
from quercus.v1 import tree_pb2


def node(attribute: int | None, **more: object) -> Node:
    values = {"klass": 0, "theta": (1.0, 0.0), "count": 1, "belief": (1.0, 0.0), "plausibility": (1.0, 0.0)}
    return Node(attribute=attribute, **(values | more))


def random_tree(rng: np.random.Generator, left: list[int], arity: int) -> Node:
    if not left or rng.random() < 0.2:
        return node(None, klass=int(rng.integers(2)), count=int(rng.integers(99)), stop=Stop.PURE)
    k = int(rng.choice(left))
    codes = [code for code in range(arity) if rng.random() < 0.7]
    below = [j for j in left if j != k]
    return node(k, children={code: random_tree(rng, below, arity) for code in codes} or {0: node(None)})


def follow(root: Node, row: list[int]) -> Node:
    while root.attribute is not None and row[root.attribute] in root.children:
        root = root.children[row[root.attribute]]
    return root


@pytest.mark.parametrize("seed", range(15))
def test_routing_many_rows_is_routing_each(seed: int) -> None:
    rng = np.random.default_rng(seed)
    root = random_tree(rng, [0, 1, 2, 3], 3)
    flat = FlatTree.of(root)
    nodes = [each for each, _, _ in root.preorder()]
    codes = rng.integers(-1, 5, (200, 4)).astype(np.int16)  # -1 and 3, 4 were never seen
    ends = flat.route(codes)
    assert [flat.route(row[None]).item() for row in codes] == ends.tolist()
    assert [nodes[end] for end in ends] == [follow(root, row) for row in codes.tolist()]
    assert all(nodes[end] is follow(root, row) for end, row in zip(ends, codes.tolist(), strict=True))


def test_columns() -> None:
    root = node(
        1,
        klass=1,
        count=3,
        theta=(0.25, 0.75),
        undecided=True,
        intervals={1: (0.1, 0.2), 0: (0.0, 0.3)},
        children={0: node(None, stop=Stop.PURE), 2: node(None, stop=Stop.FEW_INSTANCES, klass=1, count=2)},
    )
    flat = FlatTree.of(root)
    assert (flat.size, flat.leaf_count) == (3, 2)
    assert flat.attribute.tolist() == [1, -1, -1]
    assert flat.parent.tolist() == [-1, 0, 0]
    assert flat.branch.tolist() == [-1, 0, 2]
    assert flat.klass.tolist() == [1, 0, 1]
    assert flat.count.tolist() == [3, 1, 2]
    assert flat.theta.tolist() == [[0.25, 0.75], [1, 0], [1, 0]]
    assert flat.undecided.tolist() == [True, False, False]
    assert flat.stop.tolist() == [0, Stop.PURE.value, Stop.FEW_INSTANCES.value]
    assert flat.interval_start.tolist() == [0, 2, 2, 2]
    assert [flat.intervals(i) for i in range(3)] == [((0, 0.0, 0.3), (1, 0.1, 0.2)), (), ()]
    assert [flat.path(i) for i in range(3)] == [(), ((1, 0),), ((1, 2),)]


def test_a_lone_root_takes_every_row() -> None:
    flat = FlatTree.of(node(None))
    assert flat.route(np.zeros((3, 2), dtype=np.int16)).tolist() == [0, 0, 0]
    assert flat.route(np.zeros((0, 2), dtype=np.int16)).tolist() == []


def eloquent() -> Node:
    """A tree that says something in every column."""
    mass = MassFunction.of(2, {1: 0.25, 3: 0.75})
    more = {"undecided": True, "intervals": {0: (0.1, 0.2)}, "threshold": 1.5, "mass": mass, "conflict": True}
    leaf_ = node(None, stop=Stop.PURE, mass=mass)
    return node(0, klass=1, count=3, weight=2.5, children={0: leaf_, 2: leaf_}, **more)


def test_every_field_of_a_node_is_a_column_that_is_kept_stored_and_sent() -> None:
    root, children = eloquent(), {"children"}
    own = {each.name for each in fields(Node)} - children
    assert {name for name, plain in PLAIN.items() if plain.of is not None} == own - {"intervals", "mass"}
    assert set(RAGGED) == {"interval_start", "mass_start"}
    flat = FlatTree.of(root)
    assert flat.tree() == root
    (again,) = part_trees(join_trees([flat]))
    assert again.tree() == root
    stored = {*PLAIN, *(name for each in RAGGED.values() for name in (each.count, *each.columns))}
    assert set(join_trees([flat])) == stored
    sent = encode_nodes(flat)
    assert [each.name for each, _ in sent.ListFields()] == [
        each.name for each in tree_pb2.Nodes.DESCRIPTOR.fields
    ]
    assert len(tree_pb2.Nodes.DESCRIPTOR.fields) == len(stored)


def test_a_column_without_information_is_not_stored() -> None:
    flat = FlatTree.of(node(0, children={0: node(None), 1: node(None)}))
    silent = {"threshold", "weight", "conflict", "mass_count", "mass_set", "mass_value"}
    assert not silent & set(join_trees([flat]))
    assert part_trees(join_trees([flat]))[0].tree() == flat.tree()


def test_equality_looks_at_every_field() -> None:
    root = eloquent()
    for each in fields(Node):
        if each.name not in {"children", "belief", "plausibility", "theta"}:
            other = {
                "attribute": 1,
                "klass": 0,
                "count": 4,
                "intervals": {},
                "undecided": False,
                "stop": Stop.PURE,
            }
            other |= {"threshold": 2.5, "mass": None, "conflict": False, "weight": None}
            assert replace(root, **{each.name: other[each.name]}) != root


def test_the_size_of_a_node_is_its_weight_where_rows_do_not_count_one_each() -> None:
    assert node(None, count=3).size == 3
    assert node(None, count=3, weight=2.5).size == 2.5
