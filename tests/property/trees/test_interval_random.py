"""Six hundred random interval problems against independent slow computations (theory §2.3)."""

import numpy as np
import pytest
from scipy.optimize import minimize

from quercus.trees.likelihood.interval import entropy_interval
from quercus.trees.likelihood.maximiser import estimate

CASES = 600
CHUNKS = 12
ALPHAS = (0.05, 0.2, 0.5, 0.8, 0.9, 0.99, 1.0)
KINDS = (
    "any",
    "sets",
    "zeros",
    "precise",
    "half vacuous",
    "all vacuous",
    "contradictory",
    "subnormal",
    "one row",
)


def random_problem(rng):
    """Contours (n, l), weights (n,), alpha."""
    l, n = int(rng.integers(2, 8)), int(rng.integers(1, 101))
    kind = KINDS[rng.integers(len(KINDS))]
    P = rng.random((n, l))
    if kind == "sets":
        P = (P > 0.5).astype(float)
    elif kind == "zeros":
        P = np.where(rng.random((n, l)) < 0.4, 0.0, P)
    elif kind == "precise":
        P = np.eye(l)[rng.integers(l, size=n)]
    elif kind == "half vacuous":
        P[rng.random(n) < 0.5] = 1.0
    elif kind == "all vacuous":
        P[:] = 1.0
    elif kind == "contradictory":
        P = np.where(rng.random((n, l)) < 0.05, 0.3, np.eye(l)[rng.integers(l, size=n)])
    elif kind == "subnormal":
        P *= rng.random((n, 1)) * 0.2
    elif kind == "one row":
        P = P[:1]
    P = P[P.max(axis=1) > 0]
    if len(P) == 0:
        return random_problem(rng)
    return P, rng.integers(1, 20, len(P)).astype(float), float(rng.choice(ALPHAS))


def loglik(P, w, theta):
    with np.errstate(divide="ignore"):
        return np.log(theta @ P.T) @ w


def entropy(theta):
    return -np.sum(theta * np.log2(np.where(theta > 0, theta, 1.0)), axis=-1)


def boundary_points(rng, P, w, level, centre, m=400):
    """Points of the level set: random points of all faces of the simplex, pulled towards the centre until inside."""
    l = P.shape[1]
    ends = rng.dirichlet(np.full(l, 0.4), m) * (rng.random((m, l)) < 0.7)
    ends = np.vstack([np.eye(l), np.full((1, l), 1 / l), ends[ends.sum(axis=1) > 0]])
    ends /= ends.sum(axis=1, keepdims=True)
    low, high = np.zeros(len(ends)), np.ones(len(ends))
    for step in range(50):
        t = high if step == 0 else (low + high) / 2
        inside = loglik(P, w, centre + t[:, None] * (ends - centre)) >= level
        low, high = np.where(inside, t, low), np.where(inside, high, t)
    return centre + low[:, None] * (ends - centre)


def slow_end(P, w, level, centre, start, sign):
    """Least (sign 1) or greatest (sign -1) entropy by sequential quadratic programming: a feasible value."""

    def objective(x):
        x = np.maximum(x, 1e-12)
        return -sign * np.sum(x * np.log2(x)), -sign * (np.log2(x) + 1 / np.log(2))

    found = minimize(
        objective,
        start,
        jac=True,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints=[
            {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
            {
                "type": "ineq",
                "fun": lambda x: np.log(np.maximum(P @ x, 1e-300)) @ w - level,
                "jac": lambda x: (w / np.maximum(P @ x, 1e-300)) @ P,
            },
        ],
        options={"maxiter": 200, "ftol": 1e-12},
    )
    x = np.maximum(found.x, 0)
    x /= x.sum()
    low, high = 0.0, 1.0
    for step in range(60):  # back into the level set
        t = high if step == 0 else (low + high) / 2
        low, high = (t, high) if loglik(P, w, centre + t * (x - centre)) >= level else (low, t)
    return float(entropy(np.maximum(centre + low * (x - centre), 0)))


@pytest.mark.filterwarnings("ignore:Values in x were outside bounds:RuntimeWarning")
@pytest.mark.parametrize("seed", range(CHUNKS))
def test_random_problems(seed):
    rng = np.random.default_rng([2016, seed])
    for case in range(CASES // CHUNKS):
        P, w, alpha = random_problem(rng)
        found = entropy_interval(P, w, alpha)
        where = f"seed {seed} case {case} alpha {alpha} shape {P.shape}: {found}"
        theta = estimate(P, w).theta
        v = P @ theta
        assert ((w / v) @ P / w.sum()).max() <= 1 + 1e-9, f"theta is not a maximiser; {where}"
        assert found.gap <= 1e-6, where
        assert 0 <= found.lower <= found.upper <= np.log2(P.shape[1]) + 1e-12, where
        level = loglik(P, w, theta) + np.log(alpha)
        if alpha == 1.0:
            assert found.lower - 1e-6 <= entropy(theta) <= found.upper + 1e-6, where
            continue
        points = boundary_points(rng, P, w, level, theta)
        sampled = entropy(points)
        assert sampled.min() >= found.lower - 1e-9, where
        assert sampled.max() <= found.upper + 1e-9, where
        order = np.argsort(sampled)
        least, greatest = sampled[order[0]], sampled[order[-1]]
        for start in points[np.append(order[:60:6], rng.permutation(len(order)))][:150]:
            if least <= found.lower + found.gap + 1e-6:
                break
            least = min(least, slow_end(P, w, level, theta, start, 1))
        for start in points[order[:-30:-6]]:
            if greatest >= found.upper - found.gap - 1e-6:
                break
            greatest = max(greatest, slow_end(P, w, level, theta, start, -1))
        assert found.lower - 1e-9 <= least <= found.lower + found.gap + 1e-6, where
        assert found.upper - found.gap - 1e-6 <= greatest <= found.upper + 1e-9, where
