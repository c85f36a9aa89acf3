"""The forest of many memories: its trees against a slow induction; and whatever the batches, one forest."""

import math
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from quercus.kernels.forest import covering_gains, member_key
from quercus.trees.learners.mixture import fit_mixtures
from quercus.trees.learners.recent_accuracy import AccuracyBlock, in_all
from quercus.trees.likelihood.maximiser import estimate
from quercus.trees.memory_forest.asking import Coverage
from quercus.trees.memory_forest.evidence import DistinctContours, EvidenceMoment, ForestEvidence
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.groves import Grove, MemberTree, MemoryChanges
from quercus.trees.memory_forest.labelled_rows import LabelledRows, common_length
from quercus.trees.memory_forest.memories import LADDER, remembered_places
from quercus.trees.memory_forest.naive_bayes import NaiveBayes
from quercus.trees.memory_forest.saved import SavedForest, restore_forest, saved_forest

Floats = NDArray[np.float64]
MASK = 2**64 - 1
MANY, SOME = (settings.default.max_examples * share // 8 for share in (5, 3))
"""Examples: 25 and 15 where all tests run, half as many for every change."""


def mixed(key: int, number: int) -> int:
    """splitmix64, in whole numbers of Python."""
    z = (key + (number + 1) * 0x9E3779B97F4A7C15) & MASK
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def drawn(key: int, count: int) -> int:
    return ((key >> 32) * count) >> 32


def halved(key: int, numbers: list[int]) -> int:
    """One of the numbers: of their dyadic ranges the halves are taken with chances by how many they have."""
    for size in [2**power for power in range(15, -1, -1)]:
        middle = numbers[0] // (2 * size) * 2 * size + size
        left, right = [n for n in numbers if n < middle], [n for n in numbers if n >= middle]
        if left and right:
            numbers = left if drawn(mixed(key, middle), len(numbers)) < len(left) else right
    return numbers[0]


@dataclass
class Slow:
    """Nodes of precise labels in pre-order: (attribute, left codes of the node's rows, or class counts)."""

    codes: Any
    named: list[bool]
    classes: list[int]
    size: int

    def grow(self, rows: list[int], key: int) -> list[tuple[Any, ...]]:
        counts = [sum(self.classes[row] == c for row in rows) for c in range(self.size)]
        chosen = self.split(rows, key) if len(rows) > 1 and max(counts) < len(rows) else None
        if chosen is None:
            return [(-1, tuple(counts))]
        k, left = chosen
        right = [row for row in rows if row not in left]
        here = (k, tuple(sorted({int(self.codes[row, k]) for row in left})))
        return [here, *self.grow(left, mixed(key, 0)), *self.grow(right, mixed(key, 1))]

    def split(self, rows: list[int], key: int) -> tuple[int, list[int]] | None:
        varying = [k for k, column in enumerate(self.codes.T.tolist()) if len(set(column)) > 1]
        A = len(varying)
        order, best, found, tried = list(range(A)), math.inf, None, 0
        for place in range(A):
            other = place + drawn(mixed(key, 2 + place), A - place)
            order[place], order[other] = order[other], order[place]
            k = varying[order[place]]
            left = self.test(rows, k, mixed(key, 2 + A + order[place]))
            if left is None:
                continue
            right = [row for row in rows if row not in left]
            entropy = sum(self.entropy(side) for side in (left, right))
            if entropy < best - 1e-9:
                best, found = entropy, (k, left)
            tried += 1
            if tried == math.ceil(math.sqrt(A)):
                break
        return found

    def test(self, rows: list[int], k: int, key: int) -> list[int] | None:
        seen = {int(self.codes[row, k]) for row in rows}
        if len(seen) == 1:
            return None
        if self.named[k]:
            for attempt in range(64):
                mask = mixed(key, attempt)
                left = {code for code in seen if mixed(mask, code) & 1}
                if 0 < len(left) < len(seen):
                    return [row for row in rows if self.codes[row, k] in left]
            return None
        known = seen - {0}
        if len(known) == 1:
            return [row for row in rows if self.codes[row, k]]
        cut = halved(key, list(range(min(known), max(known))))
        missing_left = key & 1
        return [row for row in rows if (self.codes[row, k] <= cut if self.codes[row, k] else missing_left)]

    def entropy(self, rows: list[int]) -> float:
        counts = [sum(self.classes[row] == c for row in rows) for c in range(self.size)]
        return -sum(n * math.log(n / len(rows)) for n in counts if n)


def world(
    seed: int, rows: int, classes: int, *, precise: bool = False
) -> tuple[Floats, NDArray[np.bool_], Floats]:
    """Values of numbers and names, some missing; contours: precise, sets, plausibilities and nothing."""
    rng = np.random.default_rng(seed)
    K = int(rng.integers(1, 8))
    named = rng.random(K) < 0.5
    values = np.where(named, rng.integers(6, size=(rows, K)), np.round(rng.normal(size=(rows, K)), 1))
    values = np.where(rng.random((rows, K)) < 0.1, np.nan, values)
    score = np.nan_to_num(values) @ rng.normal(size=K) + rng.normal(size=rows)
    klass = np.searchsorted(np.quantile(score, np.arange(1, classes) / classes), score)
    contours = np.eye(classes)[klass]
    if precise:
        contours[rng.random(rows) < 0.01] = 1.0
        return values, named, contours
    kind = rng.random(rows)
    contours[kind < 0.2, rng.integers(classes)] = 1.0
    soft = (kind >= 0.2) & (kind < 0.35)
    contours[soft] = np.maximum(contours[soft], np.round(rng.random((int(soft.sum()), classes)), 1))
    contours[kind > 0.8] = 1.0
    return values, named, contours


@pytest.mark.parametrize("seed", range(20))
def test_a_tree_is_that_of_the_slow_induction(seed: int) -> None:
    values, named, contours = world(seed, 60, 3)
    classes = contours.argmax(axis=1)
    evidence = ForestEvidence(named, 3)
    evidence.add_rows(values, evidence.contours.contour_numbers(np.eye(3)[classes]))
    codes = evidence.codes()
    tree = from_scratch(evidence.present_moment(), evidence.labelled, member_key(seed, 4))
    slow = Slow(codes, named.tolist(), classes.tolist(), 3)
    expected = slow.grow(list(range(60)), mixed(mixed(seed, 0), 4))
    assert described(tree, codes, classes) == expected


def described(tree: MemberTree, codes: Any, classes: Any) -> list[tuple[Any, ...]]:
    """The nodes of a tree as `Slow` has them."""
    found: list[tuple[Any, ...]] = []

    def down(node: int, first: int) -> None:
        rows = tree.rows[first : first + tree.nodes[3, node]]
        k = int(tree.nodes[0, node])
        if k < 0:
            found.append((-1, tuple(np.bincount(classes[rows], minlength=3).tolist())))
            return
        left = tree.rows[first : first + tree.nodes[3, node + 1]]
        found.append((k, tuple(sorted(set(codes[left, k].tolist())))))
        down(node + 1, first)
        down(node + int(tree.nodes[2, node]), first + int(tree.nodes[3, node + 1]))

    down(0, 0)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_leaves_have_the_likeliest_probabilities_of_their_rows(seed: int) -> None:
    values, named, contours = world(seed, 80, 3)
    evidence = ForestEvidence(named[:1], 3)  # one attribute, so that leaves are large
    evidence.add_rows(values[:, :1], evidence.contours.contour_numbers(contours))
    tree = from_scratch(evidence.present_moment(), evidence.labelled, member_key(seed, 0))
    known = np.vstack([np.eye(3), tree.opinions[:, 0]])
    first = 0
    for node in np.flatnonzero(tree.nodes[0] < 0):
        rows = tree.rows[first : first + tree.nodes[3, node]]
        first += int(tree.nodes[3, node])
        theta = known[tree.nodes[2, node]]
        best = estimate(contours[rows])
        reached = np.log(contours[rows] @ theta).sum()
        assert theta.sum() == pytest.approx(1.0)
        assert reached >= best.log_likelihood - 1e-5 * len(rows)
    assert first == len(tree.rows)


def from_scratch(moment: EvidenceMoment, labelled: Any, key: int) -> MemberTree:
    none = np.empty(0, np.int32)
    changes = MemoryChanges.between(moment, none, none, labelled.astype(np.int32))
    (tree,) = Grove.seed(np.array([key], np.uint64), moment.evidence.size).grown_after(moment, changes).trees
    return tree


def said_at_leaves(tree: MemberTree, size: int) -> Any:
    pure = np.repeat(np.eye(size)[:, np.newaxis], 3, axis=1)
    return np.concatenate([pure, tree.opinions])[tree.nodes[2, tree.nodes[0] < 0]]


def assert_same_tree(one: MemberTree, other: MemberTree, size: int) -> None:
    np.testing.assert_array_equal(one.nodes[[0, 1, 3]], other.nodes[[0, 1, 3]])
    inner = one.nodes[0] >= 0
    np.testing.assert_array_equal(one.nodes[2, inner], other.nodes[2, inner])
    np.testing.assert_array_equal(said_at_leaves(one, size)[:, 0], said_at_leaves(other, size)[:, 0])


def assert_same(one: MemoryForest, other: MemoryForest) -> None:
    """Both are the same, and each of their trees is the one from scratch of the last rows in its memory."""
    mine, theirs, evidence = one.members(), other.members(), one.evidence
    np.testing.assert_array_equal(mine.labelled, theirs.labelled)
    for m, (a, b) in enumerate(zip(mine.trees, theirs.trees, strict=True)):
        labelled = mine.labelled[remembered_places(LADDER[m % len(LADDER)], len(mine.labelled))]
        assert_same_tree(a, b, mine.size)
        assert_same_tree(
            a, from_scratch(evidence.present_moment(), labelled, member_key(one.seed, m)), mine.size
        )
    np.testing.assert_array_equal(one.recent.scores, other.recent.scores)
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.accuracy == other.accuracy
    some = one.evidence.values[:20]
    if len(some):
        said, expected = one.predict(some), other.predict(some)
        np.testing.assert_array_equal(said.theta, expected.theta)
        np.testing.assert_array_equal(said.belief, expected.belief)
        np.testing.assert_array_equal(said.plausibility, expected.plausibility)
    mine, theirs = one.calibration(), other.calibration()
    assert mine.basis == theirs.basis
    np.testing.assert_array_equal(mine.scores, theirs.scores)


def forest(named: NDArray[np.bool_], classes: int) -> MemoryForest:
    return MemoryForest(named, classes, trees=7, seed=5, level=0.75)


@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 1_300),
    cuts=st.lists(st.integers(0, 1_300), max_size=6),
    looks=st.integers(0, 63),
    precise=st.booleans(),
)
def test_whatever_the_batches_one_forest(
    seed: int, rows: int, cuts: list[int], looks: int, precise: bool
) -> None:
    values, named, contours = world(seed, rows, 3, precise=precise)
    at_once, in_parts = forest(named, 3), forest(named, 3)
    at_once.observe(values, contours)
    ends = [0, *sorted({min(cut, rows) for cut in cuts}), rows]
    for i, (start, end) in enumerate(pairwise(ends)):
        in_parts.observe(values[start:end], contours[start:end])
        if looks >> i & 1:
            in_parts.predict(values[:3])
    assert_same(in_parts, at_once)


