from functools import reduce
from itertools import product

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.rules import disjunctive
from quercus.trees.learners.averaging import averaging
from quercus.trees.learners.id3 import id3
from quercus.trees.learners.predicting import Between, Prediction, predict, probabilities, reach
from quercus.trees.learners.table import Table
from quercus.trees.specification import Nominal, Numeric

ATTRIBUTES = (Nominal("a", ("p", "q", "r")), Numeric("x"), Nominal("b", ("u", "v")))
NAN = float("nan")


def table(seed, missing=0.0, rows=30):
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, 3, rows), rng.integers(0, 8, rows), rng.integers(0, 2, rows)])
    values = values.astype(float)
    values[rng.random(values.shape) < missing] = np.nan
    return Table.of_classes(values, ATTRIBUTES, rng.integers(0, 3, rows), 3)


def uncertain(seed):
    certain = table(seed)
    masses = [
        MassFunction.of(3, {int(m): 0.7, 7: 0.3})
        for m in np.random.default_rng(seed).integers(1, 7, len(certain))
    ]
    return Table.of_masses(certain.values, ATTRIBUTES, masses)


@pytest.mark.parametrize("seed", range(10))
def test_a_set_of_values_reaches_the_leaves_of_its_values(seed):
    tree = averaging(uncertain(seed))
    sets = (frozenset({0, 2}), frozenset({1.0, 4.0, 6.0}), frozenset({0, 1}))
    each = {id(end.node): end.node for row in product(*sets) for end in reach(tree, row, ATTRIBUTES)}
    reached = [end.node for end in reach(tree, sets, ATTRIBUTES)]
    assert {id(node) for node in reached} == set(each)
    assert len(reached) == len(each)
    found = predict(tree, sets, ATTRIBUTES)
    expected = reduce(disjunctive, [node.mass for node in each.values()])
    assert dict(found.mass.focal) == pytest.approx(dict(expected.focal), abs=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_a_number_between_two_reaches_the_leaves_of_all_between_them(seed):
    tree = id3(table(seed))
    for low, high in ((0.0, 7.0), (2.0, 4.0), (3.0, 3.0)):
        between = {id(end.node) for end in reach(tree, (1, Between(low, high), 0), ATTRIBUTES)}
        steps = np.linspace(low, high, 57)
        assert between == {id(end.node) for x in steps for end in reach(tree, (1, float(x), 0), ATTRIBUTES)}


@pytest.mark.parametrize("seed", range(10))
def test_unknown_values_average_the_branches_by_weight(seed):
    tree = id3(table(seed))
    found = predict(tree, (None, NAN, None), ATTRIBUTES)
    assert found.theta == pytest.approx(tree.theta, abs=1e-12)  # all leaves by weight: the root
    assert found.mass is None
    shares = [end.share for end in reach(tree, (None, None, None), ATTRIBUTES)]
    assert sum(shares) == pytest.approx(1, abs=1e-12)


def test_the_set_of_classes_that_none_dominates():
    def classes(belief, plausibility):
        return Prediction(0, plausibility, belief, plausibility, None).classes

    assert classes((0.5, 0.1, 0.0), (0.8, 0.6, 0.4)) == (0, 1)
    assert classes((0.5, 0.0, 0.0), (1.0, 0.5, 0.5)) == (0, 1, 2)  # a tie dominates nothing
    assert classes((0.7, 0.3), (0.7, 0.3)) == (0,)
    assert classes((0.0, 0.0), (1.0, 1.0)) == (0, 1)


@pytest.mark.parametrize("learner", [id3, averaging])
@pytest.mark.parametrize("seed", range(10))
def test_many_rows_are_predicted_as_one_by_one(seed, learner):
    data = table(seed, missing=0.1) if learner is id3 else uncertain(seed)
    tree = learner(data)
    rows = table(seed + 100, missing=0.3).values
    each = [predict(tree, row.tolist(), ATTRIBUTES).theta for row in rows]
    np.testing.assert_allclose(probabilities(tree, rows, ATTRIBUTES), each, atol=1e-12)


def test_an_unknown_value_takes_the_branch_of_missing_ones_where_there_is_one():
    data = Table.of_classes([[0], [1], [NAN]], ATTRIBUTES[:1], [0, 1, 2], 3)
    tree = id3(data)
    assert predict(tree, (None,), ATTRIBUTES[:1]).klass == 2
    assert predict(tree, (frozenset({0, 1, 2}),), ATTRIBUTES[:1]).theta == (0.5, 0.5, 0)
    assert probabilities(tree, [[NAN]], ATTRIBUTES[:1]).tolist() == [[0, 0, 1]]


@pytest.mark.parametrize(
    ("row", "field"),
    [
        ((0, 1.0), "row"),
        ((3, 1.0, 0), "a"),
        ((0.5, 1.0, 0), "a"),
        ((frozenset(), 1.0, 0), "a"),
        ((frozenset({0, 7}), 1.0, 0), "a"),
        ((Between(0, 1), 1.0, 0), "a"),
        ((0, "many", 0), "x"),
        ((0, frozenset({NAN}), 0), "x"),
    ],
)
def test_impossible_values_are_refused_by_name(row, field):
    with pytest.raises(InvalidInput) as caught:
        predict(id3(table(0)), row, ATTRIBUTES)
    assert caught.value.field == field


def test_ends_of_an_interval_are_in_order():
    with pytest.raises(InvalidInput, match="rising"):
        Between(2, 1)
    with pytest.raises(InvalidInput, match="rising"):
        Between(NAN, 1)
