"""The protocols: which cells there are, and how one is done (theory §7, §8)."""

import hashlib
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np

from quercus.belief.arrays import Bools, Ints
from quercus.belief.errors import InvalidInput
from quercus.experiments.corruption import Corruption, corrupt
from quercus.experiments.datasets import DataSet
from quercus.experiments.folds import fold_numbers, seed_of
from quercus.experiments.learners import LEARNERS
from quercus.experiments.problem import FittedLearner, Problem, fold_of, problem_of
from quercus.experiments.restaurant import restaurants
from quercus.experiments.results import ExperimentJob, Measurement, MeasurementKey
from quercus.experiments.strategies import STRATEGIES
from quercus.trees.learners.table import Table

SWEEPS: Mapping[str, str] = {"V": "vacuous", "I": "imprecise", "N": "noise", "U": "uncertain"}
NONE = Corruption()
COMPATIBLE_SWEEPS: Mapping[str, str] = {"V": "", "I": "", "N": "U", "U": "N"}
"""The corruption that stays at the level of the grid's base while another is varied; the rest is 0 (Ma 2016, §4)."""
GIVEN = "given"
QUERIES, EXAMPLES = "queries", "examples"
MAX_REPEATS = 1000
TEST_ROWS = 1000
"""Restaurants, drawn afresh, that a tree of the learning curve is tested on."""


@dataclass(frozen=True)
class Grid:
    """The common part of all protocols.

    Parameters
    ----------
    data
        The sets, by name.
    methods
        Names of learners or strategies.
    seed
        Seed of the whole experiment.
    repeats
        Number of repeats.
    folds
        Folds of the cross-validation.
    bins
        Bins of every numeric column over the training rows; 0: numbers are not binned.
    base
        Corruption of the labels for everything that is not varied; see the protocols.
    """

    data: Mapping[str, DataSet]
    methods: tuple[str, ...]
    seed: int
    repeats: int
    folds: int = 10
    bins: int = 4
    base: Corruption = NONE

    def __post_init__(self) -> None:
        if not 1 <= self.repeats <= MAX_REPEATS:
            raise InvalidInput("repeats", f"are {self.repeats}, must lie in [1, {MAX_REPEATS}]")

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a job's results depend on, beside its name and the data."""
        base = {name: getattr(self.base, kind) for name, kind in SWEEPS.items()}
        return {
            "experiment": type(self).__name__.lower(),
            "seed": self.seed,
            "folds": self.folds,
            "bins": self.bins,
            "base": base,
            "unit": self.base.unit,
        }

    @property
    def data_fingerprints(self) -> dict[str, str]:
        """A fingerprint of each data set."""
        found = {}
        for name, data in self.data.items():
            digest = hashlib.sha256(data.values.tobytes() + data.targets.tobytes())
            digest.update(repr((data.attributes, data.classes, data.masses)).encode())
            found[name] = digest.hexdigest()[:16]
        return found

    def held_out(self, data: DataSet, repeat: int, fold: int) -> Bools:
        """Return the rows (n,) to test on: the same for every method and level."""
        numbers = fold_numbers(data.targets, self.folds, seed_of(self.seed, "folds", data.name, repeat))
        held_out: Bools = numbers == fold
        return held_out

    def labels(self, data: DataSet, repeat: int, corruption: Corruption | None) -> Table:
        """Return a set's rows with corrupted labels, the same for every method; None: with those that came."""
        if corruption is None:
            if data.masses is None:
                raise InvalidInput(
                    "labels", f"do not come with {data.name}: there is no {data.name}_masses file"
                )
            return Table.of_masses(data.values, data.attributes, data.masses)
        seed = seed_of(self.seed, "labels", data.name, repeat)
        contours = corrupt(data.targets, len(data.classes), corruption, seed)
        return Table.of_contours(data.values, data.attributes, contours)

    def fold_places(self) -> Iterator[tuple[int, str, int]]:
        """Return repeat, data set and fold of all cells: an interrupted run has few repeats of everything."""
        return product(range(self.repeats), self.data, range(self.folds))


@dataclass(frozen=True)
class LabelProtocol(Grid):
    """Accuracy of learners against the quality of their labels.

    Parameters
    ----------
    sweeps
        What is varied, keys of `SWEEPS` or `GIVEN`, and at which levels. `GIVEN` is for the sets that came with
        labels, the others are for those that did not.
    """

    sweeps: Mapping[str, tuple[float, ...]] = field(default_factory=dict)

    def corruption(self, sweep: str, level: float) -> Corruption:
        """Return how labels are corrupted at a level of a sweep."""
        levels = {
            kind: getattr(self.base, kind)
            for name, kind in SWEEPS.items()
            if name in COMPATIBLE_SWEEPS[sweep]
        }
        return Corruption(**(levels | {SWEEPS[sweep]: level}), unit=self.base.unit)

    def cells(self) -> Iterator[ExperimentJob]:
        """Return all cells."""
        for repeat, name, fold in self.fold_places():
            for sweep, levels in self.sweeps.items():
                if (sweep == GIVEN) != (self.data[name].masses is not None):
                    continue
                for level, method in product(levels, self.methods):
                    yield ExperimentJob(name, method, sweep, (level,), repeat, fold)

    def run_cell(self, cell: ExperimentJob) -> list[Measurement]:
        """Return the measurement of a cell."""
        data = self.data[cell.data]
        (level,) = cell.levels
        corruption = None if cell.sweep == GIVEN else self.corruption(cell.sweep, level)
        held_out = self.held_out(data, cell.repeat, cell.fold)
        seed = seed_of(self.seed, "method", *_name_parts(cell), level)
        problem = fold_of(data, self.labels(data, cell.repeat, corruption), held_out, self.bins, seed)
        return [_measure_cell(problem, cell, data.targets[held_out])]


