"""The cost of growth by rows, attributes, classes and distinct contours: fitted exponents and a plot.

Rows come in batches of 1,000; CPU seconds. The whole tree is looked at every 10,000 rows, or once, at the end. An
exponent of 1 for the rows means that a row costs the same in a long stream as in a short one. The cost of a look
depends on the changes since the last one. If only noise is left to split, two attributes overtake each other more often
with more looks, and the subtrees below them are grown again.
"""

from collections.abc import Callable, Sequence
from unittest.mock import patch

import numpy as np
from _measure import Clock
from _peers import run_quercus
from _report import Report, Row, axes, options, reporting
from _streams import (
    STOPPING,
    TRAIN_SEED,
    UNLIMITED,
    batches,
    doubtful,
    nominal,
    numeric,
    precise,
    soft,
    train,
)

from quercus.trees.growth.incremental.growing import GrowingTree
from quercus.trees.growth.stream import GrowthState, Observed, grow

EVERY = 10_000
NEVER = 2**31  # so many rows that there is no look but the one at the end
WARM = 30_000  # rows of the run that is not measured: several looks
LIMIT_S = 60.0  # a line of points ends after one that took longer
LINEAR = 1.05  # an exponent up to this one counts as linear: what is left is the noise of a fit

CARRIED = ("node-rows", "of them at large nodes that are new", "rows below nodes whose split changed")

Cost = Callable[[int], float]


def of_rows(stream, alpha: float, contours, every: int = EVERY, stopping=STOPPING) -> Cost:
    """Return the cost of n rows, drawn in chunks so that their number does not show in the memory."""
    spec = stream.specification(alpha=alpha, **stopping)

    def cost(n: int) -> float:
        rng, clock, state = np.random.default_rng(TRAIN_SEED), Clock(), GrowthState.initial(spec)
        for start in range(0, n, EVERY):
            X, y = stream.draw(rng, min(EVERY, n - start))
            for batch in batches(X, contours(y, stream.classes)):
                with clock:
                    state = grow(state, [batch])
            seen = start + len(X)
            with clock:
                assert (seen % every and seen < n) or state.flat.size
        return clock.seconds

    return cost


