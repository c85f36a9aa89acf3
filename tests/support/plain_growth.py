"""ABC4.5 node by node in the plainest way: what growth by `quercus.trees.rules` must agree with.

It grows by the skeleton of batch growth, and decides by rules of its own: exact intervals of every candidate, one node
at a time.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from quercus.specification.parameters import PREDICTION_LEVEL
from quercus.trees.ask.query import QueryContext
from quercus.trees.growth.batch import BatchGrowth, Branch, GrowthRules, OpenNode, SplitChoice
from quercus.trees.growth.sample import Ints, Sample
from quercus.trees.learners.evidential import Likeliest
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.dominance import TIE, largest_mid_value
from quercus.trees.rules.gain import best_splits
from quercus.trees.tree.node import Stop
from quercus.trees.tree.splits import BELOW
from support.plain_rules import gain_ratio_interval, non_dominated


@dataclass(frozen=True, slots=True)
class GainRatio:
    """Criterion: gain-ratio intervals, dominance, largest mid-value (theory §3.1, §3.2).

    What it calls attributes are the splits of the sample, see `quercus.trees.tree.splits`; of each attribute with
    cuts only the one that stands for it is a candidate.
    """

    sample: Sample
    solver: IntervalSolver

    def judge(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when every attribute has one populated value."""
        intervals = self._intervals(place)
        if not intervals:
            return None
        rivals = non_dominated(intervals)
        return SplitChoice(
            attribute=largest_mid_value(intervals, rivals),
            intervals=intervals,
            rivals=rivals,
            undecided=len(rivals) > 1 and self.sample.candidates(place.rows).size > 0,
        )

    def _intervals(self, place: OpenNode) -> dict[int, tuple[float, float]]:
        informative = self.sample.informative(place.rows, place.attributes)
        tables = self.sample.contingency(place.rows, tuple(informative))
        splits = {k: tables[k][tables[k].any(axis=1)] for k in self._representing(tables)}
        if not splits:
            return {}
        counts = np.concatenate([self.sample.counts(place.rows)[np.newaxis], *splits.values()])
        lower, upper = self.solver.intervals(counts)
        parent = (float(lower[0]), float(upper[0]))
        intervals, start = {}, 1
        for k, table in splits.items():
            children = slice(start, start + len(table))
            intervals[k] = gain_ratio_interval(parent, lower[children], upper[children], table.sum(axis=1))
            start += len(table)
        return intervals

    def _representing(self, tables: Mapping[int, Ints]) -> list[int]:
        """Return the candidate of each attribute: of cuts that of largest gain at level 1 (theory §9)."""
        candidates = sorted(tables)
        firsts = np.unique(self.sample.splits.attribute[candidates], return_index=True)[1]
        if firsts.size == len(candidates):
            return candidates
        solver = self.sample.table.solver(1.0)
        gains, below = np.zeros(len(candidates)), np.zeros(len(candidates))
        for at, k in enumerate(candidates):
            sizes = tables[k].sum(axis=1)
            lower, upper = solver.intervals(tables[k])
            gains[at], below[at] = -(sizes / sizes.sum()) @ ((lower + upper) / 2), sizes[BELOW]
        return [candidates[at] for at in best_splits(gains, firsts, below)]


@dataclass(frozen=True, slots=True)
class ByValue:
    """Branching: a branch for every populated value; the attribute, or the cut, is spent."""

    sample: Sample

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[Branch]:
        """Return the populated branches, in order of code."""
        attribute = choice.attribute
        column = self.sample.branch(place.rows, attribute)
        left = tuple(k for k in place.attributes if k != attribute)
        return [Branch(attribute, int(code), place.rows[column == code], left) for code in np.unique(column)]


@dataclass(frozen=True, slots=True)
class PlainStopping:
    """Stopping: too few rows, too deep, one class for certain, or nothing to gain (theory §3.4)."""

    sample: Sample
    solver: IntervalSolver
    min_instances: int
    max_depth: int | None

    def before(self, place: OpenNode) -> Stop | None:
        """Return why the node must not be split, whatever the gains."""
        if self.sample.weight(place.rows) < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        estimate = self.solver.estimate(self.sample.counts(place.rows))
        if estimate.unique and float(estimate.theta.max()) >= 1 - TIE:
            return Stop.PURE
        if self.max_depth is not None and place.depth >= self.max_depth:
            return Stop.MAX_DEPTH
        return None

    def after(self, _place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no attribute can gain anything."""
        return Stop.NO_GAIN if max(upper for _, upper in choice.intervals.values()) <= TIE else None


def open_desk(
    sample: Sample,
    alpha: float,
    min_instances: int,
    max_depth: int | None,
    ordered: tuple[int, ...] | None = None,
    *,
    prediction_level: float = PREDICTION_LEVEL.default,
) -> QueryContext:
    """Return the tree of `sample`, not yet grown, with all that choosing its queries needs.

    `ordered` is as of `QueryContext`; without it all codes are names.
    """
    solver = sample.table.solver(alpha)
    method = GrowthRules(
        criterion=GainRatio(sample, solver),
        branching=ByValue(sample),
        stopping=PlainStopping(sample, solver, min_instances, max_depth),
        leaf=Likeliest(sample, solver, prediction_level),
    )
    root = OpenNode((), np.arange(len(sample.ids)), tuple(range(sample.splits.count)))
    growth = BatchGrowth(root, method)
    return QueryContext(sample, solver, growth, ordered or (0,) * len(sample.arities))
