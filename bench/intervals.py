"""Entropy intervals: problems a CPU second, beside what one would write with a general solver (no proof, local minima).

The rival is sequential quadratic programming (scipy's SLSQP with gradients) for the maximum and, from several starts,
the minimum. Both solve the same problems in the same process, in turn; CPU time, medians over repeats.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from _measure import times
from _report import Report, Row, axes, dots, options, reporting
from scipy.optimize import minimize

from quercus.trees.likelihood.cells import Cells
from quercus.trees.likelihood.interval import IntervalSolver, entropy_intervals
from quercus.trees.likelihood.maximiser import estimate

ALPHA = 0.8
STARTS = 8
GAP = 1e-6  # bits
NEAR_ONE = (
    1e-6,
    1e-7,
    1e-8,
    1e-9,
    1e-10,
    1e-12,
)  # 1 - α: levels at which rounding is nearly as large as the cut
HARD = (
    (0, 500, 7),
    (1, 500, 7),
    (145, 200, 5),
    (151, 50, 6),
    (159, 500, 7),
)  # the slowest: seed, rows, classes
BLOCK_S = 0.5  # a repeat goes on for so long, so that fast problems are not lost in the clock's grain


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


@dataclass(frozen=True)
class Work:
    """One kind of problem: labels, classes, distinct contours; least rate and the aim, where there are any."""

    name: str
    draw: Callable
    l: int
    n: int
    count: int
    rivals: int
    least: int = 0
    aim: int = 0


WORKS = (
    Work("true class first", true_class_first, 3, 20, 2_000, 10, 10_000, 50_000),
    Work("anything", random_contours, 3, 20, 2_000, 10, 10_000, 50_000),
    Work("precise", precise, 3, 20, 2_000, 10),
    Work("true class first", true_class_first, 7, 50, 300, 5, 2_000, 10_000),
    Work("anything", random_contours, 7, 50, 300, 5, 2_000, 10_000),
    Work("precise", precise, 7, 50, 300, 5),
    Work("precise", precise, 16, 200, 100, 3),
)


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


def block(solve, count: int) -> float:
    """Return the CPU seconds of one problem, from as many passes over all of them as fill a block."""
    started, passes = time.process_time(), 0
    while passes == 0 or time.process_time() - started < BLOCK_S:
        solve()
        passes += 1
    return (time.process_time() - started) / (passes * count)


def measure(report: Report, work: Work, repeats: int) -> tuple[float, float, float]:
    """Return problems a CPU second: ours one by one, ours over one table, the rival's."""
    rng = np.random.default_rng(1)
    problems = [
        (work.draw(rng, work.l, work.n), rng.integers(1, 10, work.n).astype(float)) for _ in range(work.count)
    ]
    ours, theirs = [], []

    def rival():
        for P, w in problems[: work.rivals]:
            with np.errstate(all="ignore"):
                with_slsqp(P, w, ALPHA)

    found = entropy_intervals(problems, ALPHA)
    for _ in range(repeats):
        ours.append(block(lambda: entropy_intervals(problems, ALPHA), work.count))
        theirs.append(block(rival, work.rivals))
    us, them = float(np.median(ours)), float(np.median(theirs))
    add(report, work, f"{work.name}, each of its own contours", us, float(found.gap.max()), them)
    cells, solver = cells_of(work, rng)
    gap = float(solver().solve_cells(cells).gap.max())
    shared = np.median([block(lambda: solver().solve_cells(cells), work.count) for _ in range(repeats)])
    add(report, work, f"{work.name}, all over one table, as a tree asks", float(shared), gap, them)
    return 1 / us, 1 / shared, 1 / them


def cells_of(work: Work, rng) -> tuple[Cells, Callable[[], IntervalSolver]]:
    """Return counts over one table of contours, and what makes a solver that has seen none of them."""
    table = work.draw(rng, work.l, work.n)
    table = np.unique(table, axis=0)
    start = np.arange(work.count + 1, dtype=np.int64) * len(table)
    ids = np.tile(np.arange(len(table), dtype=np.int32), work.count)
    counts = rng.integers(1, 10 if len(table) > 9 else 1_000, len(ids))  # of few contours few would differ
    return Cells(start, ids, counts), lambda: IntervalSolver(table, ALPHA)


def add(report: Report, work: Work, kind: str, us: float, gap: float, them: float) -> None:
    judged = bool(work.least)
    report.add(
        Row(
            f"entropy intervals, l = {work.l}, {work.n} rows, {kind}, α = {ALPHA}",
            f"{1 / us:,.0f}/s, largest gap {gap:.0e}",
            f"SLSQP × {STARTS} {1 / them:,.0f}/s",
            times(them / us),
            f"≥ {work.least:,}/s, aim {work.aim:,}/s, gap ≤ {GAP:g}" if judged else "",
            bool(1 / us >= work.least and gap <= GAP) if judged else None,
        )
    )


def measure_near_one(report: Report) -> None:
    """Find the slowest problem at levels near 1, where a search that fights rounding does not end."""
    problems = [
        (P / P.max(axis=1, keepdims=True), np.ones(len(P)))
        for P in (random_contours(np.random.default_rng(seed), l, n) for seed, n, l in HARD)
    ]
    entropy_intervals(problems, 1 - NEAR_ONE[0])  # loads what is needed
    seconds, gaps = [], []
    for rest in NEAR_ONE:
        for problem in problems:
            started = time.process_time()
            gaps.append(float(entropy_intervals([problem], 1 - rest).gap.max()))
            seconds.append(time.process_time() - started)
    report.add(
        Row(
            f"entropy intervals, {len(problems)} hard ones of 5 to 7 classes and 50 to 500 rows, α from "
            f"1 - {NEAR_ONE[0]:g} to 1 - {NEAR_ONE[-1]:g}, the slowest of {len(seconds)}",
            f"{max(seconds) * 1e3:.1f} ms, largest gap {max(gaps):.0e}",
        )
    )


def draw(report: Report, rates: dict[str, tuple[float, float, float]]) -> None:
    figure, (axis,) = axes()
    titles = (
        "Quercus, each of its own contours",
        "Quercus, all over one table",
        f"SLSQP × {STARTS}, no proof",
    )
    series = dict(zip(titles, zip(*rates.values(), strict=True), strict=True))
    dots(axis, list(rates), series, "intervals a CPU second")
    figure.legend(fontsize=6, loc="outside upper center", ncols=3)
    report.plot("intervals", figure)


def main() -> None:
    quick = options().quick
    with reporting("Entropy intervals, both ends, certified", ("scipy",), quick=quick) as report:
        rates = {
            f"{work.name}, {work.l} × {work.n}": measure(report, work, 1 if quick else 3) for work in WORKS
        }
        measure_near_one(report)
        draw(report, rates)


if __name__ == "__main__":
    main()
