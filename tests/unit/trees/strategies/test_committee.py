"""The loops of a committee beside plain computations of the same."""

import numpy as np

from quercus.trees import likelihood
from quercus.trees.strategies import covering, members
from quercus.trees.strategies.sketch import sketch

ORDERED = np.array([4, 0, 3])
ARITIES = np.array([5, 3, 3])  # the first has a branch of missing values


def codes(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(ARITIES, size=(count, 3)).astype(np.int16)


def apart(a: np.ndarray, b: np.ndarray) -> float:
    total = 0.0
    for k, (x, y) in enumerate(zip(a.tolist(), b.tolist(), strict=True)):
        in_order = max(x, y) < ORDERED[k]
        total += abs(x - y) / (ORDERED[k] - 1) if in_order else float(x != y)
    return total


def test_distances_and_what_they_cover() -> None:
    rows, others = codes(9), codes(7, 1)
    slow = np.array([[apart(a, b) for b in others] for a in rows])
    far = covering.distances(rows, others, ORDERED)
    np.testing.assert_allclose(far / covering.UNIT, slow)
    near = covering.nearest(others, codes(2, 2), ORDERED)
    np.testing.assert_allclose(near / covering.UNIT, [min(apart(b, c) for c in codes(2, 2)) for b in others])
    np.testing.assert_allclose(
        covering.gains(far, near) / covering.UNIT,
        np.maximum(near / covering.UNIT - slow, 0).sum(axis=1),
    )
    assert (covering.nearest(rows, codes(0), ORDERED) == 3 * covering.UNIT).all()


def test_shares_are_those_of_the_likeliest_classes() -> None:
    rng = np.random.default_rng(3)
    labels, weights = rng.uniform(0.05, 1, (30, 3)), rng.integers(1, 4, 30).astype(float)
    share = np.empty((30, 3))
    theta = members.shares(np.arange(30), weights, labels, share)
    assert np.abs(theta - likelihood.estimate(labels, weights).theta).max() < 1e-3
    np.testing.assert_allclose(share.sum(axis=1), weights)


def test_a_member_fits_rows_that_differ() -> None:
    rows = np.unique(codes(60), axis=0)
    classes = (rows[:, 0] + rows[:, 1]) % 3
    labels = np.eye(3)[classes]
    counts = members.votes(
        rows, labels, np.ones((1, len(rows))), ORDERED, ARITIES, 3, rows, np.ones((len(rows), 3))
    )
    assert (counts.argmax(axis=1) == classes).all()


def test_nobody_votes_for_what_a_row_cannot_be() -> None:
    rows = codes(40)
    labels = np.eye(3)[rows[:, 1]]
    known = np.ones((40, 3))
    known[np.arange(40), rows[:, 1]] = 0.0
    counts = members.votes(rows, labels, np.ones((5, 40)), ORDERED, ARITIES, 2, rows, known)
    assert (counts.sum(axis=1) == 5).all()
    assert not counts[np.arange(40), rows[:, 1]].any()


def test_a_sketch_changes_little_when_rows_do() -> None:
    before, after = sketch(np.arange(10_000), 100), sketch(np.delete(np.arange(10_000), 77), 100)
    assert before.size == after.size == 100
    assert np.setdiff1d(before, after).size <= 1
    assert (np.diff(before) > 0).all()
