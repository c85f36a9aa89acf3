"""The coverage and the size of set-valued predictions, at several prediction levels.

Run: python bench/accuracy/prediction_sets.py [--vacuous 0.5] [--repeats 2] [--levels 1,0.8,0.5,0.15,0.05]
     [--sets iris,glass --data FOLDER --kinds FILE]

5-fold cross-validation on scikit-learn's sets, and on the CSV files of a folder, if one is given; a share of the labels
is withheld. One line per set, learner and level: coverage (share of rows whose set contains the true class), mean size
of the sets, share of rows with one class, and the accuracy of the likeliest class. Coverage alone says little, because
the set of all classes always covers: look at both numbers.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import datasets
from sklearn.model_selection import StratifiedKFold

from quercus.estimators import (
    ActiveBeliefTreeClassifier,
    BeliefEntropyTreeClassifier,
    BeliefTreeClassifier,
    E2MTreeClassifier,
    EvidentialForestClassifier,
)
from quercus.files import read

SETS = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
}
LEARNERS: dict[str, Callable[[float], Any]] = {
    "active": lambda level: ActiveBeliefTreeClassifier(prediction_level=level),
    "active, thresholds": lambda level: ActiveBeliefTreeClassifier(prediction_level=level, bins=None),
    "E2M": lambda level: E2MTreeClassifier(prediction_level=level, informed_only=True),
    "forest of E2M": lambda level: EvidentialForestClassifier(
        E2MTreeClassifier(prediction_level=level, informed_only=True), n_estimators=20, random_state=0
    ),
}
OF_MASSES: dict[str, Callable[[], Any]] = {
    "averaging": BeliefTreeClassifier,
    "LBE": lambda: BeliefEntropyTreeClassifier(leaf="LBE"),
    "IBE": lambda: BeliefEntropyTreeClassifier(leaf="IBE"),
}

Data = tuple[Any, np.ndarray]


def sets(names: Sequence[str], folder: Path | None, kinds: Path | None) -> Iterator[tuple[str, Data]]:
    """Yield name, rows and classes of each set."""
    for name in names:
        if name in SETS:
            data = SETS[name]()
            yield name, (data.data, data.target)
        elif folder is None or not (folder / f"{name}.csv").exists():
            print(f"SKIPPED: {name} is none of {', '.join(SETS)} and no file of --data", file=sys.stderr)
        else:
            known = json.loads(kinds.read_text()) if kinds else {}
            columns = known.get(f"{name}.csv", {})
            table = read(folder / f"{name}.csv", ignore=[c for c, kind in columns.items() if kind == "id"])
            yield name, (table.frame(), np.array(table.labels))


def measured(make: Callable[[], Any], data: Data, vacuous: float, repeats: int) -> tuple[float, ...]:
    """Return coverage, mean size, share of single classes and accuracy, over all folds."""
    rows, classes = data
    found: list[np.ndarray] = []
    for seed in range(repeats):
        for number, (train, test) in enumerate(
            StratifiedKFold(5, shuffle=True, random_state=seed).split(rows, classes)
        ):
            labels = classes[train].tolist()
            for at in np.flatnonzero(np.random.default_rng((seed, number)).random(len(train)) < vacuous):
                labels[at] = None
            take = rows.iloc if hasattr(rows, "iloc") else rows
            model = make().set_params(classes=np.unique(classes).tolist()).fit(take[train], labels)
            chosen, best = model.predict_set(take[test]), model.predict(take[test])
            truth = np.searchsorted(model.classes_, classes[test])
            size = chosen.sum(axis=1)
            found.append(
                np.column_stack([chosen[np.arange(len(test)), truth], size, size == 1, best == classes[test]])
            )
    means = np.concatenate(found).mean(axis=0)
    return tuple(means.tolist())


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--vacuous", type=float, default=0.5)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--levels", default="1,0.8,0.5,0.15,0.05")
    parser.add_argument("--sets", default="iris,wine,breast_cancer,digits")
    parser.add_argument(
        "--learners", default=",".join([*LEARNERS, *OF_MASSES]).replace("active, t", "active/t")
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kinds", type=Path)
    options = parser.parse_args()
    levels = [float(level) for level in options.levels.split(",")]
    wanted = [name.replace("/", ", ") for name in options.learners.split(",")]
    print(
        f"{options.vacuous:.0%} of the labels withheld, 5 folds × {options.repeats}; in percent, size in classes"
    )
    print(f"{'set':14} {'learner':18} {'level':>6} {'coverage':>9} {'size':>6} {'single':>7} {'accuracy':>9}")
    for name, data in sets(options.sets.split(","), options.data, options.kinds):
        for learner in wanted:
            cells = (
                [(f"{level:g}", lambda at=level, how=LEARNERS[learner]: how(at)) for level in levels]
                if learner in LEARNERS
                else [("-", OF_MASSES[learner])]
            )
            for level, make in cells:
                coverage, size, single, accuracy = measured(make, data, options.vacuous, options.repeats)
                numbers = f"{100 * coverage:9.1f} {size:6.2f} {100 * single:7.1f} {100 * accuracy:9.1f}"
                print(f"{name:14} {learner:18} {level:>6} {numbers}", flush=True)


if __name__ == "__main__":
    main()
