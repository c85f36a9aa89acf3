"""C4.5 on the golf table of Quinlan 1993, with the numbers that his book works out."""

from math import log2

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_classification
from support.growing import c45, special_c45

from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.growth.batch import SplitChoice
from quercus.trees.learners.c45 import RatioRules
from quercus.trees.learners.gain_rules import precise_shares
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.splits import root_node
from quercus.trees.learners.table import Table

OUTLOOK, TEMPERATURE, HUMIDITY, WINDY = range(4)
SUNNY, OVERCAST, RAIN = range(3)
NO, YES = 0, 1
PLAY, STAY = 0, 1
ATTRIBUTES = (
    Nominal("outlook", ("sunny", "overcast", "rain")),
    Numeric("temperature"),
    Numeric("humidity"),
    Nominal("windy", ("no", "yes")),
)
_ROWS = """
sunny 75 70 yes play | sunny 80 90 yes stay | sunny 85 85 no stay | sunny 72 95 no stay | sunny 69 70 no play
overcast 72 90 yes play | overcast 83 78 no play | overcast 64 65 yes play | overcast 81 75 no play
rain 71 80 yes stay | rain 65 70 yes stay | rain 75 80 no play | rain 68 80 no play | rain 70 96 no play
"""
_WORDS = [row.split() for row in _ROWS.replace("\n", "|").split("|") if row.strip()]
VALUES = [
    [("sunny", "overcast", "rain").index(o), float(t), float(h), ("no", "yes").index(w)]
    for o, t, h, w, _ in _WORDS
]
CLASSES = [("play", "stay").index(words[4]) for words in _WORDS]
FIRST_OVERCAST = 5


def golf(*, lost: bool = False) -> Table:
    """The table; or without the outlook of its sixth row, as in the book's chapter on missing values."""
    values = [list(row) for row in VALUES]
    if lost:
        values[FIRST_OVERCAST][OUTLOOK] = float("nan")
    return Table.of_classes(values, ATTRIBUTES, CLASSES, 2)


def rules(table: Table, **settings: object) -> RatioRules:
    """Rules without what C4.5's program adds to the book."""
    plain = {"min_branch": 1, "min_side": 0.0, "threshold_cost": False, "average_gain": False}
    return RatioRules(table, precise_shares(table), special_c45(**plain | settings))


def test_gain_ratios_of_the_nominal_attributes():
    choice = rules(golf()).choose_split(root_node(golf()))
    assert choice is not None
    # book: gain .246 bits, split information 1.577 bits
    assert choice.intervals[OUTLOOK][0] == pytest.approx(0.246 / 1.577, abs=1e-3)
    assert choice.intervals[WINDY][0] == pytest.approx(0.048 / 0.985, abs=1e-3)


def test_the_tree():
    tree = c45(golf(), confidence=None)
    assert tree.attribute == OUTLOOK
    sunny, overcast, rain = (tree.children[code] for code in (SUNNY, OVERCAST, RAIN))
    assert (sunny.attribute, sunny.threshold) == (HUMIDITY, 77.5)  # between 70 and 85; the book prints 75
    assert [(child.klass, child.count) for child in sunny.children.values()] == [(PLAY, 2), (STAY, 3)]
    assert (overcast.klass, overcast.count, overcast.attribute) == (PLAY, 4, None)
    assert rain.attribute == WINDY
    assert [(child.klass, child.count) for child in rain.children.values()] == [(PLAY, 3), (STAY, 2)]


def test_a_missing_outlook_lowers_gain_and_raises_split_information():
    table = golf(lost=True)
    choice = rules(table).choose_split(root_node(table))
    assert choice is not None
    # book: gain 13/14 (.961 - .747) = .199 bits; split information over sunny, overcast, rain, ?: 1.809 bits
    assert choice.intervals[OUTLOOK][0] == pytest.approx(0.199 / 1.809, abs=5e-4)


def test_a_row_without_outlook_goes_down_every_branch_in_parts():
    table = golf(lost=True)
    below = rules(table).branches(root_node(table), SplitChoice(OUTLOOK, {}))
    parts = {b.path[-1][1]: dict(zip(b.rows.tolist(), b.weights.tolist(), strict=True)) for b in below}
    shares = {SUNNY: 5 / 13, OVERCAST: 3 / 13, RAIN: 5 / 13}
    assert {code: part[FIRST_OVERCAST] for code, part in parts.items()} == pytest.approx(shares)
    assert all(list(part) == sorted(part) for part in parts.values())
    assert sum(sum(part.values()) for part in parts.values()) == pytest.approx(14)


def test_the_tree_with_a_missing_outlook():
    tree = c45(golf(lost=True), confidence=None)
    sunny = tree.children[SUNNY]
    assert sunny.attribute == HUMIDITY
    low, high = sunny.children.values()
    # book: humidity <= 75: play (2.0); humidity > 75: stay (3.4/0.4)
    assert (low.klass, low.size) == (PLAY, 2)
    assert (high.klass, high.size) == (STAY, pytest.approx(3.385, abs=5e-4))
    assert high.size * high.theta[PLAY] == pytest.approx(0.385, abs=5e-4)


def test_the_books_case_with_unknown_humidity():
    # sunny, windy no, humidity unknown: 2 / 5.4 of low humidity, 3.4 / 5.4 of high, where 12 % play
    tree = c45(golf(lost=True), confidence=None)
    found = TreeModel.of(tree, ATTRIBUTES).predict_rows([(SUNNY, 70.0, None, NO)])
    assert found.theta[0] == pytest.approx((0.44, 0.56), abs=5e-3)
    assert found.klass.tolist() == [STAY]


def test_naming_a_threshold_costs_bits():
    free, dear = (rules(golf(), threshold_cost=cost, average_gain=True) for cost in (False, True))
    for k, thresholds in ((TEMPERATURE, 11), (HUMIDITY, 8)):
        before = free.choose_split(root_node(golf())).intervals[k][0]
        after = dear.choose_split(root_node(golf())).intervals[k][0]
        below = [row[k] for row in VALUES]
        assert len(set(below)) == thresholds + 1
        spreads = {
            -sum(f * log2(f) for f in (p / 14, 1 - p / 14)) for p in range(1, 14)
        }  # of all splits in two; one of them is the attribute's
        assert any((before - after) * spread == pytest.approx(log2(thresholds) / 14) for spread in spreads)


def made() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_classification(400, 8, n_informative=4, n_classes=3, flip_y=0.25, random_state=0)
    return X.round(1), y


@pytest.mark.parametrize(
    ("data", "raised", "cut"),
    [
        (lambda: load_iris(return_X_y=True), (5, 9, 147), (5, 9, 147)),
        (lambda: load_wine(return_X_y=True), (5, 9, 176), (5, 9, 176)),
        (lambda: load_breast_cancer(return_X_y=True), (13, 25, 564), (13, 25, 564)),
        (made, (52, 103, 358), (53, 105, 359)),
    ],
    ids=["iris", "wine", "cancer", "made"],
)
def test_trees_are_as_large_as_those_of_j48(data, raised, cut):
    """Leaves, nodes, and rows that are told right: as Weka 3's J48 prints them, by default and without raising."""
    X, y = data()
    table = Table.of_classes(X, [Numeric(f"x{k}") for k in range(X.shape[1])], y, int(y.max()) + 1)
    for raising, wanted in ((True, raised), (False, cut)):
        tree = c45(table, raising=raising)
        nodes = [node for node, _, _ in tree.preorder()]
        right = int((TreeModel.of(tree, table.attributes).predict(X).klass == y).sum())
        assert (sum(node.is_leaf for node in nodes), len(nodes), right) == wanted
