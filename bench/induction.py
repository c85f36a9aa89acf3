"""Full induction from nothing: 8,000 rows of four attributes with four values, half of the labels vacuous.

Beside it scikit-learn's tree on the rows whose label is known, which is all it can use; and the same on stream A.
"""

from dataclasses import replace
from functools import partial

import numpy as np
from _measure import cpu, milliseconds, times
from _report import Report, Row, options, reporting
from _streams import NOISE, STOPPED, STOPPING, nominal, train
from sklearn.tree import DecisionTreeClassifier

from quercus.trees.growth.stream import GrowthState, Observed, grow

ROWS, CLASSES, VACUOUS = 8_000, 3, 0.5
TARGET_S = 0.5


def four_by_four():
    """Return codes (n, 4), classes (n,) and contours (n, 3): a hidden class for each of the 256 kinds of row."""
    rng = np.random.default_rng(0)
    X = rng.integers(4, size=(ROWS, 4)).astype(float)
    y = rng.integers(CLASSES, size=(4, 4, 4, 4))[tuple(X.T.astype(int))]
    wrong = rng.random(ROWS) < NOISE
    y = np.where(wrong, rng.integers(CLASSES, size=ROWS), y)
    contours = np.eye(CLASSES)[y]
    contours[rng.random(ROWS) < VACUOUS] = 1.0
    return X, y, contours


def induce(spec, X, contours) -> float:
    """Return the CPU seconds from rows to the whole tree."""
    return cpu(lambda: grow(GrowthState.initial(spec), [Observed(X, contours)]).flat)


def measure(report: Report, name: str, spec, X, y, contours, repeats, target=None) -> None:
    known = (contours.min(axis=1) == 0).nonzero()[0]
    least = spec.min_instances
    refit = partial(DecisionTreeClassifier(min_samples_split=least, random_state=0).fit, X[known], y[known])
    induce(spec, X, contours)  # compiles what is needed
    taken = [(induce(spec, X, contours), cpu(refit)) for _ in range(repeats)]
    ours, theirs = np.median(taken, axis=0)
    peer = f"scikit-learn, {len(known):,} known rows alone, {milliseconds(theirs)}"
    row = Row(f"induction: {name}", milliseconds(ours), peer, times(theirs / ours))
    if target is not None:
        wanted = f"< {milliseconds(target)}"
        row = Row(row.work, row.quercus, row.peer, row.ratio, wanted, bool(ours < target))
    report.add(row)


def main() -> None:
    quick = options().quick
    repeats = 3 if quick else 9
    with reporting("Induction from nothing", ("scikit-learn"), quick=quick) as report:
        stream = nominal()
        whole = stream.specification(alpha=0.8)
        four = replace(whole, attributes=whole.attributes[:4])
        X, y, contours = four_by_four()
        name = f"{ROWS:,} rows, 4 × 4 values, V = {VACUOUS}, α = .8, min_instances 2"
        measure(report, name, four, X, y, contours, repeats, TARGET_S)
        X, y = train(stream, 10_000 if quick else 100_000)
        for alpha in (1.0, 0.8):
            name = f"stream A, {len(X):,} rows, precise labels, α = {alpha:g}, {STOPPED}"
            settings = stream.specification(alpha=alpha, **STOPPING)
            measure(report, name, settings, X, y, np.eye(stream.classes)[y], max(1, repeats // 3))


if __name__ == "__main__":
    main()
