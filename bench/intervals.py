"""Entropy intervals, certified: problems a CPU second, beside what one would write with a general solver (no proof).

The rival is sequential quadratic programming (scipy's SLSQP with gradients) for the maximum and, from eight starts, the
minimum. Both solve the same problems in the same process, in turn; CPU time, medians over repeats. Each problem has
contours of its own: drawn ones, in which the true class is at 1 and others below, as sensors and people say it, and
those of 50 pictures of dogs, as people labelled them. Hard ones are those at levels near 1, where a search that fights
rounding does not end.
"""

import time
from collections.abc import Callable

import numpy as np
from _data import real_sets
from _measure import times
from _report import Report, Row, options, reporting
from scipy.optimize import minimize

from quercus.belief.arrays import Floats
from quercus.trees.likelihood.interval import entropy_intervals
from quercus.trees.likelihood.maximiser import estimate

ALPHA = 0.8  # the default level
STARTS = 8
GAP = 1e-6  # bits
NEAR_ONE = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)  # 1 - α
HARD = (
    (0, 500, 7),
    (1, 500, 7),
    (145, 200, 5),
    (151, 50, 6),
    (159, 500, 7),
)  # the slowest: seed, rows, classes
BLOCK_S = 0.5  # a repeat goes on for so long, so that fast problems are not lost in the clock's grain
DRAWN = (
    (3, 20, 2_000, 10, 10_000),
    (7, 50, 300, 5, 2_000),
)  # classes, rows, problems, rival's, least a second

Problems = list[tuple[Floats, Floats]]


def true_class_first(rng: np.random.Generator, classes: int, rows: int) -> Floats:
    P = np.where(rng.random((rows, classes)) < 0.5, 0.0, rng.random((rows, classes)))
    P[np.arange(rows), rng.integers(classes, size=rows)] = 1.0
    return P


def with_slsqp(P: Floats, w: Floats) -> tuple[float, float]:
    """Both ends by a general solver."""
    theta = estimate(P, w).theta
    level = np.log(P @ theta) @ w + np.log(ALPHA)
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


def block(solve: Callable[[], object], count: int) -> float:
    """Return the CPU seconds of one problem, from as many passes over all of them as fill a block."""
    started, passes = time.process_time(), 0
    while passes == 0 or time.process_time() - started < BLOCK_S:
        solve()
        passes += 1
    return (time.process_time() - started) / (passes * count)


def measure(report: Report, name: str, problems: Problems, rivals: int, repeats: int, least: int = 0) -> None:
    def rival() -> None:
        for P, w in problems[:rivals]:
            with np.errstate(all="ignore"):
                with_slsqp(P, w)

    gap = float(entropy_intervals(problems, ALPHA).gap.max())
    taken = [
        (block(lambda: entropy_intervals(problems, ALPHA), len(problems)), block(rival, rivals))
        for _ in range(repeats)
    ]
    us, them = np.median(taken, axis=0)
    report.add(
        Row(
            f"certified entropy intervals: {name}, α = {ALPHA}",
            f"{1 / us:,.0f}/s, largest gap {gap:.0e} bits",
            f"SLSQP × {STARTS}, no proof, {1 / them:,.0f}/s",
            times(them / us),
            f"≥ {least:,}/s, gap ≤ {GAP:g}" if least else "",
            bool(1 / us >= least and gap <= GAP) if least else None,
        )
    )


def drawn(classes: int, rows: int, count: int) -> Problems:
    rng = np.random.default_rng(1)
    return [
        (true_class_first(rng, classes, rows), rng.integers(1, 10, rows).astype(float)) for _ in range(count)
    ]


def of_pictures(masses, rows: int, count: int) -> Problems:
    """Return problems of rows that are drawn from those whose labels are masses."""
    contours = np.array([mass.contour() for mass in masses])
    rng = np.random.default_rng(1)
    return [(contours[rng.choice(len(contours), rows, replace=False)], np.ones(rows)) for _ in range(count)]


def measure_near_one(report: Report) -> None:
    """Find the slowest problem at levels near 1."""
    problems = []
    for seed, rows, classes in HARD:
        P = np.random.default_rng(seed).random((rows, classes))
        problems.append((P / P.max(axis=1, keepdims=True), np.ones(rows)))
    seconds, gaps = [], []
    for rest in NEAR_ONE:
        for problem in problems:
            started = time.process_time()
            gaps.append(float(entropy_intervals([problem], 1 - rest).gap.max()))
            seconds.append(time.process_time() - started)
    report.note(
        f"{len(HARD)} hard intervals of 5 to 7 classes and 50 to 500 rows, α from 1 - {NEAR_ONE[0]:g} to "
        f"1 - {NEAR_ONE[-1]:g}: the slowest of {len(seconds)} takes {max(seconds) * 1e3:.1f} ms, the largest gap is "
        f"{max(gaps):.0e} bits."
    )


def main() -> None:
    quick = options().quick
    repeats = 1 if quick else 3
    with reporting("Entropy intervals", ("scipy",), quick=quick) as report:
        for classes, rows, count, rivals, least in DRAWN:
            name = f"{classes} classes, {rows} labels, drawn"
            measure(report, name, drawn(classes, rows, count), rivals, repeats, least)
        for data in real_sets(report, ["credal_dog7"]):
            name = f"{len(data.classes)} breeds, 50 pictures as people labelled them"
            measure(report, name, of_pictures(data.masses, 50, 300), 5, repeats)
        measure_near_one(report)


if __name__ == "__main__":
    main()
