"""The learners that the protocols compare, by name."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from quercus.experiments import baselines
from quercus.experiments.problem import Fitted, Problem, Said
from quercus.experiments.strategies import STRATEGIES, Strategy
from quercus.trees.flat import FlatTree
from quercus.trees.learners.c45 import c45
from quercus.trees.learners.id3 import id3
from quercus.trees.learners.predicting import TreeModel
from quercus.trees.learners.pruning import prune_pessimistic
from quercus.trees.learners.table import Table
from quercus.trees.tree import Node

Floats = NDArray[np.float64]

SHARE = 4
"""A learner that asks spends one answer for so many training rows (ALGORITHMS §8)."""
ASKING = "ask-"
"""How the names of learners that ask begin; the strategy's name follows."""


@dataclass(frozen=True)
class Learner:
    """A learner.

    Parameters
    ----------
    title
        In plots and tables.
    fit
        Learns.
    needs
        A package that it needs and that may be absent.
    """

    title: str
    fit: Callable[[Problem], Fitted]
    needs: str | None = None


@dataclass(frozen=True)
class Asking:
    """A strategy as a learner that spends a share of answers."""

    strategy: Strategy

    def __call__(self, problem: Problem) -> Fitted:
        """Ask, and return what is fitted at the end."""
        ((_, fitted),) = self.strategy.curve(problem, [len(problem.train) // SHARE])
        return fitted


def _asking() -> dict[str, Learner]:
    return {
        ASKING + name: Learner(f"{strategy.title}, n/{SHARE} answers", Asking(strategy), strategy.needs)
        for name, strategy in STRATEGIES.items()
    }


@dataclass(frozen=True, eq=False)
class OfNode:
    """A tree of nodes whose leaves hold frequencies."""

    tree: Node
    problem: Problem

    @property
    def nodes(self) -> int:
        """Nodes of the tree."""
        return len(FlatTree.of(self.tree).klass)

    def say(self, values: Floats) -> Said:
        """Return the frequencies."""
        model = TreeModel.of(self.tree, self.problem.train.attributes)
        return Said.of_probabilities(model.predict(values).theta)


def on_precise(grow: Callable[[Table], Node]) -> Callable[[Problem], Fitted]:
    """Return a learner of the rows whose label is precise."""

    def fit(problem: Problem) -> Fitted:
        rows = np.flatnonzero(problem.train.precise)
        if not rows.size:
            return baselines.Ignorant(problem.train.size)
        return OfNode(grow(problem.train.take(rows)), problem)

    return fit


LEARNERS: Mapping[str, Learner] = MappingProxyType(
    {
        "id3": Learner("ID3, precise rows", on_precise(id3)),
        "c45": Learner("C4.5, precise rows", on_precise(lambda table: prune_pessimistic(c45(table)))),
        "forest-precise": Learner("random forest, precise rows", baselines.forest_precise),
        "forest-pignistic": Learner("random forest, pignistic weights", baselines.forest_pignistic),
        "forest-hard": Learner("random forest, likeliest class", baselines.forest_hard),
        "ek-nn": Learner("evidential k-NN", baselines.ek_nn),
        **_asking(),
    }
)
"""All learners, by the names of ``--methods``."""

DEFAULT = ("c45", "forest-precise", "forest-pignistic", "ask-published", "ask-random")
"""Compared by default against the quality of labels: those of the papers' figures, and baselines."""
TABLE = tuple(LEARNERS)
"""Compared by default side by side."""
CURVE = ("id3", "c45")
"""Compared by default on the learning curve."""
