"""Predictions of trees for certain and for uncertain rows, compared with a recursion by hand."""

import math
from collections.abc import Iterator
from functools import reduce
from itertools import product

import numpy as np
import pytest
from support.growing import averaging, c45, id3

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.rules import disjunctive
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.cells import Between, Value
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.predictions import Predictions
from quercus.trees.learners.table import Table
from quercus.trees.tree.encoding import Encoder
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node

ATTRIBUTES = (Nominal("a", ("p", "q", "r")), Numeric("x"), Nominal("b", ("u", "v")))
NAN = float("nan")


def table(seed: int, missing: float = 0.0, rows: int = 30) -> Table:
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, 3, rows), rng.integers(0, 8, rows), rng.integers(0, 2, rows)])
    values = values.astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    return Table.of_classes(values, ATTRIBUTES, rng.integers(0, 3, rows), 3)


def uncertain(seed: int, missing: float = 0.0) -> Table:
    certain = table(seed, missing)
    masses = [
        MassFunction.of(3, {int(m): 0.7, 7: 0.3})
        for m in np.random.default_rng(seed).integers(1, 7, len(certain))
    ]
    return Table.of_masses(certain.values, ATTRIBUTES, masses)


def slow_ends(
    node: Node, row: list[Value], attributes: tuple[Attribute, ...]
) -> Iterator[tuple[Node, float]]:
    """The nodes where a row may end and their shares, by the words of the module; sets of ranges for parts."""
    if node.attribute is None:
        yield node, 1.0
        return
    declared, value = attributes[node.attribute], row[node.attribute]
    lost = len(declared.values) if isinstance(declared, Nominal) else 2
    ways: list[tuple[Node, Value]] = []
    if value is None or (isinstance(value, float) and math.isnan(value)):
        alone = node.children.get(lost)
        ways = [(child, None) for child in ([alone] if alone is not None else node.children.values())]
    else:
        numbers = value if isinstance(value, frozenset) else [value]
        for code, child in node.children.items():
            if node.threshold is None:
                left = [v for v in numbers if v == code and code != lost]
            elif code == 0:
                left = [v for v in numbers if (v.low if isinstance(v, Between) else v) < node.threshold]
            else:
                left = [
                    v
                    for v in numbers
                    if code == 1 and (v.high if isinstance(v, Between) else v) >= node.threshold
                ]
            if left:
                ways.append((child, frozenset(left)))
    if not ways:
        yield node, 1.0
    total = sum(child.size for child, _ in ways)
    for child, left in ways:
        below = [*row[: node.attribute], left, *row[node.attribute + 1 :]]
        for end, share in slow_ends(child, below, attributes):
            yield end, share * child.size / total


def random_rows(seed: int, count: int = 40) -> list[list[Value]]:
    rng = np.random.default_rng(seed)
    rows: list[list[Value]] = []
    for _ in range(count):
        row: list[Value] = []
        for k, top in enumerate((4, 8, 2)):
            number = float(rng.integers(0, top))
            form = rng.integers(0, 4)
            if form == 0:
                row.append(None)
            elif form == 1:
                row.append(frozenset(rng.integers(0, top, rng.integers(1, 4)).astype(float).tolist()))
            elif form == 2 and k == 1:
                row.append(Between(number, number + float(rng.integers(0, 4))))
            else:
                row.append(number)
        rows.append(row)
    return rows


