"""Prediction sets of stated coverage: beside a slow computation, and their promise for rows that are alike."""

import math
from itertools import chain, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quercus.belief.arrays import Floats, Ints
from quercus.belief.errors import InvalidInput
from quercus.trees import Basis, Calibration
from quercus.trees.learners.conformal import UNKNOWN, like_all_rows, margins
from quercus.trees.memory_forest.calibrating import ScoredRows
from quercus.trees.memory_forest.forest import MemoryForest

TINY = 1e-9


def shares(prediction: list[float], label: list[float]) -> list[float]:
    """Return the shares that prediction and label together give to each class."""
    joint = [p * pl for p, pl in zip(prediction, label, strict=True)]
    if sum(joint) > 0:
        return [each / sum(joint) for each in joint]
    found = [0.0] * len(label)  # BetP of the nested masses of the contour, set by set
    for high, low in pairwise(sorted({*label, 0.0}, reverse=True)):
        inside = [c for c, value in enumerate(label) if value >= high]
        for c in inside:
            found[c] += (high - low) / len(inside)
    return found


def sharp(theta: list[list[float]], contours: list[list[float]]) -> list[list[float]]:
    """The predictions in the likeliest power, the nearest to 1 of those that are as likely; none for precise labels."""
    if all(sum(each > 0 for each in label) == 1 for label in contours):
        return theta
    best, power = -math.inf, 1.0
    for step in sorted(range(-12, 13), key=abs):
        raised = [[max(p, 0.001) ** (4 ** (step / 12)) for p in row] for row in theta]
        likely = sum(
            math.log(sum(p * pl for p, pl in zip(row, label, strict=True)) / sum(row))
            for row, label in zip(raised, contours, strict=True)
        )
        if likely > best + TINY:
            best, power = likely, 4 ** (step / 12)
    return [[p**power / sum(q**power for q in row) for p in row] for row in theta]


def slow_threshold(
    theta: list[list[float]], contours: list[list[float]], weights: list[float], coverage: float
) -> float:
    """The least score at which as many rows are covered, by their shares, as one row more than all would need."""
    n = len(theta)
    need = next(k for k in range(1, n + 2) if k >= (n + 1) * coverage - TINY)
    mean = sum(weights) / n
    scores, powers = sorted({1.0 - p for row in theta for p in row}), sharp(theta, contours)
    divided = [shares(row, label) for row, label in zip(powers, contours, strict=True)]
    for score in scores:
        covered = sum(
            w / mean * sum(b for p, b in zip(row, share, strict=True) if 1.0 - p <= score)
            for row, share, w in zip(theta, divided, weights, strict=True)
        )
        if covered >= need - TINY:
            return score
    return float("inf")


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 25),
    coverage=st.sampled_from([0.05, 0.5, 0.8, 0.9, 0.95]),
    weighed=st.booleans(),
)
def test_slowly(seed: int, n: int, coverage: float, weighed: bool) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(3), n).round(2)
    contours = np.where(rng.random((n, 3)) < 0.5, 0.0, rng.integers(1, 5, (n, 3)) / 4)
    contours[np.arange(n), rng.integers(3, size=n)] = 1.0
    weights = rng.integers(1, 5, n).astype(float) if weighed else np.ones(n)
    found = Calibration.of(theta, contours, Basis.LABELLED, weights if weighed else None)
    expected = slow_threshold(theta.tolist(), contours.tolist(), weights.tolist(), coverage)
    assert found.threshold(coverage) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
