"""The service's tree as a learner of the protocols."""

from dataclasses import dataclass

import numpy as np

from quercus.belief.arrays import Floats
from quercus.experiments.problem import Prediction
from quercus.trees.growth.stream import GrowthState
from quercus.trees.learners.metrics import undominated
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