@pytest.mark.parametrize("seed", range(20))
def test_many_rows_are_predicted_as_each_of_them_alone(seed: int) -> None:
    rows = int(np.random.default_rng(seed).integers(1, 2_300))
    values, named, contours = world(seed, rows, 3)
    found = forest(named & (seed % 2 == 0), 3)
    found.observe(values[:400], contours[:400])
    members = found.bounded_members()
    together, overlap = (
        members.mean_opinions(values, found.weights, 0.75),
        members.overlaps(values, found.weights),
    )
    for row in range(0, rows, max(1, rows // 100)):
        alone = values[row : row + 1]
        np.testing.assert_array_equal(members.mean_opinions(alone, found.weights, 0.75)[0], together[row])
        assert members.overlaps(alone, found.weights)[0] == overlap[row]


@settings(max_examples=MANY, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**6), looks=st.integers(0, 2**12 - 1))
def test_answers_corrections_and_withdrawals(seed: int, looks: int) -> None:
    """Labels that arrive one after the other, with occasional looks, give the same forest as without a look."""
    values, named, contours = world(seed, 300, 3)
    rng = np.random.default_rng(seed)
    often, never = forest(named, 3), forest(named, 3)
    for each in (often, never):
        each.observe(values, np.ones(contours.shape))
    for i in range(240):
        row = int(rng.integers(300))
        contour = np.ones(3) if rng.random() < 0.1 else contours[int(rng.integers(300))]
        for each in (often, never):
            each.replace_contour(row, contour, asked=i % 3 == 0)
        if i % 20 == 7 and looks >> i // 20 & 1:
            often.predict(values[:2])
            often.calibration()
    assert_same(often, never)


def saved_with_room(found: MemoryForest, room: int) -> SavedForest:
    """The saved form of a forest, with room for so many rows behind the columns that grow, as files have it."""
    found.members()
    saved = saved_forest(found)
    assert saved is not None
    columns = {name: column.copy() for name, column in saved.columns.items()}
    for name in saved.GROWING:
        columns[name] = np.concatenate([columns[name], columns[name][:room]])
    return replace(saved, columns=columns)


def restarted(found: MemoryForest, named: NDArray[np.bool_]) -> MemoryForest:
    """A forest that goes on from what was saved."""
    after = forest(named, 3)
    restore_forest(after, saved_with_room(found, 9))
    return after


def test_rows_are_appended_to_the_room_of_saved_columns() -> None:
    """Nothing is copied until the room is full."""
    values, named, contours = world(9, 700, 3)
    found, after = forest(named, 3), forest(named, 3)
    found.observe(values[:600], contours[:600])
    saved = saved_with_room(found, 50)
    restore_forest(after, saved)
    for start, end in ((600, 640), (640, 700)):
        for each in (found, after):
            each.observe(values[start:end], contours[start:end])
        assert_same(after, found)
        assert np.shares_memory(saved.columns["values"], after.evidence.values) == (end <= 650)
    np.testing.assert_array_equal(saved.columns["values"][:640], values[:640])


def test_saved_columns_are_not_written_to() -> None:
    """They may be a file's, mapped into memory."""
    values, named, contours = world(9, 700, 3)
    found, after = forest(named, 3), forest(named, 3)
    found.observe(values[:600], contours[:600])
    saved = saved_with_room(found, 0)
    kept = {name: column.copy() for name, column in saved.columns.items()}
    assert all(column.flags.c_contiguous for column in saved.columns.values())
    restore_forest(after, saved)
    for each in (found, after):
        each.observe(values[600:], contours[600:])
        each.replace_contour(3, np.array([1.0, 0.0, 0.5]))
        each.replace_contour(int(each.evidence.labelled[5]), np.ones(3))
    assert_same(after, found)
    for name, column in saved.columns.items():
        np.testing.assert_array_equal(column, kept[name], err_msg=name)


@settings(max_examples=SOME, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(1, 1_300),
    steps=st.lists(st.tuples(st.integers(0, 300), st.sampled_from(["none", "look", "restart"])), max_size=8),
    answers=st.booleans(),
)
def test_a_restart_changes_nothing(seed: int, rows: int, steps: list[tuple[int, str]], answers: bool) -> None:
    """Rows, answers, corrections and withdrawals, with looks and restarts between them: one forest."""
    values, named, contours = world(seed, rows, 3)
    rng = np.random.default_rng(seed)
    often, never = forest(named, 3), forest(named, 3)
    start = 0
    for more, then in [*steps, (rows, "look")]:
        end = min(rows, start + more)
        spoken = [
            (int(rng.integers(end)), int(rng.integers(rows + 20))) for _ in range(30 * answers * (end > 0))
        ]
        for each in (often, never):
            each.observe(values[start:end], contours[start:end])
            for row, said in spoken:
                each.replace_contour(row, contours[said] if said < rows else np.ones(3), asked=said % 2 == 0)
        if then != "none":
            often.predict(values[:2])
            often.calibration()
        if then == "restart":
            often = restarted(often, named)
        start = end
    assert_same(often, never)


def test_saved_columns_that_do_not_fit_are_refused() -> None:
    """One that is cut, or has a number too large: compiled code would read beyond it."""
    values, named, contours = world(2, 700, 3)
    found = forest(named, 3)
    found.observe(values, contours)
    found.replace_contour(3, np.array([1.0, 0.0, 0.5]))
    assert saved_forest(found) is None  # it is to be grown first
    found.members()
    saved = saved_forest(found)
    assert saved is not None
    for name, column in saved.columns.items():
        broken = [column[..., 1:]] if column.size else []
        if column.dtype.kind == "i" and column.size:
            large = column.copy()
            large.flat[0] = 10**6
            broken.append(large)
        for wrong in broken:
            after = forest(named, 3)
            with pytest.raises(
                ValueError, match=r"column|trees|of a tree|fit|rows were labelled|too large|shape"
            ):
                restore_forest(after, replace(saved, columns={**saved.columns, name: wrong}))
            assert not len(after.evidence), name


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 10**6),
    rows=st.integers(2_000, 4_700),
    steps=st.lists(
        st.tuples(st.integers(1, 700), st.sampled_from(["none", "look", "restart"]), st.integers(0, 2)),
        max_size=9,
    ),
)
def test_long_memories_move_in_steps(seed: int, rows: int, steps: list[tuple[int, str, int]]) -> None:
    """Any batches, looks and restarts, with withdrawals and corrections of old rows between them, give one forest."""
    values, named, contours = world(seed, rows, 3, precise=True)
    rng = np.random.default_rng(seed)
    often, never = forest(named, 3), forest(named, 3)
    start = 0
    for more, then, spoken in [(1_900, "look", 0), *steps, (rows, "look", 1)]:
        end = min(rows, start + more)
        said = [(int(rng.integers(end)), contours[int(rng.integers(end))]) for _ in range(spoken)]
        said += [(int(rng.integers(end)), np.ones(3)) for _ in range(spoken)]
        for each in (often, never):
            each.observe(values[start:end], contours[start:end])
            for row, contour in said:
                each.replace_contour(row, contour)
        if then != "none":
            often.predict(values[:2])
        if then == "restart":
            often = restarted(often, named)
        start = end
    assert_same(often, never)


