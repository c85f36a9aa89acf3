"""Have all compiled code ready: processes that must answer in time call `prepare` first; nobody else needs to."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core import event

from quercus.belief.frame import Frame
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.specification.strategies import RECOMMENDED
from quercus.trees import interval
from quercus.trees.query import Asked
from quercus.trees.solver.problem import heirs
from quercus.trees.stream import Answered, GrowthState, Observed, grow


def kernel_cache() -> str | None:
    """Return the folder of compiled kernels, one of several; None when no folder for them may be written."""
    path: str | None = heirs.stats.cache_path  # type: ignore[attr-defined]  # of Numba's dispatcher
    return path


class _Noticed(event.Listener):
    """Tells once that something is compiled, where it could not be loaded."""

    def __init__(self, tell: Callable[[], object]) -> None:
        self._tell: Callable[[], object] | None = tell

    def on_start(self, event: Any) -> None:
        tell, self._tell = self._tell, None
        if tell is not None:
            tell()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def noticing_compilation(tell: Callable[[], object]) -> Iterator[None]:
    """Call `tell` when a kernel is compiled inside, the first time; not when all are loaded."""
    with event.install_listener("numba:compile", _Noticed(tell)):
        yield


def prepare() -> None:
    """Compile every kernel of solver, growth and strategies.

    It takes the better part of a minute on a fresh machine, a moment when the on-disk cache has them.
    """
    interval.prepare()
    attributes = tuple(Nominal(name, ("0", "1", "2"), "reject") for name in "abc")
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (40, 3)).astype(float)
    classes = np.eye(3)[rows[:, 0].astype(int)]
    mixed = classes.copy()
    mixed[10:20], mixed[20:] = [0.0, 1.0, 1.0], 1.0
    doubtful = np.maximum(
        classes, rng.random((40, 3))
    )  # all distinct: candidates whose scores take some work
    covering = Specification(attributes, Frame(("x", "y", "z")), budget=9, strategy=RECOMMENDED)
    grow(GrowthState(covering), [Observed(rows, mixed)]).agenda(2)  # the loops of committees
    for alpha in (0.9, 1.0):
        specification = Specification(attributes, Frame(("x", "y", "z")), alpha, budget=9)
        for labels in (mixed, doubtful):
            for small in (1, 99):  # nodes that keep counts, and nodes that do not
                state = grow(GrowthState(specification, small), [Observed(rows, labels)])
                state.agenda(2)
                told = Answered(20, np.array([0.2, 1.0, 0.5]), 0.9, Asked((), 0, 0, (0,)))
                grow(state, [told, Observed(rows[:4], labels[10:14])]).agenda(1)
