"""ID3 on the textbooks' tables (theory §7)."""

from math import log2

import numpy as np
import pytest
from golden.trees.textbook import (
    FRI_SAT,
    HUNGRY,
    LENSES,
    PATRONS,
    RESTAURANT,
    TYPE,
    lenses,
    restaurant,
    twelve,
    waits,
)
from support.growing import id3

from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node

TABLES = {
    "lenses": lenses(),
    "twelve": twelve(),
    **{f"restaurant {n}": restaurant(n, n) for n in (20, 100, 400)},
}


def bits(parts: list[int]) -> float:
    return -sum(p / sum(parts) * log2(p / sum(parts)) for p in parts if p)


def shape(node: Node) -> object:
    """Attribute and children of a node, the class of a leaf."""
    if node.is_leaf:
        return node.klass
    return (node.attribute, {code: shape(child) for code, child in node.children.items()})


def gain(table: Table, k: int) -> float:
    """Information gain counted by hand, with nothing of the package."""
    rows = [(int(v), int(c)) for v, c in zip(table.values[:, k], table.contours.argmax(axis=1), strict=True)]
    classes = range(table.size)
    remainder = sum(
        sum(v == value for v, _ in rows) / len(rows) * bits([rows.count((value, c)) for c in classes])
        for value in {v for v, _ in rows}
    )
    return bits([sum(c == klass for _, c in rows) for klass in classes]) - remainder


def test_contact_lenses():
    tree = id3(lenses())
    found = {LENSES[k].name: round(low, 4) for k, (low, _) in tree.intervals.items()}
    assert found == {"age": 0.0394, "prescription": 0.0395, "astigmatism": 0.377, "tears": 0.5488}
    age, prescription, astigmatism, tears = range(4)
    none, soft, hard = range(3)
    assert shape(tree) == (
        tears,
        {
            0: none,
            1: (
                astigmatism,
                {
                    0: (age, {0: soft, 1: soft, 2: (prescription, {0: none, 1: soft})}),
                    1: (prescription, {0: hard, 1: (age, {0: hard, 1: none, 2: none})}),
                },
            ),
        },
    )


def test_the_twelve_examples_give_the_textbook_tree():
    tree = id3(twelve())
    assert tree.intervals[PATRONS] == pytest.approx((0.541, 0.541), abs=5e-4)
    assert tree.intervals[TYPE] == pytest.approx((0, 0), abs=1e-12)
    no, yes = 0, 1
    thai = (FRI_SAT, {0: no, 1: yes})
    full = (HUNGRY, {0: no, 1: (TYPE, {1: no, 2: thai, 3: yes})})
    assert shape(tree) == (PATRONS, {0: no, 1: yes, 2: full})


def test_a_value_that_was_never_seen_is_predicted_by_the_node_above():
    tree = id3(twelve())
    row = [0] * 10
    row[PATRONS], row[HUNGRY], row[TYPE] = 2, 1, 0  # no French restaurant there
    assert TreeModel.of(tree, RESTAURANT).predict_rows([row]).theta.tolist() == [[0.5, 0.5]]


def test_the_twelve_examples_follow_the_rule():
    table = twelve()
    assert [waits(row) for row in table.values] == table.contours[:, 1].astype(bool).tolist()


@pytest.mark.parametrize("name", TABLES)
def test_trees_fit_their_training_data(name):
    table = TABLES[name]
    tree = id3(table)
    said = TreeModel.of(tree, table.attributes).predict(table.values)
    np.testing.assert_array_equal(said.theta, table.contours)


@pytest.mark.parametrize("name", TABLES)
def test_gains_are_those_of_an_independent_computation(name):
    table = TABLES[name]
    for k, (low, high) in id3(table).intervals.items():
        assert low == high == pytest.approx(gain(table, k), abs=1e-12)


def test_many_examples_give_back_the_rule():
    tree, fresh = id3(restaurant(3000, 1)), restaurant(500, 2)
    predicted = TreeModel.of(tree, RESTAURANT).predict(fresh.values).klass
    assert (predicted == fresh.contours.argmax(axis=1)).mean() > 0.97
