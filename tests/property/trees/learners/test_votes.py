"""Votes of forests, and the bounds of OBE, beside plain computations that share nothing with them (theory §11)."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from support.growing import fit_belief_entropy

from quercus.belief.mass import MassFunction
from quercus.specification.attributes import Numeric
from quercus.trees import C45, Averaging, E2m, Forest, Id3
from quercus.trees import TreeLearner as Tree
from quercus.trees.learners.learner import fit
from quercus.trees.learners.stored import fitted_columns, form_of, join_trees, restore_model
from quercus.trees.learners.table import Table
from quercus.trees.tree.node import Node

IRIS = load_iris()
ATTRIBUTES = tuple(Numeric(name) for name in IRIS.feature_names)
TIE = 1e-9


def silent_iris(seed: int, silent: float) -> Table:
    """Return half of iris, a share of it without labels, classes in another order than by frequency."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(150)[:75]
    contours = np.eye(3)[IRIS.target[rows]]
    contours[rng.random(75) < silent] = 1.0
    return Table.of_contours(IRIS.data[rows], ATTRIBUTES, contours)


def leaf_of(node: Node, row: np.ndarray) -> Node:
    while node.attribute is not None:
        assert node.threshold is not None
        node = node.children[int(row[node.attribute] >= node.threshold)]
    return node


def slow_probabilities(leaf: Node) -> list[float]:
    """Return BetP of the leaf's mass in fractions, or its probabilities where it has none."""
    if leaf.mass is None:
        return list(leaf.theta)
    chances = [Fraction(0)] * leaf.mass.size
    for mask, m in leaf.mass.focal:
        inside = [c for c in range(leaf.mass.size) if mask >> c & 1]
        for c in inside:
            chances[c] += Fraction(m) / len(inside)
    return [float(chance) for chance in chances]


def slow_votes(trees: tuple[Node, ...], row: np.ndarray) -> list[Fraction]:
    """Give each tree one vote, in equal parts to its best classes."""
    votes = [Fraction(0)] * len(trees[0].theta)
    for tree in trees:
        chances = slow_probabilities(leaf_of(tree, row))
        best = [c for c, chance in enumerate(chances) if chance >= max(chances) - TIE]
        for c in best:
            votes[c] += Fraction(1, len(best) * len(trees))
    return votes


@pytest.mark.parametrize(
    "base", [Averaging(), E2m(), C45(confidence=None), Id3()], ids=lambda base: base.name
)
@pytest.mark.parametrize("silent", [0.5, 0.9])
def test_each_tree_has_one_vote_and_its_best_classes_share_it(base: Tree, silent: float) -> None:
    forest = fit(Forest(base, trees=7, seed=3), silent_iris(5, silent))
    again = restore_model(
        form_of(forest),
        {**join_trees(forest.flat_trees), **fitted_columns(forest)},
        forest.attributes,
        3,
        ((),) * 4,
    )
    rows = IRIS.data[::3]
    said, stored = forest.predict(rows), again.predict(rows)
    assert (said.theta == stored.theta).all()
    assert (said.klass == stored.klass).all()
    for at, row in enumerate(rows):
        votes = slow_votes(forest.trees, row)
        np.testing.assert_allclose(said.theta[at], [float(vote) for vote in votes], atol=1e-12)
        assert said.klass[at] == next(c for c, vote in enumerate(votes) if vote >= max(votes) - Fraction(TIE))
        assert (said.belief[at] <= said.theta[at] + TIE).all()
        assert (said.theta[at] <= said.plausibility[at] + TIE).all()


@st.composite
def labels(draw: st.DrawFn) -> list[MassFunction]:
    def one() -> MassFunction:
        masks = draw(st.lists(st.integers(1, 7), min_size=1, max_size=4, unique=True))
        parts = [draw(st.integers(1, 9)) for _ in masks]
        return MassFunction.of(3, {mask: part / sum(parts) for mask, part in zip(masks, parts, strict=True)})

    return [one() for _ in range(draw(st.integers(1, 9)))]


@given(labels(), st.booleans(), st.integers(0, 2**31))
def test_obe_is_most_plausible_and_its_probabilities_lie_within_its_bounds(
    masses: list[MassFunction], as_contours: bool, seed: int
) -> None:
    weights = np.random.default_rng(seed).integers(1, 4, len(masses)) / 2
    values = np.arange(float(len(masses)))[:, np.newaxis]
    if as_contours:
        contours = [mass.contour() for mass in masses]
        table = Table.of_contours(values, [Numeric("x")], contours, weights)
    else:
        table = Table.of_masses(values, [Numeric("x")], masses, weights)
    said = fit_belief_entropy(table, "OBE", max_depth=0).predict([[0.0]])
    assert (said.belief <= said.theta).all()
    assert (said.theta <= said.plausibility).all()
    assert said.theta.sum() == pytest.approx(1.0, abs=1e-12)
    total = float(weights.sum())
    if as_contours:
        sums = [sum(w * pl[c] / max(pl) for w, pl in zip(weights, contours, strict=True)) for c in range(3)]
    else:
        sums = [
            sum(
                w * m
                for w, mass in zip(weights, masses, strict=True)
                for mask, m in mass.focal
                if mask >> c & 1
            )
            for c in range(3)
        ]
        slow = [
            sum(
                w * m / mask.bit_count()
                for w, mass in zip(weights, masses, strict=True)
                for mask, m in mass.focal
                if mask >> c & 1
            )
            / total
            for c in range(3)
        ]
        np.testing.assert_allclose(said.theta[0], slow, atol=1e-12)
    np.testing.assert_allclose(said.plausibility[0], np.array(sums) / total, atol=1e-12)
    assert said.klass[0] == next(c for c in range(3) if sums[c] >= max(sums) - TIE * total)
    assert said.likeliest[0, said.klass[0]]
