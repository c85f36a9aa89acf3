"""ABC4.5 node by node, as simply as possible: growth by `quercus.trees.rules` must agree with it.

It grows by the skeleton of batch growth, and decides by rules of its own: exact intervals of every candidate, one node
at a time.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from numpy.typing import NDArray

from quercus.belief.arrays import Ints
from quercus.specification.parameters import PREDICTION_LEVEL
from quercus.trees.ask.query import Contest as FoundContest
from quercus.trees.ask.query import QueryContext, contests_among
from quercus.trees.growth.batch import (
    Decision,
    GrowthRules,
    NodePrediction,
    OpenNode,
    SplitChoice,
    decide_node,
    tree_of,
)
from quercus.trees.growth.sample import Sample
from quercus.trees.learners.evidential import evidential_prediction
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.gain import best_splits
from quercus.trees.rules.ties import TIE, largest_mid_value
from quercus.trees.tree.node import Node, Path, Stop
from quercus.trees.tree.splits import BELOW
from support.plain_rules import candidate_splits, chance_of_split, gain_ratio_interval, non_dominated


@dataclass(frozen=True, slots=True)
class Contest(SplitChoice):
    """A choice with the attributes that may be the best, in declared order."""

    rivals: tuple[int, ...] = ()


@dataclass(frozen=True)
class PlainRules(GrowthRules):
    """Gain-ratio intervals, dominance, largest mid-value (theory §3.1, §3.2), and the stops of theory §3.4.

    What it calls attributes are the splits of the sample, see `quercus.trees.tree.splits`; of each attribute with
    cuts only the one that stands for it is a candidate.
    """

    sample: Sample
    solver: IntervalSolver
    min_instances: int
    max_depth: int | None
    prediction_level: float
    significance: float = 0.0

    def choose_split(self, place: OpenNode) -> Contest | None:
        """Return the choice, or None when every attribute has one populated value."""
        tables = self._tables(place)
        splits = {k: tables[k][tables[k].any(axis=1)] for k in self._representing(tables)}
        if not splits:
            return None
        counts = self._counts(place)
        contours = self.sample.table.contours
        told = counts[contours.min(axis=1) < contours.max(axis=1)].sum()
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
        return Contest(
            attribute=largest_mid_value(intervals, rivals),
            intervals=intervals,
            rivals=rivals,
            undecided=(len(rivals) > 1 or not justified) and self.sample.candidates(place.rows).size > 0,
            justified=justified,
        )

    def _counts(self, place: OpenNode) -> NDArray[np.number]:
        """Return how often each contour occurs at a node."""
        return self.sample.counts(place.rows)

    def _tables(self, place: OpenNode) -> Mapping[int, Ints]:
        splits = candidate_splits(self.sample, place.rows, place.attributes)
        return self.sample.contingency(place.rows, splits)

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

    def branches(self, place: OpenNode, choice: SplitChoice) -> list[OpenNode]:
        """Return a child for every populated value, in order of code; the attribute, or the cut, is spent."""
        attribute = choice.attribute
        column = self.sample.branch(place.rows, attribute)
        left = tuple(k for k in place.attributes if k != attribute)
        return [
            place.child(attribute, code, place.rows[column == code], left)
            for code in np.unique(column).tolist()
        ]

    def stop_before_split(self, place: OpenNode) -> Stop | None:
        """Return why the node must not be split, whatever the gains."""
        if self._counts(place).sum() < self.min_instances - TIE:
            return Stop.FEW_INSTANCES
        estimate = self.solver.estimate(self._counts(place))
        if estimate.unique and float(estimate.theta.max()) >= 1 - TIE:
            return Stop.PURE
        if self.max_depth is not None and place.depth >= self.max_depth:
            return Stop.MAX_DEPTH
        return None

    def stop_after_choice(self, place: OpenNode, choice: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no attribute can gain anything, `Stop.NOT_SIGNIFICANT` when none is earned."""
        if max(upper for _, upper in choice.intervals.values()) <= TIE:
            return Stop.NO_GAIN
        return None if choice.justified else Stop.NOT_SIGNIFICANT

    def leaf_prediction(self, place: OpenNode) -> NodePrediction:
        """Return the likeliest class."""
        return evidential_prediction(self.sample, place, self.solver, self.prediction_level)


@dataclass(eq=False)
class PlainGrowth:
    """A tree whose nodes are decided when they are first read: a `quercus.trees.ask.query.QueryableTree`."""

    root: OpenNode
    rules: PlainRules
    _decided: dict[Path, Decision] = field(default_factory=dict)

    def decide(self, place: OpenNode) -> Decision:
        """Return whether and how the node at `place` is split."""
        if place.path not in self._decided:
            self._decided[place.path] = decide_node(place, self.rules)
        return self._decided[place.path]

    def decisions(self) -> Iterator[tuple[Decision, int]]:
        """Yield every decision, parents first, with its parent's index; lazy."""
        pending = [(self.root, -1)]
        for index in count():
            if not pending:
                return
            place, parent = pending.pop()
            decision = self.decide(place)
            yield decision, parent
            pending.extend((child, index) for child in reversed(decision.children))

    def tree(self) -> Node:
        """Return the whole tree."""
        return tree_of(list(self.decisions()), self.rules)

    def find_node(self, path: Path) -> OpenNode | None:
        """Return the place at `path`, or None when the tree has no such node."""
        place = self.root
        for step in path:
            found = [child for child in self.decide(place).children if child.path[-1] == step]
            if not found:
                return None
            place = found[0]
        return place

    def contested_nodes(self) -> Iterator[tuple[OpenNode, tuple[int, ...]]]:
        """Yield the undecided nodes, in pre-order, with their rivals."""
        for decision, _ in self.decisions():
            if decision.undecided:
                assert isinstance(decision.choice, Contest)
                yield decision.place, decision.choice.rivals

    def row_leaves(self) -> tuple[Ints, Callable[[int], Path]]:
        """Return the leaf (n,) in which each row ends, numbered in pre-order, and a function from leaf to path."""
        ends = [decision.place for decision, _ in self.decisions() if decision.stop is not None]
        of = np.zeros(self.root.rows.size, dtype=np.int64)
        for number, place in enumerate(ends):
            of[place.rows] = number
        return of, lambda number: ends[number].path

    def gain_intervals(self, place: OpenNode) -> Mapping[int, tuple[float, float]]:
        """Return the interval of every candidate, also of those that are not earned."""
        choice = replace(self.rules, significance=0.0).choose_split(place)
        return {} if choice is None else choice.intervals

    def contests_above(self, paths: Sequence[Path]) -> list[FoundContest | None]:
        """Return the deepest undecided node on the way to each node."""
        return contests_among(self, paths)


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

    `ordered` is as in `QueryContext`; without it all codes are names.
    """
    solver = sample.table.solver(alpha)
    rules = PlainRules(sample, solver, min_instances, max_depth, prediction_level, significance)
    root = OpenNode((), np.arange(len(sample.ids)), tuple(range(sample.splits.split_count)))
    growth = PlainGrowth(root, rules)
    return QueryContext(sample, solver, growth, ordered or (0,) * len(sample.arities))
