"""The same number of labels spent at random, offline: on the same split in several orders, and on other splits.

Prints ``{"compiled": 7, "steps": 11}`` while the numerical kernels are compiled and ``{"ready": true}`` once they are,
then a line of JSON (:class:`RandomDraw`) for each
order of the rows, then one (:class:`OtherSplit`) for each other split. The learner, its bins and its settings are
the service's; only who is asked differs.
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

from quercus.belief.frame import Frame
from quercus.client.results import Floats
from quercus.demo import data
from quercus.demo.child import end_with_parent
from quercus.demo.tables import CLASSES, HOLDOUT, TRAINING, TRUTH, numbers, read_table
from quercus.specification.attributes import Numeric
from quercus.specification.model import Specification
from quercus.specification.strategies import DEFAULT
from quercus.trees.growth.abc45 import induce
from quercus.trees.precompile import Progress, prepare
from quercus.trees.tree.encoding import Codes, Encoder, branch_names, edges_in_force
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node

NICE = 5
"""The live processes come first."""


@dataclass(frozen=True)
class RandomDraw:
    """Held-out accuracy after 0, 1, 2, ... answers about rows drawn at random by ``seed``."""

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
    """The split as the trees see it.

    Attributes
    ----------
    codes, targets : (n, K) and (n,), of the training rows.
    holdout, holdout_targets : (m, K) and (m,), of the held-out rows.
    arities : (K,) number of branches of each attribute.
    size : number of classes.
    alpha : level of the likelihood cut.
    """

    codes: Codes
    targets: NDArray[np.int64]
    holdout: Codes
    holdout_targets: NDArray[np.int64]
    arities: list[int]
    size: int
    alpha: float

    def accuracy(self, asked: NDArray[np.int64]) -> float:
        """Return the held-out accuracy when the true class is known of the rows ``asked`` alone."""
        contours = np.ones((len(self.targets), self.size))
        contours[asked] = np.eye(self.size)[self.targets[asked]]
        return self._accuracy(induce(self.codes, self.arities, contours, alpha=self.alpha).tree)

    def asking(self, budget: int) -> float:
        """Return the held-out accuracy after ``budget`` queries, each answered with the true class."""
        truth = np.eye(self.size)[self.targets]
        vacuous = np.ones_like(truth)
        grown = induce(
            self.codes,
            self.arities,
            vacuous,
            alpha=self.alpha,
            budget=budget,
            oracle=lambda row: truth[row],
            strategy=DEFAULT,
            ordered=[arity - 1 for arity in self.arities],  # bins; the last code is for what is missing
        )
        return self._accuracy(grown.tree)

    def _accuracy(self, root: Node) -> float:
        tree = FlatTree.of(root)
        return float(np.mean(tree.klass[tree.route(self.holdout)] == self.holdout_targets))


def load(folder: Path, alpha: float) -> DemoProblem:
    """Return the split that lies in ``folder``, encoded as the service encodes it."""
    training, truth, holdout = (read_table(folder / name) for name in (TRAINING, TRUTH, HOLDOUT))
    for row in training:
        del row["id"]
    holdout_classes = [row.pop("class") for row in holdout]
    attributes = tuple(Numeric(name) for name in training[0])
    specification = Specification(attributes, Frame(CLASSES), alpha=alpha, warmup_rows=len(training))
    values = _values(training)
    edges = edges_in_force(specification, values)
    encoder = Encoder(attributes, edges)
    return DemoProblem(
        codes=encoder.codes(values),
        targets=np.array([CLASSES.index(row["class"]) for row in truth]),
        holdout=encoder.codes(_values(holdout)),
        holdout_targets=np.array([CLASSES.index(name) for name in holdout_classes]),
        arities=[len(names) for names in branch_names(attributes, edges)],
        size=len(CLASSES),
        alpha=alpha,
    )


def draw(problem: DemoProblem, seed: int, budget: int) -> RandomDraw:
    """Spend ``budget`` labels in a random order, and measure after each."""
    order = np.random.default_rng(seed).permutation(len(problem.targets))
    return RandomDraw(seed, tuple(problem.accuracy(order[:k]) for k in range(budget + 1)))


def other_split(seed: int, alpha: float, budget: int, orders: int) -> OtherSplit:
    """Ask, and spend at random in so many orders, on another split."""
    with tempfile.TemporaryDirectory() as name:
        data.write(data.make(seed), Path(name))
        problem = load(Path(name), alpha)
    shuffled = (np.random.default_rng(k).permutation(len(problem.targets)) for k in range(orders))
    at_random = float(np.mean([problem.accuracy(order[:budget]) for order in shuffled]))
    return OtherSplit(seed, problem.asking(budget), at_random)


def _values(rows: list[dict[str, str]]) -> Floats:
    return np.array([list(numbers(row).values()) for row in rows])


def _show(progress: Progress) -> None:
    print(json.dumps({"compiled": progress.ready, "steps": progress.total}), flush=True)


def main() -> None:
    """Compile, then draw."""
    parser = argparse.ArgumentParser(prog="quercus-comparison")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--alpha", type=float, required=True)
    parser.add_argument("--budget", type=int, required=True)
    parser.add_argument("--repeats", type=int, required=True)
    parser.add_argument("--other-seeds", type=int, nargs="*", default=[])
    given = parser.parse_args()
    end_with_parent()
    prepare(_show)  # all kernels: the grower would compile in the midst of the play what was missing here
    problem = load(given.folder, given.alpha)
    problem.asking(budget=10)
    print(json.dumps({"ready": True}), flush=True)
    if hasattr(os, "nice"):
        os.nice(NICE)
    for seed in range(given.repeats):
        print(json.dumps(asdict(draw(problem, seed, given.budget))), flush=True)
    for seed in given.other_seeds:
        print(json.dumps(asdict(other_split(seed, given.alpha, given.budget, given.repeats))), flush=True)


if __name__ == "__main__":
    main()
