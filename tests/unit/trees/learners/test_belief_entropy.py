"""Belief-entropy trees against slow computations with the rules of `quercus.belief` (theory §6)."""

import pickle
from dataclasses import replace
from functools import reduce

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import norm
from sklearn.datasets import load_iris
from sklearn.model_selection import train_test_split
from support.growing import fit_belief_entropy

from quercus.belief.errors import InvalidInput
from quercus.belief.mass import MassFunction
from quercus.belief.measures import deng_entropy, pignistic
from quercus.belief.rules import dempster, disjunctive
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import BeliefEntropy
from quercus.trees.learners.cells import Between, Value
from quercus.trees.learners.components import Gaussians, fit_frequencies
from quercus.trees.learners.entropy_model import BeliefEntropyModel, Rule
from quercus.trees.learners.learner import fit
from quercus.trees.learners.mixture import fit_mixtures
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Stop

MANY = frozenset(float(v) for v in range(65))
KINDS: list[Rule] = ["OBE", "LBE", "IBE"]
Column = NDArray[np.float64]
IRIS = load_iris()
NAMES = [Numeric(name) for name in IRIS.feature_names]


def masses_of(model: BeliefEntropyModel, values: Column) -> list[MassFunction]:
    said = model.predict(values).masses
    assert said is not None
    return list(said)


def iris() -> Table:
    return Table.of_classes(IRIS.data, NAMES, IRIS.target, 3)


def slow_mass(densities: Column) -> MassFunction:
    """The nested mass of untied densities, by the words of the paper."""
    share = densities / densities.sum()
    masses: dict[int, float] = {}
    mask = 0
    for c in sorted(range(len(share)), key=lambda c: -share[c]):
        mask |= 1 << c
        masses[mask] = float(share[c])
    return MassFunction.of(len(share), masses)


def slow_masses(values: Column, classes: NDArray[np.int64], at: Column) -> list[MassFunction]:
    """Masses of the values `at` from the normals of the classes, for precise labels."""
    parts = [values[classes == c] for c in range(3)]
    return [
        slow_mass(np.array([norm.pdf(x, part.mean(), part.std()) if part.size else 0.0 for part in parts]))
        for x in at
    ]


def densest(mass: MassFunction) -> int:
    return next(mask for mask, _ in mass.focal if mask.bit_count() == 1).bit_length() - 1


def near(found: MassFunction, expected: MassFunction) -> None:
    for mask in range(1, 1 << expected.size):
        assert dict(found.focal).get(mask, 0.0) == pytest.approx(
            dict(expected.focal).get(mask, 0.0), abs=1e-12
        )


def test_the_attribute_of_least_mean_entropy_splits() -> None:
    root = fit_belief_entropy(iris(), max_depth=1).trees[0]
    for k in range(4):
        masses = slow_masses(IRIS.data[:, k], IRIS.target, IRIS.data[:, k])
        mean = np.mean([deng_entropy(mass) for mass in masses])
        assert root.intervals[k] == pytest.approx((-mean, -mean))
    assert root.attribute == 3  # petal width, as in example 4 of the paper
    petal_width = IRIS.data[:, 3]
    first = [densest(mass) for mass in slow_masses(petal_width, IRIS.target, petal_width)]
    assert {code: child.count for code, child in root.children.items()} == {
        c: first.count(c) for c in range(3)
    }


def test_lbe_combines_the_masses_of_the_rows_that_reach_a_leaf() -> None:
    rows = np.r_[0:5, 60:65, 120:125, 70, 133]
    values, classes = IRIS.data[rows] + np.random.default_rng(0).normal(0, 0.05, (17, 4)), IRIS.target[rows]
    model = fit_belief_entropy(
        Table.of_classes(values, NAMES, classes, 3), "LBE", max_depth=1, min_instances=2
    )
    assert model.trees[0].attribute is not None
    column = values[:, model.trees[0].attribute]
    masses = slow_masses(column, classes, column)
    for code, child in model.trees[0].children.items():
        here = [mass for mass in masses if densest(mass) == code]
        expected = reduce(dempster, here)
        assert (child.count, child.klass) == (len(here), pignistic(expected).argmax())
        assert child.mass is not None
        near(child.mass, expected)
        assert child.theta == pytest.approx(pignistic(expected).tolist(), abs=1e-12)
        near(masses_of(model, values[[densest(m) == code for m in masses]])[0], expected)


