"""Learning stream B, ten numbers: Quercus by equal-width bins and by thresholds, River and scikit-learn by thresholds.

Nothing is asked for here; it shows what bins cost and gain. Otherwise as `growth`.
"""

from dataclasses import replace

import numpy as np
from _measure import rate, times
from _peers import Run, best_refit, run_quercus, run_river
from _report import Report, Row, options, reporting
from _streams import STOPPING, dictionaries, hold_out, numeric, precise, train
from river.tree import HoeffdingTreeClassifier

STREAM = numeric()
BINS = (4, 8, 16)
CUTS = (32, 64)  # candidate thresholds, quantiles of the first rows
DEEP = 20  # at thresholds a test has two branches: also with as much depth as that takes
LEVELS = (1.0, 0.8)
EVERY = 10_000


def model(alpha: float, depth: int = STOPPING["max_depth"], **numbers: int):
    spec = STREAM.specification(alpha=alpha, **STOPPING | {"max_depth": depth}, warmup_rows=1_000)
    return replace(spec, attributes=tuple(replace(attribute, **numbers) for attribute in spec.attributes))


def models() -> dict:
    found = {f"{bins} bins, α = {alpha:g}": model(alpha, bins=bins) for bins in BINS for alpha in LEVELS}
    for depth in (STOPPING["max_depth"], DEEP):
        for cuts in CUTS:
            for alpha in LEVELS:
                found[f"{cuts} cuts, depth {depth}, α = {alpha:g}"] = model(alpha, depth, cuts=cuts)
    return found


def measure(report: Report, n: int, repeats: int, test) -> None:
    X, y = train(STREAM, n)
    contours = precise(y, STREAM.classes)
    sizes = [size for size in (1_000, 10_000, 100_000) if size < n] + [n]
    looks = {*sizes, *range(EVERY, n + 1, EVERY)}
    rows, labels = dictionaries(X), y.tolist()
    held = (dictionaries(test[0]), test[1])
    kinds = models()
    runs: dict = {kind: [] for kind in kinds}
    river: list[Run] = []
    for _ in range(repeats):
        river.append(run_river(HoeffdingTreeClassifier, rows, labels, sizes, held))
        for kind, spec in kinds.items():
            runs[kind].append(run_quercus(spec, X, contours, looks, test))
    refits = [best_refit(X[:size], y[:size], test) for size in sizes]
    peer = f"River HoeffdingTree {rate(n, _seconds(river))}, {_accuracies(river[0], sizes)}; scikit-learn "
    peer += " / ".join(f"{accuracy:.3f}" for accuracy, _, _ in refits)
    for kind, taken in runs.items():
        report.add(
            Row(
                f"stream B, learn {n:,} rows, {kind}, precise; accuracy after "
                + " / ".join(f"{size:,}" for size in sizes),
                f"{rate(n, _seconds(taken))}, {_accuracies(taken[0], sizes)}",
                peer,
                times(_seconds(river) / _seconds(taken)),
            )
        )


def _seconds(runs: list[Run]) -> float:
    return float(np.median([run.seconds for run in runs]))


def _accuracies(run: Run, sizes: list[int]) -> str:
    return " / ".join(f"{run.accuracy[size]:.3f}" for size in sizes)


def main() -> None:
    quick = options().quick
    test = hold_out(STREAM, 4_000 if quick else 20_000)
    with reporting("Growth on stream B", ("scikit-learn", "river"), quick=quick) as report:
        X, y = train(STREAM, 20_000)
        for alpha in LEVELS:  # loads what is needed
            for numbers in ({"bins": 4}, {"cuts": 8}):
                run_quercus(model(alpha, **numbers), X, precise(y, STREAM.classes), (1_000, 20_000))
        measure(report, 20_000 if quick else 100_000, 1 if quick else 3, test)


if __name__ == "__main__":
    main()
