"""Entropy intervals: special cases, large frames, certificates, the memoising solver (theory §2.3)."""

from itertools import pairwise

import numpy as np
import pytest

from quercus.belief.errors import InvalidInput
from quercus.kernels.likelihood import least_entropy, least_entropy_of_counts
from quercus.trees.likelihood.interval import IntervalSolver, entropy_interval


def ends(found):
    return found.lower, found.upper


def test_alpha_zero_knows_nothing():
    assert ends(entropy_interval(np.eye(5), None, 0.0)) == (0.0, np.log2(5))


def test_vacuous_labels_know_nothing():
    assert ends(entropy_interval(np.full((4, 3), 0.7), None, 1.0)) == (0.0, np.log2(3))


def test_no_rows():
    assert ends(entropy_interval(np.empty((0, 3)), None, 0.5)) == (0.0, 0.0)
    assert ends(entropy_interval(np.eye(3), np.zeros(3), 0.5)) == (0.0, 0.0)


def test_alpha_one_with_precise_labels_is_shannon_entropy():
    found = entropy_interval(np.eye(3), np.array([5.0, 3.0, 2.0]), 1.0)
    p = np.array([0.5, 0.3, 0.2])
    assert ends(found) == pytest.approx((-(p @ np.log2(p)),) * 2, abs=1e-9)


def test_alpha_one_with_many_maximisers():
    # one label {1, 2}, one {3}: theta = (t, 1/2 - t, 1/2); entropy from 1 bit (t = 0) to 1.5 (t = 1/4)
    found = entropy_interval(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), None, 1.0)
    assert ends(found) == pytest.approx((1.0, 1.5), abs=1e-6)
    assert found.gap <= 1e-6


def test_one_precise_label_allows_certainty():
    assert entropy_interval(np.array([[0.0, 1.0, 0.0]]), None, 0.5).lower == 0.0


def test_two_classes_by_the_closed_form():
    # 3 against 1, alpha = 1/2: the ends of {theta : theta^3 (1 - theta) >= 1/2 (3/4)^3 (1/4)}
    roots = np.roots([-1.0, 1.0, 0.0, 0.0, -0.5 * 27 / 256])
    low, high = sorted(r.real for r in roots if abs(r.imag) < 1e-9 and 0 < r.real < 1)
    entropy = lambda t: -(t * np.log2(t) + (1 - t) * np.log2(1 - t))  # noqa: E731
    found = entropy_interval(np.eye(2), np.array([3.0, 1.0]), 0.5)
    assert found.lower == pytest.approx(min(entropy(low), entropy(high)), abs=1e-9)
    assert found.upper == pytest.approx(
        1.0 if low <= 0.5 <= high else max(entropy(low), entropy(high)), abs=1e-9
    )


@pytest.mark.parametrize("l", [2, 5, 16, 33, 64])
@pytest.mark.parametrize("alpha", [0.05, 0.8, 0.999])
def test_precise_labels_are_proved_for_any_number_of_classes(l, alpha):
    rng = np.random.default_rng(l)
    found = entropy_interval(np.eye(l), rng.integers(0, 30, l).astype(float), alpha)
    assert found.gap <= 1e-6


@pytest.mark.parametrize("seed", range(25))
def test_the_curve_of_precise_labels_finds_what_branch_and_bound_finds(seed):
    rng = np.random.default_rng(seed)
    l, most = int(rng.integers(2, 6)), int(rng.choice([3, 10, 100, 2000]))
    n = np.sort(rng.integers(1, most, l))[::-1].astype(float).copy()
    if seed % 5 == 0:
        n[:-1] = n[0]  # ties, where the likelihood rises again along the curve
    level = float(np.log(rng.choice([0.05, 0.3, 0.8, 0.99])))
    bound, reached = least_entropy_of_counts(n, level, level, 1e-10, 100)
    theta = n / n.sum()
    slow_bound, slow, _ = least_entropy(np.eye(l) / theta[:, None], n, level, level, theta, 0.0, 1e-8, 20_000)
    assert bound <= reached <= bound + 1e-9
    assert slow_bound - 1e-9 <= reached <= slow + 1e-9