@pytest.mark.parametrize("row", [3, 77, 106, 119, 133])
def test_ibe_combines_the_masses_of_the_instance_along_its_path(row: int) -> None:
    model = fit_belief_entropy(iris(), "IBE")
    node, own, rows = model.trees[0], [], np.arange(150)
    while node.attribute is not None:
        column = IRIS.data[:, node.attribute]
        masses = slow_masses(column[rows], IRIS.target[rows], column[rows])
        mine = masses[int(np.flatnonzero(rows == row)[0])]
        own.append(mine)
        rows = rows[[densest(mass) == densest(mine) for mass in masses]]
        node = node.children[densest(mine)]
        assert node.count == len(rows)
    expected = reduce(dempster, own)
    near(masses_of(model, IRIS.data[[row]])[0], expected)
    np.testing.assert_allclose(model.predict(IRIS.data[[row]]).theta[0], pignistic(expected), atol=1e-12)


def test_obe_takes_the_largest_sum_of_plausibilities() -> None:
    contours = [[0.2, 1, 0.9], [1, 0.3, 0.9], [0.1, 0.4, 0.5]]
    model = fit_belief_entropy(
        Table.of_contours([[1.0], [2.0], [4.0]], [NAMES[0]], contours), "OBE", max_depth=0
    )
    assert (model.trees[0].klass, model.trees[0].stop) == (2, Stop.FEW_INSTANCES)
    nested = [{2: 0.1, 6: 0.7, 7: 0.2}, {1: 0.1, 5: 0.6, 7: 0.3}, {4: 0.2, 6: 0.6, 7: 0.2}]  # rescaled to 1
    betp = [
        sum(m / mask.bit_count() for row in nested for mask, m in row.items() if mask >> c & 1) / 3
        for c in range(3)
    ]
    assert model.trees[0].theta == pytest.approx(betp)
    assert model.trees[0].plausibility == pytest.approx(np.array([1.4, 2.1, 2.8]) / 3, abs=1e-12)
    assert model.predict(np.array([[0.0]])).klass.tolist() == [2]


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_learns_iris(kind: Rule) -> None:
    train, test = train_test_split(np.arange(150), test_size=0.3, random_state=0, stratify=IRIS.target)
    model = fit_belief_entropy(iris().take(train), kind)
    assert (model.predict(IRIS.data[test]).klass == IRIS.target[test]).mean() >= 0.9


@pytest.mark.parametrize("kind", ["LBE", "IBE"])
def test_four_labels_of_five_may_be_vacuous(kind: Rule) -> None:
    right = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        train, test = train_test_split(np.arange(150), test_size=0.3, random_state=seed, stratify=IRIS.target)
        contours = np.eye(3)[IRIS.target[train]]
        contours[rng.random(len(train)) < 0.8] = 1.0
        model = fit_belief_entropy(Table.of_contours(IRIS.data[train], NAMES, contours), kind)
        right.append((model.predict(IRIS.data[test]).klass == IRIS.target[test]).mean())
    assert np.mean(right) >= 0.85


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_far_from_zero_are_distinguished_as_well(kind: Rule) -> None:
    rng = np.random.default_rng(1)
    contours = np.eye(3)[IRIS.target]
    contours[rng.random(150) < 0.5] = 1.0
    far = 1e9 + 1e-3 * IRIS.data
    here, there = (
        fit_belief_entropy(Table.of_contours(x, NAMES, contours), kind).predict(x).klass
        for x in (IRIS.data, far)
    )
    assert (here == there).mean() >= 0.98


def paths(model: BeliefEntropyModel) -> list[list[int]]:
    found, pending = [], [(model.trees[0], [])]
    while pending:
        node, above = pending.pop()
        if node.attribute is not None:
            above = [*above, node.attribute]
            pending += [(child, above) for child in node.children.values()]
        found.append(above)
    return found


