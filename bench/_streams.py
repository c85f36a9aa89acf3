"""Rows that a hidden tree labels: for more rows than real data have, and for streams whose truth changes.

Ten numbers in [0, 1) and three classes; a tree of depth 5 at most labels random rows, and one label in twenty is wrong.
The tree is drawn from a seed of its own, so that other rows come from the same truth.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Numeric

NUMBERS, CLASSES = 10, 3
DEPTH = 5
NOISE = 0.05
ROWS_SEED = 1

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """Parameters of a random hidden tree: from depth `first_leaf` on, each node is a leaf with chance `leaf_chance`."""

    first_leaf: int
    leaf_chance: float
    seed: int


TRUTH = Truth(3, 0.25, 29)


@dataclass(frozen=True, eq=False)
class HiddenTree:
    """A tree that labels rows, one entry a node: attribute (-1 in a leaf), threshold, two children, class."""

    tested: Ints
    threshold: Floats
    children: Ints
    klass: Ints

    def classes_of(self, X: Floats) -> Ints:
        """Return the true classes of rows (n, K)."""
        at = np.zeros(len(X), dtype=np.int64)
        for _ in range(DEPTH):
            value = X[np.arange(len(X)), self.tested[at]]
            branch = (value >= self.threshold[at]).astype(np.int64)
            at = np.where(self.tested[at] < 0, at, self.children[at, branch])
        return self.klass[at]


def with_noise(y: Ints, rng: np.random.Generator) -> Ints:
    """Return classes of which one in twenty is another one."""
    wrong = rng.random(len(y)) < NOISE
    return np.where(wrong, (y + rng.integers(1, CLASSES, size=len(y))) % CLASSES, y)


def hidden_tree(truth: Truth) -> HiddenTree:
    rng = np.random.default_rng(truth.seed)
    tested, threshold, children, klass = [], [], [], []

    def node(depth: int, low: Floats, high: Floats) -> int:
        here = len(tested)
        tested.append(-1)
        threshold.append(0.0)
        children.append([here, here])
        klass.append(rng.choice(CLASSES))
        stops = depth >= truth.first_leaf and rng.random() < truth.leaf_chance
        if depth == DEPTH or stops:
            return here
        k = tested[here] = rng.choice(list(range(NUMBERS)))
        cut = threshold[here] = low[k] + (high[k] - low[k]) * rng.uniform(0.3, 0.7)  # no sliver of a branch
        for branch in range(2):
            floor, roof = low.copy(), high.copy()
            (roof if branch == 0 else floor)[k] = cut
            children[here][branch] = node(depth + 1, floor, roof)
        return here

    node(0, np.zeros(NUMBERS), np.ones(NUMBERS))
    return HiddenTree(np.array(tested), np.array(threshold), np.array(children), np.array(klass))


def drawn_set(rows: int, seed: int = ROWS_SEED) -> DataSet:
    """Return so many rows, labelled by one tree, which is the same for every `seed`."""
    rng = np.random.default_rng(seed)
    X = rng.random((rows, NUMBERS))
    y = with_noise(hidden_tree(TRUTH).classes_of(X), rng)
    attributes = tuple(Numeric(f"a{k}") for k in range(NUMBERS))
    return DataSet("drawn", X, attributes, tuple(f"c{klass}" for klass in range(CLASSES)), y)
