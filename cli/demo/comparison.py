"""The baseline of the demo, computed offline: random labels, on the same split in several orders and on others.

The learner and its settings are those of the service; only the choice of rows differs. Random labels are given beyond
the budget, to find how many of them reach the same accuracy.
"""

from __future__ import annotations

import json
import os

import numpy as np
from numpy.typing import NDArray

from quercus.cli.demo.data import CLASSES, make_split
from quercus.specification.attributes import Numeric
from quercus.trees import ActiveForest, MemoryForest, forest_of
from quercus.trees.memory_forest.asking import choose_rows

NICE = 5
"""Low priority (``nice``), since the live processes come first."""


class Problem:
    """A split, encoded for the forest.

    Parameters
    ----------
    seed
        Of the split.
    """

    def __init__(self, seed: int) -> None:
        self._split = make_split(seed)
        self._targets = [CLASSES.index(name) for name in self._split.training_classes]
        self._holdout_targets = [CLASSES.index(name) for name in self._split.holdout_classes]

    def _forest(self) -> MemoryForest:
        """Return a forest of the unlabelled training rows."""
        attributes = [Numeric(name) for name in self._split.attributes]
        forest = forest_of(ActiveForest(), attributes, len(CLASSES))
        forest.observe(self._split.training, np.ones((len(self._targets), len(CLASSES))))
        return forest

    def _give_answer(self, forest: MemoryForest, row: int) -> None:
        forest.replace_contour(row, np.eye(len(CLASSES))[self._targets[row]])

    def _accuracy(self, forest: MemoryForest) -> float:
        """Return the held-out accuracy of a forest."""
        return float(np.mean(forest.predict(self._split.holdout).klass == self._holdout_targets))

    def random_order(self, seed: int) -> NDArray[np.int64]:
        """Return all training rows in a random order: (n,)."""
        return np.random.default_rng(seed).permutation(len(self._targets))

    def accuracies(self, order: NDArray[np.int64]) -> list[float]:
        """Return the held-out accuracy after 0, 1, ... answers, given in an order of rows."""
        forest = self._forest()
        accuracies = [self._accuracy(forest)]
        for row in order.tolist():
            self._give_answer(forest, row)
            accuracies.append(self._accuracy(forest))
        return accuracies

    def accuracy_at_random(self, order: NDArray[np.int64]) -> float:
        """Return the held-out accuracy after answers about these rows."""
        forest = self._forest()
        for row in order.tolist():
            self._give_answer(forest, row)
        return self._accuracy(forest)

    def accuracy_of_asking(self, budget: int) -> float:
        """Return the held-out accuracy after ``budget`` queries, each answered with the true class."""
        forest, left = self._forest(), np.ones(len(self._targets), dtype=bool)
        for _ in range(budget):
            (choice,) = choose_rows(forest, np.flatnonzero(left), 1)
            left[choice.row] = False
            self._give_answer(forest, choice.row)
        return self._accuracy(forest)


def compare(seed: int, budget: int, orders: int, *other_seeds: int) -> None:
    """Print a line of JSON for each random order of the rows, then one for each other split.

    Parameters
    ----------
    seed
        Of the split.
    budget
        Number of answers on each other split: to queries, and about random rows.
    orders
        Number of random orders.
    other_seeds
        Of the other splits.
    """
    if hasattr(os, "nice"):
        os.nice(NICE)
    problem = Problem(seed)
    for k in range(orders):
        print(json.dumps({"accuracies": problem.accuracies(problem.random_order(k))}), flush=True)
    for other in other_seeds:
        problem = Problem(other)
        drawn = [problem.accuracy_at_random(problem.random_order(k)[:budget]) for k in range(orders)]
        result = {"asked": problem.accuracy_of_asking(budget), "random": float(np.mean(drawn))}
        print(json.dumps(result), flush=True)