def test_members_of_rows_that_stay_are_kept() -> None:
    """Long memories do not move with each row: their trees are the same objects, and so is naive Bayes."""
    values, named, contours = world(4, 2_600, 3, precise=True)
    contours = np.eye(3)[contours.argmax(axis=1)]
    found = forest(named, 3)
    found.observe(values[:2_010], contours[:2_010])
    before = found.members()
    found.observe(values[2_010:2_490], contours[2_010:2_490])
    after = found.members()
    kept = [one is other for one, other in zip(before.groves, after.groves, strict=True)]
    assert kept == [memory >= 2_000 for memory in LADDER]
    assert [one is other for one, other in zip(before.bayes, after.bayes, strict=True)] == [False, True, True]
    found.observe(values[2_490:], contours[2_490:])
    assert not any(one is other for one, other in zip(after.groves, found.members().groves, strict=True))


def test_rows_of_a_memory_follow_a_plain_count() -> None:
    for memory in LADDER:
        step, ends = 0, set()
        for labelled in range(1, 30_000, 7):
            held = min(memory, labelled)
            step = 1 if held < 2_000 else next(s for s in (500 * 2**i for i in range(9)) if held < 8 * s)
            mine = remembered_places(memory, labelled)
            assert labelled - step < mine.stop <= labelled
            assert mine.stop % step == 0
            assert mine.start == max(0, mine.stop - memory)
            ends.add(mine.stop)
        assert len(ends) > 20


