"""Have all compiled code ready: processes that must answer in time call `prepare` first; nobody else needs to."""

import numpy as np

from quercus.belief.frame import Frame
from quercus.trees import interval
from quercus.trees.query import Asked
from quercus.trees.specification import Nominal, Specification
from quercus.trees.stream import Answered, GrowthState, Observed, grow


def prepare() -> None:
    """Compile every kernel of solver and growth.

    It takes the better part of a minute on a fresh machine, a moment when the on-disk cache has them.
    """
    interval.prepare()
    attributes = tuple(Nominal(name, ("0", "1", "2"), "reject") for name in "abc")
    rows = np.random.default_rng(0).integers(0, 3, (24, 3)).astype(float)
    labels = np.ones((24, 3))
    labels[:8] = np.eye(3)[rows[:8, 0].astype(int)]
    labels[8:16, 1:] = [0.3, 0.6]
    for alpha in (0.9, 1.0):
        specification = Specification(attributes, Frame(("x", "y", "z")), alpha, budget=9)
        for small in (1, 99):  # nodes that keep counts, and nodes that do not
            state = grow(GrowthState(specification, small), [Observed(rows, labels)])
            state.agenda(2)
            told = Answered(20, np.array([0.2, 1.0, 0.5]), 0.9, Asked((), 0, 0, (0,)))
            grow(state, [told, Observed(rows[:4], labels[10:14])]).agenda(1)
