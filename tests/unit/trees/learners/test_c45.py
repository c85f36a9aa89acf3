import numpy as np
import pytest
from support.growing import averaging, c45, id3

from quercus.belief.errors import InvalidInput
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Stop

NAN = float("nan")
SIZE = Numeric("size")
COLOUR = Nominal("colour", ("red", "blue"))


@pytest.mark.parametrize("learner", [id3, c45])
def test_labels_that_name_no_class_are_refused(learner):
    table = Table.of_contours([[0], [1]], [COLOUR], [[1, 0], [1, 1]])
    with pytest.raises(InvalidInput, match=r"labels\[1\].*precise rows"):
        learner(table)
    assert learner(table.take(table.precise)).klass == 0


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({"min_instances": 0}, "min_instances"),
        ({"max_depth": -1}, "max_depth"),
        ({"min_branch": 0}, "min_branch"),
        ({"confidence": 0}, "confidence"),
        ({"max_cuts": 0}, "max_cuts"),
    ],
)
def test_impossible_parameters_are_refused_by_name(parameters, field):
    table = Table.of_classes([[0.0], [1.0], [2.0], [3.0]], [SIZE], [0, 1, 0, 1], 2)
    with pytest.raises(InvalidInput) as caught:
        c45(table, **parameters)
    assert caught.value.field == field


@pytest.mark.parametrize("column", [[NAN] * 4, [1.0] * 4, [1.0, NAN, 1.0, NAN]])
@pytest.mark.parametrize("attribute", [SIZE, COLOUR])
def test_an_attribute_with_no_two_known_values_is_no_test(attribute, column):
    tree = c45(Table.of_classes(np.reshape(column, (-1, 1)), [attribute], [0, 1, 0, 1], 2), min_branch=1)
    assert tree.is_leaf
    assert tree.stop is Stop.NO_ATTRIBUTE


def test_two_branches_must_hold_enough():
    table = Table.of_classes([[0.0], [1.0], [2.0], [3.0], [4.0]], [SIZE], [0, 1, 1, 1, 1], 2)
    assert c45(table, min_branch=1, min_side=0, confidence=None).threshold == 0.5
    assert c45(table, min_branch=2, min_side=0, threshold_cost=False, confidence=None).threshold == 1.5
    assert c45(table, min_branch=3, confidence=None).is_leaf


def test_pruning_makes_trees_of_noise_small():
    rng = np.random.default_rng(0)
    table = Table.of_classes(
        rng.normal(size=(200, 3)), [Numeric(name) for name in "xyz"], rng.integers(0, 2, 200), 2
    )
    grown = c45(table, threshold_cost=False, confidence=None)
    assert sum(1 for _ in c45(table, threshold_cost=False).preorder()) < sum(1 for _ in grown.preorder())


@pytest.mark.parametrize("learner", [averaging, id3, c45])
def test_numbers_are_cut_as_often_as_it_takes(learner):
    values = np.linspace(0, 1, 60, endpoint=False)
    classes = (values * 4).astype(int) % 2  # four stripes
    tree = learner(Table.of_classes(values[:, np.newaxis], [SIZE], classes, 2))
    assert TreeModel.of(tree, [SIZE]).predict(values[:, np.newaxis]).klass.tolist() == classes.tolist()
    assert sum(node.is_leaf for node, _, _ in tree.preorder()) >= 4


@pytest.mark.parametrize("learner", [averaging, id3, c45])
def test_the_order_of_the_rows_does_not_matter(learner):
    rng = np.random.default_rng(2)
    values = np.column_stack([rng.normal(size=60), rng.integers(0, 2, 60)])
    values[rng.random((60, 2)) < 0.1] = NAN
    table = Table.of_classes(values, [SIZE, COLOUR], rng.integers(0, 2, 60), 2)
    one, other = learner(table), learner(table.take(rng.permutation(60)))
    for (mine, *place), (theirs, *there) in zip(one.preorder(), other.preorder(), strict=True):
        assert place == there
        assert (mine.attribute, mine.threshold, mine.count) == (
            theirs.attribute,
            theirs.threshold,
            theirs.count,
        )
        assert mine.theta == pytest.approx(theirs.theta, abs=1e-9)


@pytest.mark.parametrize(
    "learner", [*(pytest.param(each, marks=pytest.mark.slow) for each in (averaging, id3)), c45]
)
def test_a_tree_may_be_deeper_than_python_can_recurse(learner):
    count = 1200
    values = np.arange(count, dtype=float)[:, np.newaxis]
    options = (
        {"min_branch": 1, "min_side": 0, "threshold_cost": False, "confidence": None}
        if learner is c45
        else {}
    )
    tree = learner(Table.of_classes(values, [SIZE], np.arange(count) % 2, 2), **options)
    assert sum(node.is_leaf for node, _, _ in tree.preorder()) == count
