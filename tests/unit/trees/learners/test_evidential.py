import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.growing import abc45, e2m, grow_forest

from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning
from quercus.specification.parameters import CANDIDATE_CUTS
from quercus.trees import Abc45, E2m
from quercus.trees.growth.batch import OpenNode
from quercus.trees.learners.evidential import TableRules
from quercus.trees.learners.learner import fit
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Stop

X = Numeric("x")
NAN = float("nan")


def two_classes(column: list[float], classes: list[int]) -> Table:
    return Table.of_classes(np.array(column)[:, np.newaxis], [X], classes, 2)


def test_the_worked_threshold():
    tree = abc45(two_classes([1, 2, 3, 4, 5, 6], [0, 0, 0, 0, 1, 1]), alpha=1.0)
    assert (tree.attribute, tree.threshold, tree.stop) == (0, 4.5, None)
    # gain .918296 bits and split information the same: a gain ratio of 1
    assert tree.intervals == {0: pytest.approx((1.0, 1.0))}
    assert [child.stop for child in tree.children.values()] == [Stop.PURE, Stop.PURE]


def test_of_tied_attributes_the_first_and_of_cuts_as_near_to_the_middle_the_lower():
    table = Table.of_classes([[i, -i] for i in range(4)], [X, Numeric("y")], [0, 1, 1, 0], 2)
    tree = e2m(table)
    assert (tree.attribute, tree.threshold) == (0, 0.5)


TOLD_AT_THE_ENDS = [[1, 0]] * 4 + [[1, 1]] * 9 + [[0, 1]] * 2


@pytest.mark.parametrize("alpha", [0.8, 1.0])
def test_among_silent_rows_the_cut_stands_in_the_middle(alpha):
    """Every cut between the told groups leaves both sides pure; the most lopsided one has the largest gain ratio."""
    table = Table.of_contours([[i] for i in range(15)], [X], TOLD_AT_THE_ENDS)
    tree = abc45(table, alpha=alpha)
    assert tree.threshold == 7.5  # 8 rows below: halfway between 4 and 13 is 8.5
    assert [child.count for child in tree.children.values()] == [8, 7]
    assert [child.klass for child in tree.children.values()] == [0, 1]


def test_the_middle_is_that_of_the_rows_and_not_of_the_cuts_or_values():
    column = [
        0,
        1,
        2,
        2,
        2,
        2,
        2,
        2,
        3,
        100,
        101,
    ]  # silent from 1 to 100; below the tied cuts are 1, 2, 8, 9 and 10 rows
    contours = [[1, 0]] + [[1, 1]] * 9 + [[0, 1]]
    tree = e2m(Table.of_contours([[v] for v in column], [X], contours))
    assert tree.threshold == 2.5  # halfway between 1 and 10 is 5.5
    assert e2m(Table.of_contours([[-v] for v in column], [X], contours)).threshold == -2.5


def test_the_cut_of_a_number_has_the_largest_gain_and_not_the_largest_ratio():
    klass = np.array([0, 0, 1, 0, 1, 1, 1, 1])
    rows, n = np.arange(klass.size), klass.size
    tree = e2m(two_classes(rows.tolist(), klass.tolist()))

    def bits(*parts):
        share = np.array([part for part in parts if part]) / sum(parts)
        return float(-(share * np.log2(share)).sum())

    def measures(cut):
        sides = [klass[rows < cut], klass[rows >= cut]]
        inside = sum(len(s) / n * bits(int(s.sum()), len(s) - int(s.sum())) for s in sides)
        gain = bits(int(klass.sum()), n - int(klass.sum())) - inside
        return gain, gain / bits(*map(len, sides))

    cuts = rows[1:] - 0.5
    by_gain, by_ratio = (max(cuts, key=lambda cut: measures(cut)[which]) for which in (0, 1))
    assert by_gain != by_ratio
    assert tree.threshold == by_gain
    assert tree.intervals[0] == pytest.approx((measures(by_gain)[1],) * 2)


def test_two_cuts_of_one_attribute_are_no_rivals():
    contours = [[1, 0], [1, 0], [1, 1], [1, 1], [0, 1], [0, 1]]
    tree = abc45(Table.of_contours([[i] for i in range(6)], [X], contours), alpha=0.9)
    assert not tree.undecided
    assert list(tree.intervals) == [0]
    tree = abc45(Table.of_contours([[i, i] for i in range(6)], [X, Numeric("y")], contours), alpha=0.9)
    assert tree.undecided
    assert list(tree.intervals) == [0, 1]


def test_at_most_so_many_cuts_are_looked_at_and_at_quantiles():
    column = np.sort(np.random.default_rng(1).normal(size=500))
    table = two_classes(column.tolist(), [0, 1] * 250)
    place = OpenNode((), np.arange(500), (0,))
    for most in (1, 7, CANDIDATE_CUTS.default):
        tests = TableRules.of(table, Abc45(1.0, max_cuts=most)).node_tests(place)
        assert tests is not None
        assert tests.threshold.size == most
        passed = (column < tests.threshold[:, np.newaxis]).sum(axis=1)
        np.testing.assert_allclose(passed, 500 * np.arange(1, most + 1) / (most + 1), atol=0.51)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=30), st.integers(1, 9))
