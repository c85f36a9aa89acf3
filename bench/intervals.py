"""Entropy intervals: problems a CPU second, beside what one would write with a general solver (no proof, local minima).

The rival is sequential quadratic programming (scipy's SLSQP with gradients) for the maximum and, from several starts,
the minimum. Both solve the same problems in the same process, in turn; CPU time, medians over repeats.
"""

import time

import numpy as np
from _report import report
from scipy.optimize import minimize

from quercus.trees.interval import entropy_intervals, prepare
from quercus.trees.likelihood import estimate

ALPHA = 0.8
STARTS = 8
REPEATS = 3


def random_contours(rng, l, n):
    """Plausibilities of any kind: nothing is sure."""
    return rng.random((n, l))


def true_class_first(rng, l, n):
    """The true class at 1, others below: what sensors and people say."""
    P = np.where(rng.random((n, l)) < 0.5, 0.0, rng.random((n, l)))
    P[np.arange(n), rng.integers(l, size=n)] = 1.0
    return P


def precise(rng, l, n):
    return np.eye(l)[rng.integers(l, size=n)]


def with_slsqp(P, w, alpha):
    """Both ends by a general solver."""
    theta = estimate(P, w).theta
    level = np.log(P @ theta) @ w + np.log(alpha)
    constraints = [
        {"type": "eq", "fun": lambda x: x.sum() - 1, "jac": np.ones_like},
        {
            "type": "ineq",
            "fun": lambda x: np.log(np.maximum(P @ x, 1e-300)) @ w - level,
            "jac": lambda x: (w / np.maximum(P @ x, 1e-300)) @ P,
        },
    ]

    def solve(start, sign):
        def objective(x):
            x = np.maximum(x, 1e-12)
            return -sign * np.sum(x * np.log2(x)), -sign * (np.log2(x) + 1 / np.log(2))

        return minimize(
            objective, start, jac=True, method="SLSQP", bounds=[(0, 1)] * len(start), constraints=constraints
        ).fun

    rng = np.random.default_rng(0)
    starts = rng.dirichlet(np.ones(len(theta)), STARTS)
    return min(solve(start, 1) for start in starts), -solve(np.full(len(theta), 1 / len(theta)), -1)


def measure(name, draw, l, n, count, rival_count):
    rng = np.random.default_rng(1)
    problems = [(draw(rng, l, n), rng.integers(1, 10, n).astype(float)) for _ in range(count)]
    ours, theirs, found = [], [], None
    for _ in range(REPEATS):
        started = time.process_time()
        found = entropy_intervals(problems, ALPHA)
        ours.append((time.process_time() - started) / count)
        started = time.process_time()
        for P, w in problems[:rival_count]:
            with np.errstate(all="ignore"):
                with_slsqp(P, w, ALPHA)
        theirs.append((time.process_time() - started) / rival_count)
    us, them = np.median(ours), np.median(theirs)
    return (
        name,
        f"{l}",
        f"{n}",
        f"{1 / us:,.0f}",
        f"{1 / them:,.0f}",
        f"{them / us:,.0f}",
        f"{found.gap.max():.0e}",
    )


if __name__ == "__main__":
    prepare()
    rows = [
        measure("true class first", true_class_first, 3, 20, 500, 10),
        measure("anything", random_contours, 3, 20, 500, 10),
        measure("precise", precise, 3, 20, 500, 10),
        measure("true class first", true_class_first, 7, 50, 100, 5),
        measure("anything", random_contours, 7, 50, 50, 5),
        measure("precise", precise, 16, 200, 100, 3),
    ]
    report(
        f"Entropy intervals at α = {ALPHA}: both ends, certified",
        ("numpy", "scipy", "numba"),
        ("labels", "classes", "rows", "Quercus /s", f"SLSQP × {STARTS} /s", "ratio", "largest gap, bits"),
        rows,
    )
