"""Choosing the next query among unlabelled rows: the default forest, and the tree, beside scikit-activeml.

Both get the same rows, of which the first 100 are labelled, and choose one of the others: each learns the labels and
scores the candidates. Quercus has its default settings; scikit-activeml scores by the margin of scikit-learn's random
forest, and by the votes of ten trees.
"""

from collections.abc import Callable

import numpy as np
from _data import is_nominal, real_sets
from _measure import in_turn, milliseconds, times
from _report import Report, Row, options, reporting
from skactiveml.classifier import SklearnClassifier
from skactiveml.pool import QueryByCommittee, UncertaintySampling
from sklearn.ensemble import RandomForestClassifier

from quercus.estimators import ActiveBeliefTreeClassifier, ActiveForestClassifier
from quercus.experiments.datasets import DataSet

ROWS, LABELLED = 20_000, 100


def works(data: DataSet, rows: int) -> list[Callable[[], object]]:
    """Return the work of forest, tree, margin and committee."""
    X, classes = data.values[:rows], list(range(len(data.classes)))
    y = np.where(np.arange(rows) < LABELLED, data.targets[:rows], np.nan)
    settings = {"classes": classes, "categorical_features": is_nominal(data)}
    margin = UncertaintySampling(method="margin_sampling", random_state=0)
    committee = QueryByCommittee(random_state=0)

    def peer(trees: int) -> SklearnClassifier:
        return SklearnClassifier(RandomForestClassifier(trees, random_state=0), classes=classes)

    return [
        lambda: ActiveForestClassifier(**settings, random_state=0).query(X, y),
        lambda: ActiveBeliefTreeClassifier(**settings).query(X, y),
        lambda: margin.query(X, y, clf=peer(100)),
        lambda: committee.query(X, y, ensemble=peer(10)),
    ]


def measure(report: Report, data: DataSet, rows: int, repeats: int) -> None:
    asked = works(data, rows)
    for ask in asked:
        ask()
    forest, tree, margin, committee = in_turn(asked, repeats)
    report.add(
        Row(
            f"choose a query: {data.name}, {rows:,} rows, {LABELLED} of them labelled",
            f"{milliseconds(forest)}; tree {milliseconds(tree)}",
            f"scikit-activeml: margin of RandomForestClassifier {milliseconds(margin)}, "
            f"committee of 10 trees {milliseconds(committee)}",
            f"{times(margin / forest)}; {times(committee / forest)}",
        )
    )


def main() -> None:
    quick = options().quick
    with reporting("The choice of a query", ("scikit-learn", "scikit-activeml"), quick=quick) as report:
        for data in real_sets(report, ["electricity"]):
            measure(report, data, 1_000 if quick else ROWS, 1 if quick else 5)


if __name__ == "__main__":
    main()
