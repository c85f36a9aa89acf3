"""Learning real sets at once: the default forest, and the active tree, beside scikit-learn's random forest and tree.

The estimators of both have their default settings. A third of the rows, drawn at random, is held out. Names are as they
are for Quercus, and indicator columns for scikit-learn. The dogs' labels are what people said of pictures (masses), and
the truth decides what is right: scikit-learn gets each picture once a class, weighted by its pignistic probability. CPU
time is of `fit` and of the prediction of the rows held out, one core; runs take turns, medians.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
from _data import is_nominal, real_sets
from _measure import milliseconds, times
from _report import Report, Row, options, reporting
from sklearn.ensemble import RandomForestClassifier
from sklearn.tree import DecisionTreeClassifier

from quercus.belief.measures import pignistic
from quercus.estimators import ActiveBeliefTreeClassifier, ActiveForestClassifier
from quercus.experiments.datasets import DataSet

SETS = ("breast_cancer_wdbc", "mushroom", "nursery", "occupancy", "covertype_100k", "credal_dog7")
QUICK = SETS[:2]
SLOW_S = 2.0  # what takes longer is measured once
REPEATS = 5


class Split:
    """Rows to learn and rows to predict, for Quercus and for scikit-learn."""

    def __init__(self, data: DataSet) -> None:
        order = np.random.default_rng(0).permutation(len(data))
        self.learn, self.test = np.split(order, [2 * len(order) // 3])
        self.data, self.nominal = data, is_nominal(data)
        self.encoded = np.column_stack(
            [
                column[:, None] == np.unique(column[~np.isnan(column)]) if named else column
                for column, named in zip(data.values.T, self.nominal, strict=True)
            ]
        ).astype(float)

    def score(self, predicted: np.ndarray) -> float:
        return float((predicted == self.data.targets[self.test]).mean())

    def with_quercus(self, make: type) -> float:
        """Fit an estimator of ours; return the share of the rows held out that it predicts right."""
        data, size = self.data, len(self.data.classes)
        model = make(classes=list(range(size)), categorical_features=self.nominal)
        if isinstance(model, ActiveForestClassifier):
            model.set_params(random_state=0)
        labels = data.targets if data.masses is None else np.array(data.masses, dtype=object)
        return self.score(
            model.fit(data.values[self.learn], labels[self.learn]).predict(data.values[self.test])
        )

    def with_sklearn(self, make: type) -> float:
        """Fit a peer; return its share."""
        X, y, weights = self.encoded[self.learn], self.data.targets[self.learn], None
        if self.data.masses is not None:
            shares = np.array([pignistic(self.data.masses[row]) for row in self.learn])
            row, y = np.nonzero(shares)
            X, weights = X[row], shares[row, y]
        return self.score(make(random_state=0).fit(X, y, weights).predict(self.encoded[self.test]))


def timed(work: Callable[[], float]) -> tuple[float, float]:
    """Return what a work returns, and its CPU seconds."""
    started = time.process_time()
    return work(), time.process_time() - started


def measure(report: Report, data: DataSet, repeats: int) -> None:
    split = Split(data)
    works = (
        partial(split.with_quercus, ActiveForestClassifier),
        partial(split.with_quercus, ActiveBeliefTreeClassifier),
        partial(split.with_sklearn, RandomForestClassifier),
        partial(split.with_sklearn, DecisionTreeClassifier),
    )
    taken = [[timed(work) for work in works]]
    if max(seconds for _, seconds in taken[0]) < SLOW_S:
        taken += [[timed(work) for work in works] for _ in range(repeats - 1)]
    right, seconds = np.median(taken, axis=0).T
    forest, tree, forests, trees = (
        f"{100 * share:.1f} %, {milliseconds(each)}" for share, each in zip(right, seconds, strict=True)
    )
    labels = "" if data.masses is None else ", labels by people"
    report.add(
        Row(
            f"learn {data.name}, {len(split.learn):,} rows{labels}: accuracy on the others, CPU",
            f"{forest}; tree {tree}",
            f"RandomForestClassifier {forests}; DecisionTreeClassifier {trees}",
            f"{times(seconds[2] / seconds[0])}, {100 * (right[0] - right[2]):+.1f} points; "
            f"tree {times(seconds[3] / seconds[1])}, {100 * (right[1] - right[3]):+.1f} points",
        )
    )


def main() -> None:
    quick = options().quick
    with reporting("Learning real sets at once", ("scikit-learn",), quick=quick) as report:
        for data in real_sets(report, QUICK if quick else SETS):
            measure(report, data, 1 if quick else REPEATS)


if __name__ == "__main__":
    main()
