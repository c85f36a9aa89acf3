"""Cells against independent slow computations: outer bounds, class bounds, the two curves (theory §2.12)."""

import numpy as np
import pytest
from scipy.optimize import brentq

from quercus.kernels.likelihood import greatest_entropy, greatest_entropy_of_counts, least_entropy_of_counts
from quercus.trees.likelihood.interval import Cells, IntervalSolver

LEVELS = (0.01, 0.05, 0.3, 0.8, 0.9, 0.99, 0.999)


def random_table(rng, l):
    """Precise and constant contours, sets, and anything: (d, l)."""
    sets = (rng.random((8, l)) < 0.5).astype(float)
    any_kind = rng.random((8, l)) * (rng.random((8, l)) < 0.7)
    table = np.vstack([np.eye(l), np.ones((1, l)), np.full((1, l), 0.4), sets, any_kind, 0.5 * np.eye(l)])
    return table[table.max(axis=1) > 0.0]


def random_counts(rng, table, m):
    """Counts (m, d) of all sizes, a few contours in each."""
    counts = rng.integers(1, rng.choice([2, 5, 30, 300, 10_000, 1_000_000], m)[:, None] + 1, (m, len(table)))
    counts[rng.random(counts.shape) < rng.choice([0.5, 0.8, 0.95], m)[:, None]] = 0
    l = table.shape[1]
    counts[: m // 4, l + 2 : -l] = 0  # precise and constant labels only
    return counts


@pytest.mark.parametrize("l", [2, 3, 4, 6])
@pytest.mark.parametrize("alpha", [0.0, 0.05, 0.8, 0.999, 1.0])
def test_outer_bounds_enclose_the_certified_interval(l, alpha):
    rng = np.random.default_rng([l, int(1000 * alpha)])
    table = random_table(rng, l)
    cells = Cells.of_dense(random_counts(rng, table, 400 if l < 6 else 100))
    solved = IntervalSolver(table, alpha).solve_cells(cells)
    lower, upper = IntervalSolver(table, alpha).enclose_cells(cells)
    assert (solved.gap <= 1e-6).all()
    assert (lower <= solved.lower).all()
    assert (upper >= solved.upper).all()
    assert (lower >= 0.0).all()
    assert (upper <= np.log2(l) + 1e-12).all()
    sharp = np.mean((solved.lower - lower < 0.1) & (upper - solved.upper < 1e-6))
    assert sharp > 0.6  # a bound that says nothing would enclose as well


def slow_class_end(n, N, alpha):
    """Greatest probability of a class with `n` of `N` labels by bracketing its profile likelihood."""
    p = n / N

    def above(t):
        value = -np.log(alpha)
        if n > 0:
            value += n * np.log(t / p)
        return value + (N - n) * np.log((1 - t) / (1 - p)) if n < N else value

    return 1.0 if n == N else brentq(above, p, 1.0 - 1e-16, xtol=1e-16, rtol=1e-15)


@pytest.mark.parametrize("alpha", [0.05, 0.8, 0.999])
def test_class_bounds_of_precise_labels(alpha):
    rng = np.random.default_rng(3)
    counts = np.maximum(rng.integers(-3, rng.choice([3, 30, 1_000, 100_000], 150)[:, None], (150, 4)), 0)
    counts = counts[counts.any(axis=1)]
    belief, plausibility = IntervalSolver(np.eye(4), alpha).bound_classes_cells(Cells.of_dense(counts))
    for row, low, high in zip(counts, belief, plausibility, strict=True):
        N = row.sum()
        slow_high = np.array([slow_class_end(n, N, alpha) for n in row])
        slow_low = np.array([1.0 - slow_class_end(N - n, N, alpha) for n in row])
        assert high == pytest.approx(slow_high, abs=1e-9)
        assert low == pytest.approx(slow_low, abs=1e-9)
        assert (high >= slow_high - 1e-14).all()
        assert (low <= slow_low + 1e-14).all()


@pytest.mark.parametrize("seed", range(60))
def test_the_curve_of_greatest_entropy_finds_what_the_convex_program_finds(seed):
    rng = np.random.default_rng(seed)
    l, free = int(rng.integers(1, 7)), int(rng.integers(0, 4))
    free = max(free, 1) if l == 1 else free
    n = np.sort(rng.integers(1, rng.choice([2, 3, 10, 100, 100_000]) + 1, l))[::-1].astype(float).copy()
    c = float(np.log(rng.choice(LEVELS)))
    bound, reached = greatest_entropy_of_counts(n, free, c, c, 1e-11, 100)
    rough, _ = greatest_entropy_of_counts(n, free, c, c, 1e-11, 1)
    theta = np.concatenate([n / n.sum(), np.zeros(free)])
    slow_bound, slow = greatest_entropy(np.eye(l, l + free) / theta[:l, None], n, c, c, theta)
    assert reached <= bound <= min(reached + 2e-11, rough + 1e-14)
    assert slow - 1e-9 <= reached <= slow_bound + 1e-9


@pytest.mark.parametrize(
    "n", [(1e9, 1e9 - 1, 3e8), (1e6, 1e6, 1e6), (1e8, 5.0, 1.0), (2e5, 1e5, 1e5, 7e4, 1.0)]
)
@pytest.mark.parametrize("alpha", [0.05, 0.8, 0.999])
def test_huge_counts(n, alpha):
    n, c = np.array(n), float(np.log(alpha))
    low, least = least_entropy_of_counts(n, c, c, 1e-11, 100)
    high, greatest = greatest_entropy_of_counts(n, 0, c, c, 1e-11, 100)
    p = n / n.sum()
    centre = -(p @ np.log(p))
    assert 0.0 <= low <= least <= low + 1e-9
    assert greatest <= high <= greatest + 1e-9
    # near the maximum of the likelihood the cut is an ellipsoid: H moves by +- sqrt(-2 c Var(ln p) / N)
    move = np.sqrt(-2 * c * (p @ np.log(p) ** 2 - centre**2) / n.sum())
    assert least <= centre <= greatest
    if move > 0.0 and n.min() > 1e4:
        assert greatest - centre == pytest.approx(move, rel=0.05, abs=1e-6)
        assert centre - least == pytest.approx(move, rel=0.05, abs=1e-6)
