"""Evidential trees of raw values: against one that looks at every cut alone, and against other learners."""

from functools import partial

import numpy as np
import pytest
from property.trees.learners import problems
from property.trees.learners.problems import ARITIES, ATTRIBUTES, slow_rows, table_of_classes, values
from property.trees.learners.slow_evidential import Slow
from property.trees.learners.slow_trees import Rules, grow
from support.growing import abc45

from quercus.specification.attributes import Nominal
from quercus.trees.growth.abc45 import induce
from quercus.trees.learners.table import Table
from quercus.trees.likelihood.interval import entropy_interval
from quercus.trees.likelihood.maximiser import estimate
from quercus.trees.tree.node import Node


def labels(rng: np.random.Generator, rows: int, size: int, certain: float) -> np.ndarray:
    truth = rng.integers(0, size, rows)
    contours = np.where(rng.random((rows, size)) < 0.5, rng.choice([0.0, 0.2, 0.5, 1.0], (rows, size)), 1.0)
    contours[rng.random(rows) < certain] = 0.0
    contours[np.arange(rows), truth] = 1.0
    return contours


def table_of_contours(seed: int, *, certain: float = 0.4, missing: float = 0.0) -> Table:
    rng = np.random.default_rng(seed)
    rows = int(rng.integers(2, 25))
    return Table.of_contours(values(rng, rows, missing), ATTRIBUTES, labels(rng, rows, 3, certain))


def slow(table: Table, alpha: float, **settings: object) -> dict:
    known: dict = {}

    def entropy(contours: list[tuple[float, ...]], level: float = alpha) -> tuple[float, float]:
        key = level, tuple(sorted(contours))
        if key not in known:
            found = entropy_interval(np.array(key[1]), None, level)
            known[key] = found.lower, found.upper
        return known[key]

    def likeliest(contours: list[tuple[float, ...]]) -> tuple[tuple[float, ...], bool]:
        found = estimate(np.array(contours))
        return tuple(found.theta.tolist()), found.unique

    rows = [
        (tuple(None if np.isnan(v) else float(v) for v in x), tuple(pl))
        for x, pl in zip(table.values, table.contours.tolist(), strict=True)
    ]
    return Slow(ARITIES, entropy, partial(entropy, level=1.0), likeliest, **settings).tree(rows)


def assert_same(node: Node, wanted: dict) -> None:
    k, cut = wanted["split"] or (None, None)
    assert (node.attribute, node.count) == (k, len(wanted["rows"]))
    assert node.threshold == (None if cut is None else pytest.approx(cut, abs=1e-12))
    assert node.theta == pytest.approx(wanted["theta"], abs=1e-5)
    assert list(node.intervals) == sorted({attribute for attribute, _ in wanted["tests"]})
    rivals = {attribute for attribute, _ in wanted["rivals"]}
    for (attribute, _), ends in wanted["tests"].items():
        low, high = node.intervals[attribute]
        assert low <= ends[0] + 1e-6
        assert high >= ends[1] - 1e-6
        if attribute in rivals:
            assert (low, high) == pytest.approx(ends, abs=1e-5)
    if node.attribute is not None:
        candidates = any(sum(p > 0 for p in pl) > 1 for _, pl in wanted["rows"])
        assert node.undecided == (len(wanted["rivals"]) > 1 and candidates)
    assert list(node.children) == list(wanted["children"])
    for code, child in node.children.items():
        assert_same(child, wanted["children"][code])


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.99, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_trees_are_those_that_look_at_every_cut_alone(seed: int, alpha: float) -> None:
    table = table_of_contours(seed, certain=(0.2, 0.6, 0.9)[seed % 3], missing=(0.0, 0.2)[seed % 2])
    assert_same(abc45(table, alpha=alpha, max_cuts=100), slow(table, alpha))


@pytest.mark.parametrize("alpha", [0.9, 1.0])
@pytest.mark.parametrize("seed", range(12))
def test_with_cuts_given_only_these_are_looked_at(seed: int, alpha: float) -> None:
    table = table_of_contours(seed, certain=0.6, missing=(0.0, 0.2)[seed % 2])
    fixed = ((), (0.1, 0.75, 1.1, 1.2, 2.0, 9.0), (), (-0.7, -0.5, 0.0, 0.01, 0.8))
    found = abc45(table, alpha=alpha, cuts=fixed)
    assert_same(found, slow(table, alpha, fixed=fixed))


@pytest.mark.parametrize("seed", range(25))
def test_precise_labels_at_level_1_give_the_gain_ratio_tree(seed: int) -> None:
    table = table_of_classes(seed, missing=(0.0, 0.2)[seed % 2])
    wanted = grow(slow_rows(table, table.contours), Rules(ARITIES, ratio=True))
    problems.assert_same(abc45(table, alpha=1.0, max_cuts=100), wanted)


@pytest.mark.parametrize("alpha", [0.8, 1.0])
@pytest.mark.parametrize("seed", range(15))
def test_on_nominal_values_it_is_induction_without_queries(seed: int, alpha: float) -> None:
    rng = np.random.default_rng(seed)
    arities = rng.integers(1, 5, rng.integers(1, 6))
    rows = int(rng.integers(1, 30))
    codes = np.column_stack([rng.integers(0, r, rows) for r in arities])
    contours = labels(rng, rows, 3, 0.5)
    attributes = [Nominal(f"a{k}", tuple("pqrs"[:r])) for k, r in enumerate(arities)]
    mine = abc45(Table.of_contours(codes, attributes, contours), alpha=alpha)
    other = induce(codes, arities, contours, alpha=alpha).tree
    for (node, *place), (theirs, *there) in zip(mine.preorder(), other.preorder(), strict=True):
        assert place == there
        for name in ("attribute", "klass", "count", "stop", "undecided", "belief", "plausibility"):
            assert getattr(node, name) == getattr(theirs, name), name
        assert node.intervals.keys() == theirs.intervals.keys()
        bar = max((low for low, _ in theirs.intervals.values()), default=0.0)
        for k, (low, high) in theirs.intervals.items():
            if high >= bar:
                assert node.intervals[k] == pytest.approx((low, high), abs=1e-9)
            assert node.intervals[k][0] <= low + 1e-9
            assert node.intervals[k][1] >= high - 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_a_weight_is_so_many_rows(seed: int) -> None:
    table = table_of_contours(seed, certain=0.6)
    times = np.random.default_rng(seed).integers(0, 3, len(table))
    times[0] = 1
    weighted = Table.of_contours(table.values, ATTRIBUTES, table.contours, times)
    grow = partial(abc45, alpha=0.9)
    assert grow(weighted) == grow(table.take(np.repeat(np.arange(len(table)), times)))