def check(said: Predictions, tree: Node, rows: list[list[Value]]) -> None:
    for at, row in enumerate(rows):
        ends = list(slow_ends(tree, row, ATTRIBUTES))
        assert sum(share for _, share in ends) == pytest.approx(1)
        if tree.mass is not None:
            expected = reduce(disjunctive, [end.mass for end, _ in ends if end.mass is not None])
            assert said.masses is not None
            assert dict(said.masses[at].focal) == pytest.approx(dict(expected.focal), abs=1e-12)
            assert said.plausibility[at] == pytest.approx(expected.contour(), abs=1e-12)
            continue
        for column, name in (
            (said.theta, "theta"),
            (said.belief, "belief"),
            (said.plausibility, "plausibility"),
        ):
            mean = sum(share * np.array(getattr(end, name)) for end, share in ends)
            assert column[at] == pytest.approx(mean, abs=1e-12)
        assert said.theta[at, said.klass[at]] == pytest.approx(said.theta[at].max())


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("lost", [0.0, 0.2])
def test_uncertain_rows_are_predicted_as_by_hand(seed: int, lost: float) -> None:
    rows = random_rows(seed)
    for tree in (
        id3(table(seed, lost)),
        c45(table(seed, lost), confidence=None),
        averaging(uncertain(seed, lost)),
    ):
        check(TreeModel.of(tree, ATTRIBUTES).predict_rows(rows), tree, rows)


@pytest.mark.parametrize("seed", range(5))
def test_known_and_unknown_values_as_an_array_are_predicted_as_row_by_row(seed: int) -> None:
    values = table(seed + 100, missing=0.3).values
    for tree in (id3(table(seed, 0.1)), averaging(uncertain(seed))):
        model = TreeModel.of(tree, ATTRIBUTES)
        check(model.predict(values), tree, values.tolist())
        by_row = model.predict_rows(values.tolist())
        assert model.predict(values).theta.tolist() == by_row.theta.tolist()


@pytest.mark.parametrize("seed", range(5))
def test_a_range_reaches_what_the_numbers_in_it_reach(seed: int) -> None:
    model = TreeModel.of(averaging(uncertain(seed)), ATTRIBUTES)
    for low, high in ((0.0, 7.0), (2.0, 4.0), (3.0, 3.0)):
        numbers = frozenset(np.linspace(low, high, 57).tolist())
        between, each = model.predict_rows([[1, Between(low, high), 0], [1, numbers, 0]]).masses or ()
        assert between == each


def test_bins_and_learned_values_of_a_binned_tree() -> None:
    # codes as the service makes them: "?" is code 2 of the colour, the learned value 3; three bins, "?" is 3
    attributes = (Nominal("colour", ("red", "blue")), Numeric("size", edges=(1.0, 2.0)))
    edges = ((), (1.0, 2.0))
    values = np.array([list(pair) for pair in product([0.0, 1.0, 2.0, np.nan], [0.5, 1.5, 2.5, np.nan])] * 2)
    codes = Encoder(attributes, edges).codes(values)
    classes = (codes[:, 0] * 4 + codes[:, 1]) % 3
    tree = induce(codes, [4, 4], np.eye(3)[classes], alpha=1.0).tree
    model = TreeModel(attributes, 3, FlatTree.of(tree), edges)
    assert model.predict(values).klass.tolist() == classes.tolist()
    assert (model.predict(values).theta.max(axis=1) == 1).all()
    certain = {(c, s): model.predict([[c, s]]).theta[0] for c in (0.0, 1.0, 2.0) for s in (0.5, 1.5, 2.5)}
    said = model.predict_rows(
        [
            [0.0, Between(0.9, 1.0)],
            [2.0, Between(0.2, 1.99)],
            [frozenset({1.0, 2.0}), 2.5],
            [0.0, Between(1.0, 9.0)],
        ]
    )
    expected = [
        certain[0.0, 0.5] + certain[0.0, 1.5],
        certain[2.0, 0.5] + certain[2.0, 1.5],
        certain[1.0, 2.5] + certain[2.0, 2.5],
        certain[0.0, 1.5] + certain[0.0, 2.5],
    ]
    np.testing.assert_allclose(said.theta, np.array(expected) / 2, atol=1e-12)


