"""Preparation of all compiled code: processes that must answer in time call `prepare` first; others need not.

Any process may do the steps below, in any order: what one process compiles, another waits for, and loads.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numba.core import event

from quercus.belief.frame import Frame
from quercus.specification import parameters
from quercus.specification.algorithms import Abc45
from quercus.specification.attributes import Nominal
from quercus.specification.model import Specification
from quercus.specification.strategies import PUBLISHED, RECOMMENDED
from quercus.trees.ask.query import QueryPosition
from quercus.trees.growth.stream import Answered, GrowthState, Observed, grow
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver, entropy_interval
from quercus.trees.likelihood.solver import stages
from quercus.trees.likelihood.solver.turns import is_taken, take_turn
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.rules import choice


def kernel_cache() -> str | None:
    """Return the folder of compiled kernels, one of several; None when no folder for them may be written."""
    path: str | None = choice._compare_splits.stats.cache_path  # type: ignore[attr-defined]  # of Numba's dispatcher
    return path


class _CompilationListener(event.Listener):
    """Tells once that something is compiled, where it could not be loaded."""

    def __init__(self, notify: Callable[[], object]) -> None:
        self._notify: Callable[[], object] | None = notify

    def on_start(self, event: Any) -> None:
        notify, self._notify = self._notify, None
        if notify is not None:
            notify()

    def on_end(self, event: Any) -> None:
        pass


@contextmanager
def noticing_compilation(notify: Callable[[], object]) -> Iterator[None]:
    """Call `notify` when a kernel is compiled inside, the first time; not when all are loaded."""
    with event.install_listener("numba:compile", _CompilationListener(notify)):
        yield


Steps = tuple[Callable[[], object], ...]

_PRECISE: Final = np.eye(3)
_GENERAL: Final = np.array(
    [[1.0, 0.2, 0.3], [0.3, 1.0, 0.2], [0.2, 0.3, 1.0]]
)  # the uniform point is likeliest
_ATTRIBUTES: Final = tuple(Nominal(name, ("0", "1", "2"), "reject") for name in "abc")
_ROWS: Final = np.random.default_rng(0).integers(0, 3, (40, 3)).astype(float)
_CLASSES: Final = np.eye(3)[_ROWS[:, 0].astype(int)]
_STACKED: Final = (
    np.array([0, 3]),
    np.arange(3, dtype=np.int32),
    np.ones(3),
)  # all rows of a table, once each
_FIRST: Final = np.arange(1)


def _cells_of(labels: np.ndarray[Any, np.dtype[np.float64]]) -> None:
    solver = IntervalSolver(labels, 0.9)
    cells = Cells.of_dense(np.array([[9, 5, 3], [0, 7, 0]]))
    solver.solve_cells(cells)
    solver.enclose_cells(cells)
    solver.estimate_cells(cells)
    solver.bound_classes_cells(cells)


def _sample_specification(alpha: float, strategy: str) -> Specification:
    frame = Frame(("x", "y", "z"))
    return Specification(_ATTRIBUTES, frame, alpha, budget=9, strategy=strategy, algorithm=Abc45())


def _grow_precise(small: int) -> None:
    """Grow two trees of precise labels and none; nodes of fewer than `small` rows keep no counts."""
    labels = _CLASSES.copy()
    labels[30:] = 1.0
    state = GrowthState(_sample_specification(0.9, PUBLISHED), small)
    for begin in (0, 20):
        state = grow(state, [Observed(_ROWS[begin : begin + 20], labels[begin : begin + 20])])
        state.agenda(2)


def _grow_committee() -> None:
    covering = _sample_specification(parameters.ALPHA.default, RECOMMENDED)
    labels = _CLASSES.copy()
    labels[20:] = 1.0
    grow(GrowthState(covering), [Observed(_ROWS, labels)]).agenda(2)


def _grow_forest() -> MemoryForest:
    """Grow the forest of many memories from precise and other labels, of numbers and names, and let it ask.

    The bounds of leaves with other labels than precise ones come last: `_bound_forest`.
    """
    labels = _CLASSES.copy()
    labels[20:30], labels[30:] = [0.0, 1.0, 1.0], 1.0
    forest = MemoryForest(np.array([False, True, True]), 3, trees=2, seed=0, level=0.5)
    forest.observe(_ROWS, labels)
    list(choose_rows(forest, np.arange(30, 40), 2))
    forest.replace_contour(30, np.array([1.0, 0.5, 0.0]))
    forest.theta(_ROWS)
    return forest


def _bound_forest() -> None:
    _grow_forest().predict(_ROWS)


def _grow_general(alpha: float) -> None:
    """Grow trees of imprecise labels, and score candidates."""
    mixed = _CLASSES.copy()
    mixed[10:20], mixed[20:] = [0.0, 1.0, 1.0], 1.0
    doubtful = np.maximum(_CLASSES, np.random.default_rng(1).random((40, 3)))  # all distinct
    specification = _sample_specification(alpha, PUBLISHED)
    for labels in (mixed, doubtful):
        for small in (1, 99):
            state = grow(GrowthState(specification, small), [Observed(_ROWS, labels)])
            state.agenda(2)
            told = Answered(20, np.array([0.2, 1.0, 0.5]), 0.9, QueryPosition((), 0, 0, (0,)))
            grow(state, [told, Observed(_ROWS[:4], labels[10:14])]).agenda(1)


def _all_intervals() -> None:
    for labels in (_PRECISE, _GENERAL):
        for alpha in (0.9, 1.0):
            entropy_interval(labels, np.array([9.0, 5.0, 3.0]), alpha)


def _compile_uniform() -> np.ndarray[Any, np.dtype[np.float64]]:
    """Estimates of one problem whose maximiser is uniform."""
    return np.array([[1 / 3, 1 / 3, 1 / 3, 0.0, 1.0]])


TREES: Final[Steps] = (lambda: _grow_precise(1), lambda: _grow_precise(99), lambda: _cells_of(_PRECISE))
"""Steps for trees of precise labels; forests have such a tree beside them."""
FORESTS: Final[Steps] = (_grow_forest,)
QUERIES: Final[Steps] = (_grow_committee,)
GENERAL: Final[Steps] = (
    lambda: stages.estimate(_GENERAL, _STACKED, _FIRST),
    lambda: stages.enclose(_GENERAL, _STACKED, _FIRST, _compile_uniform(), 0.9, tight=True),
    lambda: _cells_of(_GENERAL),
    _all_intervals,
    lambda: _grow_general(0.9),
    lambda: _grow_general(1.0),
    _bound_forest,
)
BEFORE_TREES: Final[Steps] = (*TREES, *FORESTS)
COMPILING_STEPS: Final[Steps] = (*BEFORE_TREES, *QUERIES, *GENERAL)
"""Each compiles what is missing of the kernels that it needs. What models wait for comes first."""
HELPING: Final[Steps] = (*FORESTS, *reversed(TREES), *reversed(GENERAL), *QUERIES)
"""The same steps in the order of a second process, which meets the first one late."""
_HELPER: Final = "helper"


@dataclass(frozen=True)
class Progress:
    """The progress of compiling the kernels.

    Attributes
    ----------
    ready, total : steps that are done, and all of them.
    trees : whether forests, and trees of precise labels, can be grown without compiling.
    """

    ready: int
    total: int
    trees: bool


def prepare(notify: Callable[[Progress], object] = lambda _: None) -> None:
    """Load every kernel of solver, growth and strategies; compile those that are not in the cache.

    Parameters
    ----------
    notify : called with the progress, from the first kernel that is compiled on, here or by a helper.
    """
    done = 0
    compiles = is_helped()

    def report_progress() -> None:
        nonlocal compiles
        compiles = True
        notify(Progress(done, len(COMPILING_STEPS), done >= len(BEFORE_TREES)))

    if compiles:
        report_progress()
    with noticing_compilation(report_progress):
        for step in COMPILING_STEPS:
            step()
            done += 1
            if compiles:
                report_progress()


def is_helped() -> bool:
    """Return whether another process does `help_preparing` for this cache; true as well where nobody can."""
    return is_taken(kernel_cache(), _HELPER)


def help_preparing() -> None:
    """Compile what is missing, beside a process that does `prepare`; at most one process does so for a cache."""
    if take_turn(kernel_cache(), _HELPER):
        for step in HELPING:
            step()