def test_no_path_tests_an_attribute_twice_and_pure_nodes_stop() -> None:
    model = fit_belief_entropy(iris(), "OBE", min_instances=1)
    assert all(len(set(path)) == len(path) for path in paths(model))
    stops = {node.stop for node, *_ in model.trees[0].preorder() if node.is_leaf}
    assert stops == {Stop.PURE, Stop.NO_ATTRIBUTE}


def test_weights_are_repeated_rows() -> None:
    rng = np.random.default_rng(0)
    times = rng.integers(0, 3, size=150)
    contours = np.where(rng.random((150, 3)) < 0.3, 0.6, np.eye(3)[IRIS.target])
    weighted = fit_belief_entropy(Table.of_contours(IRIS.data, NAMES, contours, times), "LBE", max_depth=1)
    rows = np.repeat(np.arange(150), times)
    repeated = fit_belief_entropy(
        Table.of_contours(IRIS.data[rows], NAMES, contours[rows]), "LBE", max_depth=1
    )
    assert weighted.trees[0].attribute == repeated.trees[0].attribute
    np.testing.assert_allclose(
        weighted.predict(IRIS.data).theta, repeated.predict(IRIS.data).theta, atol=1e-9
    )


@pytest.mark.parametrize("kind", KINDS)
def test_nominal_and_missing_values(kind: Rule) -> None:
    rng = np.random.default_rng(1)
    classes = rng.integers(2, size=80)
    colour = np.where(rng.random(80) < 0.1, 1 - classes, classes).astype(float)
    colour[:5] = np.nan
    values = np.column_stack([rng.normal(size=80), colour])
    values[5:9, 0] = np.nan
    attributes = [Numeric("noise"), Nominal("colour", ("red", "green", "blue"))]
    model = fit_belief_entropy(Table.of_classes(values, attributes, classes, 2), kind)
    assert model.trees[0].attribute == 1
    unseen = model.predict(np.array([[0.0, 2.0], [np.nan, np.nan], [0.1, 0.0], [0.1, 1.0]])).klass
    assert unseen.tolist()[2:] == [0, 1]
    assert np.isfinite(model.predict(np.array([[np.nan, np.nan], [9.0, 2.0]])).theta).all()


@pytest.mark.parametrize("attribute", [Numeric("x"), Nominal("x", ("p", "q"))], ids=["number", "names"])
@pytest.mark.parametrize("kind", ["LBE", "IBE"])
def test_a_class_whose_values_are_missing_is_not_ruled_out(kind: Rule, attribute: Numeric | Nominal) -> None:
    """One class has only first values, the other only second ones: values say nothing of the class."""
    values = np.full((24, 2), np.nan)
    values[:12, 0] = values[12:, 1] = np.arange(12) % 2
    attributes = [attribute, replace(attribute, name="y")]
    model = fit_belief_entropy(Table.of_classes(values, attributes, np.repeat([0, 1], 12), 2), kind)
    said = model.predict(np.array([[0.0, 1.0], [1.0, np.nan], [np.nan, 0.0], [np.nan, np.nan]]))
    np.testing.assert_allclose(said.theta, 0.5, atol=1e-9)
    assert not said.conflict.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("attribute", [Numeric("x"), Nominal("x", ("p", "q", "r"))], ids=["number", "names"])
