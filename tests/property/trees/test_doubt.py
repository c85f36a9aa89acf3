"""Overlap: beside the sum over all prunings of each tree, one by one; and what it is of (theory §10.9)."""

from collections.abc import Iterator
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.trees import Doubt, MemoryForest, UncertainValues
from quercus.trees.memory_forest.groves import MemberTree
from quercus.trees.memory_forest.publishing import served_members

Pruning = list[int]
"""Its leaves: nodes of the whole tree."""


def prunings(tree: MemberTree, node: int = 0) -> Iterator[tuple[float, Pruning]]:
    """Yield each pruning below a node, and its prior: a coin at each node that may be a leaf."""
    if tree.nodes[0, node] < 0:
        yield 1.0, [node]
        return
    yield 0.5, [node]
    for left, first in prunings(tree, node + 1):
        for right, second in prunings(tree, node + int(tree.nodes[2, node])):
            yield 0.5 * left * right, first + second


def rows_below(tree: MemberTree, node: int) -> list[int]:
    """Return the leaves below a node."""
    if tree.nodes[0, node] < 0:
        return [node]
    return rows_below(tree, node + 1) + rows_below(tree, node + int(tree.nodes[2, node]))


def held(tree: MemberTree, node: int, size: int) -> list[float]:
    """Return the number of rows of each class in a node."""
    total = [0.0] * size
    for leaf in rows_below(tree, node):
        rows, opinion = float(tree.nodes[3, leaf]), int(tree.nodes[2, leaf])
        shares = np.eye(size)[opinion] if opinion < size else tree.opinions[opinion - size, 0]
        total = [have + rows * share for have, share in zip(total, shares, strict=True)]
    return total


def chance(counts: list[float]) -> float:
    """Return the chance of whole counts of classes in an order: Krichevsky and Trofimov's, one row after the other."""
    found, seen = 1.0, 0
    for count in counts:
        for before in range(round(count)):
            found *= (before + 0.5) / (seen + 0.5 * len(counts))
            seen += 1
    return found


def entropy(counts: list[float]) -> float:
    return -sum(c / sum(counts) * log2(c / sum(counts)) for c in counts if c > 0)


def slow_overlap(tree: MemberTree, leaf: int, size: int) -> float:
    weights, means = 0.0, 0.0
    for prior, leaves in prunings(tree):
        weight = prior * float(np.prod([chance(held(tree, node, size)) for node in leaves]))
        (mine,) = (node for node in leaves if leaf in rows_below(tree, node))
        weights += weight
        means += weight * entropy(held(tree, mine, size))
    return means / weights


def forest_of_rows(
    rng: np.random.Generator, n: int, size: int, *, names: bool
) -> tuple[MemoryForest, np.ndarray]:
    values = np.column_stack([rng.random(n).round(2), rng.integers(3, size=n)]).astype(float)
    forest = MemoryForest(
        np.array([False, names]), size, trees=8, seed=int(rng.integers(1 << 30)), level=0.75
    )
    forest.observe(values, np.eye(size)[rng.integers(size, size=n)])
    return forest, values


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(1, 9), size=st.integers(2, 4), names=st.booleans())
def test_slowly(seed: int, n: int, size: int, names: bool) -> None:
    forest, values = forest_of_rows(np.random.default_rng(seed), n, size, names=names)
    trees = forest.members().trees
    expected = np.zeros(n)
    for tree in trees:
        leaves = np.flatnonzero(tree.nodes[0] < 0)
        leaf_of_place = np.repeat(leaves, tree.nodes[3, leaves])
        for row, leaf in zip(tree.rows, leaf_of_place, strict=True):
            expected[row] += slow_overlap(tree, int(leaf), size) / len(trees)
    found = forest.overlaps(UncertainValues(values))
    np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_allclose(served_members(forest).overlaps(values), found, atol=1e-14)
    theta = forest.theta_of_rows(np.arange(n))
    doubt = forest.doubt_of_rows(np.arange(n), theta)
    np.testing.assert_allclose(doubt.overlap, np.minimum(found, doubt.overlap + doubt.ignorance), atol=1e-12)
    np.testing.assert_allclose(doubt.overlap + doubt.ignorance, [entropy(row) for row in theta], atol=1e-9)
    assert (doubt.ignorance >= 0).all()


@settings(deadline=None)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 60), uncertain=st.booleans())
def test_one_row_at_a_time_or_all_at_once(seed: int, n: int, uncertain: bool) -> None:
    """Labels that are sets, too: overlap is a function of the log, however the forest came to it."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.random(n), rng.integers(3, size=n)]).astype(float)
    contours = np.eye(3)[rng.integers(3, size=n)]
    if uncertain:
        contours = np.maximum(contours, rng.random((n, 3)) < 0.2)
    made = {"trees": 6, "seed": 3, "level": 0.75}
    whole, parts = (MemoryForest(np.array([False, True]), 3, **made) for _ in range(2))
    whole.observe(values, contours)
    parts.observe(values, np.ones((n, 3)))
    for row in range(n):
        parts.replace_contour(row, contours[row])
        if row % 7 == 0:
            parts.overlaps(UncertainValues(values))
    found = whole.overlaps(UncertainValues(values))
    np.testing.assert_array_equal(parts.overlaps(UncertainValues(values)), found)
    assert ((found >= 0.0) & (found <= log2(3) + 1e-12)).all()


def test_a_row_that_may_be_several_has_the_mean() -> None:
    forest, _ = forest_of_rows(np.random.default_rng(5), 60, 2, names=True)
    cells = UncertainValues(np.array([[0.3, np.nan]]), {(0, 1): ((0.0, 0.0), (2.0, 2.0))})
    each = forest.overlaps(UncertainValues(np.array([[0.3, 0.0], [0.3, 2.0]])))
    assert forest.overlaps(cells)[0] == pytest.approx(each.mean(), abs=1e-15)


def test_nothing_is_known_at_first() -> None:
    forest = MemoryForest(np.array([False]), 4, trees=6, seed=0, level=0.75)
    forest.observe(np.array([[1.0], [2.0]]), np.ones((2, 4)))
    assert served_members(forest).overlaps(np.array([[1.0]])).tolist() == [0.0]
    doubt = forest.doubt_of_rows(np.array([0, 1]), forest.theta_of_rows(np.array([0, 1])))
    assert (doubt.overlap.tolist(), doubt.ignorance.tolist()) == ([0.0, 0.0], [2.0, 2.0])


def test_it_tells_a_coin_from_what_nobody_has_seen() -> None:
    """Half of a line is a coin. In the other half an end is of one class, beyond it nothing is labelled."""
    rng = np.random.default_rng(0)
    x = rng.random(400)
    y = np.where(x < 0.5, rng.integers(2, size=400), 1)
    forest = MemoryForest(np.array([False]), 2, trees=30, seed=0, level=0.75)
    forest.observe(x[:, np.newaxis], np.eye(2)[y])
    at = np.linspace(0.05, 0.45, 9)[:, np.newaxis]
    doubt = Doubt.of(forest.theta(at), forest.overlaps(UncertainValues(at)))
    assert doubt.overlap.mean() > 0.6
    assert doubt.ignorance.mean() < 0.1
    sure = np.linspace(0.6, 0.95, 9)[:, np.newaxis]
    assert forest.overlaps(UncertainValues(sure)).mean() < 0.02
