"""Learning stream B, ten numbers: Quercus cuts them into equal-width bins, River and scikit-learn look for thresholds.

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
LEVELS = (1.0, 0.8)
EVERY = 10_000


def model(bins: int, alpha: float):
    spec = STREAM.specification(alpha=alpha, **STOPPING, warmup_rows=1_000)
    return replace(spec, attributes=tuple(replace(attribute, bins=bins) for attribute in spec.attributes))


def measure(report: Report, n: int, repeats: int, test) -> None:
    X, y = train(STREAM, n)
    contours = precise(y, STREAM.classes)
    sizes = [size for size in (1_000, 10_000, 100_000) if size < n] + [n]
    looks = {*sizes, *range(EVERY, n + 1, EVERY)}
    rows, labels = dictionaries(X), y.tolist()
    held = (dictionaries(test[0]), test[1])
    kinds = {(bins, alpha): model(bins, alpha) for bins in BINS for alpha in LEVELS}
    runs: dict = {kind: [] for kind in kinds}
    river: list[Run] = []
    for _ in range(repeats):
        river.append(run_river(HoeffdingTreeClassifier, rows, labels, sizes, held))
        for kind, spec in kinds.items():
            runs[kind].append(run_quercus(spec, X, contours, looks, test))
    refits = [best_refit(X[:size], y[:size], test) for size in sizes]
    peer = f"River HoeffdingTree {rate(n, _seconds(river))}, {_accuracies(river[0], sizes)}; scikit-learn "
    peer += " / ".join(f"{accuracy:.3f}" for accuracy, _, _ in refits)
    for (bins, alpha), taken in runs.items():
        report.add(
            Row(
                f"stream B, learn {n:,} rows, {bins} bins, α = {alpha:g}, precise; accuracy after "
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
    with reporting("Growth on stream B", ("numba", "scikit-learn", "river"), quick=quick) as report:
        X, y = train(STREAM, 20_000)
        for alpha in LEVELS:  # compiles what is needed
            run_quercus(model(4, alpha), X, precise(y, STREAM.classes), (1_000, 20_000))
        measure(report, 20_000 if quick else 100_000, 1 if quick else 3, test)


if __name__ == "__main__":
    main()
