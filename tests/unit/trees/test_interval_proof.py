"""Is what the solver calls a proof one? Levels near 1, tiny weights, bounds in any box, families of equal minima."""

import numpy as np
import pytest

from quercus.kernels.likelihood import (
    TOLERANCE,
    bound_in_box,
    classes_by_plausibility,
    entropy,
    envelope,
    least_curvature,
    least_entropy,
    least_entropy_of_counts,
    maximise,
    nearest,
    outer_box,
    rescale_rows,
    rounding,
    tighten,
    to_boundary,
)
from quercus.trees.likelihood.interval import entropy_interval
from quercus.trees.likelihood.maximiser import estimate


def bits(theta):
    return float(-np.sum(theta * np.log2(np.where(theta > 0, theta, 1.0))))


@pytest.mark.parametrize("delta", [1e-4, 1e-7, 1e-9, 1e-11, 1e-12, 1e-13])
def test_near_level_one_the_interval_still_encloses(delta):
    # {1, 2} and {3}: theta_3 (1 - theta_3) >= alpha / 4, and the rest is shared by 1 and 2 in any way
    found = entropy_interval(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]), None, 1.0 - delta)
    third = (1 + np.sqrt(delta) * np.array([-1, 1])) / 2
    least = min(bits(np.array([t, 1 - t])) for t in third)
    greatest = max(bits(np.array([t, (1 - t) / 2, (1 - t) / 2])) for t in third)
    assert found.lower <= least + 1e-9
    assert found.upper >= greatest - 1e-9
    assert found.gap <= 1e-6
    assert (found.lower, found.upper) == pytest.approx((least, greatest), abs=found.gap + 1e-9)


@pytest.mark.parametrize("delta", [1e-6, 1e-9, 1e-12])
def test_near_level_one_with_precise_labels(delta):
    # theta (1 - theta)^2 and its ends by hand: the maximum at 1/3 is quadratic, so small steps suffice
    w = np.array([100.0, 200.0])
    found = entropy_interval(np.eye(2), w, 1.0 - delta)
    step = np.sqrt(-2 * np.log1p(-delta) * (1 / 3) * (2 / 3) / w.sum()) * (1 - 1e-3)
    for t in (1 / 3 - step, 1 / 3 + step):
        assert found.lower - 1e-12 <= bits(np.array([t, 1 - t])) <= found.upper + 1e-12
    assert found.lower < found.upper
    assert found.gap <= 1e-6


@pytest.mark.parametrize("weight", [1e-9, 1e-6, 1e-3])
def test_tiny_weights_at_level_one(weight):
    P = np.random.default_rng(3).random((50, 5))
    found = entropy_interval(P, np.full(50, weight), 1.0)
    assert found.gap <= 1e-6
    assert found.lower == pytest.approx(bits(estimate(P).theta), abs=1e-6)


@pytest.mark.parametrize("counts", [(1000.0, 1e-3), (1e9, 1e-9), (1e9, 1.0, 1e-9), (3.0, 3.0, 3.0, 1e-6)])
@pytest.mark.parametrize("alpha", [0.05, 0.8, 0.999])
def test_counts_of_very_different_size(counts, alpha):
    level = float(np.log(alpha))
    bound, reached = least_entropy_of_counts(np.array(counts), level, level, 1e-10, 100)
    assert 0.0 <= bound <= reached <= bound + 5e-7


def members(rng, P, w, c, theta, size):
    """Points of the level set, most of them on its boundary: (size, l)."""
    ends = rng.dirichlet(np.full(P.shape[1], 0.5), size)
    low, high = np.zeros(size), np.ones(size)
    for _ in range(50):
        t = (low + high) / 2
        with np.errstate(divide="ignore"):
            inside = np.log((theta + t[:, None] * (ends - theta)) @ P.T) @ w >= c
        low, high = np.where(inside, t, low), np.where(inside, high, t)
    return theta + (low * rng.choice([1.0, 1.0, 0.5], size))[:, None] * (ends - theta)


