"""The bounds of the forest against slow computations of their definition (theory §10.4)."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from property.trees.test_constant_columns import KINDS, contours_of, rows_of
from scipy.optimize import minimize
from scipy.special import expit

from quercus.kernels.forest import derived_key, goes_left, names_key
from quercus.specification.attributes import Nominal, Numeric
from quercus.trees import ActiveForest, served_forest
from quercus.trees.learners.cells import Between
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.share_bounds import share_bounds

Floats = NDArray[np.float64]
NAMED = np.array([False, False, True])
LEVELS = (0.0, 0.05, 0.75, 0.999, 1.0)


def forest_of(kind: str, level: float, *, trees: int = 5, count: int = 60, seed: int = 1) -> MemoryForest:
    values, classes = rows_of(seed, count)
    forest = MemoryForest(NAMED, 3, trees=trees, seed=5, level=level)
    forest.observe(values, contours_of(kind, classes, seed))
    return forest


def leaf_rows(forest: MemoryForest, m: int, row: Floats) -> NDArray[np.int32]:
    """The rows of the leaf in which a row of values ends in tree `m`: down the tree by its tests."""
    tree, book = forest.members().trees[m], forest.members().book
    codes = book.codes(row[np.newaxis])[0]
    node, first, key = 0, 0, int(tree.key)
    while (k := int(tree.nodes[0, node])) >= 0:
        test = int(tree.nodes[1, node])
        left = goes_left(int(codes[k]), bool(NAMED[k]), test, names_key(key, test))
        key = derived_key(key, 0 if left else 1)
        first += 0 if left else int(tree.nodes[3, node + 1])
        node += 1 if left else int(tree.nodes[2, node])
    return tree.rows[first : first + tree.nodes[3, node]]


def slow_range(contours: Floats, level: float) -> tuple[Floats, Floats]:
    """The least and greatest probability of each class over the cut, by a general optimiser from several starts."""
    l = contours.shape[1]
    at = np.full(l, 1 / l)
    for _ in range(20_000):
        before, at = at, at * (contours / (contours @ at)[:, np.newaxis]).mean(axis=0)
        if np.abs(at - before).max() < 1e-13:
            break
    least = np.log(contours @ at).sum() + np.log(level)
    inside = {"type": "ineq", "fun": lambda t: np.log(np.maximum(contours @ t, 1e-300)).sum() - least}
    whole = {"type": "eq", "fun": lambda t: t.sum() - 1.0}
    lower, upper = at.copy(), at.copy()
    for c in range(l):
        for sign in (1.0, -1.0):
            for start in (
                at,
                *(w * at + (1 - w) * end for w in (0.99, 0.9, 0.6) for end in (1 / l, *np.eye(l))),
            ):
                found = minimize(
                    lambda t, c=c, sign=sign: sign * t[c], start, bounds=[(0, 1)] * l,
                    constraints=[inside, whole], method="SLSQP", options={"ftol": 1e-12, "maxiter": 300},
                ).x  # fmt: skip
                if inside["fun"](found) >= -1e-8 and abs(found.sum() - 1) < 1e-9:  # type: ignore[operator]
                    lower[c], upper[c] = min(lower[c], found[c]), max(upper[c], found[c])
    return lower, upper


@pytest.mark.parametrize(
    ("kind", "level"), [("reliability", 0.75), ("mixed", 0.3), ("set", 0.75), ("class", 0.1)]
)
def test_the_bounds_are_the_mean_of_the_ranges_over_the_cuts_of_the_members(kind: str, level: float) -> None:
    values, classes = rows_of(1, 60)
    values[:15] = values[0]  # a leaf for all of them: nothing tells them apart
    forest = MemoryForest(NAMED, 3, trees=5, seed=5, level=level)
    forest.observe(values, contours_of(kind, classes, 1))
    rows = np.concatenate([values[:1], rows_of(2, 5)[0]])
    said, labelled = forest.predict(rows), len(forest.evidence.labelled)
    contours = forest.evidence.contours.values[forest.evidence.kinds.clip(0)]
    members, weights = forest.members(), forest.weights
    known: dict[bytes, tuple[Floats, Floats]] = {}
    for i, row in enumerate(rows):
        lower, upper = np.zeros(3), np.zeros(3)
        for m in range(5):
            mine = np.sort(leaf_rows(forest, m, row))
            if mine.tobytes() not in known:
                known[mine.tobytes()] = slow_range(contours[mine], level)
            low, high = known[mine.tobytes()]
            lower, upper = lower + weights[m] * low, upper + weights[m] * high
        for member, weight in zip(members.bayes, weights[5:], strict=True):
            low, high = slow_share_bounds(member.theta(row[np.newaxis])[0], member.weight, level)
            lower, upper = lower + weight * low, upper + weight * high
        trust = labelled / (labelled + 3)
        np.testing.assert_allclose(said.belief[i], trust * lower, atol=2e-6)
        np.testing.assert_allclose(said.plausibility[i], 1 - trust + trust * upper, atol=2e-6)


def slow_share_bounds(theta: Floats, weight: float, level: float) -> tuple[Floats, Floats]:
    def depth(u: float, p: float) -> float:
        """By the log-odds of the probability: it may be nearer to 1 than numbers are."""
        below, above = -np.logaddexp(0.0, -u), -np.logaddexp(0.0, u)
        parts = ((p, below), (1 - p, above))
        return float(sum(a * (b - np.log(a)) for a, b in parts if a > 0) - np.log(level) / weight)

    def end(p: float, far: float) -> float:
        near = float(np.log(p) - np.log1p(-p)) if 0 < p < 1 else -far
        for _ in range(200):  # halving, down to the last bit
            middle = (near + far) / 2
            near, far = (middle, far) if depth(middle, p) >= 0 else (near, middle)
        return float(expit(near))

    far = 1e12
    lower = [0.0 if p == 0 else end(p, -far) for p in theta]
    upper = [1.0 if p == 1 else end(p, far) for p in theta]
    return np.array(lower), np.array(upper)


@pytest.mark.parametrize("level", [1e-6, 0.15, 0.75, 1 - 1e-9])
@pytest.mark.parametrize("weight", [0.2, 1.0, 30.0, 1e5])
def test_bounds_of_shares_are_the_ends_of_their_cut(weight: float, level: float) -> None:
    theta = np.array([0.0, 1e-9, 1e-3, 0.2, 0.5, 0.97, 1 - 1e-9, 1.0])
    lower, upper = share_bounds(theta, weight, level)
    slow = slow_share_bounds(theta, weight, level)
    np.testing.assert_allclose(lower, slow[0], atol=1e-11)
    np.testing.assert_allclose(upper, slow[1], atol=1e-11)
    assert (lower <= theta).all()
    assert (theta <= upper).all()


def test_bounds_of_shares_at_the_ends_of_the_levels() -> None:
    theta = np.array([[0.0, 5e-324, 1e-200, 0.3, 1.0]])
    for found, expected in zip(share_bounds(theta, 7.0, 0.0), (0.0, 1.0), strict=True):
        np.testing.assert_array_equal(found, expected)
    for found in share_bounds(theta, 7.0, 1.0):
        np.testing.assert_array_equal(found, theta)
    lower, upper = share_bounds(theta, 1e-300, 0.5)
    assert (lower <= theta).all()
    assert (theta <= upper).all()


def assert_inside(said: object) -> None:
    theta, belief, plausibility = (getattr(said, name) for name in ("theta", "belief", "plausibility"))
    np.testing.assert_allclose(theta.sum(axis=1), 1.0)
    assert (belief >= 0.0).all()
    assert (belief <= theta + 1e-12).all()
    assert (theta <= plausibility + 1e-12).all()
    assert (plausibility <= 1.0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_the_probability_lies_between_belief_and_plausibility(kind: str) -> None:
    """At every level, after every change of it, grown and served; also of rows whose values are uncertain."""
    forest, rows = forest_of(kind, 0.75, trees=12, count=120), rows_of(2, 40)[0]
    attributes = (Numeric("x"), Numeric("y"), Nominal("z", ("a", "b", "c")))
    (flat,) = ActiveForest().vacuous_model(attributes, 3).flat_trees
    uncertain = [
        [None, None, None],
        [Between(0.1, 1.7), 0.0, frozenset({0, 2})],
        [frozenset({0.1, 2.0}), None, 9],
    ]
    for level in LEVELS:
        forest.level = level
        said, served = forest.predict(rows), served_forest(forest, TreeModel(attributes, 3, flat))
        assert_inside(said)
        assert_inside(served.predict(rows))
        assert_inside(served.predict_rows(uncertain))
        for name in ("theta", "belief", "plausibility"):
            np.testing.assert_allclose(getattr(served.predict(rows), name), getattr(said, name), atol=1e-12)
        if level == 0.0:
            assert said.classes.all()
    fresh = forest_of(kind, LEVELS[-1], trees=12, count=120).predict(rows)
    np.testing.assert_array_equal(said.belief, fresh.belief)
    np.testing.assert_array_equal(said.plausibility, fresh.plausibility)


def test_a_lower_level_gives_wider_bounds() -> None:
    rows = rows_of(2, 40)[0]
    said = [forest_of("reliability", level, trees=12, count=120).predict(rows) for level in LEVELS]
    for wide, narrow in pairwise(said):
        assert (wide.belief <= narrow.belief + 1e-9).all()
        assert (wide.plausibility >= narrow.plausibility - 1e-9).all()


def test_answers_that_contradict_each_other_bound_the_rarer_class() -> None:
    """88 of 100 equal rows say a and 12 say b at reliability .8: θ = (1, 0), and b is hardly plausible."""
    forest = MemoryForest(np.array([False]), 2, trees=7, seed=1, level=0.75)
    said = np.where(np.arange(100) % 25 < 22, 0, 1)
    forest.observe(np.zeros((100, 1)), np.maximum(np.eye(2)[said], 0.2))
    predicted = forest.predict(np.zeros((1, 1)))
    assert_inside(predicted)
    assert predicted.theta[0] == pytest.approx([1.0, 0.0], abs=1e-3)
    assert predicted.belief[0, 1] == 0.0
    assert predicted.plausibility[0, 1] < 0.06
