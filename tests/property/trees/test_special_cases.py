"""theory §3.6: what ABC4.5 becomes when labels are precise, or the level is 1."""

from math import log2

import numpy as np
import pytest
from property.trees.problems import problem

from quercus.trees.growth.abc45 import induce
from quercus.trees.tree.node import Node


def entropy(theta: np.ndarray) -> float:
    return -sum(p * log2(p) for p in theta if p > 0)


def frequencies(contours: np.ndarray) -> np.ndarray:
    return contours.sum(axis=0) / len(contours)


def expectation_maximisation(contours: np.ndarray) -> np.ndarray:
    """E2M: each row's class is shared out by the current estimate, and the shares are averaged."""
    theta = np.full(contours.shape[1], 1 / contours.shape[1])
    for _ in range(20_000):
        shares = theta * contours
        following = (shares / shares.sum(axis=1, keepdims=True)).mean(axis=0)
        if np.abs(following - theta).max() < 1e-14:
            break
        theta = following
    theta = np.where(theta < 1e-7, 0, theta)
    return theta / theta.sum()


def gain_ratio_tree(codes: np.ndarray, contours: np.ndarray, estimate: object, left: tuple[int, ...]) -> dict:
    """C4.5 without pruning: the largest gain ratio, ties to the earlier attribute, until nothing is gained."""
    theta = estimate(contours)
    klass = min(c for c, p in enumerate(theta) if p >= theta.max() - 1e-9)
    leaf = {"attribute": None, "class": klass, "count": len(codes), "theta": theta, "children": {}}
    if len(codes) < 2 or theta.max() >= 1 - 1e-9:
        return leaf
    ratios = {}
    for k in left:
        values, counts = np.unique(codes[:, k], return_counts=True)
        if len(values) > 1:
            inside = [entropy(estimate(contours[codes[:, k] == v])) for v in values]
            gain = entropy(theta) - sum(counts * inside) / len(codes)
            ratios[k] = gain / entropy(counts / len(codes))
    if not ratios or max(ratios.values()) <= 1e-9:
        return leaf
    best = min(k for k in ratios if ratios[k] >= max(ratios.values()) - 1e-9)
    below = tuple(k for k in left if k != best)
    children = {}
    for v in np.unique(codes[:, best]):
        part = codes[:, best] == v
        children[int(v)] = gain_ratio_tree(codes[part], contours[part], estimate, below)
    return leaf | {"attribute": best, "children": children}


def assert_same(node: Node, slow: dict) -> None:
    assert (node.attribute, node.klass, node.count) == (slow["attribute"], slow["class"], slow["count"])
    assert node.theta == pytest.approx(slow["theta"], abs=1e-6)
    assert list(node.children) == list(slow["children"])
    for code, child in node.children.items():
        assert_same(child, slow["children"][code])


@pytest.mark.parametrize("seed", range(40))
def test_precise_labels_at_level_one_give_c45(seed: int) -> None:
    given = problem(seed, classes=(2, 3, 4, 6), rows=60)
    truth = np.random.default_rng(seed).integers(0, given.contours.shape[1], len(given.codes))
    labels = np.eye(given.contours.shape[1])[np.where(given.codes[:, 0] == 0, truth, truth // 2)]
    tree = induce(given.codes, given.arities, labels, alpha=1.0).tree
    assert_same(tree, gain_ratio_tree(given.codes, labels, frequencies, tuple(range(len(given.arities)))))
    assert not any(node.undecided for node, _, _ in tree.preorder())


@pytest.mark.parametrize("seed", range(25))
def test_level_one_gives_the_e2m_tree(seed: int) -> None:
    given = problem(seed, rows=40)
    rng = np.random.default_rng(seed)
    labels = rng.random(given.contours.shape)  # in general position, so that every estimate is unique
    tree = induce(given.codes, given.arities, labels, alpha=1.0).tree
    attributes = tuple(range(len(given.arities)))
    assert_same(tree, gain_ratio_tree(given.codes, labels, expectation_maximisation, attributes))
