"""The two tests of significance, against numbers worked out otherwise."""

from math import log

import numpy as np
import pytest
from scipy import stats
from support.growing import abc45, id3

from quercus.specification.attributes import Nominal, Numeric
from quercus.specification.learners import Pruning
from quercus.trees.learners.pruning import prune_chi_square
from quercus.trees.learners.table import Table
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.maximiser import estimate
from quercus.trees.rules.evidential_pruning import (
    NodeEvidence,
    collapsible_nodes,
    expected_counts,
    log_likelihoods,
)
from quercus.trees.tree.node import Node, Stop

A, B, AB, NOTHING = 0, 1, 2, 3
CONTOURS = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 1.0, 0.0], [1.0, 1.0, 1.0]])
KINDS = ("chi-square", "likelihood")


def split(*children: list[int]) -> NodeEvidence:
    """A node and its leaves, each given as how often A, B, {A, B} and the whole frame were said."""
    counts = np.array([np.sum(children, axis=0), *children])
    theta = []
    for row in counts:
        found = estimate(CONTOURS, row)
        theta.append(found.theta)
    return NodeEvidence(
        np.array([-1] + [0] * len(children)), np.array(theta), Cells.of_dense(counts), CONTOURS
    )


def is_idle(tree: NodeEvidence, kind: str, level: float = 0.05) -> bool:
    found = collapsible_nodes(tree, Pruning(kind, level))
    assert not found[1:].any()
    return bool(found[0])


def test_with_precise_labels_the_likelihood_ratio_is_the_g_statistic():
    counts = np.array([[8, 3], [2, 9]])
    tree = split([8, 3, 0, 0], [2, 9, 0, 0])
    own, *leaves = log_likelihoods(tree)
    expected = stats.chi2_contingency(counts, correction=False, lambda_="log-likelihood")
    assert 2 * (sum(leaves) - own) == pytest.approx(expected.statistic, abs=1e-6)
    assert is_idle(tree, "likelihood", expected.pvalue - 1e-6)
    assert not is_idle(tree, "likelihood", expected.pvalue + 1e-6)


