"""Set-valued labels of three classes, the closed and planar methods against slow computations of another kind."""

import itertools

import numpy as np
import pytest

from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver, entropy_interval
from quercus.trees.likelihood.solver import cut, kernels, search
from quercus.trees.likelihood.solver.polygon import least_in_polygon
from quercus.trees.likelihood.solver.separable import (
    WORK_ROWS,
    log_likelihood_deficit,
    maximise_separable,
    separable_counts,
)
from quercus.trees.likelihood.solver.sets import bound_separable, end_of_class, solve_separable
from quercus.trees.likelihood.solver.stationary import is_least

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


def maximiser(w):
    theta = np.empty(3)
    return theta if maximise_separable(w[:3], w[3:], theta) else None


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
    return found


@pytest.mark.parametrize("seed", range(6))
def test_maximisers_satisfy_their_certificate(seed):
    for w in problems(seed, 200):
        theta = maximiser(w)
        slow, worst = kernels.maximise(TABLE[w > 0], w[w > 0])
        if theta is None:  # said to be open: then a class without labels is left something, and so is another
            silent = np.flatnonzero(w[:3] + w[3:] == 0)
            assert len(silent) > 1
            continue
        assert theta.sum() == pytest.approx(1.0, abs=1e-14)
        best = loglik(w, theta[None])[0]
        assert best >= loglik(w, slow[None])[0] - w.sum() * (worst + 1e-14)
        assert log_likelihood_deficit(w[:3], w[3:], theta)[0] <= 1e-11 * w.sum()


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_both_ends_against_rays(seed):
    rng = np.random.default_rng([7, seed])
    solved = 0
    given = problems(100 + seed, 40)
    for w in given:
        theta, alpha, ends = maximiser(w), float(rng.choice(LEVELS)), np.empty(4)
        if theta is None or not solve_separable(w[:3], w[3:], alpha, theta, ends, np.empty((WORK_ROWS, 3))):
            continue
        solved += 1
        least, greatest = slow_ends(w, theta, np.log(alpha))
        where = f"{w} {alpha}: {ends} {least} {greatest}"
        noise = 1e-10 + 1e-13 * np.sqrt(
            w.sum() / -np.log(alpha)
        )  # of the slow level, which is all that it knows
        assert ends[0] <= ends[1] <= ends[0] + 2.1e-10, where
        assert ends[2] <= ends[3] <= ends[2] + 2.1e-10, where
        assert ends[0] - noise <= least <= ends[1] + 1e-6, where
        assert ends[2] - 1e-6 <= greatest <= ends[3] + noise, where
    assert solved > 0.6 * len(given)


@pytest.mark.parametrize("seed", range(3))
def test_both_ends_against_the_general_search(seed):
    rng = np.random.default_rng([8, seed])
    for w in problems(200 + seed, 30):
        theta, alpha, ends = maximiser(w), float(rng.choice(LEVELS[1:-2])), np.empty(4)
        if theta is None or not solve_separable(w[:3], w[3:], alpha, theta, ends, np.empty((WORK_ROWS, 3))):
            continue
        P, W, c = TABLE[w > 0], w[w > 0], float(np.log(alpha))
        P = np.ascontiguousarray(P / (P @ theta)[:, None])
        worst = kernels.kkt_excess(P, W, theta, np.empty(3))
        inner = c + W.sum() * (worst + 1e-15)
        low, reached, _ = search.least_entropy(P, W, c, inner, theta, worst, 2e-10, 2_000)
        assert low - 1e-9 <= ends[1], (w, alpha)
        assert ends[0] <= reached + 1e-9, (w, alpha)
        bound, high = search.greatest_entropy(P, W, c, inner, theta)
        assert high - 1e-9 <= ends[3], (w, alpha)
        assert ends[2] <= bound + 1e-9, (w, alpha)


@pytest.mark.parametrize("seed", range(4))
def test_the_polygon_encloses_the_cut_whatever_it_reaches(seed):
    rng = np.random.default_rng([9, seed])
    for w in problems(300 + seed, 40):
        theta = maximiser(w)
        if theta is None:
            continue
        c = float(np.log(rng.choice(LEVELS)))
        inner = c + log_likelihood_deficit(w[:3], w[3:], theta)[0] + 2e-15 * w.sum()
        if inner > 0.9 * c:
            continue
        low, reached, _ = least_in_polygon(w[:3], w[3:], theta, c, inner, 1e-10, np.empty((WORK_ROWS, 3)))
        points = border(w, theta, c, rim(300))
        noise = 1e-10 + 1e-13 * np.sqrt(w.sum() / -c)
        assert low <= reached, w
        assert entropy(points).min() >= low - noise, w