def test_the_promise_of_uncertain_labels(coverage: float) -> None:
    """Probabilities are right, and sets hide the class at random: covered as stated, but one row of n + 1."""
    rng, n, covered = np.random.default_rng(7), 30, []
    for _ in range(1_500):
        theta = rng.dirichlet(np.full(4, 0.4), n + 1)
        truth = np.array([rng.choice(4, p=row) for row in theta])
        said = np.eye(4)[truth]
        doubtful = rng.random(n + 1) < 0.4
        other = (truth + rng.integers(1, 4, n + 1)) % 4
        said[doubtful, other[doubtful]] = 1.0
        sets = Calibration.of(theta[:n], said[:n], Basis.LABELLED).sets(theta[n:], coverage)[0]
        covered.append(float(sets[truth[n]]))
    error = np.std(covered) / np.sqrt(len(covered))
    assert np.mean(covered) > coverage - 3 * error
    assert (
        np.mean(covered) < coverage + 3 * error + 1.5 / (n + 1) + 0.02
    )  # the likeliest class is always in the set


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("power", [0.5, 3.0])
def test_uncertain_labels_where_predictions_are_less_sure_than_right_or_more(
    coverage: float, power: float
) -> None:
    """The shares of a doubtful label are those of the power of the predictions that is right."""
    rng, n, covered = np.random.default_rng(9), 950, []
    for _ in range(20):
        theta = rng.dirichlet(np.full(4, 1.0), 2 * n)
        right = theta**power / (theta**power).sum(axis=1, keepdims=True)
        truth = (rng.random(2 * n)[:, np.newaxis] > right.cumsum(axis=1)).sum(axis=1).clip(max=3)
        said = np.eye(4)[truth]
        some = rng.random(2 * n) < 0.6
        said[some, ((truth + rng.integers(1, 4, 2 * n)) % 4)[some]] = 1.0
        threshold = Calibration.of(theta[:n], said[:n], Basis.LABELLED).threshold(coverage)
        covered.append(float(((1.0 - theta)[np.arange(n, 2 * n), truth[n:]] <= threshold).mean()))
    assert np.mean(covered) == pytest.approx(coverage, abs=0.01)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9])
def test_the_promise_of_precise_labels(coverage: float) -> None:
    """It holds however bad the predictions."""
    rng, n, covered = np.random.default_rng(8), 30, []
    for _ in range(1_500):
        theta = rng.dirichlet(np.full(4, 0.4), n + 1)
        truth = np.array([rng.choice(4, p=0.4 * row[::-1] + 0.15) for row in theta])
        scored = Calibration.of(theta[:n], np.eye(4)[truth[:n]], Basis.LABELLED)
        covered.append(float(scored.sets(theta[n:], coverage)[0, truth[n]]))
    assert np.mean(covered) > coverage - 3 * np.std(covered) / np.sqrt(len(covered))


def test_few_scores_and_none() -> None:
    one = np.array([[0.9, 0.1]])
    eight = Calibration.of(np.repeat(one, 8, axis=0), np.repeat([[1.0, 0.0]], 8, axis=0), Basis.LABELLED)
    assert eight.sets(one, 0.8).tolist() == [[True, False]]
    assert eight.sets(one, 0.9).tolist() == [[True, True]]
    assert UNKNOWN.sets(one, 0.01).tolist() == [[True, True]]
    assert not len(Calibration.of(one[:0], one[:0], Basis.LABELLED).scores)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -0.1, 90.0, float("nan")])
def test_a_coverage_that_is_none(coverage: float) -> None:
    with pytest.raises(InvalidInput, match=r"coverage: is .*, must lie in \(0, 1\), such as 0\.9"):
        UNKNOWN.threshold(coverage)


def test_asked_rows_weigh_like_all_rows() -> None:
    """8 of 10 scored rows are hard, and 28 of all 110: a hard one stands for 3.5 rows, an easy one for 41."""
    scored = np.array([0.1] * 8 + [0.9] * 2)
    others = np.array([0.1] * 20 + [0.9] * 80)
    weights = like_all_rows(scored, others, 100)
    np.testing.assert_allclose(weights, [3.5] * 8 + [41.0] * 2)
    np.testing.assert_array_equal(like_all_rows(scored, others[:0], 0), np.ones(10))


