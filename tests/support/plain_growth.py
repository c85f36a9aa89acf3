"""ABC4.5 node by node in the plainest way: what growth by `quercus.trees.rules` must agree with.

It grows by the skeleton of batch growth, and decides by rules of its own: exact intervals of every candidate, one node
at a time.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from quercus.belief.arrays import Ints
from quercus.specification.parameters import PREDICTION_LEVEL
from quercus.trees.ask.query import QueryContext
from quercus.trees.growth.batch import BatchGrowth, Branch, GrowthRules, OpenNode, SplitChoice
from quercus.trees.growth.sample import Sample
from quercus.trees.learners.evidential import Likeliest
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.gain import best_splits
from quercus.trees.rules.ties import TIE, largest_mid_value
from quercus.trees.tree.node import Stop
from quercus.trees.tree.splits import BELOW
from support.plain_rules import chance_of_split, gain_ratio_interval, non_dominated


@dataclass(frozen=True, slots=True)
class GainRatio:
    """Criterion: gain-ratio intervals, dominance, largest mid-value (theory §3.1, §3.2).

    What it calls attributes are the splits of the sample, see `quercus.trees.tree.splits`; of each attribute with
    cuts only the one that stands for it is a candidate.
    """

    sample: Sample
    solver: IntervalSolver
    significance: float = 0.0

    def choose_split(self, place: OpenNode) -> SplitChoice | None:
        """Return the choice, or None when every attribute has one populated value."""
        tables = self._tables(place)
        splits = {k: tables[k][tables[k].any(axis=1)] for k in self._representing(tables)}
        if not splits:
            return None
        counts = self.sample.counts(place.rows)
        contours = self.sample.table.contours
        told = int(counts[contours.min(axis=1) < contours.max(axis=1)].sum())
        of_each = Counter(self.sample.splits.attribute[list(tables)].tolist())
        tried = sum(min(count, max(1, told - 1)) for count in of_each.values())
        earned = {
            k: table
            for k, table in splits.items()
            if tried * chance_of_split(contours, self.solver, counts, table)
            < self.significance / 2**place.depth
        }
        justified = bool(earned) or self.significance == 0
        intervals = self._intervals(counts, earned or splits)
        rivals = non_dominated(intervals)
        return SplitChoice(
            attribute=largest_mid_value(intervals, rivals),
            intervals=intervals,
            rivals=rivals,
            undecided=(len(rivals) > 1 or not justified) and self.sample.candidates(place.rows).size > 0,
            justified=justified,
        )

    def _tables(self, place: OpenNode) -> Mapping[int, Ints]:
        informative = self.sample.informative(place.rows, place.attributes)
        return self.sample.contingency(place.rows, tuple(informative))

    def _intervals(self, node: Ints, splits: Mapping[int, Ints]) -> dict[int, tuple[float, float]]:
        counts = np.concatenate([node[np.newaxis], *splits.values()])
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

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return why the node must not be split, whatever the gains."""
        if self.sample.weight(place.rows) < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        estimate = self.solver.estimate(self.sample.counts(place.rows))
        if estimate.unique and float(estimate.theta.max()) >= 1 - TIE:
            return Stop.PURE
        if self.max_depth is not None and place.depth >= self.max_depth:
            return Stop.MAX_DEPTH
        return None

    def stop_after_choice(self, _place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no attribute can gain anything, `Stop.NOT_SIGNIFICANT` when none is earned."""
        if max(upper for _, upper in choice.intervals.values()) <= TIE:
            return Stop.NO_GAIN
        return None if choice.justified else Stop.NOT_SIGNIFICANT


class PlainGrowth(BatchGrowth):
    """Growth that knows the interval of every candidate, also of those that are not earned."""

    def gain_intervals(self, place: OpenNode) -> Mapping[int, tuple[float, float]]:
        """See `quercus.trees.ask.query.QueryableTree`."""
        criterion = self.method.criterion
        assert isinstance(criterion, GainRatio)
        choice = replace(criterion, significance=0.0).choose_split(place)
        return {} if choice is None else choice.intervals


def open_context(
    sample: Sample,
    alpha: float,
    min_instances: int,
    max_depth: int | None,
    ordered: tuple[int, ...] | None = None,
    *,
    prediction_level: float = PREDICTION_LEVEL.default,
    significance: float = 0.0,
) -> QueryContext:
    """Return the tree of `sample`, not yet grown, with all that choosing its queries needs.

    `ordered` is as of `QueryContext`; without it all codes are names.
    """
    solver = sample.table.solver(alpha)
    method = GrowthRules(
        criterion=GainRatio(sample, solver, significance),
        branching=ByValue(sample),
        stopping=PlainStopping(sample, solver, min_instances, max_depth),
        leaf=Likeliest(sample, solver, prediction_level),
    )
    root = OpenNode((), np.arange(len(sample.ids)), tuple(range(sample.splits.split_count)))
    growth = PlainGrowth(root, method)
    return QueryContext(sample, solver, growth, ordered or (0,) * len(sample.arities))