def carried(n: int) -> dict[int, dict[str, float]]:
    """Return what a look on stream A at α = 1 takes up, mean over the looks before each tenth of n rows."""
    stream, rng, seen = nominal(), np.random.default_rng(TRAIN_SEED), dict.fromkeys(CARRIED, 0)
    state, found = GrowthState.initial(stream.specification(alpha=1.0, **STOPPING)), {}
    level, large, exchange = (
        GrowingTree._decide_level,
        GrowingTree._decide_large,
        GrowingTree._exchange_subtrees,
    )

    def counted_level(tree, changes):
        seen[CARRIED[0]] += changes.rows.size
        return level(tree, changes)

    def counted_large(tree, changes):
        nodes, here = tree.nodes, changes.nodes
        new = (nodes.block[here] < 0) & (nodes.depth[here] < STOPPING["max_depth"])
        seen[CARRIED[1]] += int(np.diff(changes.start)[new].sum())
        return large(tree, changes)

    def counted_exchange(tree, changes, chosen, *rest):
        seen[CARRIED[2]] += int(tree.nodes.count[changes.nodes[chosen]].sum())
        return exchange(tree, changes, chosen, *rest)

    with patch.multiple(
        GrowingTree,
        _decide_level=counted_level,
        _decide_large=counted_large,
        _exchange_subtrees=counted_exchange,
    ):
        for rows in range(EVERY, n + 1, EVERY):
            X, y = stream.draw(rng, EVERY)
            state = grow(state, [Observed(X, precise(y, stream.classes))])
            assert state.flat.size
            if rows % (n // 10) == 0:
                found[rows] = {name: total * EVERY * 10 / n for name, total in seen.items()}
                seen.update(dict.fromkeys(CARRIED, 0))
    return found


def of_batch(stream, n, alpha, contours) -> float:
    X, y = train(stream, n)
    spec = stream.specification(alpha=alpha, **STOPPING)
    looks = {*range(EVERY, n, EVERY), n}
    return run_quercus(spec, X, contours(y, stream.classes), looks).seconds


def of_attributes(n: int) -> Cost:
    return lambda count: of_batch(nominal(attributes=count), n, 0.8, precise)


def of_classes(n: int) -> Cost:
    return lambda count: of_batch(nominal(classes=count), n, 0.8, doubtful)


def of_contours(n: int) -> Cost:
    return lambda count: of_batch(nominal(), n, 0.8, lambda y, classes: soft(y, classes, count))


def line(cost: Cost, sizes: Sequence[int]) -> dict[int, float]:
    """Return the cost at each size, as far as the limit allows."""
    cost(WARM if WARM in sizes else sizes[0])  # compiles what is needed
    found: dict[int, float] = {}
    for size in sizes:
        found[size] = cost(size)
        if found[size] > LIMIT_S:
            break
    return found


def exponent(found: dict[int, float]) -> float:
    """Return the slope of log cost over log size."""
    if len(found) < 2:
        return float("nan")
    sizes, seconds = np.log(np.array(list(found.items()))).T
    return float(np.polyfit(sizes, seconds, 1)[0])


def slope(panel: str, costs: dict[int, float]) -> float:
    """Return the exponent that counts: for rows, of the last decade; before it the tree still grows."""
    return exponent(last_decade(costs)) if panel.startswith("rows") else exponent(costs)


def last_decade(found: dict[int, float]) -> dict[int, float]:
    return {size: seconds for size, seconds in found.items() if size >= max(found) / 10}


def measure(report: Report, quick: bool) -> dict[str, dict[str, dict[int, float]]]:
    """Return the costs by panel and line, and add a row for each line."""
    rows = (
        (1_000, 3_000, 10_000, 30_000)
        if quick
        else (1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000)
    )
    n = 5_000 if quick else 20_000
    evidence = 1_000 if quick else 5_000
    panels = {
        "rows": {
            "A, α = 1, precise": (of_rows(nominal(), 1.0, precise), rows),
            "A, α = .8, precise": (of_rows(nominal(), 0.8, precise), rows),
            "A, α = .8, half vacuous, a quarter sets": (of_rows(nominal(), 0.8, doubtful), rows),
            "B (4 bins), α = .8, precise": (of_rows(numeric(), 0.8, precise), rows),
            "A, α = 1, no limit of depth": (of_rows(nominal(), 1.0, precise, stopping=UNLIMITED), rows),
        },
        "rows, one look": {
            "A, α = 1, precise": (of_rows(nominal(), 1.0, precise, NEVER), rows),
            "A, α = .8, precise": (of_rows(nominal(), 0.8, precise, NEVER), rows),
            "A, α = .8, half vacuous, a quarter sets": (of_rows(nominal(), 0.8, doubtful, NEVER), rows),
            "A, α = 1, no limit of depth": (of_rows(nominal(), 1.0, precise, NEVER, UNLIMITED), rows),
        },
        "attributes": {f"{n:,} rows, α = .8, precise": (of_attributes(n), (5, 10, 20, 40, 80))},
        "classes": {f"{n:,} rows, α = .8, half vacuous, a quarter sets": (of_classes(n), (2, 3, 4, 5, 6, 7))},
        "distinct contours": {
            f"{evidence:,} rows, α = .8, l = 3": (of_contours(evidence), (6, 12, 25, 50, 100, 200))
        },
    }
    found: dict[str, dict[str, dict[int, float]]] = {}
    for panel, lines in panels.items():
        found[panel] = {}
        for name, (cost, sizes) in lines.items():
            costs = found[panel][name] = line(cost, sizes)
            add(report, panel, name, costs, sizes)
    return found


def add(report: Report, panel: str, name: str, costs: dict[int, float], sizes: Sequence[int]) -> None:
    first, last = min(costs), max(costs)
    judged = panel.startswith("rows")
    found = slope(panel, costs)
    where = f" in the last decade, {exponent(costs):.2f} in all" if judged else ""
    report.add(
        Row(
            f"cost of growth against {panel}: {name}",
            f"{costs[first]:.3g} s at {first:,}, {costs[last]:.3g} s at {last:,}",
            "",
            f"exponent {found:.2f}{where}",
            "no worse than linear" if judged else "",
            bool(found <= LINEAR) if judged else None,
        )
    )
    if last != sizes[-1]:
        report.note(f"{panel}, {name}: no point after {last:,}, which took more than {LIMIT_S:g} s.")


def draw(report: Report, found: dict[str, dict[str, dict[int, float]]]) -> None:
    figure, panels = axes(len(found))
    for axis, (panel, lines) in zip(panels, found.items(), strict=True):
        for name, costs in lines.items():
            axis.plot(
                list(costs),
                list(costs.values()),
                "o-",
                markersize=4,
                label=f"{name}: exponent {slope(panel, costs):.2f}",
            )
        axis.set(xscale="log", yscale="log", xlabel=panel, ylabel="CPU seconds")
        axis.xaxis.minorticks_off()
        sizes = sorted({size for costs in lines.values() for size in costs})
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes], fontsize=8)
        axis.grid(alpha=0.3)
        axis.legend(fontsize=7)
    report.plot("scaling", figure)


def main() -> None:
    quick = options().quick
    with reporting("How the cost grows", (), quick=quick) as report:
        draw(report, measure(report, quick))
        for rows, means in carried(100_000 if quick else 1_000_000).items():
            text = ", ".join(f"{mean:,.0f} {name}" for name, mean in means.items())
            report.note(f"A look, α = 1, precise, mean of those before {rows:,} rows: {text}.")


if __name__ == "__main__":
    main()