@pytest.mark.parametrize("seed", range(4))
def test_class_bounds_against_rays_and_the_convex_program(seed):
    rng = np.random.default_rng([10, seed])
    found = 0
    given = problems(400 + seed, 40)
    for w in given:
        theta, alpha = maximiser(w), float(rng.choice(LEVELS[:-1]))
        bounds = np.empty(6)
        if theta is None or not bound_separable(w[:3], w[3:], alpha, theta, 1e-9, bounds, np.empty(3)):
            continue
        found += 1
        c = float(np.log(alpha))
        points = border(w, theta, c, rim(500))
        noise = 1e-12 + 1e-13 * np.sqrt(w.sum() / -c)
        assert (points >= bounds[:3] - noise).all(), (w, alpha)
        assert (points <= bounds[3:] + noise).all(), (w, alpha)
        P = np.ascontiguousarray(TABLE[w > 0] / (TABLE[w > 0] @ theta)[:, None])
        for j, sign in itertools.product(range(3), (1.0, -1.0)):
            cost, start = np.zeros(3), 0.9 * theta + 0.1 / 3
            cost[j] = sign
            slow, _ = cut.minimise_over_cut(P, w[w > 0], c, cost, np.zeros(3), np.ones(3), start, np.inf)
            tight = 1e-9 + 2e-14 * w.sum() / -c  # what rounding of the likelihood costs
            assert bounds[j if sign > 0 else 3 + j] * sign >= slow - tight, (w, alpha, j)
    assert found > 0.7 * len(given)


def test_a_class_end_is_a_bound_where_no_step_is_left():
    w = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 4.0])
    theta, y = maximiser(w), np.empty(3)
    assert end_of_class(w[:3], w[3:], np.log(0.5), theta, 2, -1.0, y) == 0.0  # it is at 0 already


@pytest.mark.parametrize("seed", range(10))
def test_what_is_said_to_be_least_is(seed):
    rng = np.random.default_rng(seed)
    said = 0
    for _ in range(200):
        n, m = (float(rng.choice([0, 1, 3, 50]) * rng.random()) for _ in range(2))
        mu, t = 10 ** rng.uniform(-2, 1), rng.choice([0.0, rng.random()])
        a, b = t * rng.choice([0.0, rng.random()]), t + (1 - t) * rng.choice([1.0, rng.random()])
        n = 0.0 if t == 0.0 else n
        nu = np.log(t) + 1 + mu * (n / t - m / (1 - t)) if t > 0 else rng.normal()
        if not is_least(n, m, t, mu, nu, a, b):
            continue
        said += 1
        x = np.concatenate([np.linspace(a, b, 500), t + (b - t) * np.geomspace(1e-9, 1, 100)])
        x = x[(x > 0) & (x < 1)]
        phi = -x * np.log(x) + nu * x - mu * ((n * np.log(x) if n else 0.0) + m * np.log1p(-x))
        at = (
            -t * np.log(t) + nu * t - mu * ((n * np.log(t) if n else 0.0) + m * np.log1p(-t))
            if t > 0
            else 0.0
        )
        assert phi.min(initial=np.inf) >= at - 1e-9 * max(1.0, abs(at)), (n, m, t, mu, nu, a, b)
    assert said > 20


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


def test_a_label_that_is_no_set_goes_the_general_way():
    n, m = np.empty(3), np.empty(3)
    table = np.vstack([TABLE, [[1.0, 0.5, 0.0]], [[1.0, 0.5, 0.5]]])
    columns, counts = np.arange(8, dtype=np.int32), np.ones(8)
    assert separable_counts(table, columns, counts, 0, 6, n, m)
    assert (n == 1.0).all()
    assert (m == 1.0).all()
    assert not separable_counts(table, columns, counts, 0, 7, n, m)
    assert not separable_counts(table, columns, counts, 7, 8, n, m)
    assert not separable_counts(table, columns, counts, 0, 3, n, m)  # precise: solved elsewhere


@pytest.mark.parametrize("l", [4, 5, 7])
def test_more_classes_with_labels_that_rule_one_out(l):
    rng = np.random.default_rng(l)
    for _ in range(15):
        table = np.vstack([np.eye(l), 1.0 - np.eye(l)])
        w = rng.integers(0, rng.choice([3, 30]), 2 * l).astype(float)
        found = entropy_interval(table, w, 0.8)
        theta = kernels.maximise(table[w > 0], w[w > 0])[0]
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