def test_rows_that_left_a_memory_have_no_trace() -> None:
    """The members with the shortest memory are those of a log that never had the older rows."""
    values, named, contours = world(3, 900, 3)
    labelled = np.flatnonzero(contours.min(axis=1) < 1.0)
    full = forest(named, 3)
    full.observe(values, contours)
    late = labelled[-200]
    evidence = full.evidence
    alone = ForestEvidence(named, 3)
    alone.add_rows(values, np.where(np.arange(900) < late, -1, alone.contours.contour_numbers(contours)))
    expected = from_scratch(alone.present_moment(), alone.labelled, member_key(5, 0))
    found = full.members().trees[0]
    np.testing.assert_array_equal(found.nodes[[0, 1, 3]], expected.nodes[[0, 1, 3]])
    assert set(found.rows.tolist()) == set(evidence.labelled[-200:].tolist())


def test_members_that_did_well_lately_weigh_more() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=(1_500, 4))
    klass = (values[:, 0] * values[:, 1] > 0).astype(int)  # no attribute tells anything alone
    found = forest(np.zeros(4, dtype=bool), 2)
    found.observe(values, np.eye(2)[klass])
    weights = found.weights
    assert weights.sum() == pytest.approx(1.0)
    assert weights[:7].sum() > 0.95
    few = forest(np.zeros(4, dtype=bool), 2)
    few.observe(values[:99], np.eye(2)[klass[:99]])
    assert np.ptp(few.weights) == 0.0