def test_nothing_is_ruled_out_by_underflow(kind: Rule, attribute: Numeric | Nominal) -> None:
    """Classes that are hardly plausible where values are known, but certain where they are missing."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        values = rng.integers(0, 3, (20, 3)).astype(float)
        values[rng.random((20, 3)) < 0.7] = np.nan
        contours = np.where(rng.random((20, 3)) < 0.5, 0.0, rng.random((20, 3)) * 1e-310)
        contours[np.arange(20), rng.integers(0, 3, 20)] = 1.0
        attributes = [replace(attribute, name=f"x{k}") for k in range(3)]
        model = fit_belief_entropy(Table.of_contours(values, attributes, contours), kind, min_instances=2)
        said = model.predict(values)
        np.testing.assert_allclose(said.theta.sum(axis=1), 1.0)
        assert (said.belief <= said.plausibility + 1e-12).all()


def test_a_class_of_which_no_value_is_known_has_the_values_of_all() -> None:
    numbers = np.array([[1.0], [3.0], [11.0], [np.nan]])
    contours = np.array([[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype=float)
    found = fit_mixtures(numbers, contours, [1, 1, 2, 1])
    assert found.means[0, 2] == pytest.approx(6.5)
    assert found.deviations[0, 2] == pytest.approx(np.sqrt((5.5**2 + 3.5**2 + 2 * 4.5**2) / 4))
    assert found.proportions[0] == pytest.approx([0.5, 0.5, 0.0])
    names = fit_frequencies(np.array([0, 0, 1, np.nan]), 2, contours, np.array([1.0, 1, 2, 1]))
    assert np.exp(names.log_table[2]).tolist() == pytest.approx([2.5 / 5, 2.5 / 5])
    assert names.proportions == pytest.approx([0.5, 0.5, 0.0])
    for rows in (
        [0, 1, 2],
        [3],
    ):  # a class that no row can have is impossible, and without a value all are alike
        some = fit_mixtures(numbers[rows], contours[rows])
        assert np.isneginf(some.log_densities(np.array([[2.0]]))[0, 0]).tolist() == (
            [False, False, True] if len(rows) > 1 else [False] * 3
        )


@pytest.mark.parametrize("kind", KINDS)
def test_vacuous_labels_leave_every_class_equally_probable(kind: Rule) -> None:
    table = Table.of_contours(IRIS.data[::5], NAMES, np.full((30, 3), 0.5))
    model = fit_belief_entropy(table, kind)
    np.testing.assert_allclose(model.predict(IRIS.data[:4]).theta, 1 / 3)
    assert model.predict(IRIS.data[:4]).klass.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_travels(kind: Rule) -> None:
    model = fit_belief_entropy(iris(), kind)
    back = pickle.loads(pickle.dumps(model))  # noqa: S301
    assert back.predict(IRIS.data).theta.tolist() == model.predict(IRIS.data).theta.tolist()
    assert list(back.predict(IRIS.data[:9]).masses or ()) == list(model.predict(IRIS.data[:9]).masses or ())


@pytest.mark.parametrize("kind", ["LBE", "IBE"])
def test_a_value_may_be_a_set_of_numbers(kind: Rule) -> None:
    model = fit_belief_entropy(iris(), kind)
    row = [5.0, 3.0, frozenset([4.9, 5.2]), frozenset([0.2, 1.6])]
    combinations = np.array([[5.0, 3.0, length, width] for length in (4.9, 5.2) for width in (0.2, 1.6)])
    assert model.trees[0].attribute == 3
    assert model.trees[0].children[0].is_leaf  # of width .2: the length makes no difference there
    masses = masses_of(model, combinations)
    expected = reduce(disjunctive, masses[1:] if kind == "IBE" else dict.fromkeys(masses))  # each leaf once
    said = model.predict_rows([row, [5.0, 3.0, 4.9, 0.2], [None, None, None, 0.2]])
    assert said.masses is not None
    near(said.masses[0], expected)
    assert said.theta[0] == pytest.approx(pignistic(expected).tolist(), abs=1e-12)
    assert said.theta[1] == pytest.approx(model.predict(combinations[:1]).theta[0].tolist(), abs=1e-12)
    assert said.masses[2] == masses_of(model, np.array([[np.nan, np.nan, np.nan, 0.2]]))[0]


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_is_an_observation_of_its_probability_under_each_class(kind: Rule) -> None:
    model = fit_belief_entropy(iris(), kind, max_depth=1)
    fitted = model.components[0]
    assert isinstance(fitted, Gaussians)
    low, high = np.array([1.2, -50.0, 40.0, 1.6]), np.array([1.9, -40.0, 50.0, 1.6])
    logs = fitted.log_densities(low, high)
    ends = [
        [tail(x, fitted.means, fitted.deviations) for x in (1.2, 1.9)] for tail in (norm.cdf, norm.sf)
    ]  # of a small probability one has digits, the other none
    expected = np.maximum(ends[0][1] - ends[0][0], ends[1][0] - ends[1][1])
    np.testing.assert_allclose(np.exp(logs[0]), expected, rtol=1e-12)
    assert np.isfinite(logs).all()
    assert logs[3].tolist() == fitted.log_densities(np.array([1.6]))[0].tolist()
    said = model.predict_rows([[5.0, 3.0, 4.0, Between(a, b)] for a, b in zip(low, high, strict=True)])
    assert said.klass.tolist() == logs.argmax(axis=1).tolist()
    if kind == "IBE":
        assert said.masses is not None
        near(said.masses[0], slow_mass(expected))


@pytest.mark.parametrize("kind", KINDS)
def test_a_range_may_have_no_end(kind: Rule) -> None:
    model = fit_belief_entropy(iris(), kind, max_depth=1)
    infinite, far = (
        model.predict_rows(
            [[5.0, 3.0, 4.0, Between(low, high)] for low, high in ((0.7, top), (-top, 0.7), (-top, top))]
        )
        for top in (np.inf, 1e9)
    )
    np.testing.assert_allclose(infinite.theta, far.theta, atol=1e-12)
    assert infinite.klass.tolist() == far.klass.tolist()


def test_obe_averages_over_a_set_of_numbers() -> None:
    model = fit_belief_entropy(iris(), "OBE")
    said = model.predict_rows([[5.0, 3.0, 4.9, frozenset([0.2, 1.6, 2.5])]])
    combinations = np.array([[5.0, 3.0, 4.9, width] for width in (0.2, 1.6, 2.5)])
    assert said.theta[0] == pytest.approx(model.predict(combinations).theta.mean(axis=0).tolist())
    assert said.masses is None
    assert (said.belief <= said.plausibility).all()


@pytest.mark.parametrize("row", [[1.0], [1.0, 1.0, 1.0, frozenset()], [1.0, 1.0, MANY, MANY]])
def test_rows_that_cannot_be_classified_are_refused(row: list[Value]) -> None:
    with pytest.raises(InvalidInput, match="row"):
        fit_belief_entropy(iris(), "LBE").predict_rows([row])


def test_bad_parameters_are_refused() -> None:
    wide = Table.of_contours([[1.0], [2.0]], [NAMES[0]], np.ones((2, 17)))
    assert fit_belief_entropy(wide, "OBE").trees[0].is_leaf
    for call in (
        lambda: fit_belief_entropy(iris(), "XBE"),  # type: ignore[arg-type]
        lambda: fit_belief_entropy(iris(), min_instances=0),
        lambda: fit_belief_entropy(wide, "IBE"),
    ):
        with pytest.raises(InvalidInput):
            call()


@pytest.mark.parametrize("leaf", ["OBE", "LBE", "IBE"])
@pytest.mark.parametrize("scale", [1e-310, 1e-200, 1.0, 1e200, 2.5e307])
def test_no_number_is_too_large_or_too_small(leaf: str, scale: float) -> None:
    """A square that overflows must not become a NaN, in learning or in an answer."""
    rng = np.random.default_rng(0)
    classes = np.repeat([0, 1], 6)
    values = (rng.normal(size=(12, 2)) + 2 * (classes == 0)[:, np.newaxis]) * scale
    model = fit(
        BeliefEntropy(leaf),  # type: ignore[arg-type]
        Table.of_classes(values, [Numeric("a"), Numeric("b")], classes.tolist(), 2),
    )
    far = np.array([[1.7e308, -1.7e308], [1e200, 0.0], [np.nan, -1e300]])
    for said in (
        model.predict(np.concatenate([values, far])),
        model.predict_rows([[Between(-1.7e308, 1.7e308), 0.0]]),
    ):
        np.testing.assert_allclose(said.theta.sum(axis=1), 1.0)
