"""The service's tree as a learner of the protocols."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from quercus.experiments.problem import Said
from quercus.trees.encoding import Encoder
from quercus.trees.flat import FlatTree
from quercus.trees.metrics import undominated
from quercus.trees.stream import GrowthState

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Grown:
    """The service's tree."""

    flat: FlatTree
    encoder: Encoder

    @classmethod
    def of(cls, state: GrowthState) -> "Grown":
        """Return the tree of a state, which may grow on."""
        return cls(state.flat, state.encoder)

    @property
    def nodes(self) -> int:
        """Nodes of the tree."""
        return len(self.flat.klass)

    def say(self, values: Floats) -> Said:
        """Return class, frequencies and undominated classes of the nodes that the rows reach."""
        ends = self.flat.route(self.encoder.codes(values), values)
        possible = undominated(self.flat.belief[ends], self.flat.plausibility[ends])
        return Said(self.flat.klass[ends].astype(np.int64), self.flat.theta[ends], possible)
