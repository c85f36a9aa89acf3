"""A served forest: its compiled predictions beside a walk down each tree, and damaged columns."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from property.trees.test_memory_forest import world

from quercus.kernels.forest import (
    bayes_estimates,
    codes_of,
    derived_key,
    goes_left,
    names_key,
    served_predictions,
)
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.publishing import served_members
from quercus.trees.memory_forest.served import BayesTable, ServedMembers, bayes_columns
from quercus.trees.memory_forest.share_bounds import share_bounds
from quercus.trees.memory_forest.stored import columns_of, members_of

Floats = NDArray[np.float64]


def served(seed: int, level: float = 0.75, trees: int = 7) -> tuple[ServedMembers, Floats]:
    values, named, contours = world(seed, 220, 3)
    forest = MemoryForest(named, 3, trees=trees, seed=seed, level=level)
    forest.observe(values[:150], contours[:150])
    return served_members(forest), values[150:]


def slow_opinion(members: ServedMembers, row: Floats) -> Floats:
    """The mean opinion (3, l) on a row: node by node down each tree, and each naive-Bayes member."""
    l, codes = members.size, members.book.codes(row[np.newaxis])[0].tolist()
    mean, root, held = np.zeros((3, l)), 0, 0
    for t, root_key in enumerate(members.keys.tolist()):
        node, key = root, root_key
        while (k := int(members.nodes[node, 0])) >= 0:
            test = int(members.nodes[node, 1])
            left = goes_left(codes[k], bool(members.book.named[k]), test, names_key(key, test))
            key = derived_key(key, 0 if left else 1)
            node += 1 if left else int(members.nodes[node, 2])
        number, size = members.nodes[node, 2:].tolist()
        opinion = np.tile(np.eye(l)[number % l], (3, 1))
        if number >= l:
            opinion = members.opinions[held + number - l]
        else:
            sure = members.level ** (1.0 / size) if members.level else 0.0
            opinion[1] *= sure
            opinion[2] = np.maximum(opinion[2], 1.0 - sure)
        mean += members.weights[t] * opinion
        root, held = root + int(members.node_counts[t]), held + int(members.opinion_counts[t])
    for number, weight in zip(members.bayes_numbers, members.weights[len(members.keys) :], strict=True):
        table = members.bayes[number]
        (theta,) = bayes_estimates(members.book.named, *bayes_columns([table], l), row[np.newaxis])
        mean += weight * np.stack([theta, *share_bounds(theta, table.weight, members.level)])
    return mean


@pytest.mark.parametrize("level", [0.0, 0.3, 0.75, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_predictions_are_the_mean_of_what_each_member_says(seed: int, level: float) -> None:
    members, rows = served(seed, level)
    said, reliable = members.predict(rows), members.labelled / (members.labelled + 3)
    expected = np.array([slow_opinion(members, row) for row in rows])
    np.testing.assert_allclose(said.theta, expected[:, 0], atol=1e-12)
    np.testing.assert_allclose(said.belief, reliable * expected[:, 1], atol=1e-12)
    bounds = np.minimum(1 - reliable + reliable * expected[:, 2], 1)
    np.testing.assert_allclose(said.plausibility, bounds, atol=1e-12)
    assert (said.theta[np.arange(len(rows)), said.klass] >= said.theta.max(axis=1) - 1e-9).all()
    assert said.klass.dtype == np.int64


@pytest.mark.parametrize("level", [0.0, 0.75, 1.0])
@pytest.mark.parametrize("seed", range(4))
def test_one_row_has_the_bits_of_many(seed: int, level: float) -> None:
    members, rows = served(seed, level, trees=20)
    whole = members.predict(rows)
    columns = (whole.klass, whole.theta, whole.belief, whole.plausibility)
    expected = [tuple(each) for each in zip(*(column.tolist() for column in columns), strict=True)]
    assert [members.predict_row(row) for row in rows.tolist()] == expected


def test_one_row_by_a_forest_without_labels() -> None:
    values, named, contours = world(3, 60, 3)
    forest = MemoryForest(named, 3, trees=5, seed=3, level=0.75)
    forest.observe(values, np.ones_like(contours))
    members = served_members(forest)
    whole = members.predict(values[:1])
    columns = (whole.klass, whole.theta, whole.belief, whole.plausibility)
    assert members.predict_row(values[0].tolist()) == tuple(column[0].tolist() for column in columns)


def test_codes_are_the_number_of_cuts_up_to_a_value() -> None:
    cuts = np.array([-1.0, 0.0, 2.5, 2.5, 7.0])
    values = np.array(
        [
            [x, name]
            for x in (-np.inf, -1.0, -0.5, 0.0, 2.5, 7.0, np.inf, np.nan)
            for name in (0.0, 3.0, np.nan)
        ]
    )
    found = codes_of(values, np.array([False, True]), cuts, np.array([5, 0]))
    expected = [
        [0 if np.isnan(x) else 1 + int((cuts <= x).sum()), 0 if np.isnan(n) else 1 + int(n)]
        for x, n in values
    ]
    assert found.tolist() == expected
    assert codes_of(np.array([[1e9]]), np.array([True]), cuts[:0], np.array([0])).tolist() == [[65535]]
    with pytest.raises(ValueError, match="attributes"):
        codes_of(values[:, :1].copy(), np.array([False, True]), cuts, np.array([5, 0]))


def changed(name: str, change: Callable[[Any], Any]) -> Callable[[dict[str, Any]], None]:
    def run(columns: dict[str, Any]) -> None:
        columns[name] = change(columns[name].copy())

    return run


def at(place: Any, value: int) -> Callable[[Any], Any]:
    def run(column: Any) -> Any:
        column[place] = value
        return column

    return run


@pytest.mark.parametrize(
    "damage",
    [
        changed("forest_nodes", at((0, 0), 99)),
        changed("forest_nodes", at((2, 0), 1 << 20)),
        changed("forest_nodes", at((2, 0), -3)),
        changed("forest_nodes", at((2, -1), 1 << 20)),
        changed("forest_nodes", lambda nodes: nodes[:, :-1]),
        changed("forest_node_counts", at(0, 0)),
        changed("forest_opinions", lambda opinions: opinions[1:]),
        changed("forest_cuts", lambda cuts: cuts[1:]),
        changed("forest_weights", lambda weights: weights[1:]),
        changed("forest_means", lambda means: means[1:]),
    ],
)
def test_damaged_columns_are_refused(damage: Callable[[dict[str, Any]], None]) -> None:
    members, rows = served(2)
    columns = columns_of(members)
    again = members_of(columns, 3).predict(rows)
    np.testing.assert_array_equal(again.belief, members.predict(rows).belief)
    damage(columns)
    with pytest.raises(ValueError, match=r"forest|node|tree"):
        members_of(columns, 3)


def test_a_forest_without_labels_is_stored_and_knows_nothing() -> None:
    values, named, _ = world(1, 9, 3)
    forest = MemoryForest(named, 3, trees=5, seed=1, level=0.75)
    forest.observe(values, np.ones((9, 3)))
    said = members_of(columns_of(served_members(forest)), 3).predict(values)
    assert (said.theta == 1 / 3).all()
    assert (said.belief == 0).all()
    assert (said.plausibility == 1).all()


def test_columns_that_lie_anywhere_in_memory_are_read() -> None:
    """Columns of a stored version begin wherever the one before ends."""
    members, rows = served(3)
    columns = {}
    for name, column in columns_of(members).items():
        raw = b"x" + column.tobytes()
        columns[name] = np.frombuffer(raw, column.dtype, column.size, 1).reshape(column.shape)
    np.testing.assert_array_equal(members_of(columns, 3).predict(rows).theta, members.predict(rows).theta)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8, 199, 200, 257])
@pytest.mark.parametrize("rows", [1, 7, 8, 9, 40])
def test_a_number_has_the_code_of_its_place_among_the_cuts(count: int, rows: int) -> None:
    rng = np.random.default_rng(count + rows)
    cuts = np.unique(rng.normal(size=2 * count).round(3))[:count]
    values = np.stack([rng.choice([*cuts, 0.1, np.inf, -np.inf], rows), rng.normal(size=rows)], axis=1)
    known = np.concatenate([cuts, cuts])
    expected = 1 + np.searchsorted(cuts, values, side="right")
    values[::5, 0], expected[::5, 0] = np.nan, 0
    found = codes_of(values, np.array([False, False]), known, np.array([len(cuts), len(cuts)]))
    assert found.tolist() == expected.tolist()


@pytest.mark.parametrize("weight", [1.0, 20.0, 1e3, 1e6])
@pytest.mark.parametrize("level", [0.01, 0.75, 0.999])
def test_bounds_of_naive_bayes_are_those_of_shares(weight: float, level: float) -> None:
    log_odds = np.concatenate([np.linspace(-36, 36, 73), np.linspace(-600, 600, 13)])
    depth = np.log(level) / weight
    # near its top, a likelihood changes less than its rounding error
    rounding = 1e-14 + 2e-15 / np.sqrt(-depth)
    for prior in priors_of(log_odds):
        mine, belief, plausibility = bayes_bounds(prior, depth)
        lower, upper = share_bounds(mine, weight, level)
        np.testing.assert_allclose(belief, lower, atol=rounding, rtol=0)
        np.testing.assert_allclose(plausibility, upper, atol=rounding, rtol=0)


@pytest.mark.parametrize("depth", [-3e-16, -1e-16, -1e-18, -1e-20, -1e-32, -5e-324])
def test_cuts_smaller_than_rounding_errors_hold_little_more_than_the_estimate(depth: float) -> None:
    for prior in priors_of(np.linspace(-36.0, 36.0, 733)):
        mine, belief, plausibility = bayes_bounds(prior, depth)
        assert (belief <= mine).all()
        assert (mine <= plausibility).all()
        np.testing.assert_allclose(belief, plausibility, atol=1e-6, rtol=0)


def priors_of(log_odds: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities (n, 2) of two classes, without those that are 0."""
    likeliest = 1.0 / (1.0 + np.exp(-log_odds))
    theta = np.stack([likeliest, 1.0 - likeliest], axis=1)
    return theta[(theta > 0.0).all(axis=1)]


def bayes_bounds(prior: NDArray[np.float64], depth: float) -> tuple[NDArray[np.float64], ...]:
    """Probabilities, beliefs and plausibilities, (1, 2) each, by a naive-Bayes member without attributes."""
    none, table = np.empty(0, np.int64), BayesTable(1.0, prior, np.empty((0, 2)), np.empty((0, 2)), ())
    _, *bounds = served_predictions(
        np.empty(0, np.bool_), np.empty((0, 4), np.int32), none, np.empty(0, np.uint64), np.empty((0, 6)), none,
        np.empty(0), np.empty(0), *bayes_columns([table], 2), np.array([depth]), np.ones(1),
        np.empty(0), none, np.empty((1, 0)), 1.0, 0.0,
    )  # fmt: skip
    return tuple(bounds)
