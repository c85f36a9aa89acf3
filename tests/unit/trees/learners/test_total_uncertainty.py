"""Belief decision trees by total uncertainty (theory §5)."""

import math
import pickle

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_iris
from support.growing import fit_total_uncertainty, total_uncertainty_tree

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.measures import discord, nonspecificity, pignistic
from quercus.belief.rules import dempster, disjunctive
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import TotalUncertainty
from quercus.trees.learners.one_against_rest import extend_vacuously
from quercus.trees.learners.predicting import LearnedModel, mean_mass
from quercus.trees.learners.table import Table
from quercus.trees.learners.total_uncertainty import (
    choose_lambda,
    node_masses,
    total_uncertainty,
    two_class_shares,
)
from quercus.trees.tree.node import Node, Stop
from quercus.trees.tree.splits import midpoints

X, Y = Numeric("x"), Numeric("y")
COLOUR = Nominal("colour", ("red", "green", "blue"))


def masses_of(model: LearnedModel, values: object) -> list[MassFunction]:
    said = model.predict(values).masses  # type: ignore[arg-type]
    assert said is not None
    return list(said)


def random_masses(seed: int, n: int, size: int = 2) -> list[MassFunction]:
    rng = np.random.default_rng(seed)
    sets = [1, 2, 3] if size == 2 else [1, 2, 4, 5, 6, 7]
    return [MassFunction.of(size, zip(sets, rng.dirichlet([0.5] * len(sets)), strict=True)) for _ in range(n)]


def slow_mass(masses: list[MassFunction]) -> MassFunction:
    n = len(masses)
    one = math.fsum(dict(m.focal).get(1, 0.0) for m in masses) / (n + 1)
    two = math.fsum(dict(m.focal).get(2, 0.0) for m in masses) / (n + 1)
    return MassFunction(2, ((1, one), (2, two), (3, 1 - one - two)))


def slow_impurity(masses: list[MassFunction], lam: float) -> float:
    m = slow_mass(masses)
    return (1 - lam) * nonspecificity(m) + lam * discord(m)


