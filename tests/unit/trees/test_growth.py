"""The skeleton carries learners of quite different kinds, and trees of any depth."""

from dataclasses import dataclass

import numpy as np
import pytest
from sklearn.datasets import load_iris

from quercus.trees.growth.batch import (
    GrowthRules,
    NodePrediction,
    OpenNode,
    SplitChoice,
    grow_tree,
)
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.names import TreeNames
from quercus.trees.tree.node import Node, Stop
from quercus.view.trees.dot import to_dot
from quercus.view.trees.text import to_text


@dataclass(frozen=True)
class Majority(GrowthRules):
    labels: np.ndarray

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        theta = np.bincount(self.labels[place.rows], minlength=self.labels.max() + 1) / place.rows.size
        exact = tuple(theta.tolist())
        return NodePrediction(int(theta.argmax()), exact, exact, exact)

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        return Stop.PURE if len(set(self.labels[place.rows])) == 1 else None

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        return Stop.NO_GAIN if max(high for _, high in choice.intervals.values()) <= 0 else None


@dataclass(frozen=True, slots=True)
class Cut(SplitChoice):
    threshold: float = 0.0


@dataclass(frozen=True)
class Thresholds(Majority):
    """Binary splits of numbers by information gain; an attribute may be cut again further down."""

    values: np.ndarray

    def choose_split(self, place: OpenNode) -> Cut | None:
        cuts = [
            (self._gain(place.rows, k, t), -k, t) for k in place.attributes for t in self._between(place, k)
        ]
        if not cuts:
            return None
        gain, k, threshold = max(cuts)
        return Cut(-k, {-k: (gain, gain)}, threshold=threshold)

    def _between(self, place: OpenNode, k: int) -> list[float]:
        seen = np.unique(self.values[place.rows, k])
        return ((seen[1:] + seen[:-1]) / 2).tolist()

    def _gain(self, rows: np.ndarray, k: int, threshold: float) -> float:
        above = self.values[rows, k] >= threshold
        parts = (rows[above], rows[~above])
        return self._entropy(rows) - sum(len(part) * self._entropy(part) for part in parts) / len(rows)

    def _entropy(self, rows: np.ndarray) -> float:
        share = np.unique(self.labels[rows], return_counts=True)[1] / len(rows)
        return float(-(share * np.log2(share)).sum())

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        assert isinstance(choice, Cut)
        above = self.values[place.rows, choice.attribute] >= choice.threshold
        return [
            place.child(choice.attribute, code, place.rows[above == bool(code)], place.attributes)
            for code in (0, 1)
        ]


@dataclass(frozen=True)
class OneBranchAClass(Majority):
    """A row goes where the mean of its class is nearest: as many branches as classes, some of them empty."""

    values: np.ndarray

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        if not place.attributes:
            return None
        k = place.attributes[0]
        return SplitChoice(k, {k: (1.0, 1.0)})

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        k = choice.attribute
        classes = np.unique(self.labels[place.rows])
        column = self.values[place.rows, k]
        means = np.array([column[self.labels[place.rows] == c].mean() for c in classes])
        nearest = classes[np.abs(column[:, np.newaxis] - means).argmin(axis=1)]
        left = tuple(j for j in place.attributes if j != k)
        return [place.child(k, int(c), place.rows[nearest == c], left) for c in np.unique(nearest)]


def everything(values: np.ndarray) -> OpenNode:
    return OpenNode((), np.arange(len(values)), tuple(range(values.shape[1])))


def test_binary_thresholds() -> None:
    data = load_iris()
    learner = Thresholds(data.target, data.data)
    tree = grow_tree(everything(data.data), learner)
    assert (tree.attribute, tree.count) == (
        2,
        150,
    )  # petals tell the first kind from the others, of length or width
    assert tree.children[0].theta == (1.0, 0.0, 0.0)
    leaves = [node for node, _, _ in tree.preorder() if node.is_leaf]
    assert all(leaf.stop is Stop.PURE for leaf in leaves)
    assert sum(leaf.count for leaf in leaves) == 150


def test_one_branch_a_class() -> None:
    data = load_iris()
    learner = OneBranchAClass(data.target, data.data)
    tree = grow_tree(everything(data.data), learner)
    assert list(tree.children) == [0, 1, 2]
    assert {node.stop for node, _, _ in tree.preorder()} == {None, Stop.PURE, Stop.NO_ATTRIBUTE}
    depths = [len(FlatTree.of(tree).path(index)) for index in range(FlatTree.of(tree).size)]
    assert max(depths) == 4


@dataclass(frozen=True)
class Peel(GrowthRules):
    """Splits off one row a level."""

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        return SplitChoice(place.depth, {place.depth: (1.0, 1.0)}) if place.rows.size > 1 else None

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        k = choice.attribute
        return [
            place.child(k, 0, place.rows[:1], place.attributes),
            place.child(k, 1, place.rows[1:], place.attributes),
        ]

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        return Stop.FEW_INSTANCES if place.rows.size < 2 else None

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        return NodePrediction(0, (1.0, 0.0), (1.0, 0.0), (1.0, 0.0))


@pytest.fixture(scope="module")
def deep() -> Node:
    peel = Peel()
    rows = np.zeros((3000, 1))
    return grow_tree(everything(rows), peel)


def test_trees_of_any_depth(deep: Node) -> None:
    flat = FlatTree.of(deep)
    assert (flat.size, flat.leaf_count) == (5999, 3000)
    assert len(flat.path(flat.size - 1)) == 2999
    peel = Peel()
    assert deep == grow_tree(everything(np.zeros((3000, 1))), peel)
    names = TreeNames(("a", "b"), tuple(f"x{k}" for k in range(3000)), (("no", "yes"),) * 3000)
    assert to_text(deep, names).count("\n") == 5998
    assert to_dot(deep, names).count("->") == 5998
    assert flat.route(np.ones((1, 3000), dtype=np.int16)).tolist() == [flat.size - 1]