@pytest.mark.parametrize("seed", range(20))
def test_bounds_in_boxes_hold_wherever_the_quadratic_is_taken(seed):
    rng = np.random.default_rng(seed)
    l, n = int(rng.integers(2, 6)), int(rng.integers(2, 12))
    P, w = rng.random((n, l)) * rng.choice([0.01, 1.0], (n, l)), rng.integers(1, 9, n).astype(float)
    theta = estimate(P, w).theta
    P = np.ascontiguousarray(P / (P @ theta)[:, None])
    c = float(np.log(rng.choice([0.1, 0.6, 0.95, 0.999])))
    points, order = members(rng, P, w, c, theta, 300), classes_by_plausibility(P)
    outer_a, outer_b, top = np.empty(l), np.empty(l), np.empty(n)
    outer_box(P, w, c, theta, 1e-12, outer_a, outer_b, top)
    assert (points >= outer_a - 1e-12).all()
    assert (points <= outer_b + 1e-12).all()
    assert (points @ P.T <= top * (1 + 1e-12)).all()
    for _ in range(20):
        x = points[rng.integers(len(points))]
        a = np.maximum(x - rng.random(l) * rng.choice([0.01, 0.3]), outer_a)
        b = np.minimum(x + rng.random(l) * rng.choice([0.01, 0.3]), outer_b)
        if not tighten(a, b):
            continue
        x = (
            points[rng.integers(len(points))] if rng.random() < 0.5 else x
        )  # in the box or not, a minimum or not
        limit = rng.choice([np.inf, entropy(points[0])])
        here = points[((points >= a) & (points <= b)).all(axis=1)]
        here = here[[bool(entropy(point) <= limit) for point in here]]
        y = np.empty(l)
        nearest(a, b, rng.dirichlet(np.ones(l)), y)  # often outside the level set
        mu = float(10 ** rng.uniform(-3, 1)) / w.sum()
        enough = rng.choice([np.inf, entropy(x) - rng.choice([0.0, 0.03, 0.3])])
        bound, cut, _, _ = bound_in_box(P, w, order, c, top, a, b, x, mu, y, enough, limit)
        assert 0 <= cut < l
        assert all(entropy(point) >= bound - 1e-12 for point in here)
        assert (here >= a - 1e-12).all(), "the box lost a point that it should keep"
        assert (here <= b + 1e-12).all(), "the box lost a point that it should keep"


@pytest.mark.parametrize("seed", range(20))
def test_few_boxes_prove_a_minimum_that_is_small_in_a_class(seed):
    # across the boundary the entropy bends more than the likelihood; halving boxes took up to a thousand of them
    rng = np.random.default_rng(seed)
    P, w, c = rng.random((50, 7)), rng.integers(1, 10, 50).astype(float), float(np.log(0.8))
    theta, worst = maximise(P, w)
    P = rescale_rows(P, theta)
    bound, reached, examined = least_entropy(P, w, c, c, theta, worst, 1e-9, 500)
    assert reached - bound <= 1e-8
    assert examined < 200
    points = members(rng, P, w, c, theta, 300)
    assert min(entropy(point) for point in points) >= bound - 1e-12


@pytest.mark.parametrize("seed", range(10))
def test_the_entropy_lies_above_its_envelope(seed):
    rng = np.random.default_rng(seed)
    for _ in range(100):
        a, b = np.sort(rng.random(2) ** rng.choice([1, 4]))
        a = a if rng.random() < 0.7 else 0.0
        y = rng.choice([a, b, a + (b - a) * rng.random()])
        f = rng.choice([-1.0, 1.0]) * 10 ** rng.uniform(-2, 4)
        if y > 0 and rng.random() < 0.3:
            f = least_curvature(y, a)
        value, slope = envelope(f, y, a, b)
        t = np.append(np.linspace(a, b, 200), a + (b - a) * np.geomspace(1e-9, 1, 50))
        h = -t * np.log(np.maximum(t, 1e-300))
        assert (h >= value + slope * (t - y) - f / 2 * (t - y) ** 2 - 1e-12).all(), (f, y, a, b)
        if y > 0 and f >= least_curvature(y, a):
            assert value == pytest.approx(-y * np.log(y), abs=1e-12)