@pytest.mark.parametrize("largest", [1e15, 1e17, 1e100])
def test_masses_of_large_weights_are_masses(largest: float) -> None:
    """Rounding of n that is as large as n + 1 made more than 1 of them."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        weights = largest * rng.random(9)
        for klass in (0, 1):
            labels = np.full(9, klass)
            node = total_uncertainty_tree(Table.of_classes([[1.0]] * 9, [X], labels, 2, weights), klass=0)
            assert node.theta[klass] == pytest.approx(1.0)
            assert max(*node.theta, *node.plausibility) <= 1.0
            assert sum(node.theta) == 1.0


def test_precise_labels_give_counts_over_n_plus_one() -> None:
    table = Table.of_classes([[1.0]] * 7, [X], [0, 0, 0, 0, 1, 1, 0], 2)
    node = total_uncertainty_tree(table)
    assert node.mass is not None
    assert dict(node.mass.focal) == pytest.approx({0b01: 5 / 8, 0b10: 2 / 8, 0b11: 1 / 8})
    assert node.theta == pytest.approx((11 / 16, 5 / 16))
    assert node.belief == pytest.approx((5 / 8, 2 / 8))
    assert node.plausibility == pytest.approx((6 / 8, 3 / 8))
    assert (node.klass, node.count, node.stop) == (0, 7, Stop.NO_ATTRIBUTE)


def test_total_uncertainty_is_that_of_the_measures() -> None:
    rng = np.random.default_rng(0)
    for sums in (
        [5.0, 5.0, 0.0],
        [0.0, 0.0, 0.0],
        *([n, *(rng.dirichlet([1, 1, 1])[:2] * n)] for n in (1, 9, 50)),
    ):
        masses = node_masses(np.array(sums))
        m = MassFunction.of(2, zip((1, 2, 3), masses.tolist(), strict=True))
        for lam in (0.0, 0.3, 1.0):
            expected = (1 - lam) * nonspecificity(m) + lam * discord(m)
            assert float(total_uncertainty(masses, lam)) == pytest.approx(expected, abs=1e-12)


def test_more_rows_are_less_uncertain() -> None:
    sums = np.array([[n, n / 2, n / 2] for n in (1.0, 2.0, 10.0, 1000.0)])
    assert (np.diff(total_uncertainty(node_masses(sums), 0.0)) < 0).all()


def slow_best(values: NDArray[np.float64], masses: list[MassFunction], lam: float) -> dict[int, float]:
    """Largest gain of the threshold splits of column 0 and of the split by value of column 1."""

    def gain(codes: list[int]) -> float:
        parts = [[m for m, c in zip(masses, codes, strict=True) if c == code] for code in set(codes)]
        return slow_impurity(masses, lam) - sum(len(p) / len(masses) * slow_impurity(p, lam) for p in parts)

    cuts = [gain([int(v >= cut) for v in values[:, 0]]) for cut in midpoints(values[:, 0])]
    return {0: max(cuts), 1: gain([int(v) for v in values[:, 1]])}


@pytest.mark.parametrize("lam", [0.2, 0.5, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_gains_are_those_of_a_slow_computation(seed: int, lam: float) -> None:
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(6, size=15), rng.integers(3, size=15)]).astype(float)
    masses = random_masses(seed, 15)
    node = total_uncertainty_tree(Table.of_masses(values, [X, COLOUR], masses), lam)
    expected = slow_best(values, masses, lam)
    assert {k: upper for k, (_, upper) in node.intervals.items()} == pytest.approx(expected)
    assert node.is_leaf == (max(expected.values()) <= 1e-9)
    if not node.is_leaf:
        assert node.attribute == max(expected, key=lambda k: expected[k])


def test_a_split_by_threshold_and_one_by_value() -> None:
    values = [[1.0, 0], [2.0, 1], [3.0, 2], [10.0, 0], [11.0, 1], [12.0, 2]]
    table = Table.of_classes(values, [X, COLOUR], [0, 0, 0, 1, 1, 1], 2)
    node = total_uncertainty_tree(table, 0.8)
    assert (node.attribute, node.threshold) == (0, 6.5)
    assert [child.klass for child in node.children.values()] == [0, 1]
    by_colour = Table.of_classes(
        [[0], [0], [0], [1], [1], [1], [2], [2], [2]], [COLOUR], [0] * 3 + [1] * 3 + [0] * 3, 2
    )
    split = total_uncertainty_tree(by_colour, 0.9)
    assert (split.attribute, split.threshold) == (0, None)
    assert {code: child.klass for code, child in split.children.items()} == {0: 0, 1: 1, 2: 0}


def size(node: Node) -> int:
    return sum(1 for _ in node.preorder())


def test_nonspecificity_alone_never_splits_and_less_of_it_makes_larger_trees() -> None:
    iris = load_iris()
    table = Table.of_classes(
        iris.data, [Numeric(str(k)) for k in range(4)], (iris.target == 1).astype(int), 2
    )
    assert total_uncertainty_tree(table, 0.0).stop is Stop.NO_GAIN
    sizes = [size(total_uncertainty_tree(table, lam)) for lam in (0.0, 0.1, 1.0)]
    assert sizes[0] == 1 < sizes[1] < sizes[2]


def test_a_label_coarsened_by_its_masses() -> None:
    masses = [MassFunction(3, ((1, 0.2), (2, 0.1), (6, 0.3), (7, 0.4))), MassFunction.vacuous(3)]
    table = Table.of_masses([[0.0], [1.0]], [X], masses)
    assert two_class_shares(table, 0) == pytest.approx(np.array([[0.2, 0.4], [0, 0]]))
    assert two_class_shares(table, 1) == pytest.approx(np.array([[0.1, 0.2], [0, 0]]))


def test_a_contour_is_taken_as_its_consonant_mass() -> None:
    contours = np.array([[0.5, 0.25, 0.1], [1, 1, 0], [1, 1, 1], [0, 0, 0.4], [0.3, 1, 0.3]])
    table = Table.of_contours([[0.0]] * 5, [X], contours)
    as_masses = Table.of_masses([[0.0]] * 5, [X], table.masses)
    for klass in range(3):
        np.testing.assert_allclose(
            two_class_shares(table, klass), two_class_shares(as_masses, klass), atol=1e-15
        )


def test_three_classes_are_three_trees_combined() -> None:
    iris = load_iris()
    table = Table.of_classes(iris.data, [Numeric(str(k)) for k in range(4)], iris.target, 3)
    conjunctive, averaged = (fit_total_uncertainty(table, combine=c) for c in ("dempster", "mean"))
    assert len(conjunctive.trees) == 3
    for tree, klass in zip(conjunctive.trees, range(3), strict=True):
        assert tree == total_uncertainty_tree(table, klass=klass)
    row = table.values[[70]]
    parts = []
    for klass, tree in enumerate(conjunctive.trees):
        node = tree
        while node.attribute is not None:
            assert node.threshold is not None
            node = node.children[int(row[0, node.attribute] >= node.threshold)]
        assert node.mass is not None
        parts.append(extend_vacuously(node.mass, 3, klass))
    expected = dempster(dempster(parts[0], parts[1]), parts[2])
    assert dict(masses_of(conjunctive, row)[0].focal) == pytest.approx(dict(expected.focal))
    assert masses_of(averaged, row)[0] == mean_mass(parts)
    for model in (conjunctive, averaged):
        assert (model.predict(table.values).klass == iris.target).mean() > 0.95
        betp = pignistic(masses_of(model, row)[0])
        assert model.predict(row).klass[0] == betp.argmax()


def test_two_classes_are_one_tree() -> None:
    table = Table.of_masses([[float(i)] for i in range(8)], [X], random_masses(1, 8))
    model = fit_total_uncertainty(table, 0.9)
    assert model.trees == (total_uncertainty_tree(table, 0.9),)
    assert masses_of(model, [[3.0]])[0].size == 2


def test_a_value_not_seen_in_training_stays_above_and_an_unknown_one_goes_everywhere() -> None:
    table = Table.of_classes([[0], [0], [0], [1], [1], [1]], [COLOUR], [0, 0, 0, 1, 1, 1], 2)
    model = fit_total_uncertainty(table, 0.9)
    red, green = (model.trees[0].children[code].mass for code in (0, 1))
    assert red is not None
    assert green is not None
    masses = masses_of(model, [[2.0], [np.nan], [1.0], [0.0]])
    assert masses == [model.trees[0].mass, disjunctive(red, green), green, red]
    said = model.predict_rows([[frozenset([0, 1])], [1.0]])
    assert said.masses is not None
    assert said.masses[0] == disjunctive(red, green)
    assert said.theta[0] == pytest.approx(pignistic(disjunctive(red, green)).tolist())
    assert said.belief[0].tolist() == [0.0, 0.0]
    assert said.belief[1] == pytest.approx((0, 3 / 4))
    assert said.plausibility[1] == pytest.approx((1 / 4, 1))
    assert said.klass[1] == 1


def test_vacuous_labels_leave_a_vacuous_root() -> None:
    table = Table.of_contours([[1.0, 2.0], [2.0, 1.0], [3.0, 5.0]], [X, Y], np.ones((3, 2)))
    node = total_uncertainty_tree(table, 0.7)
    assert (node.stop, node.mass) == (Stop.NO_GAIN, MassFunction.vacuous(2))


def test_lambda_is_chosen_by_folds_that_the_seed_determines() -> None:
    rng = np.random.default_rng(4)
    noise = rng.normal(size=(60, 3))
    classes = (noise[:, 0] > 0).astype(int)
    flipped = np.where(rng.random(60) < 0.25, 1 - classes, classes)
    table = Table.of_classes(noise, [X, Y, Numeric("z")], flipped, 2)
    chosen = choose_lambda(TotalUncertainty(folds=5, seed=3), table)
    assert chosen == choose_lambda(TotalUncertainty(folds=5, seed=3), table)
    assert choose_lambda(TotalUncertainty(seed=3), table, lambdas=[0.0]) == 0.0
    assert chosen < 1.0  # without nonspecificity the tree learns the noise
    useless = Table.of_contours(noise, [X, Y, Numeric("z")], np.ones((60, 2)))
    assert (
        choose_lambda(TotalUncertainty(), useless, lambdas=[0.9, 0.2, 0.5]) == 0.2
    )  # all err alike: the smallest


def test_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(7)
    values, masses, times = rng.normal(size=(12, 2)), random_masses(7, 12), rng.integers(0, 4, size=12)
    weighted = total_uncertainty_tree(Table.of_masses(values, [X, Y], masses, times), 0.8)
    rows = np.repeat(np.arange(12), times)
    repeated = total_uncertainty_tree(Table.of_masses(values[rows], [X, Y], [masses[r] for r in rows]), 0.8)
    assert [(n.attribute, n.threshold) for n, *_ in weighted.preorder()] == [
        (n.attribute, n.threshold) for n, *_ in repeated.preorder()
    ]
    assert weighted.theta == pytest.approx(repeated.theta)


def test_a_model_travels() -> None:
    table = Table.of_masses([[float(i)] for i in range(9)], [X], random_masses(2, 9, 3))
    model = fit_total_uncertainty(table, 0.9)
    values = np.array([[0.2], [4.4], [9.0]])
    assert masses_of(pickle.loads(pickle.dumps(model)), values) == masses_of(model, values)  # noqa: S301


def test_bad_parameters_are_refused() -> None:
    table = Table.of_classes([[1.0], [2.0]], [X], [0, 1], 2)
    wide = Table.of_contours([[1.0], [2.0]], [X], np.ones((2, 17)))
    for call in (
        lambda: total_uncertainty_tree(table, 1.5),
        lambda: total_uncertainty_tree(table, math.nan),
        lambda: total_uncertainty_tree(table, min_instances=0),
        lambda: fit_total_uncertainty(table, combine="vote"),  # type: ignore[arg-type]
        lambda: fit_total_uncertainty(wide),
        lambda: TotalUncertainty(folds=1),
    ):
        with pytest.raises(InvalidInput):
            call()
