"""Learning stream A: Quercus keeps the exact tree, River an approximate one, scikit-learn starts over.

Quercus takes batches of 1,000 rows through `trees.stream` and is asked for its whole tree every 10,000 rows; River
learns row by row. CPU time of one core, runs in turn, medians. One stopping rule for all sizes: see `_peers`.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from _measure import rate, times
from _peers import Run, best_refit, run_quercus, run_river
from _report import Report, Row, axes, dots, options, reporting
from _streams import STOPPED, STOPPING, UNLIMITED, dictionaries, doubtful, hold_out, nominal, precise, train
from river import tree

STREAM = nominal()
KINDS = {  # name: level, labels, least ratio to River, aim
    "α = 1, precise labels": (1.0, precise, 10.0, None),
    "α = .8, precise labels": (0.8, precise, 1.0, 4.0),
    "α = .8, half vacuous, a quarter set-valued": (0.8, doubtful, None, None),
}


def rivers() -> dict[str, Callable[[], object]]:
    """Return River's single trees, by name, told which attributes are nominal."""
    names = [f"a{k}" for k in range(STREAM.attributes)]
    return {
        "HoeffdingTree": partial(tree.HoeffdingTreeClassifier, nominal_attributes=names),
        "EFDT": partial(tree.ExtremelyFastDecisionTreeClassifier, nominal_attributes=names),
        "HoeffdingAdaptiveTree": partial(
            tree.HoeffdingAdaptiveTreeClassifier, nominal_attributes=names, seed=0
        ),
    }


def measure_rates(X, y, every, repeats) -> tuple[dict[str, float], float]:
    """Return CPU seconds of each kind, and of River's HoeffdingTree, medians of runs in turn."""
    looks = range(every, len(X) + 1, every)
    rows, labels = dictionaries(X), y.tolist()
    taken: dict[str, list[float]] = {name: [] for name in (*KINDS, "HoeffdingTree")}
    for _ in range(repeats):
        taken["HoeffdingTree"].append(run_river(rivers()["HoeffdingTree"], rows, labels).seconds)
        for name, (alpha, contours, _, _) in KINDS.items():
            taken[name].append(run_quercus(model(alpha), X, contours(y, STREAM.classes), looks).seconds)
    medians = {name: float(np.median(seconds)) for name, seconds in taken.items()}
    return medians, medians.pop("HoeffdingTree")


def model(alpha: float):
    return STREAM.specification(alpha=alpha, **STOPPING)


def measure_accuracy(X, y, sizes, test) -> dict[str, Run]:
    """Return accuracies after each of `sizes` rows, of Quercus and of River."""
    runs = {
        name: run_quercus(model(alpha), X, contours(y, STREAM.classes), sizes, test)
        for name, (alpha, contours, _, _) in KINDS.items()
    }
    rows, held = dictionaries(X), (dictionaries(test[0]), test[1])
    for name, make in rivers().items():
        print(f"  learning with River {name} ...", flush=True)
        runs[name] = run_river(make, rows, y.tolist(), sizes, held)
    return runs


def rate_rows(report: Report, n: int, seconds: dict[str, float], river: float) -> None:
    plain = seconds["α = .8, precise labels"]
    for name, (_, _, least, aim) in KINDS.items():
        ratio = river / seconds[name]
        target = (
            f"≥ {least:g} ×" if least else f"≤ 2 × the time of the row above: {seconds[name] / plain:.2f} ×"
        )
        reached = ratio >= least if least else seconds[name] <= 2 * plain
        report.add(
            Row(
                f"learn {n:,} rows, {name}",
                rate(n, seconds[name]),
                f"River HoeffdingTree {rate(n, river)}",
                times(ratio),
                target + (f", aim {aim:g} ×" if aim else ""),
                reached,
            )
        )


def accuracy_rows(report: Report, runs: dict[str, Run], refits: dict[int, tuple[float, int, float]]) -> None:
    for size, (accuracy, least, seconds) in refits.items():
        peers = {name: runs[name].accuracy[size] for name in rivers()}
        best = max(peers, key=peers.__getitem__)
        for name, (_, contours, _, _) in KINDS.items():
            ours = runs[name].accuracy[size]
            asked = (
                contours is precise
            )  # the peers learn from precise labels, so the others cannot be held to them
            report.add(
                Row(
                    f"hold-out accuracy after {size:,} rows, {name}, {STOPPED}",
                    f"{ours:.4f}",
                    f"River {best} {peers[best]:.4f}; scikit-learn {accuracy:.4f} "
                    f"(min_samples_leaf {least}, refit {seconds * 1e3:.0f} ms)",
                    f"{ours - peers[best]:+.4f}; {ours - accuracy:+.4f}",
                    "≥ River's best; ≥ scikit-learn's best - .01" if asked else "",
                    bool(ours >= peers[best] and ours >= accuracy - 0.01) if asked else None,
                )
            )


def draw(report: Report, runs: dict[str, Run], refits, seconds: dict[str, float], n: int) -> None:
    figure, (left, right) = axes(2)
    for name, run in runs.items():
        style = "o-" if name in KINDS else "s--"
        left.plot(list(run.accuracy), list(run.accuracy.values()), style, label=name, markersize=4)
    left.plot(
        list(refits), [accuracy for accuracy, _, _ in refits.values()], "k^:", label="scikit-learn, refit"
    )
    left.set(xscale="log", xlabel="rows", ylabel="hold-out accuracy", title="Stream A")
    left.legend(fontsize=7, loc="lower right")
    left.grid(alpha=0.3)
    rates = {name: n / taken for name, taken in seconds.items()}
    rates |= {name: n / runs[name].seconds for name in rivers()}
    dots(right, list(rates), {"": list(rates.values())}, "rows a CPU second")
    right.set_title(f"Learning {n:,} rows")
    report.plot("growth", figure)


def main() -> None:
    quick = options().quick
    n, every, repeats = (20_000, 5_000, 1) if quick else (100_000, 10_000, 3)
    sizes = (1_000, 10_000, n)
    X, y = train(STREAM, n)
    test = hold_out(STREAM, 4_000 if quick else 20_000)
    with reporting("Growth on stream A", ("scikit-learn", "river"), quick=quick) as report:
        for alpha, contours, _, _ in KINDS.values():  # loads what is needed
            run_quercus(model(alpha), X, contours(y, STREAM.classes), (1_000, n))
        seconds, river = measure_rates(X, y, every, repeats)
        rate_rows(report, n, seconds, river)
        runs = measure_accuracy(X, y, sizes, test)
        free = run_quercus(
            STREAM.specification(alpha=1.0, **UNLIMITED), X, precise(y, STREAM.classes), sizes, test
        )
        figures = ", ".join(f"{accuracy:.4f}" for accuracy in free.accuracy.values())
        report.note(f"Accuracy at α = 1 without the limit of depth: {figures}; {free.nodes:,} nodes.")
        for name in rivers():
            report.note(f"River {name}: {rate(n, runs[name].seconds)}, one run.")
        refits = {size: best_refit(X[:size], y[:size], test) for size in sizes}
        accuracy_rows(report, runs, refits)
        nodes = ", ".join(f"{runs[name].nodes:,} ({name})" for name in KINDS)
        report.note(f"Nodes of Quercus after {n:,} rows: {nodes}. A look at the tree every {every:,} rows.")
        draw(report, runs, refits, seconds, n)


if __name__ == "__main__":
    main()