@dataclass(frozen=True)
class QueryProtocol(Grid):
    """Accuracy of strategies against the number of queries.

    Parameters
    ----------
    levels
        Numbers of answers after which to measure.
    """

    levels: tuple[float, ...] = ()

    def cells(self) -> Iterator[ExperimentJob]:
        """Return all cells."""
        for (repeat, name, fold), method in product(self.fold_places(), self.methods):
            yield ExperimentJob(name, method, QUERIES, self.levels, repeat, fold)

    def run_cell(self, cell: ExperimentJob) -> list[Measurement]:
        """Return the measurements of a job, one per level."""
        data = self.data[cell.data]
        held_out = self.held_out(data, cell.repeat, cell.fold)
        seed = seed_of(self.seed, "method", *_name_parts(cell))
        problem = fold_of(data, self.labels(data, cell.repeat, self.base), held_out, self.bins, seed)
        budgets = tuple(int(level) for level in cell.levels)
        rows, start = [], time.process_time()
        for level, fitted in STRATEGIES[cell.method].curve(problem, budgets):
            seconds = time.process_time() - start
            rows.append(
                _make_measurement(cell.key(float(level)), problem, fitted, data.targets[held_out], seconds)
            )
        return rows


@dataclass(frozen=True)
class RestaurantProtocol(Grid):
    """The learning curve: accuracy against the number of examples, which are bootstrap samples.

    Parameters
    ----------
    examples
        In the pool that the samples are drawn from, when it is generated. It is tested on other restaurants. A pool
        that was read from a file is tested on those of its rows that the sample has not.
    levels
        Sizes of the samples.
    """

    examples: int = 100
    levels: tuple[float, ...] = ()

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that a job's results depend on, beside its name and the data."""
        return {**super().settings, "examples": self.examples}

    def cells(self) -> Iterator[ExperimentJob]:
        """Return all cells."""
        names = list(self.data) or ["restaurant"]
        for repeat, name in product(range(self.repeats), names):
            for level, method in product(self.levels, self.methods):
                yield ExperimentJob(name, method, EXAMPLES, (level,), repeat, 0)

    def run_cell(self, cell: ExperimentJob) -> list[Measurement]:
        """Return the measurement of a cell."""
        (level,) = cell.levels
        seed = seed_of(self.seed, "bootstrap", cell.data, cell.repeat)
        if cell.data in self.data:
            pool, test = self.data[cell.data], None
        else:
            pool = restaurants(self.examples, seed_of(self.seed, "restaurants", cell.repeat))
            test = restaurants(TEST_ROWS, seed_of(self.seed, "tested", cell.repeat))
        drawn = np.random.default_rng(seed).integers(len(pool), size=int(max(self.levels)))[: int(level)]
        if test is None:
            left = np.setdiff1d(np.arange(len(pool)), drawn)
            if not left.size:
                raise InvalidInput("examples", f"{int(level)} of {pool.name} left no row to test on")
            test = replace(pool, values=pool.values[left], targets=pool.targets[left])
        labels = Table.of_classes(pool.values, pool.attributes, pool.targets, len(pool.classes)).take(drawn)
        learner_seed = seed_of(self.seed, "method", *_name_parts(cell), level)
        problem = problem_of(labels, pool.targets[drawn], test.values, self.bins, learner_seed)
        return [_measure_cell(problem, cell, test.targets)]


def _measure_cell(problem: Problem, cell: ExperimentJob, targets: Ints) -> Measurement:
    """Fit a cell's learner, and return how good it is on rows of these true classes (m,)."""
    start = time.process_time()
    fitted = LEARNERS[cell.method].fit(problem)
    seconds = time.process_time() - start
    return _make_measurement(cell.key(cell.levels[0]), problem, fitted, targets, seconds)


def _make_measurement(
    key: MeasurementKey, problem: Problem, fitted: FittedLearner, targets: Ints, seconds: float
) -> Measurement:
    return Measurement(
        key,
        train_rows=len(problem.train),
        test_rows=len(targets),
        nodes=fitted.nodes,
        fit_s=seconds,
        **fitted.predict(problem.test).scores(targets),
    )


def _name_parts(cell: ExperimentJob) -> tuple[str | float, ...]:
    return cell.data, cell.method, cell.sweep, cell.repeat, cell.fold


Protocol = LabelProtocol | QueryProtocol | RestaurantProtocol