def test_a_ray_through_a_point_off_the_simplex_ends_in_the_level_set():
    # what programs leave as a guess may sum to 1 within some rounding only; a short ray magnified that
    P = np.array([[2.0, 0.0, 0.0], [0.0, 0.0, 2.0], [2.0, 2.0, 0.0], [0.0, 2.0, 2.0]])
    w, c, centre, point = (
        np.array([4.0, 4.0, 1.0, 1.0]),
        float(np.log(0.8)),
        np.array([0.5, 0.0, 0.5]),
        np.empty(3),
    )
    to_boundary(P, w, c, centre, np.array([0.500860274, 3e-16, 0.499505906]), point)
    assert point.sum() == pytest.approx(1.0, abs=1e-15)
    assert np.log(P @ point) @ w >= c - 1e-12


def test_no_bound_where_a_row_is_impossible():
    P, w = np.eye(2) * 2.0, np.ones(2)
    a, b, top, y = np.array([0.9, 0.0]), np.array([1.0, 0.1]), np.full(2, 2.0), np.array([1.0, 0.0])
    x = np.array([0.8, 0.2])
    bound, _, _, _ = bound_in_box(
        P, w, classes_by_plausibility(P), np.log(0.1), top, a, b, x, 0.1, y, np.inf, np.inf
    )
    assert bound == -np.inf


@pytest.mark.parametrize("alpha", [0.5, 0.9, 0.99])
@pytest.mark.parametrize("seed", range(4))
def test_families_of_equal_minima(seed, alpha):
    # every class in turn is judged by the same row of plausibilities: the minima come in fives, all alike
    row = np.random.default_rng(seed).random(5)
    found = entropy_interval(np.array([np.roll(row, k) for k in range(5)]), np.full(5, 4.0), alpha)
    assert found.gap <= 1e-6


@pytest.mark.parametrize(("weight", "alpha"), [(1e7, 0.999), (1e8, 0.8), (1.0, 1 - 1e-10)])
def test_no_effort_is_spent_below_rounding(weight, alpha):
    P = np.random.default_rng(8).random((50, 3))
    theta, worst = maximise(P, np.full(50, weight))
    scaled, w = rescale_rows(P, theta), np.full(50, weight)
    c = float(np.log(alpha))
    outer, inner = c - w.sum() * rounding(P.shape[1]), c + w.sum() * (worst + rounding(P.shape[1]))
    bound, reached, examined = least_entropy(scaled, w, outer, inner, theta, worst, TOLERANCE, 20_000)
    assert reached - bound <= 5e-7
    assert examined < 200


@pytest.mark.parametrize(("seed", "tolerance"), [(4647, 0.01), (8848, 0.03)])
def test_the_bound_holds_for_boxes_that_were_finished_before_a_better_minimum(seed, tolerance):
    # boxes are finished within the tolerance of the minimum known so far; then the search finds a smaller one
    rng = np.random.default_rng(seed)
    l, n = int(rng.integers(3, 7)), int(rng.integers(3, 30))
    assert l == 3
    P, w = rng.random((n, l)) ** rng.choice([1, 3, 8]), np.ones(n) * rng.choice([0.1, 0.3, 1.0])
    c = float(np.log(rng.choice([0.05, 0.3, 0.6, 0.9])))
    theta, worst = maximise(P, w)
    P = rescale_rows(P, theta)
    bound, reached, _ = least_entropy(P, w, c, c, theta, worst, tolerance, 3_000)
    i, j = np.triu_indices(801)
    lattice = np.column_stack([i, j - i, 800 - j]) / 800
    with np.errstate(divide="ignore"):
        inside = lattice[np.log(lattice @ P.T) @ w >= c]
    nats = -np.sum(inside * np.log(np.where(inside > 0, inside, 1.0)), axis=1)
    assert bound <= nats.min()
    assert reached - bound <= tolerance
