"""ABC4.5: active belief decision trees (theory §3; Ma, Destercke, Wang 2016).

The four pieces of the method, and `induce`, which grows a tree with an oracle at hand. The service
(`quercus.trees.growth.stream`) uses the same pieces and the same choice of queries.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from quercus.belief.contour import check_contour, check_contours
from quercus.belief.errors import InvalidInput
from quercus.belief.evidence import update
from quercus.belief.frame import check_size
from quercus.specification.parameters import ALPHA, BUDGET, MAX_DEPTH, MIN_INSTANCES, PREDICTION_LEVEL
from quercus.specification.strategies import PUBLISHED
from quercus.trees.ask.query import Query, QueryContext
from quercus.trees.ask.strategies.registry import agenda
from quercus.trees.growth.batch import BatchGrowth, Branch, GrowthRules, NodePrediction, OpenNode, SplitChoice
from quercus.trees.growth.incremental.growing import TreeRules
from quercus.trees.growth.incremental.live_tree import LiveTree
from quercus.trees.growth.sample import ContourTable, Ints, Sample
from quercus.trees.likelihood.interval import IntervalSolver
from quercus.trees.rules.dominance import TIE, first_largest, largest_mid_value, non_dominated
from quercus.trees.rules.gain import best_splits, gain_ratio_interval
from quercus.trees.tree.node import Node, Stop
from quercus.trees.tree.splits import BELOW

MAX_CODE = 2**15 - 1

Oracle = Callable[[int], ArrayLike | None]


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
        telling = self.sample.telling(place.rows, place.attributes)
        tables = self.sample.contingency(place.rows, tuple(telling))
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

    def branches(self, place: OpenNode, verdict: SplitChoice) -> list[Branch]:
        """Return the populated branches, in order of code."""
        attribute = verdict.attribute
        column = self.sample.branch(place.rows, attribute)
        left = tuple(k for k in place.attributes if k != attribute)
        return [Branch(attribute, int(code), place.rows[column == code], left) for code in np.unique(column)]


@dataclass(frozen=True, slots=True)
class Thresholds:
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

    def after(self, _place: OpenNode, verdict: SplitChoice) -> Stop | None:
        """Return `Stop.NO_GAIN` when no attribute can gain anything."""
        return Stop.NO_GAIN if max(upper for _, upper in verdict.intervals.values()) <= TIE else None


@dataclass(frozen=True, slots=True)
class Likeliest:
    """Leaf rule: the class of largest likelihood estimate, with bounds over the likelihood cut at a level of their own.

    Where all labels are vacuous every estimate is a likeliest one, and that of the parent is taken, as where there is
    no row at all (theory §3.4).
    """

    sample: Sample
    solver: IntervalSolver
    prediction_level: float = PREDICTION_LEVEL.default

    def summary(self, place: OpenNode) -> NodePrediction:
        """Return the prediction; with no row at all, that every class is possible."""
        size = self.sample.table.contours.shape[1]
        if not place.rows.size:
            return NodePrediction(0, (1 / size,) * size, (0.0,) * size, (1.0,) * size, silent=True)
        counts = self.sample.counts(place.rows)
        theta = tuple(self.solver.estimate(counts).theta.tolist())
        belief, plausibility = self.solver.class_bounds(counts, self.prediction_level)
        bounds = tuple(belief.tolist()), tuple(plausibility.tolist())
        silent = not (counts[~self.sample.table.vacuous] > 0).any()
        total = self.sample.weight(place.rows)
        weight = None if total == place.rows.size else total
        return NodePrediction(first_largest(theta), theta, *bounds, weight=weight, silent=silent)


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
        stopping=Thresholds(sample, solver, min_instances, max_depth),
        leaf=Likeliest(sample, solver, prediction_level),
    )
    root = OpenNode((), np.arange(len(sample.ids)), tuple(range(sample.splits.count)))
    growth = BatchGrowth(root, method)
    return QueryContext(sample, solver, growth, ordered or (0,) * len(sample.arities))


@dataclass(frozen=True, slots=True)
class Induction:
    """The tree, and the queries in the order they were asked, refused ones included."""

    tree: Node
    queries: tuple[Query, ...]


def induce(
    codes: ArrayLike,
    arities: ArrayLike,
    contours: ArrayLike,
    *,
    alpha: float = ALPHA.default,
    budget: int = BUDGET.default,
    oracle: Oracle | None = None,
    min_instances: int = MIN_INSTANCES.default,
    max_depth: int | None = None,
    strategy: str = PUBLISHED,
    ordered: Sequence[int] = (),
    prediction_level: float = PREDICTION_LEVEL.default,
) -> Induction:
    """Grow an active belief decision tree (theory §3).

    Parameters
    ----------
    codes
        (n, K) value of each attribute of each row, ``0 <= codes[:, k] < arities[k]``, in declared order.
    arities
        (K,) number of values of each attribute.
    contours
        (n, l) plausibility of each class.
    alpha
        Level of the likelihood cut, in [0, 1].
    budget
        Most answers; a refusal costs nothing.
    oracle
        Given a row number, returns what it knows of that row's class as a contour (l,), or None when it
        cannot tell. A precise contour replaces the row's label, any other is combined with it.
    min_instances
        A node with fewer rows is a leaf.
    max_depth
        Depth at which every node is a leaf; None for no limit.
    strategy
        What is asked about, a name of `quercus.specification.strategies.STRATEGIES`.
    ordered
        (K,) how many of each attribute's values, from 0 on, are in order, as bins are: committees look at that. Without
        it all are names.
    prediction_level
        Level of the likelihood cut that belief and plausibility are bounds over, in [0, 1].

    Returns
    -------
    Induction
        The tree after all answers, and the queries.

    Raises
    ------
    InvalidInput
        When an argument breaks one of these rules.

    Examples
    --------
    >>> result = induce([[0], [0], [1], [1]], [2], [[1, 0], [1, 1], [0, 1], [0, 1]], alpha=1.0)
    >>> result.tree.attribute, {code: child.klass for code, child in result.tree.children.items()}
    (0, {0: 0, 1: 1})
    """
    alpha = ALPHA.check(alpha)
    budget = BUDGET.check(budget)
    min_instances = MIN_INSTANCES.check(min_instances)
    max_depth = MAX_DEPTH.check(max_depth)
    sample = _sample(codes, arities, contours)
    level = PREDICTION_LEVEL.check(prediction_level)
    rules = TreeRules(alpha, min_instances, max_depth, prediction_level=level)
    live = LiveTree(sample.arities, sample.table.contours.shape[1], rules)
    live.append(sample.codes, sample.table.contours[sample.ids])
    queries: list[Query] = []
    answers = 0
    in_order = tuple(ordered) or (0,) * len(sample.arities)
    while oracle is not None and answers < budget:
        wanted = agenda(live.desk(in_order), queries[-1].asked if queries else None, 1, strategy)
        if not wanted:
            break
        queries.append(wanted[0])
        instance = wanted[0].instance
        answer = oracle(instance)
        answers += answer is not None
        live.learn(instance, None if answer is None else _combined(live, instance, answer))
    return Induction(live.flat.tree(), tuple(queries))


def _combined(live: LiveTree, instance: int, answer: ArrayLike) -> NDArray[np.float64]:
    """Return what is known of a row after a certain answer, given as a contour."""
    known = live.table.contours[live.contour_id(instance)]
    return update(known, check_contour(answer, len(known), f"answer for row {instance}"), 1.0).contour


def _sample(codes: ArrayLike, arities: ArrayLike, contours: ArrayLike) -> Sample:
    labels = np.asarray(contours, dtype=np.float64)
    size = check_size(labels.shape[1] if labels.ndim == 2 else 0, "contours")
    labels = check_contours(labels, size)
    widths = _whole(arities, "arities", 1)
    if (widths < 1).any() or (widths > MAX_CODE).any():
        raise InvalidInput("arities", f"must lie in [1, {MAX_CODE}]")
    table = _whole(codes, "codes", 2)
    if table.shape != (len(labels), len(widths)):
        raise InvalidInput("codes", f"have shape {table.shape}, must be {(len(labels), len(widths))}")
    wrong = (table < 0) | (table >= widths)
    if wrong.any():
        row, k = np.unravel_index(int(wrong.argmax()), wrong.shape)
        raise InvalidInput(f"codes[{row}][{k}]", f"is {table[row, k]}, must lie in [0, {widths[k]})")
    distinct = ContourTable(size)
    return Sample(
        codes=np.asfortranarray(table, dtype=np.int16),
        arities=tuple(widths.tolist()),
        ids=distinct.intern(labels),
        askable=np.ones(len(labels), dtype=bool),
        table=distinct,
    )


def _whole(values: ArrayLike, field: str, dimensions: int) -> NDArray[np.int64]:
    array = np.asarray(values)
    if array.ndim != dimensions or not (np.issubdtype(array.dtype, np.integer) or not array.size):
        raise InvalidInput(field, f"must be whole numbers in {dimensions} dimensions, have {array.dtype}")
    return array.astype(np.int64)
