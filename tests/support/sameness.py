"""Comparison of a growing state with the batch induction of its evidence: node for node, query for query.

Decisions compare numbers up to ``TIE``. Where two numbers are nearer to each other than `NEAR`, what is left of
rounding may rightly decide otherwise: such a difference is excused, and counted, so that a test can say how many it
tolerates. A decision that does not follow from the state's *own* numbers is never excused.
"""

from collections import Counter
from dataclasses import dataclass, field, fields
from itertools import zip_longest

import numpy as np

from quercus.trees.ask.query import Query
from quercus.trees.growth.stream import GrowthState
from quercus.trees.rules.ties import TIE, first_largest, largest_mid_value
from quercus.trees.tree.flat import FlatTree
from quercus.trees.tree.node import Node, Path, Stop
from support.batch import Batch, Evidence
from support.plain_rules import non_dominated

CLOSE = 1e-6  # what numbers may differ by
NEAR = 1e-7  # two numbers nearer to each other than this may be a tie here and none there

Interval = tuple[float, float]
Intervals = dict[int, Interval]
PLAIN = 60  # rows; in nodes of up to so many the scores are computed plainly as well


@dataclass
class Tally:
    """Counts of comparisons, and the differences that were excused."""

    level: float = 0.8  # of the likelihood cut that is compared now
    seen: Counter[str] = field(default_factory=Counter)
    excused: list[str] = field(default_factory=list)

    def excuse(self, good: bool, why: str) -> None:
        assert good, why
        self.excused.append(why)


def assert_same(state: GrowthState, evidence: Evidence, limit: int, tally: Tally) -> Batch:
    """Compare all that can be seen of `state` with batch induction; `limit` of the agenda."""
    batch = evidence.induce()
    assert_same_evidence(state, evidence, batch)
    tally.seen["looks"] += 1
    tally.level = evidence.specification.alpha
    excused = len(tally.excused)
    assert_same_tree(state.tree, batch, tally)
    if len(tally.excused) == excused:  # else the trees differ, and so may the agendas
        assert_same_agenda(state.agenda(limit), batch, limit, tally)
    return batch


def assert_same_evidence(state: GrowthState, evidence: Evidence, batch: Batch) -> None:
    spec = evidence.specification
    assert state.specification == spec
    assert (state.instance_count, state.answers) == (evidence.size, evidence.answers)
    assert (state.asked, state.edges) == (evidence.asked, batch.edges)
    for i in evidence.sampled():
        assert tuple(state.contour(i).tolist()) == batch.known[i], f"contour of instance {i}"
    if evidence.size:  # batch counts at least one code where there are none
        assert [len(names) for names in state.branch_names] == [
            2 + (arity > cuts + 1) if cuts else arity
            for arity, cuts in zip(
                batch.context.sample.arities, batch.context.sample.splits.cuts, strict=True
            )
        ]
    values = np.array(evidence.values, dtype=float).reshape(evidence.size, len(spec.attributes))
    assert np.array_equal(state.encoder.codes(values), batch.context.sample.codes)


# the tree


def assert_same_tree(found: Node, batch: Batch, tally: Tally) -> None:
    pending: list[tuple[Path, Node, Node]] = [((), found, batch.tree)]
    while pending:
        path, a, b = pending.pop()
        tally.seen["nodes"] += 1
        tally.seen["undecided"] += b.undecided
        tally.seen["thresholds"] += b.threshold is not None
        assert_rules_kept(a, path)
        if same_node(a, b, path, tally):
            pending.extend(
                ((*path, (b.attribute, code)), a.children[code], child) for code, child in b.children.items()
            )


def same_node(a: Node, b: Node, path: Path, tally: Tally) -> bool:
    """Compare two nodes; tell whether their children can be compared."""
    assert a.count == b.count, f"{path}: count {a.count}, by batch {b.count}"
    assert_close(a.theta, b.theta, f"{path}: theta")
    assert_close(a.belief, b.belief, f"{path}: belief")
    assert_close(a.plausibility, b.plausibility, f"{path}: plausibility")
    if a.klass != b.klass:
        near = abs(b.theta[a.klass] - b.theta[b.klass]) < NEAR
        tally.excuse(near, f"{path}: class {a.klass}, by batch {b.klass} of {b.theta}")
    if a.stop != b.stop:
        tally.excuse(
            stops_are_near(a, b), f"{path}: stop {a.stop}, by batch {b.stop}, {b.intervals}, {b.theta}"
        )
        return False
    assert list(a.intervals) == list(b.intervals), f"{path}: candidates"
    assert_same_intervals(a, b, path, tally)
    if a.undecided != b.undecided:
        near = dominance_is_near(b.intervals)
        tally.excuse(near, f"{path}: undecided {a.undecided}, {b.intervals}")
    if a.attribute != b.attribute:
        near = mids_are_near(b.intervals, a.attribute, b.attribute) or dominance_is_near(b.intervals)
        tally.excuse(near, f"{path}: split by {a.attribute}, by batch {b.attribute}, {b.intervals}")
        return False
    assert a.threshold == b.threshold, f"{path}: threshold {a.threshold}, by batch {b.threshold}"
    assert list(a.children) == list(b.children), f"{path}: branches"
    return True


