"""Earned splits (theory §12): the test itself, what chance alone brings about, and both ways to grow a tree with it."""

import math

import numpy as np
import pytest
from golden.trees.table_t import ARITIES, CODES, CONTOURS
from property.trees.problems import problem
from scipy.special import chdtrc
from support.growing import abc45

from quercus.kernels.growth import chi_square_tail
from quercus.specification.attributes import Nominal
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.table import Table
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.tree.node import Node, Stop


def shape(tree: Node) -> list[tuple[object, ...]]:
    return [(parent, code, n.attribute, n.klass, n.count, n.stop) for n, parent, code in tree.preorder()]


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 7, 10, 101, 5000])
def test_the_tail_of_chi_square_is_that_of_scipy(freedom: int) -> None:
    values = np.array([-1.0, 0.0, 1e-9, 0.1, 3.841459, 40.0, 300.0, freedom, 1.2 * freedom, 2.0 * freedom])
    found = [chi_square_tail(value, freedom) for value in values.tolist()]
    assert found == pytest.approx(chdtrc(freedom, np.maximum(values, 0.0)), rel=1e-9, abs=1e-300)


def test_by_hand() -> None:
    """Eight rows, two classes: one attribute tells them apart, the other nothing; D = 16 ln 2, f = 1, m = 2."""
    codes = [[0, 0], [0, 1], [0, 0], [0, 1], [1, 0], [1, 1], [1, 0], [1, 1]]
    bar = 2 * math.erfc(math.sqrt(8 * math.log(2)))
    assert bar == pytest.approx(0.00173, abs=1e-5)
    for level, attribute in ((0.99 * bar, None), (1.01 * bar, 0)):
        tree = induce(codes, [2, 2], np.eye(2).repeat(4, axis=0), split_significance=level).tree
        assert (tree.attribute, tree.stop) == (attribute, Stop.NOT_SIGNIFICANT if attribute is None else None)


@pytest.mark.parametrize(
    ("level", "split"), [(0.0, [0, 1]), (10.0, [0, 1]), (0.1, [0, 1]), (0.01, [0]), (0.001, [])]
)
def test_table_t(level: float, split: list[int]) -> None:
    """theory §12.4."""
    tree = induce(CODES, ARITIES, CONTOURS, alpha=1.0, split_significance=level).tree
    assert [n.attribute for n, _, _ in tree.preorder() if n.attribute is not None] == split


def test_a_split_of_one_row_does_not_displace_one_that_is_earned() -> None:
    """The gain ratio prefers the row that stands alone; it is not earned, and the better split is."""
    rng = np.random.default_rng(0)
    truth = np.arange(200) % 2
    alone = (np.arange(200) == 1).astype(int)
    useful = np.where(rng.random(200) < 0.7, truth, 1 - truth)
    codes = np.column_stack([alone, useful])
    plain, tested = (
        induce(codes, [2, 2], np.eye(2)[truth], alpha=1.0, split_significance=level).tree
        for level in (0.0, 0.1)
    )
    assert (plain.attribute, tested.attribute) == (0, 1)
    assert list(tested.intervals) == [1]


@pytest.mark.parametrize("classes", [2, 5])
def test_of_noise_chance_earns_no_more_than_the_level(classes: int) -> None:
    """200 rows and six attributes that mean nothing: at level .1 about one root in ten at most is split."""
    rng, split = np.random.default_rng(classes), 0
    for _ in range(200):
        codes = rng.integers(0, 3, (200, 6))
        labels = np.eye(classes)[rng.integers(0, classes, 200)]
        split += induce(codes, [3] * 6, labels, split_significance=0.1).tree.attribute is not None
    assert split <= 20 + 3 * math.sqrt(200 * 0.1 * 0.9)


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_of_a_table_is_that_of_a_log(seed: int) -> None:
    given = problem(seed, rows=60)
    attributes = [
        Nominal(f"a{k}", tuple(map(str, range(arity))), "reject") for k, arity in enumerate(given.arities)
    ]
    table = Table.of_contours(given.codes.astype(float), attributes, given.contours)
    settings = {key: value for key, value in given.settings.items() if key != "budget"}
    for level in (0.3, 10.0):
        grown = induce(given.codes, given.arities, given.contours, split_significance=level, **settings).tree
        assert shape(grown) == shape(abc45(table, split_significance=level, **settings))


@pytest.mark.parametrize("seed", range(20))
def test_bounds_enclose_the_greatest_likelihood(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 5))
    contours = rng.choice([0.0, 0.2, 1.0], (6, size)) + np.eye(size)[rng.integers(0, size, 6)] * 0.5
    contours = np.minimum(contours, 1.0)
    counts = rng.integers(0, 9, (5, 6))
    found = IntervalSolver(contours, 1.0).maximise_cells(Cells.of_dense(counts))
    says = contours.min(axis=1) < contours.max(axis=1)
    scaled = contours[says] / contours[says].max(axis=1, keepdims=True)
    points = np.concatenate([rng.dirichlet(np.ones(size), 2000), rng.dirichlet(np.full(size, 0.1), 2000)])
    for cell in range(5):
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(counts[cell, says] > 0, counts[cell, says] * np.log(points @ scaled.T), 0.0)
        best = float(terms.sum(axis=1).max())
        assert best <= found.bound[cell] + 1e-12
        assert found.reached[cell] <= found.bound[cell] <= found.reached[cell] + 1e-6
        assert best <= found.reached[cell] + 1e-6
        assert found.weight[cell] == counts[cell, says].sum()


def test_without_a_label_the_root_is_contested() -> None:
    """A model that starts from nothing asks, at a leaf: it does not lock itself out (theory §12.3)."""
    codes = np.random.default_rng(0).integers(0, 2, (30, 3))
    truth = codes[:, 1]
    found = induce(
        codes,
        [2, 2, 2],
        np.ones((30, 2)),
        budget=30,
        oracle=lambda row: np.eye(2)[truth[row]],
        split_significance=1.0,
    )
    assert found.queries[0].path == ()
    assert len(found.queries[0].rivals) == 3
    assert (found.tree.attribute, found.tree.undecided) == (1, False)
    assert len(found.queries) < 30
