"""What the forest asks about and how it weighs its members, beside plain computations (theory §10.3, §10.5)."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from quercus.trees.ask.strategies.row_sample import row_hashes
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.members import BAYES, LADDER

Floats = NDArray[np.float64]
ROWS, CLASSES, NAMES, NUMBERS = 60, 3, 4, 8
NAMED = np.array([True, False, False])
PRECISE = np.eye(CLASSES)


def forest_of(seed: int, told: int) -> tuple[MemoryForest, Floats, dict[int, Floats]]:
    """A forest of a name and two numbers, some of them missing; its rows, and what was told of some of them."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.integers(0, NAMES, ROWS), *rng.integers(0, NUMBERS, (2, ROWS))]).astype(
        float
    )
    values[:NUMBERS, 1:] = np.arange(NUMBERS)[:, np.newaxis]  # all codes are there
    values[rng.random(values.shape) < 0.08] = np.nan
    values[:NUMBERS, 1:] = np.arange(NUMBERS)[:, np.newaxis]
    forest = MemoryForest(NAMED, CLASSES, trees=5, seed=seed, level=0.5)
    forest.observe(values, np.ones((ROWS, CLASSES)))
    labels = {}
    for row in rng.permutation(ROWS)[:told].tolist():
        contour = PRECISE[rng.integers(CLASSES)] if rng.random() < 0.6 else np.array([1.0, 0.4, 0.0])
        labels[row] = contour
        forest.tell(row, contour)
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


def all_classes_told(labels: dict[int, Floats]) -> bool:
    """By plain E2M of the told rows from equal probabilities."""
    if not labels:
        return False
    contours = np.array(list(labels.values()))
    theta = np.full(CLASSES, 1 / CLASSES)
    for _ in range(5_000):
        share = contours * theta
        share /= share.sum(axis=1, keepdims=True)
        theta = share.mean(axis=0)
    return bool((share.max(axis=0) >= 0.5).all())


def plain_order(
    forest: MemoryForest, values: Floats, labels: dict[int, Floats], candidates: list[int], limit: int
) -> list[int]:
    """The rows to ask about, each found by looking at all candidates anew."""
    theta = forest.theta(values)
    for row, contour in labels.items():
        joint = theta[row] * contour
        if joint.sum() > 0:
            theta[row] = joint / joint.sum()
    worth = {row: 1 - float(np.diff(np.sort(theta[row])[-2:])[0]) if labels else 0.0 for row in candidates}
    lots = {row: int(lot) for row, lot in zip(candidates, row_hashes(np.array(candidates)), strict=True)}
    known, chosen = list(labels), []
    beginning = not all_classes_told(labels)
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


@pytest.mark.parametrize("told", [0, 1, 5, 6, 11, 30])
@pytest.mark.parametrize("seed", range(4))
def test_the_order_is_that_of_the_plain_rule(seed: int, told: int) -> None:
    forest, values, labels = forest_of(seed, told)
    partly = [row for row, contour in labels.items() if (contour > 0).sum() > 1]
    candidates = sorted([row for row in range(ROWS) if row not in labels] + partly[:3])
    found = [choice.row for choice in choose_rows(forest, np.array(candidates), 9)]
    assert found == plain_order(forest, values, labels, candidates, 9)


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
    values = np.column_stack([rng.integers(0, NAMES, 260), *rng.integers(0, NUMBERS, (2, 260))]).astype(float)
    classes = (values[:, 1] > 3).astype(int) + (values[:, 0] == 0)
    contours = PRECISE[classes].copy()
    if uncertain:
        contours[::3] = np.maximum(contours[::3], 0.3)
    trees = 2 * len(LADDER)

    def forest_after(told: int) -> MemoryForest:
        forest = MemoryForest(NAMED, CLASSES, trees=trees, seed=2, level=0.5)
        forest.observe(values, np.ones((len(values), CLASSES)))
        for row in range(told):
            forest.tell(row, contours[row])
        return forest

    memory = [tree % len(LADDER) for tree in range(trees)]
    scores = []
    for start in range(0, 250, 50):
        judges = forest_after(start).members()
        block = values[start : start + 50]
        members = np.array([judges.opinions(block, one, 0.5)[:, 0] for one in np.eye(trees + len(BAYES))])
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
