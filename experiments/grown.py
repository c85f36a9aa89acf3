"""The service's tree, and its forest, as learners of the protocols."""

from dataclasses import dataclass, replace

import numpy as np

from quercus.belief.arrays import Floats
from quercus.experiments.problem import Prediction, Problem
from quercus.trees import ActiveForest
from quercus.trees.growth.stream import GrowthState
from quercus.trees.learners.metrics import undominated
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.learner import forest_of
from quercus.trees.memory_forest.publishing import served_members
from quercus.trees.memory_forest.served import ServedMembers
from quercus.trees.tree.encoding import Encoder
from quercus.trees.tree.flat import FlatTree


@dataclass(frozen=True, eq=False)
class ServiceTree:
    """The service's tree."""

    flat: FlatTree
    encoder: Encoder

    @classmethod
    def of(cls, state: GrowthState) -> "ServiceTree":
        """Return the tree of a state, which may grow on."""
        return cls(state.flat, state.encoder)

    @property
    def nodes(self) -> int:
        """Nodes of the tree."""
        return len(self.flat.klass)

    def predict(self, values: Floats) -> Prediction:
        """Return class, frequencies and undominated classes of the nodes that the rows reach."""
        ends = self.flat.route(self.encoder.codes(values), values)
        possible = undominated(self.flat.belief[ends], self.flat.plausibility[ends])
        return Prediction(self.flat.klass[ends].astype(np.int64), self.flat.theta[ends], possible)


@dataclass(frozen=True, eq=False)
class ServiceForest:
    """The service's forest of many memories."""

    members: ServedMembers

    @classmethod
    def of(cls, forest: MemoryForest) -> "ServiceForest":
        """Return a forest as it is now; it may grow on."""
        return cls(served_members(forest))

    @property
    def nodes(self) -> int:
        """Nodes of all its trees."""
        return int(self.members.node_counts.sum())

    def predict(self, values: Floats) -> Prediction:
        """Return the predictions of its members."""
        said = self.members.predict(values)
        return Prediction(said.klass, said.theta, said.classes)


def told_forest(problem: Problem, algorithm: ActiveForest) -> MemoryForest:
    """Return the forest of the training rows and their labels, with the problem's seed."""
    seeded = replace(algorithm, seed=problem.integer_seed)
    forest = forest_of(seeded, problem.ordered_attributes, problem.train.size)
    forest.observe(problem.train.values, problem.train.contours)
    return forest
