"""`abc45.induce` does what theory §3 says: compared with the plain version in `slow_abc45`."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from property.trees.problems import Problem, problem
from property.trees.slow_abc45 import Slow, as_rows, replace_or_multiply

from quercus.trees.growth.abc45 import induce
from quercus.trees.likelihood.interval import entropy_interval
from quercus.trees.likelihood.maximiser import estimate
from quercus.trees.tree.node import Node


def entropy(contours: list[tuple[float, ...]], alpha: float) -> tuple[float, float]:
    found = entropy_interval(np.array(contours), None, alpha)
    return found.lower, found.upper


def likeliest(contours: list[tuple[float, ...]]) -> tuple[tuple[float, ...], bool]:
    found = estimate(np.array(contours), None)
    return tuple(found.theta.tolist()), found.unique


def assert_same_tree(node: Node, slow: dict) -> None:
    assert (node.attribute, node.klass, node.count) == (slow["attribute"], slow["class"], len(slow["rows"]))
    assert node.theta == pytest.approx(slow["theta"], abs=1e-5)
    assert list(node.intervals) == list(slow["intervals"])
    for attribute, ends in node.intervals.items():
        assert ends == pytest.approx(slow["intervals"][attribute], abs=1e-5)
    assert list(node.children) == list(slow["children"])
    for code, child in node.children.items():
        assert_same_tree(child, slow["children"][code])


def silenced(seed: int) -> Problem:
    """Return a problem in which four of five rows say nothing, and nobody is asked."""
    given = problem(seed)
    given.contours[np.random.default_rng(seed).random(len(given.contours)) < 0.8] = 1.0
    return replace(given, budget=0)


@pytest.mark.parametrize("make", [problem, silenced])
@pytest.mark.parametrize("seed", range(60))
def test_induce(seed: int, make: Callable[[int], Problem]) -> None:
    given = make(seed)
    learner = Slow(
        given.arities,
        partial(entropy, alpha=given.alpha),
        likeliest,
        replace_or_multiply,
        given.min_instances,
        given.max_depth,
    )
    tree, asked = learner.induce(as_rows(given.codes, given.contours), given.budget, given.oracle)
    found = induce(given.codes, given.arities, given.contours, oracle=given.oracle, **given.settings)
    assert [(q.instance, q.path, q.attribute, q.code) for q in found.queries] == [q[:4] for q in asked]
    assert [q.score for q in found.queries] == pytest.approx([q[4] for q in asked], abs=1e-5)
    assert_same_tree(found.tree, tree)


@pytest.mark.slow
def test_the_problems_cover_what_matters() -> None:
    found = [
        (given, induce(given.codes, given.arities, given.contours, oracle=given.oracle, **given.settings))
        for given in map(problem, range(150))
    ]
    queries = [(given, query) for given, result in found for query in result.queries]
    assert sum(len(result.tree.children) > 0 for _, result in found) > 40
    assert sum(len(query.path) > 0 for _, query in queries) > 10
    assert sum(given.answers[query.instance] is None for given, query in queries) > 20
    assert sum(np.sum(given.answers[query.instance] or (0,)) > 1 for given, query in queries) > 20


def test_the_silenced_problems_have_silent_branches() -> None:
    silent = 0
    for given in map(silenced, range(150)):
        found = induce(given.codes, given.arities, given.contours, **given.settings).tree
        nodes = list(found.preorder())
        silent += sum(parent >= 0 and node.theta == nodes[parent][0].theta for node, parent, _ in nodes)
    assert silent > 20