def test_the_cells_of_a_cut_are_the_rows_on_either_side(column, most):
    classes = [value % 3 for value in column]
    table = Table.of_classes(np.array(column, float)[:, np.newaxis], [X], classes, 3)
    rules = TableRules.of(table, Abc45(1.0, max_cuts=most))
    sample = rules.sample
    tests = rules.node_tests(OpenNode((), np.arange(len(column)), (0,)))
    if tests is None:
        assert len(set(column)) == 1
        return
    for t, cut in enumerate(tests.threshold):
        below, above = tests.first[t], tests.first[t] + 1
        for cell, side in ((below, np.array(column) < cut), (above, np.array(column) >= cut)):
            here = slice(tests.cells.start[cell], tests.cells.start[cell + 1])
            counts = np.bincount(tests.cells.ids[here], tests.cells.counts[here], sample.table.size)
            assert counts.tolist() == sample.counts(np.flatnonzero(side)).tolist()


def test_missing_values_are_a_branch_of_their_own():
    tree = e2m(two_classes([5.0, 5.0, NAN, NAN], [0, 0, 1, 1]))
    assert (tree.threshold, {code: child.klass for code, child in tree.children.items()}) == (
        5.0,
        {1: 0, 2: 1},
    )
    tree = e2m(two_classes([5.0, 5.0, NAN, NAN], [0, 1, 0, 1]))
    assert tree.stop is Stop.NO_GAIN
    assert e2m(two_classes([NAN, NAN], [0, 1])).stop is Stop.NO_ATTRIBUTE


def test_a_number_is_tested_again_below_and_a_nominal_value_is_not():
    rows = [[0, 1.0], [0, 2.0], [0, 3.0], [1, 1.0], [1, 2.0], [1, 3.0]]
    table = Table.of_classes(rows, [Nominal("c", ("a", "b")), X], [0, 1, 0, 0, 1, 0], 2)
    tree = e2m(table)
    tested = [node.attribute for node, _, _ in tree.preorder()]
    assert tested.count(1) > 1
    for row, klass in zip(rows, [0, 1, 0, 0, 1, 0], strict=True):
        assert TreeModel.of(tree, table.attributes).predict_rows([row]).klass.tolist() == [klass]


def test_stopping():
    table = two_classes([1, 2, 3, 4], [0, 1, 0, 1])
    assert abc45(table, max_depth=0).stop is Stop.MAX_DEPTH
    assert abc45(table, min_instances=5).stop is Stop.FEW_INSTANCES
    vacuous = Table.of_contours([[1], [2]], [X], [[1, 1], [1, 1]])
    assert abc45(vacuous, alpha=1.0).stop is None  # nothing is known, so all may be gained


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"alpha": 1.5}, "alpha: is 1.5, must lie in [0, 1]"),
        ({"min_instances": 0}, "min_instances: is 0, must be a whole number in [1, 1000000]"),
        ({"max_depth": -1}, "max_depth: is -1, must be a whole number in [0, 1000000]"),
        ({"max_cuts": 0}, "max_cuts: is 0, must be a whole number in [1, 1000000]"),
        ({"cuts": ()}, "cuts: are 0, must be 1, one per attribute"),
        ({"cuts": ((2.0, 1.0),)}, "cuts[0]: are (2.0, 1.0), must be finite and in ascending order"),
        ({"cuts": ((NAN,),)}, "cuts[0]: are (nan,), must be finite and in ascending order"),
    ],
)
def test_bad_arguments_are_named(arguments, said):
    with pytest.raises(InvalidInput) as caught:
        abc45(two_classes([1, 2], [0, 1]), **arguments)
    assert str(caught.value) == said


def test_a_forest_of_them():
    rng = np.random.default_rng(4)
    classes = np.repeat([0, 1, 2], 30)
    values = np.column_stack([classes + rng.normal(0, 0.4, 90), rng.normal(size=90)])
    table = Table.of_classes(values, [X, Numeric("y")], classes, 3)
    learner = Abc45(alpha=0.9, max_depth=4, pruning=Pruning("likelihood"))
    forest = grow_forest(table, learner, 7, trees=8)
    assert (forest.predict(values).klass == classes).mean() > 0.85
    again = grow_forest(table, learner, 7, trees=8)
    assert forest.trees == again.trees


def test_informed_only_is_the_tree_of_the_rows_whose_label_says_something():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 2))
    contours = rng.random((60, 3))
    contours /= contours.max(axis=1, keepdims=True)
    contours[rng.random(60) < 0.7] = 1.0
    attributes = [Numeric("x"), Numeric("y")]
    told = contours.min(axis=1) < 1.0
    part = fit(E2m(), Table.of_contours(values[told], attributes, contours[told]))
    whole = Table.of_contours(values, attributes, contours)
    dropped = fit(E2m(informed_only=True), whole)
    assert dropped.predict(values).theta.tolist() == part.predict(values).theta.tolist()
    assert dropped.predict(values).theta.tolist() != fit(E2m(), whole).predict(values).theta.tolist()
    silent = Table.of_contours(values, attributes, np.ones((60, 3)))
    assert fit(E2m(informed_only=True), silent).predict(values).classes.all()
    with pytest.raises(InvalidInput, match="informed_only: is 1, must be True or False"):
        E2m(informed_only=1)  # type: ignore[arg-type]
