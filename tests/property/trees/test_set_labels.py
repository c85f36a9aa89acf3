"""Labels that are sets of classes, mostly of three, against slow computations of another kind."""

import itertools

import numpy as np
import pytest

from quercus.kernels.likelihood import (
    estimate_counts,
    greatest_entropy,
    kkt_excess,
    least_entropy,
    maximise,
    minimise_over_cut,
)
from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver, entropy_interval

TABLE = np.vstack([np.eye(3), 1.0 - np.eye(3)])
LEVELS = (1e-6, 0.05, 0.3, 0.8, 0.99, 0.9999, 1.0 - 1e-7)
ADVERSARIAL = [
    (0, 0, 35, 21, 21, 1),  # two sides of the simplex tie
    (3, 5, 3, 2, 5, 2),  # symmetric
    (1, 1, 1, 1, 1, 1),
    (5, 4, 4, 5, 3, 3),  # the maximiser is uniform
    (0, 0, 0, 3, 2, 2),  # no label says a class
    (0, 0, 0, 1, 1, 1),
    (4, 1, 0, 2, 0, 1),  # class 3 is dominated
    (0, 2, 0, 2, 1, 0),
    (10**9, 10**9, 10**9, 1, 1, 1),
    (10**9, 3, 1, 10**6, 2, 10**9),
    (1, 0, 0, 0, 0, 10**6),
    (0, 10**6, 1, 1, 10**6, 0),
    (2, 1, 0, 0, 0, 0),
    (0, 40, 0, 21, 0, 13),  # the maximiser is a vertex
    (1e-6, 3.0, 1.0, 1e-6, 2.0, 1e3),
]


def weights(rng):
    """Weights of the six contours, of every size, often 0, often tied."""
    most = rng.choice([2, 3, 6, 20, 300, 100_000])
    w = rng.integers(0, most + 1, 6).astype(float)
    w[rng.random(6) < rng.choice([0.0, 0.3, 0.6])] = 0.0
    if rng.random() < 0.3:
        w[1::3] = w[::3]
    return w


def problems(seed, size):
    rng = np.random.default_rng(seed)
    drawn = ADVERSARIAL + [weights(rng) for _ in range(size)]
    return [np.array(w, float) for w in drawn if np.sum(w[3:]) > 0 and np.count_nonzero(w) > 1]


def loglik(w, points):
    v = points @ TABLE[w > 0].T
    with np.errstate(divide="ignore"):
        return np.log(v) @ w[w > 0]


def entropy(points):
    return -np.sum(points * np.log(np.where(points > 0, points, 1.0)), axis=-1)


def border(w, theta, c, rays):
    """Members of the cut far out on rays from the maximiser to points (k, 3) of the border of the simplex."""
    level = loglik(w, theta[None])[0] + c
    low, high = np.zeros(len(rays)), np.ones(len(rays))
    for step in range(60):
        t = high if step == 0 else (low + high) / 2
        inside = loglik(w, theta + t[:, None] * (rays - theta)) >= level
        low, high = np.where(inside, t, low), np.where(inside, high, t)
    return np.abs(theta + low[:, None] * (rays - theta))


def rim(size):
    """Points of all sides of the simplex, dense near its corners."""
    s = np.concatenate([np.linspace(0, 1, size), np.geomspace(1e-12, 0.5, size)])
    s = np.concatenate([s, 1 - s])
    z = np.zeros_like(s)
    return np.concatenate([np.roll(np.stack([s, 1 - s, z], 1), k, axis=1) for k in range(3)])


def slow_ends(w, theta, c):
    """Least and greatest entropy found on ever denser rays: both reached by members of the cut."""
    found = []
    for sign in (1, -1):
        rays, spread = rim(400), 1e-2
        best, rng = np.inf, np.random.default_rng(1)
        for _ in range(9):
            points = border(w, theta, c, rays)
            values = sign * entropy(points)
            order = np.argsort(values)[:12]
            best = min(best, values[order[0]])
            near = np.repeat(rays[order], 30, axis=0)
            near = near * np.exp(spread * rng.standard_normal(near.shape))
            rays = np.concatenate([rays[order], near / near.sum(1, keepdims=True)])
            spread *= 0.25
        found.append(sign * best)
    if loglik(w, np.full((1, 3), 1 / 3))[0] >= loglik(w, theta[None])[0] + c:
        found[1] = np.log(3)
    return np.array(found)


def scaled_problem(w, theta):
    """Rows with ``P @ theta = 1``, and their weights."""
    P = TABLE[w > 0]
    return np.ascontiguousarray(P / (P @ theta)[:, None]), w[w > 0]