@pytest.mark.parametrize("l", [8, 16, 24])
def test_large_frames_enclose_and_tighten_with_effort(l):
    rng = np.random.default_rng(l)
    P = np.eye(l)[rng.integers(l, size=120)]
    P = np.maximum(P, (rng.random(P.shape) < 0.2) * rng.random(P.shape))
    rough, fine = (entropy_interval(P, None, 0.8, effort=effort) for effort in (5, 200))
    assert rough.lower <= fine.lower <= fine.upper <= rough.upper + 1e-9
    assert fine.gap <= rough.gap
    theta = np.full(l, 1 / l)
    for _ in range(5_000):
        theta = theta * ((1 / (P @ theta)) @ P) / len(P)
    level = np.log(P @ theta).sum() + np.log(0.8)
    for _ in range(300):
        end = rng.dirichlet(np.full(l, 0.2))
        low, high = 0.0, 1.0
        for _ in range(40):
            t = (low + high) / 2
            low, high = (t, high) if np.log(P @ (theta + t * (end - theta))).sum() >= level else (low, t)
        x = theta + low * (end - theta)
        h = -np.sum(x * np.log2(np.where(x > 0, x, 1)))
        assert fine.lower - 1e-9 <= h <= fine.upper + 1e-9


def test_identical_classes_share_or_concentrate():
    # classes 2 and 3 are never told apart: least entropy gives one of them all, greatest splits evenly
    P = np.array([[1.0, 0.2, 0.2], [0.1, 1.0, 1.0], [0.3, 1.0, 1.0]])
    pair = entropy_interval(P[:, :2], None, 0.7)
    assert entropy_interval(P, None, 0.7).lower == pytest.approx(pair.lower, abs=1e-8)


def test_intervals_shrink_as_alpha_grows():
    P = np.random.default_rng(4).random((30, 4))
    found = [entropy_interval(P, None, alpha) for alpha in (0.1, 0.3, 0.6, 0.9, 0.99, 1.0)]
    assert all(b.lower >= a.lower - 1e-9 for a, b in pairwise(found))
    assert all(b.upper <= a.upper + 1e-9 for a, b in pairwise(found))


@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-9, 1e-12, 1e-15])
def test_alpha_close_to_one(delta):
    P = np.random.default_rng(5).random((40, 3))
    found = entropy_interval(P, None, 1.0 - delta)
    exact = entropy_interval(P, None, 1.0)
    assert found.gap <= 1e-6
    assert found.lower - 1e-6 <= exact.lower <= exact.upper <= found.upper + 1e-6


@pytest.mark.parametrize("weight", [1e-3, 1.0, 1e6])
def test_weights_of_any_size(weight):
    P = np.random.default_rng(6).random((40, 4))
    found = entropy_interval(P, np.full(40, weight), 0.8)
    assert found.gap <= 1e-6
    assert 0 <= found.lower < found.upper <= 2.0


def test_solver_agrees_with_the_function_and_grows():
    rng = np.random.default_rng(7)
    contours = rng.random((6, 3))
    solver = IntervalSolver(contours[:4], 0.8)
    counts = rng.integers(0, 4, (5, 4))
    counts[0] = 0
    lower, upper = solver.intervals(counts)
    solver.add_contours(contours[4:])
    wider = np.hstack([counts, np.zeros((5, 2), int)])
    assert np.array_equal(solver.intervals(wider), (lower, upper))
    for row, low, high in zip(counts, lower, upper, strict=True):
        assert (low, high) == pytest.approx(
            ends(entropy_interval(contours[:4], row.astype(float), 0.8)), abs=1e-12
        )
    theta = solver.estimate(wider[1]).theta
    belief, plausibility = solver.class_bounds(wider[1])
    assert np.all(belief <= theta) and np.all(theta <= plausibility)  # noqa: PT018


def test_class_bounds_are_those_of_a_fine_grid():
    P, w = np.array([[0.2, 1.0, 0.5], [1.0, 0.1, 0.0], [0.0, 0.6, 1.0]]), np.array([3, 2, 4])
    belief, plausibility = IntervalSolver(P, 0.6).class_bounds(w)
    steps = np.linspace(0, 1, 801)
    grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b <= 1 + 1e-12]).clip(0)
    with np.errstate(divide="ignore"):
        value = np.log(grid @ P.T) @ w
    inside = grid[value >= value.max() + np.log(0.6)]
    assert np.all(belief <= inside.min(axis=0) + 1e-9)
    assert np.all(plausibility >= inside.max(axis=0) - 1e-9)
    assert belief == pytest.approx(inside.min(axis=0), abs=3e-3)
    assert plausibility == pytest.approx(inside.max(axis=0), abs=3e-3)


@pytest.mark.parametrize("alpha", [-0.1, 1.1, float("nan")])
def test_alpha_outside_its_range_is_named(alpha):
    with pytest.raises(InvalidInput, match=r"alpha: is .*; it must lie in \[0, 1\]"):
        entropy_interval(np.eye(2), None, alpha)


def test_effort_below_one_is_named():
    with pytest.raises(InvalidInput, match="effort: is 0"):
        entropy_interval(np.eye(2), None, 0.5, effort=0)