def test_no_labels_are_no_opinion() -> None:
    found = forest(np.array([False]), 4)
    found.observe(np.zeros((3, 1)), np.ones((3, 4)))
    said = found.predict(np.array([[0.0], [np.nan]]))
    assert said.theta.tolist() == [[0.25] * 4] * 2
    assert said.belief.max() == 0.0
    assert said.plausibility.min() == 1.0
    assert said.classes.all()


def test_regions_labelled_with_sets_stay_open() -> None:
    """Members agree on the set, and none prefers the first class of it."""
    found = forest(np.array([False]), 3)
    found.observe(np.arange(20.0)[:, np.newaxis], np.array([[1.0, 1.0, 0.0]] * 10 + [[0.0, 0.0, 1.0]] * 10))
    said = found.predict(np.array([[2.0], [18.0]]))
    trees = found.bounded_members().mean_opinions(np.array([[2.0]]), np.array([1 / 7] * 7 + [0.0] * 3), 0.75)
    assert trees[0, 0] == pytest.approx([0.5, 0.5, 0.0])
    assert said.belief[0, :2].max() < 0.3
    assert said.plausibility[0, :2].min() > 0.8
    assert said.plausibility[0, 2] < 0.5
    assert said.klass[1] == 2


def test_the_bounds_of_a_naive_bayes_member_are_those_of_the_labels_that_it_remembers() -> None:
    """Those of so many precise labels with its shares; a label of reliability .4 weighs .4."""
    found = forest(np.array([False]), 2)
    contours = np.maximum(
        np.eye(2)[np.arange(900) % 2], np.where(np.arange(900) < 450, 0.6, 0.0)[:, np.newaxis]
    )
    found.observe(np.arange(900.0)[:, np.newaxis], contours)
    for member, weight in enumerate((150 * 0.4 + 450, 450 * 1.4, 450 * 1.4), start=7):
        said = found.bounded_members().mean_opinions(np.array([[2.0]]), np.eye(10)[member], 0.75)[0]
        for c in range(2):
            for end in said[1:, c]:
                log_ratio = said[0] @ (np.log([end, 1 - end] if c == 0 else [1 - end, end]) - np.log(said[0]))
                assert weight * log_ratio == pytest.approx(math.log(0.75), abs=1e-9)
        assert (said[1] < said[0]).all()
        assert (said[0] < said[2]).all()