def test_with_precise_labels_chi_square_is_that_of_the_counts():
    counts = np.array([[8, 3], [2, 9], [4, 4]])
    tree = split(*([*row, 0, 0] for row in counts.tolist()))
    expected = stats.chi2_contingency(counts, correction=False)
    assert is_idle(tree, "chi-square", expected.pvalue - 1e-6)
    assert not is_idle(tree, "chi-square", expected.pvalue + 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_say_nothing_add_nothing(kind):
    with_some, without = split([9, 1, 0, 500], [1, 9, 0, 900]), split([9, 1, 0, 0], [1, 9, 0, 0])
    np.testing.assert_allclose(log_likelihoods(with_some), log_likelihoods(without), atol=1e-9)
    np.testing.assert_allclose(expected_counts(with_some), expected_counts(without), atol=1e-6)
    for level in (0.0001, 0.001, 0.01):
        assert is_idle(with_some, kind, level) == is_idle(without, kind, level)
    assert is_idle(split([9, 1, 0, 0], [0, 0, 0, 5]), kind)  # one child knows nothing: there is no other


@pytest.mark.parametrize("kind", KINDS)
def test_labels_that_one_class_explains_do_not_differ(kind):
    """{A, B} may be estimated as B or anything between; that is not evidence against A."""
    assert is_idle(split([50, 0, 0, 0], [0, 0, 50, 0]), kind, 0.9)
    assert not is_idle(split([50, 0, 0, 0], [0, 50, 0, 0]), kind, 0.05)


def test_expected_counts_are_shared_out_by_what_the_parent_estimates():
    tree = split([3, 1, 2, 0], [1, 2, 4, 1])
    a, b, _ = tree.theta[0]
    np.testing.assert_allclose(expected_counts(tree)[1], [3 + 2 * a, 1 + 2 * b, 0], atol=1e-6)
    np.testing.assert_allclose(expected_counts(tree)[1:].sum(axis=0), 13 * tree.theta[0], atol=1e-5)


def test_degrees_of_freedom_are_those_of_leaves_and_classes():
    tree = split(
        [6, 1, 0, 0], [2, 4, 0, 0], [2, 3, 1, 1]
    )  # three leaves, of three classes one does not occur
    own, *leaves = log_likelihoods(tree)
    p = stats.chi2.sf(2 * (sum(leaves) - own), 2)
    assert 0.01 < p < 0.99
    assert is_idle(tree, "likelihood", p - 1e-6)
    assert not is_idle(tree, "likelihood", p + 1e-6)


def test_pruning_goes_from_the_leaves_up():
    """Below the root a needless split, whose two leaves count as one for the root."""
    counts = np.array([[24, 20, 0, 0], [20, 2, 0, 0], [4, 18, 0, 0], [2, 9, 0, 0], [2, 9, 0, 0]])
    theta = counts[:, :2] / counts.sum(axis=1, keepdims=True)
    tree = NodeEvidence(
        np.array([-1, 0, 0, 2, 2]), np.column_stack([theta, np.zeros(5)]), Cells.of_dense(counts), CONTOURS
    )
    own = log_likelihoods(tree)
    p = stats.chi2.sf(2 * (own[1] + own[2] - own[0]), 1)
    assert p < stats.chi2.sf(2 * (own[1] + own[2] - own[0]), 2)  # what three leaves would need
    for kind in KINDS:
        assert collapsible_nodes(tree, Pruning(kind, 0.01)).tolist() == [False, False, True, False, False]
    assert collapsible_nodes(tree, Pruning("likelihood", p / 2)).tolist()[0]
    assert not collapsible_nodes(tree, Pruning("likelihood", p * 1.01)).tolist()[0]


# whole trees


def noise(seed: int) -> Table:
    rng = np.random.default_rng(seed)
    contours = np.eye(2)[rng.integers(0, 2, 60)]
    contours[rng.random(60) < 0.3] = 1.0
    return Table.of_contours(rng.normal(size=(60, 2)), [Numeric("x"), Numeric("y")], contours)


def slow_likelihood(tree: Node, table: Table, rows: np.ndarray, level: float) -> tuple[Node, float, list]:
    """Return the tree pruned bottom-up by the definition, with the likelihood and classes of its leaves."""
    own = estimate(table.contours[rows])
    silent = (np.ptp(table.contours[rows], axis=1) == 0).all()
    occurring = [] if silent else [set(np.flatnonzero(own.theta > 1e-6).tolist())]
    if tree.is_leaf:
        return tree, own.log_likelihood, occurring
    column = table.values[rows, tree.attribute]
    side = (column >= tree.threshold).astype(int)
    below, classes, children = 0.0, [], {}
    for code, child in tree.children.items():
        children[code], value, found = slow_likelihood(child, table, rows[side == code], level)
        below += value
        classes += found
    free = (len(classes) - 1) * (len(set().union(*classes, *occurring)) - 1)
    if free <= 0 or stats.chi2.sf(max(0.0, 2 * (below - own.log_likelihood)), free) > level:
        return Node(None, tree.klass, tree.theta, tree.count), own.log_likelihood, occurring
    return Node(tree.attribute, tree.klass, tree.theta, tree.count, children=children), below, classes


def shape(tree: Node) -> list[tuple]:
    return [(n.attribute, n.klass, n.count, *place) for n, *place in tree.preorder()]


@pytest.mark.parametrize("seed", range(20))
def test_trees_are_pruned_as_the_definition_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    table = noise(seed)
    contours = np.where(table.contours == 0, 0.1, table.contours)  # what is not vacuous says little
    contours[:, 0] *= np.where(table.values[:, 0] > 0.3, 0.5, 1.0)
    table = Table.of_contours(table.values, table.attributes, contours)
    level = float(rng.choice([0.01, 0.05, 0.3, 0.8]))
    whole = abc45(table, alpha=0.9)
    pruned = abc45(table, alpha=0.9, pruning=Pruning("likelihood", level))
    assert shape(pruned) == shape(slow_likelihood(whole, table, np.arange(60), level)[0])


@pytest.mark.parametrize("seed", range(10))
def test_chi_square_on_precise_labels_is_that_of_id3(seed: int) -> None:
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 3, (80, 3))
    klass = np.where(rng.random(80) < 0.5, codes[:, 0], rng.integers(0, 3, 80))
    attributes = [Nominal(f"a{k}", ("p", "q", "r")) for k in range(3)]
    table = Table.of_classes(codes, attributes, klass, 3)
    whole = abc45(table, alpha=1.0)
    pruned = abc45(table, alpha=1.0, pruning=Pruning("chi-square", 0.05))
    assert shape(pruned) == shape(prune_chi_square(whole, 0.05))
    assert len(shape(pruned)) < len(shape(whole))
    assert shape(id3(table, significance=0.05))[0][0] == 0  # what tells the class stays


@pytest.mark.parametrize("kind", KINDS)
def test_noise_is_pruned_and_what_tells_the_class_is_not(kind: str) -> None:
    pruned = [abc45(noise(seed), alpha=0.9, pruning=Pruning(kind, 0.01)) for seed in range(10)]
    whole = [abc45(noise(seed), alpha=0.9) for seed in range(10)]
    sizes = [sum(len(list(tree.preorder())) for tree in trees) for trees in (pruned, whole)]
    assert sizes[0] < sizes[1] / 2
    assert any(node.stop is Stop.PRUNED for tree in pruned for node, _, _ in tree.preorder())
    told = Table.of_contours(
        [[float(i)] for i in range(40)],
        [Numeric("x")],
        [[1, 0.1] if i < 20 else [0.1, 1] for i in range(40)],
    )
    tree = abc45(told, alpha=0.9, max_cuts=100, pruning=Pruning(kind, 0.01))
    assert tree.threshold == 19.5


def test_a_smaller_level_prunes_more() -> None:
    for kind in KINDS:
        sizes = [
            len(list(abc45(noise(3), alpha=0.9, pruning=Pruning(kind, level)).preorder()))
            for level in (0.001, 0.05, 0.5, 0.999)
        ]
        assert sizes == sorted(sizes)
        assert sizes[0] < sizes[-1]


def test_the_log_likelihood_is_that_of_the_labels() -> None:
    tree = split([2, 1, 3, 4], [0, 2, 1, 0])
    a, b, _ = tree.theta[1]
    assert log_likelihoods(tree)[1] == pytest.approx(2 * log(a) + log(b) + 3 * log(a + b), abs=1e-9)