@pytest.mark.parametrize("unasked", [0, 49, 50])
def test_of_rows_that_were_asked_about_the_last_200_count(unasked: int) -> None:
    rng, rows = np.random.default_rng(3), 500
    theta, asked = rng.dirichlet(np.ones(3), rows), np.ones(rows, bool)
    said, others = np.eye(3)[rng.integers(3, size=rows)], rng.random(80)
    asked[:300] = rng.random(300) < 0.5
    asked[rows - unasked :] = False
    found = ScoredRows(theta, said, asked, others, 900, in_order=True).calibration()
    if unasked == 50:
        expected = Calibration.of_recent(theta[~asked], said[~asked])
    else:
        weights = like_all_rows(margins(theta[300:]), others, 900)
        expected = Calibration.of(theta[300:], said[300:], Basis.WEIGHTED, weights)
    assert found.basis is expected.basis
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize(("unasked", "basis"), [(260, Basis.LABELLED), (0, Basis.WEIGHTED)])
def test_other_rows_are_predicted_only_where_they_count(
    monkeypatch: pytest.MonkeyPatch, unasked: int, basis: Basis
) -> None:
    rng = np.random.default_rng(3)
    values = rng.random((400, 2))
    forest = MemoryForest(np.zeros(2, bool), 2, trees=6, seed=5, level=0.75)
    told = np.eye(2)[(values[:300, 0] > 0.5).astype(int)]
    forest.observe(values[:unasked], told[:unasked])
    forest.observe(values[unasked:300], told[unasked:], asked=True)
    forest.observe(values[300:], np.ones((100, 2)))
    predicted: list[int] = []
    predict = forest.theta_of_rows

    def watched(rows: Ints) -> Floats:
        predicted.append(len(rows))
        return predict(rows)

    monkeypatch.setattr(forest, "theta_of_rows", watched)
    assert forest.calibration().basis is basis
    assert predicted == ([] if basis is Basis.LABELLED else [100])


@pytest.mark.parametrize("coverage", [5e-324, 1e-12, 0.5, 1 - 2**-53])
def test_without_scored_rows_every_set_has_all_classes(coverage: float) -> None:
    assert UNKNOWN.sets(np.array([[0.9, 0.1]]), coverage).tolist() == [[True, True]]


def slow_recent_threshold(scores: list[float], coverage: float) -> float:
    """Gibbs and Candès: a block that was missed too often lowers the share that may be missed."""

    def quantile(some: list[float], share: float) -> float:
        k = next(k for k in range(1, len(some) + 3) if k >= (len(some) + 1) * share - TINY)
        return sorted(some)[k - 1] if k <= len(some) else float("inf")

    blocks = [scores[start : start + 50] for start in range(0, len(scores), 50)]
    missed = 1 - coverage
    for number in range(4, len(blocks)):
        threshold = quantile([*chain(*blocks[max(0, number - 14) : number])], 1 - missed)
        wrong = sum(score > threshold + TINY for score in blocks[number]) / len(blocks[number])
        missed = min(max(missed + 0.1 * ((1 - coverage) - wrong), 0.0005), 0.9995)
    return quantile([*chain(*blocks[-14:])], 1 - missed)


@settings(deadline=None)
@given(
    seed=st.integers(0, 10**6), n=st.integers(1, 990), coverage=st.sampled_from([0.05, 0.5, 0.8, 0.9, 0.95])
)
def test_recent_rows_slowly(seed: int, n: int, coverage: float) -> None:
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.ones(3), n).round(2)
    labels = np.eye(3)[rng.integers(3, size=n)]
    found = Calibration.of_recent(theta, labels)
    own = (1.0 - theta)[labels > 0].tolist()
    assert found.threshold(coverage) == pytest.approx(slow_recent_threshold(own, coverage), abs=1e-12)


@pytest.mark.parametrize("coverage", [0.8, 0.9, 0.95])
@pytest.mark.parametrize("doubtful", [False, True])
def test_a_stream_that_gets_easier_is_covered_as_stated(coverage: float, doubtful: bool) -> None:
    """The probability of the true class grows, row after row: the last 950 scores together would cover far more."""
    rng, rows = np.random.default_rng(1), 3_000
    sharpness = np.linspace(0.5, 4.0, rows)
    logits = rng.normal(size=(rows, 4)) * sharpness[:, np.newaxis]
    theta = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    truth = (rng.random(rows)[:, np.newaxis] > theta.cumsum(axis=1)).sum(axis=1).clip(max=3)
    said = np.eye(4)[truth]
    if doubtful:
        some = rng.random(rows) < 0.4
        said[some, ((truth + rng.integers(1, 4, rows)) % 4)[some]] = 1.0
    covered, before = [], []
    for start in range(1_000, rows, 50):
        past, now = slice(start - 950, start), slice(start, start + 50)
        for found, scored in (
            (covered, Calibration.of_recent(theta[past], said[past])),
            (before, Calibration.of(theta[past], said[past], Basis.LABELLED)),
        ):
            found.append((1.0 - theta[now])[np.arange(50), truth[now]] <= scored.threshold(coverage))
    assert np.mean(covered) == pytest.approx(coverage, abs=0.02)
    assert np.mean(before) > np.mean(covered)