def test_each_row_ends_where_its_values_lead() -> None:
    def leaf(klass: int) -> Node:
        return Node(attribute=None, klass=klass, count=1, **BOUNDS)

    above = Node(attribute=1, klass=1, count=2, children={0: leaf(1), 1: leaf(0)}, **BOUNDS)
    root = Node(attribute=0, klass=0, count=3, children={0: leaf(0), 1: above}, threshold=2.5, **BOUNDS)
    attributes = (Numeric("x"), Nominal("colour", ("red", "green", "blue")))
    values = np.array([[2.0, 0], [2.5, 0], [9.0, 1], [9.0, 2], [9.0, np.nan], [np.nan, 0], [1.0, np.nan]])
    model = TreeModel.of(root, attributes)
    # pre-order: root, low, above, red, green; of several ends the last node on the way to all of them
    assert np.asarray(model.predict(values).nodes).tolist() == [1, 3, 4, 2, 2, 0, 1]
    assert len(model.predict(values[:0])) == 0


BOUNDS = {"theta": (0.5, 0.5), "belief": (0.0, 0.0), "plausibility": (1.0, 1.0)}


def test_the_set_of_classes_that_none_dominates() -> None:
    def classes(belief: tuple[float, ...], plausibility: tuple[float, ...]) -> list[int]:
        said = Predictions(
            np.zeros(1, dtype=np.int64),
            np.array([plausibility]),
            np.array([belief]),
            np.array([plausibility]),
        )
        return np.flatnonzero(said.classes[0]).tolist()

    assert classes((0.5, 0.1, 0.0), (0.8, 0.6, 0.4)) == [0, 1]
    assert classes((0.5, 0.0, 0.0), (1.0, 0.5, 0.5)) == [0, 1, 2]  # a tie dominates nothing
    assert classes((0.7, 0.3), (0.7, 0.3)) == [0]
    assert classes((0.0, 0.0), (1.0, 1.0)) == [0, 1]


def test_unknown_values_average_the_branches_by_weight() -> None:
    tree = id3(table(0))
    said = TreeModel.of(tree, ATTRIBUTES).predict([[NAN] * 3])
    assert said.theta[0] == pytest.approx(tree.theta, abs=1e-12)  # all leaves by weight: the root
    assert said.masses is None


def test_an_unknown_value_takes_the_branch_of_missing_ones_where_there_is_one() -> None:
    data = Table.of_classes([[0], [1], [NAN]], ATTRIBUTES[:1], [0, 1, 2], 3)
    said = TreeModel.of(id3(data), ATTRIBUTES[:1]).predict_rows([[None], [frozenset({0, 1, 2})]])
    assert said.theta.tolist() == [[0, 0, 1], [0.5, 0.5, 0]]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ((0, 1.0), "rows[0]"),
        ((-1, 1.0, 0), "rows[0].a"),
        ((0.5, 1.0, 0), "rows[0].a"),
        ((frozenset(), 1.0, 0), "rows[0].a"),
        ((frozenset({0, 1001}), 1.0, 0), "rows[0].a"),
        ((Between(0, 1), 1.0, 0), "rows[0].a"),
        ((0, "many", 0), "rows[0].x"),
        ((0, frozenset({NAN}), 0), "rows[0].x"),
        ((0, 10**400, 0), "rows[0].x"),
        ((0, Between(0, 10**400), 0), "rows[0].x"),
        ((10**400, 1.0, 0), "rows[0].a"),
    ],
)
def test_impossible_values_are_refused_by_name(row: tuple[Value, ...], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        TreeModel.of(id3(table(0)), ATTRIBUTES).predict_rows([row])
    assert caught.value.field == field


def test_values_are_rows_of_numbers() -> None:
    model = TreeModel.of(id3(table(0)), ATTRIBUTES)
    for values in ([1.0], [[1.0]], [["red", 1.0, 0]]):
        with pytest.raises(InvalidInput, match="values"):
            model.predict(values)


def test_ends_of_an_interval_are_in_order() -> None:
    with pytest.raises(InvalidInput, match="rising"):
        Between(2, 1)
    with pytest.raises(InvalidInput, match="rising"):
        Between(NAN, 1)
