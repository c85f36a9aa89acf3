"""The queries of the forest and the weights of its members, compared with plain computations (theory §10.3, §10.5)."""

import math
from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput
from quercus.specification.strategies import chosen_strategy
from quercus.trees.ask.strategies.row_sample import row_hashes
from quercus.trees.memory_forest.asking import Coverage, choose_rows
from quercus.trees.memory_forest.distance_cache import DistanceCache
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.memories import BAYES, LADDER
from quercus.trees.memory_forest.saved import restore_forest, saved_forest
from quercus.trees.memory_forest.worth import disagreement_worth, margin_worth

Floats = NDArray[np.float64]
ROWS, CLASSES, KINDS, NUMBERS, MANY = 60, 3, 4, 8, 60
NAMED = np.array([True, False, False])
PRECISE = np.eye(CLASSES)


def forest_of(
    seed: int, labelled: int, rows: int = ROWS, trees: int = 5, numbers: int = NUMBERS
) -> tuple[MemoryForest, Floats, dict[int, Floats]]:
    """A forest of a name and two numbers, some of them missing; its rows, and the labels of some of them."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, KINDS, rows), *rng.integers(0, numbers, (2, rows))]).astype(
        float
    )
    values[:numbers, 1:] = np.arange(numbers)[:, np.newaxis]  # all codes are there
    values[rng.random(values.shape) < 0.08] = np.nan
    values[:numbers, 1:] = np.arange(numbers)[:, np.newaxis]
    forest = MemoryForest(NAMED, CLASSES, trees=trees, seed=seed, level=0.5)
    forest.observe(values, np.ones((rows, CLASSES)))
    labels = {}
    for row in rng.permutation(rows)[:labelled].tolist():
        contour = PRECISE[rng.integers(CLASSES)] if rng.random() < 0.6 else np.array([1.0, 0.4, 0.0])
        labels[row] = contour
        forest.replace_contour(row, contour)
    return forest, values, labels


def apart(a: Floats, b: Floats) -> float:
    """Distance of two rows: differences of names, and of numbers as shares of their range; missing ones are far."""
    total = 0.0
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if math.isnan(x) or math.isnan(y):
            total += math.isnan(x) != math.isnan(y)
        elif NAMED[k]:
            total += x != y
        else:
            total += abs(x - y) / (NUMBERS - 1)
    return total


def all_classes_labelled(labels: dict[int, Floats]) -> bool:
    """By plain E2M of the labelled rows from equal probabilities."""
    if not labels:
        return False
    contours = np.array(list(labels.values()))
    theta = np.full(CLASSES, 1 / CLASSES)
    for _ in range(5_000):
        share = contours * theta
        share /= share.sum(axis=1, keepdims=True)
        theta = share.mean(axis=0)
    return bool((share.max(axis=0) >= 0.5).all())


def conditioned(theta: Floats, labels: dict[int, Floats]) -> Floats:
    """Estimates of all rows, those of rows with a label given what it says."""
    theta = theta.copy()
    for row, contour in labels.items():
        joint = theta[row] * contour
        if joint.sum() > 0:
            theta[row] = joint / joint.sum()
    return theta


def margin(forest: MemoryForest, values: Floats, labels: dict[int, Floats]) -> Floats:
    falling = np.sort(conditioned(forest.theta(values), labels))
    return np.asarray(1 - falling[:, -1] + falling[:, -2])


def memory_disagreement(forest: MemoryForest, values: Floats, labels: dict[int, Floats]) -> Floats:
    """Member by member: the mean of those with one memory, and how far it is from the mean of all."""
    groups = [[t for t in range(forest.trees) if t % len(LADDER) == step] for step in range(len(LADDER))]
    groups += [[forest.trees + number] for number in range(len(BAYES))]
    groups = [group for group in groups if group]
    alone = np.eye(forest.trees + len(BAYES))
    each = np.array([forest.members().mean_opinions(values, one, 0.5)[:, 0] for one in alone])
    memories = [conditioned(each[group].mean(axis=0), labels) for group in groups]
    weights = [sum(forest.weights.tolist()[member] for member in group) for group in groups]
    mean = conditioned(forest.theta(values), labels)
    apart = [np.abs(theta - mean).sum(axis=1) / 2 for theta in memories]
    disagreement = sum(weight * each for weight, each in zip(weights, apart, strict=True))
    return np.asarray(margin(forest, values, labels) + disagreement)


def plain_order(
    forest: MemoryForest,
    values: Floats,
    labels: dict[int, Floats],
    candidates: list[int],
    limit: int,
    strategy: str,
) -> list[int]:
    """The rows to ask about, each found by looking at all candidates anew."""
    found = {"margin": margin, "memory-disagreement": memory_disagreement}[strategy](forest, values, labels)
    worth = {row: float(found[row]) if labels else 0.0 for row in candidates}
    lots = {row: int(lot) for row, lot in zip(candidates, row_hashes(np.array(candidates)), strict=True)}
    known, chosen = list(labels), []
    beginning = not all_classes_labelled(labels)
    for asked in range(len(labels), len(labels) + limit):
        nearest = [min((apart(row, values[k]) for k in known), default=float(len(NAMED))) for row in values]
        left = [row for row in candidates if row not in chosen]
        gains = {
            row: sum(
                max(near - apart(values[row], other), 0.0)
                for near, other in zip(nearest, values, strict=True)
            )
            for row in left
        }
        best = max(*gains.values(), 1e-300)
        by_cover = asked % 6 == 0 or (beginning and asked < 2 * CLASSES)
        score = {row: 0.05 * gains[row] / best + (0.0 if by_cover else worth[row]) for row in left}
        tied = [row for row in left if score[row] >= max(score.values()) - 1e-9]
        chosen.append(min(tied, key=lots.__getitem__))
        known.append(chosen[-1])
    return chosen


WORTHS = {"margin": margin_worth, "memory-disagreement": disagreement_worth}


@pytest.mark.parametrize("strategy", WORTHS)
@pytest.mark.parametrize("labelled", [0, 1, 5, 6, 11, 30])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_the_plain_rule(seed: int, labelled: int, strategy: str) -> None:
    forest, values, labels = forest_of(seed, labelled, trees=8 if seed % 2 else 5)
    partly = [row for row, contour in labels.items() if (contour > 0).sum() > 1]
    candidates = sorted([row for row in range(ROWS) if row not in labels] + partly[:3])
    found = [choice.row for choice in choose_rows(forest, np.array(candidates), 9, worth=WORTHS[strategy])]
    assert found == plain_order(forest, values, labels, candidates, 9, strategy)


@pytest.mark.parametrize("strategy", WORTHS)
def test_what_a_label_is_worth_is_counted_with_the_weights_of_the_memories(strategy: str) -> None:
    """After many labelled rows weights differ, and so do the rows that memories hold."""
    forest, values, labels = forest_of(3, 260, rows=320, trees=8)
    assert np.ptp(forest.weights) > 0.01
    plain = {"margin": margin, "memory-disagreement": memory_disagreement}[strategy](forest, values, labels)
    found = WORTHS[strategy](forest, np.arange(len(values)))
    np.testing.assert_allclose(found, plain, atol=1e-12)
    assert 0.0 <= found.min() < found.max() <= 2.0


def test_memories_that_know_the_same_rows_and_differ_by_chance_alone_hardly_disagree() -> None:
    """They disagree where labels change: the short memory has only the new class of the row, the long one both."""
    forest = MemoryForest(np.array([False]), 2, trees=60, seed=4, level=0.5)
    values = np.tile([0.0, 1.0], 500)[:, np.newaxis]
    classes = np.where(np.arange(1000) < 700, values[:, 0] > 0.5, False).astype(int)  # at 1: class 1, then 0
    forest.observe(values, np.eye(2)[classes])
    same, changed = disagreement_worth(forest, np.array([0, 1])) - margin_worth(forest, np.array([0, 1]))
    assert same < 0.01
    assert changed > 0.05


def test_a_strategy_of_trees_is_no_strategy_of_the_forest() -> None:
    with pytest.raises(
        InvalidInput, match="strategy: is 'committee', must be one of margin, memory-disagreement"
    ):
        chosen_strategy("committee", "forest")


def test_what_a_query_stands_for_is_counted() -> None:
    forest, values, labels = forest_of(1, 4)
    candidates = [row for row in range(ROWS) if row not in labels]
    (choice,) = choose_rows(forest, np.array(candidates), 1)
    nearer = [
        row
        for row in candidates
        if apart(values[choice.row], values[row]) < min(apart(values[row], values[k]) for k in labels) - 1e-9
    ]
    assert choice.stands_for == max(1, len(nearer))


@pytest.mark.parametrize("uncertain", [False, True])
def test_weights_are_those_of_the_scores_of_the_last_blocks(uncertain: bool) -> None:
    """Each block of 50 is scored by the members that the rows before it made, as a forest from scratch has them."""
    rng = np.random.default_rng(5)
    values = np.column_stack([rng.integers(0, KINDS, 260), *rng.integers(0, NUMBERS, (2, 260))]).astype(float)
    classes = (values[:, 1] > 3).astype(int) + (values[:, 0] == 0)
    contours = PRECISE[classes].copy()
    if uncertain:
        contours[::3] = np.maximum(contours[::3], 0.3)
    trees = 2 * len(LADDER)

    def forest_after(labelled: int) -> MemoryForest:
        forest = MemoryForest(NAMED, CLASSES, trees=trees, seed=2, level=0.5)
        forest.observe(values, np.ones((len(values), CLASSES)))
        for row in range(labelled):
            forest.replace_contour(row, contours[row])
        return forest

    memory = [tree % len(LADDER) for tree in range(trees)]
    scores = []
    for start in range(0, 250, 50):
        judges = forest_after(start).members()
        block = values[start : start + 50]
        members = np.array(
            [judges.mean_opinions(block, one, 0.5)[:, 0] for one in np.eye(trees + len(BAYES))]
        )
        likely = np.array([pignistic(contour) for contour in contours[start : start + 50]])
        groups = [[m for m in range(trees) if memory[m] == w] for w in range(len(LADDER))]
        groups += [[trees + number] for number in range(len(BAYES))]
        mean = np.array([members[group].mean(axis=0) for group in groups])
        scores.append((1 + (mean**2).sum(axis=2) - 2 * (mean * likely).sum(axis=2)).mean(axis=1))
    weight = np.exp(-20 * np.mean(scores, axis=0))
    each = np.array([weight[g] / len(group) for g, group in enumerate(groups) for _ in group])
    places = np.array([m for group in groups for m in group])
    expected = np.empty(len(each))
    expected[places] = each / each.sum()
    np.testing.assert_allclose(forest_after(250).weights, expected, atol=1e-12)


def pignistic(contour: Floats) -> Floats:
    """BetP of the consonant mass function of a contour, from its nested sets."""
    order = np.argsort(-contour)
    levels = [*contour[order].tolist(), 0.0]
    found = np.zeros(CLASSES)
    for size in range(1, CLASSES + 1):
        found[order[:size]] += (levels[size - 1] - levels[size]) / size
    return found


def test_where_a_row_was_refused_is_covered() -> None:
    """Else the same neighbourhood is asked about again and again: it is the least covered."""
    forest = MemoryForest(np.array([False]), 2, trees=7, seed=3, level=0.75)
    forest.observe(np.arange(61.0)[:, np.newaxis], np.ones((61, 2)))
    (first,) = choose_rows(forest, np.arange(61), 1)
    left = np.delete(np.arange(61), first.row)
    (beside,) = choose_rows(forest, left, 1)
    (elsewhere,) = choose_rows(forest, left, 1, refused=np.array([first.row]))
    assert abs(beside.row - first.row) == 1
    assert abs(elsewhere.row - first.row) > 10


def aged_distances(forest: MemoryForest, values: Floats, refused: Sequence[int] = ()) -> list[int]:
    """By hand of the whole rule, member by member: the distance of each row from what the members remember."""
    memory = [LADDER[tree % len(LADDER)] for tree in range(forest.trees)] + list(BAYES)
    labelled = forest.evidence.labelled.tolist()
    found = []
    for number, row in enumerate(values):
        apart_of = {other: whole_distance(row, values[other]) for other in (*labelled, *refused)}
        nearest = [
            0
            if w < len(labelled)
            and number < min(labelled[-w:])  # the member has forgotten the time of the row
            else min(apart_of[other] for other in (*labelled[-w:], *refused))
            for w in memory
        ]
        found.append(round(sum(w * d for w, d in zip(forest.weights.tolist(), nearest, strict=True))))
    return found


def whole_distance(a: Floats, b: Floats) -> int:
    """As `apart`, of numbers that have `MANY` values, in 840ths, each attribute rounded down."""
    total = 0
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        if math.isnan(x) or math.isnan(y):
            total += 840 * (math.isnan(x) != math.isnan(y))
        elif NAMED[k]:
            total += 840 * (x != y)
        else:
            total += 840 * int(abs(x - y)) // (MANY - 1)
    return total


@pytest.mark.parametrize(("labelled", "trees"), [(200, 8), (230, 8), (330, 3), (720, 8), (720, 1)])
def test_what_old_answers_cover_counts_as_the_memories_do_that_hold_them(labelled: int, trees: int) -> None:
    forest, values, _ = forest_of(7, labelled, rows=labelled + 80, trees=trees, numbers=MANY)
    refused = np.setdiff1d(np.arange(len(values)), forest.evidence.labelled)[:3]
    pool = np.setdiff1d(np.arange(len(values)), np.append(forest.evidence.labelled, refused))
    cover = Coverage(forest, pool, len(values), refused)
    expected = aged_distances(forest, values, refused.tolist())
    assert cover._near.tolist() == expected
    at_once = DistanceCache(forest.evidence.book, np.arange(len(values)), forest.evidence.codes())
    (unaged,) = at_once.group_distances(
        [np.append(forest.evidence.labelled, refused)], forest.evidence.codes()
    )
    if trees == 8:  # else members with a short memory hardly count
        assert (labelled > 200) == bool((cover._near > unaged).any())


def test_an_answer_that_the_short_memory_forgot_covers_by_the_others_alone() -> None:
    """One row at 7, then 200 at 0: only the members with a memory of 200 rows do not know the first one any more."""
    values = np.array([7.0, 5.0] + [0.0] * 200 + [7.0, 5.0] + [*range(1, 7)])[:, np.newaxis]
    contours = np.tile([1.0, 0.0], (210, 1))
    contours[[1, *range(202, 210)]] = 1.0
    forest = MemoryForest(np.array([False]), 2, trees=6, seed=1, level=0.5)
    forest.observe(values, contours)
    forgot = forest.weights[0]
    cover = Coverage(forest, np.array([202, 203]), 1_000)
    assert 0.0 < forgot < 1.0
    assert cover._near[202] == round(840 * forgot)  # 7 is as far from 0 as can be
    assert cover._near[203] == round(600 * forgot + 240 * (1 - forgot))  # from 0, and from 7
    assert cover._near[1] == round(240 * (1 - forgot))  # it came before all that the short memory holds
    nearest = cover._near.copy()
    cover.mark_asked(0)
    assert cover._near[[0, 202]].tolist() == [0, 0]  # what is asked about covers fully
    assert (cover._near <= nearest).all()


@pytest.mark.parametrize("seed", range(3))
def test_what_is_asked_is_one_whatever_the_looks_the_batches_and_the_restarts(seed: int) -> None:
    """Old answers age, some are taken back, rows come meanwhile: a forest that nobody looked at asks the same."""
    rng = np.random.default_rng(seed)
    rows = 420
    values = np.column_stack([rng.integers(0, KINDS, rows), rng.normal(size=(rows, 2))])
    contours = PRECISE[rng.integers(CLASSES, size=rows)]
    looked, never, restarted = (MemoryForest(NAMED, CLASSES, trees=7, seed=seed, level=0.5) for _ in range(3))
    for each in (looked, never, restarted):
        each.observe(values[:300], np.ones((300, CLASSES)))
    refused = rng.choice(300, 5, replace=False)
    said = rng.permutation(np.setdiff1d(np.arange(300), refused))
    for number, row in enumerate(said[:290].tolist()):
        back = int(said[rng.integers(number + 1)])
        for each in (looked, never, restarted):
            each.replace_contour(row, contours[row])
            if number % 29 == 7:
                each.replace_contour(back, np.ones(CLASSES))
            if number == 250:
                each.observe(values[300:], np.ones((rows - 300, CLASSES)))
        if number % 40 == 0 or number > 280:
            list(choose_rows(looked, np.arange(0, len(looked.evidence), 3), 4, refused))
        if number in {120, 255}:
            restarted.members()
            saved = saved_forest(restarted)
            assert saved is not None
            restarted = MemoryForest(NAMED, CLASSES, trees=7, seed=seed, level=0.5)
            restore_forest(restarted, saved)
    candidates = np.setdiff1d(np.arange(rows), np.append(never.evidence.labelled, refused))
    asked = [
        [(choice.row, choice.scores.tolist(), choice.stands_for) for choice in found]
        for found in (choose_rows(each, candidates, 25, refused) for each in (looked, never, restarted))
    ]
    assert len(never.evidence.labelled) > 240
    assert asked[0] == asked[1] == asked[2]