@pytest.mark.parametrize("seed", range(3))
def test_the_maximiser_in_closed_form_is_that_of_the_interior_point_method(seed):
    for w in problems(seed, 100):
        used = np.flatnonzero(w)
        cell = np.array([0, len(used)]), used.astype(np.int32), w[used]
        found = np.empty((1, 5))
        estimate_counts(TABLE, *cell, np.array([0]), found)
        theta, worst, unique = found[0, :3], found[0, 3], found[0, 4]
        slow, slow_worst = maximise(TABLE[used], w[used])
        assert theta.sum() == pytest.approx(1.0, abs=1e-14)
        assert kkt_excess(TABLE[used], w[used], theta, np.empty(3)) == pytest.approx(worst, abs=1e-15)
        best = loglik(w, theta[None])[0]
        assert best >= loglik(w, slow[None])[0] - w.sum() * (slow_worst + 1e-14)
        if unique and w.max() < 1e3 * w[used].min():
            assert theta == pytest.approx(slow, abs=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_both_ends_against_the_general_search(seed):
    rng = np.random.default_rng([8, seed])
    for w in problems(200 + seed, 30):
        theta, worst = maximise(TABLE[w > 0], w[w > 0])
        alpha = float(rng.choice(LEVELS[1:-2]))
        found, c = entropy_interval(TABLE, w, alpha), float(np.log(alpha))
        P, weights_of_rows = scaled_problem(w, theta)
        inner = c + w.sum() * (worst + 1e-15)
        low, reached, _ = least_entropy(P, weights_of_rows, c, inner, theta, worst, 2e-10, 2_000)
        bound, high = greatest_entropy(P, weights_of_rows, c, inner, theta)
        doubt = found.gap + 1e-9
        assert low / np.log(2.0) - 1e-9 <= found.lower + doubt, (w, alpha)
        assert found.lower <= reached / np.log(2.0) + 1e-9, (w, alpha)
        assert high / np.log(2.0) - 1e-9 <= found.upper, (w, alpha)
        assert found.upper - doubt <= bound / np.log(2.0) + 1e-9, (w, alpha)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_both_ends_against_rays(seed):
    rng = np.random.default_rng([7, seed])
    for w in problems(100 + seed, 10):
        theta, alpha = maximise(TABLE[w > 0], w[w > 0])[0], float(rng.choice(LEVELS))
        found = entropy_interval(TABLE, w, alpha)
        least, greatest = slow_ends(w, theta, np.log(alpha)) / np.log(2.0)
        where = f"{w} {alpha}: {found} {least} {greatest}"
        noise = 1e-9 + 1e-13 * np.sqrt(
            w.sum() / -np.log(alpha)
        )  # of the slow level, which is all that it knows
        assert found.gap <= 1e-6, where
        assert found.lower - noise <= least <= found.lower + found.gap + 1e-6, where
        assert found.upper + noise >= greatest >= found.upper - found.gap - 1e-6, where


@pytest.mark.parametrize(
    ("w", "alpha"), [((0, 0, 0, 3, 3, 13), 1 - 1e-7), ((10**9, 10**9, 10**9, 1, 1, 1), 0.3)]
)
def test_what_the_general_search_hardly_solves_is_exact(w, alpha):
    """Without the closed form and the polygon, gaps of 1e-6 and 6e-10 bits after a quarter of a second."""
    assert entropy_interval(TABLE, np.array(w, float), alpha).gap <= 1e-10


@pytest.mark.parametrize("seed", range(4))
def test_class_bounds_against_rays_and_the_convex_program(seed):
    rng = np.random.default_rng([10, seed])
    for w in problems(400 + seed, 40):
        alpha = float(rng.choice(LEVELS[:-1]))
        theta = maximise(TABLE[w > 0], w[w > 0])[0]
        belief, plausibility = IntervalSolver(TABLE, alpha).class_bounds(w)
        c = float(np.log(alpha))
        points = border(w, theta, c, rim(500))
        noise = 1e-12 + 1e-13 * np.sqrt(w.sum() / -c)
        assert (points >= belief - noise).all(), (w, alpha)
        assert (points <= plausibility + noise).all(), (w, alpha)
        P, weights_of_rows = scaled_problem(w, theta)
        for j, sign in itertools.product(range(3), (1.0, -1.0)):
            cost, start = np.zeros(3), 0.9 * theta + 0.1 / 3
            cost[j] = sign
            slow, _ = minimise_over_cut(P, weights_of_rows, c, cost, np.zeros(3), np.ones(3), start, np.inf)
            tight = 1e-9 + 2e-14 * w.sum() / -c  # what rounding of the likelihood costs
            assert (belief[j] if sign > 0 else -plausibility[j]) >= slow - tight, (w, alpha, j)


@pytest.mark.parametrize("alpha", [0.05, 0.8, 0.999])
def test_classes_and_contours_may_change_places(alpha):
    rng = np.random.default_rng(3)
    counts = np.array([weights(rng) for _ in range(60)], np.int64)
    counts = counts[counts.any(axis=1)]
    first = IntervalSolver(TABLE, alpha).solve_cells(Cells.of_dense(counts))
    for order in itertools.permutations(range(3)):
        moved = TABLE[:, order]
        shuffled = rng.permutation(6)
        solver = IntervalSolver(moved[shuffled], alpha)
        again = solver.solve_cells(Cells.of_dense(counts[:, shuffled]))
        assert again.lower == pytest.approx(first.lower, abs=1e-9)
        assert again.upper == pytest.approx(first.upper, abs=1e-9)


@pytest.mark.parametrize("l", [4, 5, 7])
def test_more_classes_with_labels_that_rule_one_out(l):
    rng = np.random.default_rng(l)
    for _ in range(15):
        table = np.vstack([np.eye(l), 1.0 - np.eye(l)])
        w = rng.integers(0, rng.choice([3, 30]), 2 * l).astype(float)
        found = entropy_interval(table, w, 0.8)
        theta = maximise(table[w > 0], w[w > 0])[0]
        rays = rng.dirichlet(np.full(l, 0.4), 4_000)
        level = np.log(table[w > 0] @ theta) @ w[w > 0] + np.log(0.8)
        low, high = np.zeros(len(rays)), np.ones(len(rays))
        for _ in range(40):
            t = (low + high) / 2
            with np.errstate(divide="ignore"):
                inside = np.log((theta + t[:, None] * (rays - theta)) @ table[w > 0].T) @ w[w > 0] >= level
            low, high = np.where(inside, t, low), np.where(inside, high, t)
        values = entropy(theta + low[:, None] * (rays - theta)) / np.log(2)
        assert found.gap <= 1e-6
        assert values.min() >= found.lower - 1e-9
        assert values.max() <= found.upper + 1e-9
