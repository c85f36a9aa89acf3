"""The same number of labels spent at random, offline: on the same split in several orders, and on other splits.

Prints a line of JSON (:class:`RandomDraw`) for each order of the rows, then one (:class:`OtherSplit`) for each other
split. The learner and its settings are the service's;
only who is asked differs. Random labels are spent beyond the budget, to see how many of them do as well.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from quercus.cli.demo import data
from quercus.cli.demo.child import end_with_parent
from quercus.cli.demo.tables import CLASSES, HOLDOUT, TRAINING, TRUTH, read_table, row_numbers
from quercus.client.values import Floats
from quercus.specification.attributes import Numeric
from quercus.trees import ActiveForest, MemoryForest, forest_of
from quercus.trees.memory_forest.asking import choose_rows

NICE = 5
"""The live processes come first."""


@dataclass(frozen=True)
class RandomDraw:
    """Held-out accuracy after 0, 1, 2, ... answers about rows drawn at random by ``seed``, up to all rows."""

    seed: int
    accuracies: tuple[float, ...]


@dataclass(frozen=True)
class OtherSplit:
    """Held-out accuracy on the split of ``seed``, all labels spent: as the queries ask, and at random on average."""

    seed: int
    asked: float
    random: float


@dataclass(frozen=True, eq=False)
class DemoProblem:
    """The split as the forest sees it.

    Attributes
    ----------
    values, targets : (n, K) and (n,), of the training rows.
    holdout, holdout_targets : (m, K) and (m,), of the held-out rows.
    """

    values: Floats
    targets: NDArray[np.int64]
    holdout: Floats
    holdout_targets: NDArray[np.int64]

    def forest(self) -> MemoryForest:
        """Return the forest of the training rows, without labels."""
        attributes = [Numeric(f"x{k}") for k in range(self.values.shape[1])]
        forest = forest_of(ActiveForest(), attributes, len(CLASSES))
        forest.observe(self.values, np.ones((len(self.values), len(CLASSES))))
        return forest

    def give_answer(self, forest: MemoryForest, row: int) -> None:
        """Give a forest the true class of a row."""
        forest.replace_contour(row, np.eye(len(CLASSES))[self.targets[row]])

    def accuracy(self, forest: MemoryForest) -> float:
        """Return the held-out accuracy of a forest."""
        return float(np.mean(forest.predict(self.holdout).klass == self.holdout_targets))

    def at_random(self, order: NDArray[np.int64]) -> float:
        """Return the held-out accuracy after the true classes of the rows `order`."""
        forest = self.forest()
        for row in order:
            self.give_answer(forest, int(row))
        return self.accuracy(forest)

    def accuracy_of_asking(self, budget: int) -> float:
        """Return the held-out accuracy after ``budget`` queries, each answered with the true class."""
        forest, left = self.forest(), np.ones(len(self.targets), dtype=bool)
        for _ in range(budget):
            (choice,) = choose_rows(forest, np.flatnonzero(left), 1)
            left[choice.row] = False
            self.give_answer(forest, choice.row)
        return self.accuracy(forest)


def load_problem(folder: Path) -> DemoProblem:
    """Return the split that lies in ``folder``."""
    training, truth, holdout = (read_table(folder / name) for name in (TRAINING, TRUTH, HOLDOUT))
    for row in training:
        del row["id"]
    holdout_classes = [row.pop("class") for row in holdout]
    return DemoProblem(
        values=_row_values(training),
        targets=np.array([CLASSES.index(row["class"]) for row in truth]),
        holdout=_row_values(holdout),
        holdout_targets=np.array([CLASSES.index(name) for name in holdout_classes]),
    )


def draw_order(problem: DemoProblem, seed: int) -> RandomDraw:
    """Give labels in a random order until all rows have one, and measure after each."""
    forest = problem.forest()
    accuracies = [problem.accuracy(forest)]
    for row in np.random.default_rng(seed).permutation(len(problem.targets)):
        problem.give_answer(forest, int(row))
        accuracies.append(problem.accuracy(forest))
    return RandomDraw(seed, tuple(accuracies))


def other_split(seed: int, budget: int, orders: int) -> OtherSplit:
    """Compare queries with random labels in a number of orders, on another split."""
    with tempfile.TemporaryDirectory() as name:
        data.write_split(data.make_split(seed), Path(name))
        problem = load_problem(Path(name))
    shuffled = (np.random.default_rng(k).permutation(len(problem.targets)) for k in range(orders))
    at_random = float(np.mean([problem.at_random(order[:budget]) for order in shuffled]))
    return OtherSplit(seed, problem.accuracy_of_asking(budget), at_random)


def _row_values(rows: list[dict[str, str]]) -> Floats:
    return np.array([list(row_numbers(row).values()) for row in rows])


def main() -> None:
    """Draw."""
    parser = argparse.ArgumentParser(prog="quercus-comparison")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--budget", type=int, required=True)
    parser.add_argument("--random-orders", type=int, required=True)
    parser.add_argument("--other-seeds", type=int, nargs="*", default=[])
    given = parser.parse_args()
    end_with_parent()
    problem = load_problem(given.folder)
    if hasattr(os, "nice"):
        os.nice(NICE)
    for seed in range(given.random_orders):
        print(json.dumps(asdict(draw_order(problem, seed))), flush=True)
    for seed in given.other_seeds:
        print(json.dumps(asdict(other_split(seed, given.budget, given.random_orders))), flush=True)


if __name__ == "__main__":
    main()