def assert_same_intervals(a: Node, b: Node, path: Path, tally: Tally) -> None:
    """Assert that intervals are the same; of a dominated attribute, outer bounds suffice."""
    rivals = non_dominated(b.intervals)
    for k, ends in a.intervals.items():
        tally.seen["exact" if k in rivals else "dominated"] += 1
        assert_interval(ends, b.intervals[k], k in rivals, f"{path}: interval of {k}")


def assert_close(found: object, wanted: object, what: str) -> None:
    a, b = np.asarray(found, dtype=float), np.asarray(wanted, dtype=float)
    assert a.shape == b.shape, f"{what} has shape {a.shape}, by batch {b.shape}"
    assert np.abs(a - b).max(initial=0.0) <= CLOSE, f"{what} is {a.tolist()}, by batch {b.tolist()}"


def assert_interval(found: Interval, wanted: Interval, rival: bool, what: str) -> None:
    """Assert that an interval is the same, or encloses it if dominated: `assert_rules_kept` checks that it then is."""
    if rival:
        assert_close(found, wanted, what)
    else:
        assert_encloses(*found, *wanted, what)


def assert_encloses(
    lower: object, upper: object, inner_lower: object, inner_upper: object, what: str
) -> None:
    below = np.asarray(lower) - np.asarray(inner_lower)
    above = np.asarray(inner_upper) - np.asarray(upper)
    assert max(below.max(initial=0.0), above.max(initial=0.0)) <= CLOSE, (
        f"{what} is {lower}, {upper}, by batch {inner_lower}, {inner_upper}"
    )


def assert_rules_kept(node: Node, path: Path) -> None:
    """Every decision follows from the node's own numbers, ties and all (theory §3.2, §3.4, §3.5)."""
    assert node.klass == first_largest(node.theta), f"{path}: class"
    if node.stop is Stop.PURE:
        assert max(node.theta) >= 1 - TIE, f"{path}: pure"
    if node.stop is Stop.NO_GAIN:
        assert max(upper for _, upper in node.intervals.values()) <= TIE, f"{path}: no gain"
    if node.attribute is None:
        return
    rivals = non_dominated(node.intervals)
    assert max(upper for _, upper in node.intervals.values()) > TIE, f"{path}: gain"
    assert node.attribute == largest_mid_value(node.intervals, rivals), f"{path}: choice"
    assert len(rivals) > 1 or not node.undecided, f"{path}: undecided"


def stops_are_near(a: Node, b: Node) -> bool:
    if Stop.PURE in (a.stop, b.stop):
        return max(b.theta) > 1 - NEAR
    gains = [upper for _, upper in b.intervals.values()]
    return {a.stop, b.stop} == {None, Stop.NO_GAIN} and abs(max(gains)) < NEAR


def dominance_is_near(intervals: Intervals) -> bool:
    """Tell whether one more or one less attribute might be dominated."""
    best = max(intervals, key=lambda k: intervals[k][0])
    return any(abs(intervals[best][0] - intervals[k][1]) < NEAR for k in intervals if k != best)


def mids_are_near(intervals: Intervals, one: int | None, other: int | None) -> bool:
    if one is None or other is None:
        return False
    return abs(sum(intervals[one]) - sum(intervals[other])) < 2 * NEAR


# the agenda


def assert_same_agenda(found: tuple[Query, ...], batch: Batch, limit: int, tally: Tally) -> None:
    wanted = batch.agenda(limit)
    for at, (a, b) in enumerate(zip_longest(found, wanted)):
        if a is None or b is None or _what(a) != _what(b):
            tally.excuse(agendas_are_near(a, b, wanted[:at], batch), f"query {at} is {a}, by batch {b}")
            return
        tally.seen["queries"] += 1
        assert_close(a.score, b.score, f"score of {b}")
        assert_same_rivals(a, b, batch)
        if b.node_count <= PLAIN and at < 3:
            scores = batch.scores(b, wanted[:at])
            assert_close(b.score, scores[batch.known[b.instance]], f"score of {b}")
            assert_close(b.score, max(scores.values()), f"best score beside {b}")


def assert_same_rivals(a: Query, b: Query, batch: Batch) -> None:
    rivals = non_dominated({k: (lower, upper) for k, lower, upper in b.rivals})
    judged = batch.rivalries().get(b.path, {})
    still = set(rivals) & set(non_dominated(judged))  # those of an open round may be dominated by now
    for (k, *found), (_, *wanted) in zip(a.rivals, b.rivals, strict=True):
        assert_interval((found[0], found[1]), (wanted[0], wanted[1]), k in still, f"rival {k} of {b}")


def _what(query: Query) -> tuple[object, ...]:
    rivals = tuple(attribute for attribute, _, _ in query.rivals)
    return (query.instance, query.path, query.attribute, query.code, query.asked, query.node_count, rivals)


def agendas_are_near(a: Query | None, b: Query | None, before: tuple[Query, ...], batch: Batch) -> bool:
    if a is not None and b is not None and a.asked == b.asked:
        scores = batch.scores(b, before)
        mine, theirs = batch.known[a.instance], batch.known[b.instance]
        return mine != theirs and mine in scores and abs(scores[mine] - scores[theirs]) < NEAR
    return any(dominance_is_near(intervals) for intervals in batch.rivalries().values())


# the arrays


def assert_flat(flat: FlatTree, tree: Node) -> None:
    wanted = FlatTree.of(tree)
    for column in fields(FlatTree):
        a, b = getattr(flat, column.name), getattr(wanted, column.name)
        same = np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
        assert same, f"{column.name} is {a}, of the tree {b}"