def test_a_number_says_nothing_of_a_class_whose_numbers_are_all_missing() -> None:
    numbers = np.where(np.arange(20) % 2 == 0, np.arange(20.0), np.nan)[:, np.newaxis]
    found = DistinctContours(2)
    kinds = found.contour_numbers(np.eye(2)[np.arange(20) % 2])
    member = NaiveBayes.of(numbers, np.arange(20), np.array([False]), kinds, found)
    np.testing.assert_allclose(member.theta(np.array([[0.0], [9.0], [30.0], [np.nan]])), 0.5, atol=1e-12)


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 1e-200, 1e200, 1e307])
def test_no_number_is_too_large_or_too_small_for_naive_bayes(scale: float) -> None:
    numbers = np.arange(12.0)[:, np.newaxis] * scale
    found = DistinctContours(2)
    kinds = found.contour_numbers(np.array([[1.0, 0.0], [0.3, 1.0], [0.0, 1.0]])[np.arange(12) % 3])
    member = NaiveBayes.of(numbers, np.arange(12), np.array([False]), kinds, found)
    np.testing.assert_allclose(member.theta(numbers).sum(axis=1), 1.0)


def test_doubtful_labels_bound_what_they_leave_possible_together() -> None:
    """The cut of 20 labels (1, .5): ``20 ln(θ_a + θ_b / 2) ≥ ln λ``: each leaves half to b, all together little."""
    found = forest(np.array([False]), 2)
    found.observe(np.zeros((20, 1)), np.tile([1.0, 0.5], (20, 1)))
    for level in (1.0, 0.75, 0.01, 0.0):
        found.level = level
        trees = found.bounded_members().mean_opinions(
            np.array([[0.0]]), np.array([1 / 7] * 7 + [0.0] * 3), level
        )
        other = min(2.0 * (1.0 - level ** (1 / 20)), 1.0)
        assert trees[0] == pytest.approx(np.array([[1.0, 0.0], [1.0 - other, 0.0], [1.0, other]]), abs=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_what_covers_is_kept_up_to_date_exactly(seed: int) -> None:
    """After each query the gains are those of a cover that is made anew."""
    values, named, contours = world(seed, 150, 3)
    found = forest(named, 3)
    found.observe(values, contours)
    pool = np.flatnonzero(contours.min(axis=1) == 1.0)
    cover = Coverage(found, pool, 1_000)
    for candidate in range(5):
        cover.mark_asked(candidate)
        assert cover._gains.tolist() == covering_gains(cover._far, cover._near).tolist()
    assert cover._near.min() == 0


def test_a_log_that_nobody_looked_at_is_scored_at_its_end_as_if_somebody_had() -> None:
    """More blocks end than count: the oldest are passed over, and corrections of their rows change no later score."""
    values, named, contours = world(11, 1_500, 3)
    rng = np.random.default_rng(11)
    often, never = (MemoryForest(named, 3, trees=2, seed=5, level=0.75) for _ in range(2))
    for each in (often, never):
        each.observe(values, np.ones(contours.shape))
    for row in range(1_500):
        again = int(rng.integers(row + 1))
        for each in (often, never):
            each.replace_contour(row, contours[row])
            if row % 7 == 0:
                each.replace_contour(again, contours[(again + 1) % 1_500])
        if row % 150 == 0:
            often.members()
    assert len(often.evidence.labelled) > 1_100
    assert_same(often, never)
    assert len(never.recent.scores) == 20


def test_what_was_held_stays_as_it_was() -> None:
    labelled = LabelledRows()
    labelled.append(np.array([5, 3, 9]), np.array([0, 1, 2], np.int32))
    moments = [labelled.held_columns()]
    labelled.change_kind(3, 7)
    moments.append(labelled.held_columns())
    labelled.append(np.arange(20, 200), np.zeros(180, np.int32))
    moments.append(labelled.held_columns())
    assert labelled.withdraw_row(5) == 0
    labelled.change_kind(3, 8)
    assert [rows[:3].tolist() for rows, _ in moments] == [[5, 3, 9]] * 3
    assert [kinds[:3].tolist() for _, kinds in moments] == [[0, 1, 2], [0, 7, 2], [0, 7, 2]]
    assert [len(rows) for rows, _ in moments] == [3, 3, 183]
    rows, kinds = labelled.held_columns()
    assert (rows[:2].tolist(), kinds[:2].tolist(), len(rows)) == ([3, 9], [8, 2], 182)


@pytest.mark.parametrize("seed", range(20))
def test_the_common_length_of_held_rows_is_that_of_their_copies(seed: int) -> None:
    """Also where they begin at the same place in memory and are not compared."""
    rng, labelled, end = np.random.default_rng(seed), LabelledRows(), 0
    held, copies = [], []
    for _ in range(60):
        match rng.integers(5):
            case 0 | 1:
                more = int(rng.integers(1, 30))
                labelled.append(np.arange(end, end + more), rng.integers(0, 3, more).astype(np.int32))
                end += more
            case 2 if len(labelled.rows):
                labelled.change_kind(int(rng.choice(labelled.rows)), int(rng.integers(3)))
            case 3 if len(labelled.rows):
                labelled.withdraw_row(int(rng.choice(labelled.rows[-3:])))
            case _:
                held.append(labelled.held_columns())
                copies.append([each.copy() for each in held[-1]])
    for (ours, our_copies), (theirs, their_copies) in combinations(zip(held, copies, strict=True), 2):
        for i in range(2):
            assert common_length(ours[i], theirs[i]) == common_length(our_copies[i], their_copies[i])


@pytest.mark.parametrize("seed", range(6))
def test_naive_bayes_has_the_mixtures_and_counts_of_all_rows(seed: int) -> None:
    """Counting precise rows once gives what sharing out all rows at every step gives."""
    values, named, contours = world(seed, 200, 3)
    found = DistinctContours(3)
    kinds = found.contour_numbers(contours)
    labelled = kinds >= 0
    values, contours, kinds = (
        values[labelled],
        contours[labelled] / contours[labelled].max(axis=1, keepdims=True),
        kinds[labelled],
    )
    member = NaiveBayes.of(values, np.arange(len(values)), named, kinds, found)
    if not named.all():
        expected = fit_mixtures(values[:, ~named], contours)
        np.testing.assert_allclose(member.means, expected.means, atol=1e-3)
        np.testing.assert_allclose(member.deviations, expected.deviations, atol=1e-3)
    for column, table in zip(values[:, named].T, member.frequencies, strict=True):
        np.testing.assert_allclose(np.exp(table), plain_frequencies(column, contours, len(table)), atol=1e-5)


def plain_frequencies(column: Floats, contours: Floats, width: int) -> Floats:
    """E2M of one nominal attribute, row by row (theory §10.3)."""
    known = ~np.isnan(column)
    names, given = column[known].astype(int), contours[known]
    classes, frequencies = np.full(3, 1 / 3), np.full((width, 3), 1 / width)
    for _ in range(400):
        shares = given * classes * frequencies[names]
        shares /= shares.sum(axis=1, keepdims=True)
        rows = np.array([shares[names == name].sum(axis=0) for name in range(width)])
        classes = shares.mean(axis=0)
        frequencies = (rows + 0.5) / (rows.sum(axis=0) + 0.5 * width)
    return frequencies


def test_its_accuracy_is_that_of_forests_that_knew_only_the_blocks_before() -> None:
    values, named, contours = world(7, 400, 3)
    informed = np.flatnonzero(contours.min(axis=1) < 1.0)
    found = forest(named, 3)
    found.observe(values, contours)
    expected = []
    for begin, end in pairwise([*range(10, 50, 10), *range(50, len(informed), 50), len(informed)]):
        rows = informed[begin:end]
        before = forest(named, 3)
        before.observe(values[: informed[begin - 1] + 1], contours[: informed[begin - 1] + 1])
        expected.append(
            AccuracyBlock.of(
                before.predict(values[rows]).klass, contours[rows], np.zeros(len(rows), np.bool_)
            )
        )
    expected[:4] = [in_all(expected[:4])]
    assert [block.rows for block in expected] == [40] + [50] * (len(expected) - 2) + [len(informed) % 50]
    assert list(found.accuracy) == expected


@pytest.mark.parametrize("labelled", [9, 14, 30, 47, 50, 63])
def test_the_first_rows_are_judged_in_pieces_after_a_restart_too(labelled: int) -> None:
    values, named, contours = world(8, 300, 3)
    rows = np.flatnonzero(contours.min(axis=1) < 1.0)[:70].tolist()
    at_once, looked_at, after = (forest(named, 3) for _ in range(3))
    for each in (at_once, looked_at, after):
        each.observe(values, np.ones(contours.shape))
    for at, row in enumerate(rows):
        for each in (at_once, looked_at, after):
            each.replace_contour(row, contours[row])
            if at == 12:
                each.replace_contour(rows[3], np.ones(3))
        looked_at.members()
        if at == labelled:
            after = restarted(after, named)
        if at in {20, 44, 69}:
            assert at_once.accuracy == looked_at.accuracy == after.accuracy
    assert sum(block.rows for block in after.accuracy) == len(rows) - 10
