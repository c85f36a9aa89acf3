"""Label efficiency from zero labels: the forest of many memories against forests with margin and committee sampling.

Run: python bench/accuracy/from_zero.py RESULTS.csv --data FOLDER --kinds KINDS.json [--seeds 0,1,2]
     [--sets iris,wine] [--methods forest,rf-margin] [--report]

Rows are split 70/30, stratified; every label of the 70 is unknown at first, and one query at a time is answered by
the truth. Measured is the accuracy on the 30 after 5, 10, 20, 40, 60 and 100 answers, everybody on the same splits. At
most 2,000 rows of a set are used. Each finished (set, seed, method) is a block of lines in RESULTS.csv; a run that is
started again does what is missing. `--report` prints tables of what is there.

Peers: random forest and extra-trees with margin sampling (20 trees choose, 50 predict, one-hot names), both
scikit-learn; random forest with scikit-activeml's query by committee, and its ProbabilisticAL with a Parzen window
classifier. Until there are labels of two classes the margin asks at random. `et-all` is what extra-trees reach with all
labels: what there is to gain.
"""

import argparse
import csv
import sys
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split

from quercus.experiments.datasets import DataSet, built_in, in_folder
from quercus.specification.attributes import Nominal
from quercus.specification.parameters import MEMBERS
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest

ANSWERS = (5, 10, 20, 40, 60, 100)
ROWS = 2_000
TREES = MEMBERS.default
BUILT_IN = ("digits", "breast_cancer")
SETS = (
    *BUILT_IN, "balance_scale", "breast_cancer_wisconsin", "breast_tissue", "car_evaluation", "credal_dog2",
    "credal_dog4", "credal_dog7", "ecoli", "glass", "ionosphere", "iris", "mushroom", "nursery", "penguins", "sonar",
    "soybean", "vote", "wifi_localization", "wine", "zoo",
)  # fmt: skip
FIELDS = ("set", "seed", "method", "answers", "accuracy", "cpu_s")

Curve = Iterator[np.ndarray]  # predicted classes of the rows held out, at each of ANSWERS


class Task:
    """A set split by a seed."""

    def __init__(self, data: DataSet, seed: int) -> None:
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(data))[:ROWS]
        counts = np.bincount(data.targets[rows], minlength=len(data.classes))
        rows = rows[counts[data.targets[rows]] > 1]  # a class of one row cannot be on both sides
        self.size, self.seed = len(data.classes), seed
        self.named = np.array([isinstance(attribute, Nominal) for attribute in data.attributes])
        train, test = train_test_split(rows, test_size=0.3, random_state=seed, stratify=data.targets[rows])
        self.train, self.test = data.values[train], data.values[test]
        self.y, self.truth = data.targets[train], data.targets[test]

    def one_hot(self, values: np.ndarray) -> np.ndarray:
        columns = []
        for k, named in enumerate(self.named):
            column = values[:, k : k + 1]
            names = np.arange(np.nanmax(self.train[:, k], initial=0) + 1)
            columns.append((column == names).astype(float) if named else column)
        return np.hstack(columns)


def untold_forest(task: Task) -> MemoryForest:
    model = MemoryForest(task.named, task.size, trees=TREES, seed=task.seed, level=0.75)
    model.observe(task.train, np.ones((len(task.train), task.size)))
    return model


def forest_asks(task: Task, model: MemoryForest) -> Iterator[list[int]]:
    """Yield the rows told so far, after each answer."""
    told: list[int] = []
    free = np.ones(len(task.train), dtype=bool)
    for _ in range(ANSWERS[-1]):
        for choice in choose_rows(model, np.flatnonzero(free), 1):
            told.append(choice.row)
            free[choice.row] = False
            model.replace_contour(choice.row, np.eye(task.size)[task.y[choice.row]])
        yield told


def forest(task: Task) -> Curve:
    model = untold_forest(task)
    for answers, _ in enumerate(forest_asks(task, model), 1):
        if answers in ANSWERS:
            yield model.predict(task.test).klass


def margin_asks(task: Task, kind: type) -> Iterator[list[int]]:
    """Yield the rows told so far, after each answer. Until there are two classes rows are drawn."""
    train = task.one_hot(task.train)
    rng = np.random.default_rng(task.seed)
    told: list[int] = []
    free = np.ones(len(train), dtype=bool)
    for _ in range(ANSWERS[-1]):
        rows = np.flatnonzero(free)
        if rows.size and len(set(task.y[told])) > 1:
            model = kind(20, random_state=task.seed).fit(train[told], task.y[told])
            falling = np.sort(model.predict_proba(train[rows]), axis=1)
            gap = falling[:, -1] - falling[:, -2]
            rows = rows[gap <= gap.min() + 1e-12]
        if rows.size:
            row = int(rng.choice(rows))
            told.append(row)
            free[row] = False
        yield told


def learned(task: Task, kind: type, told: list[int]) -> np.ndarray:
    """Return what a forest of a kind that learns from the told rows predicts."""
    train, test = task.one_hot(task.train), task.one_hot(task.test)
    return kind(50, random_state=task.seed).fit(train[told], task.y[told]).predict(test)


def margin(task: Task, kind: type) -> Curve:
    for answers, told in enumerate(margin_asks(task, kind), 1):
        if answers in ANSWERS:
            yield learned(task, kind, told)


def all_labels(task: Task) -> Curve:
    klass = learned(task, ExtraTreesClassifier, list(range(len(task.train))))
    yield from (klass for _ in ANSWERS)


def activeml(task: Task, name: str) -> Curve:
    from skactiveml.classifier import ParzenWindowClassifier, SklearnClassifier  # noqa: PLC0415 - a peer may be missing
    from skactiveml.pool import ProbabilisticAL, QueryByCommittee  # noqa: PLC0415

    train, test = task.one_hot(task.train), task.one_hot(task.test)
    middle = np.nanmean(train, axis=0)
    train, test = (np.where(np.isnan(rows), middle, rows) for rows in (train, test))
    classes = list(range(task.size))
    committee = name == "rf-committee"
    if committee:
        trees = RandomForestClassifier(20, random_state=task.seed)
        chooser = SklearnClassifier(trees, classes=classes, random_state=task.seed)
        last = SklearnClassifier(
            RandomForestClassifier(50, random_state=task.seed), classes=classes, random_state=task.seed
        )
        strategy = QueryByCommittee(random_state=task.seed)
    else:
        scale = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
        train, test = (train - middle) / scale, (test - middle) / scale
        chooser = last = ParzenWindowClassifier(classes=classes, random_state=task.seed)
        strategy = ProbabilisticAL(random_state=task.seed)
    y = np.full(len(train), np.nan)
    for answers in range(1, ANSWERS[-1] + 1):
        if np.isnan(y).any():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                (row,) = strategy.query(train, y, **{"ensemble" if committee else "clf": chooser})
            y[row] = task.y[row]
        if answers in ANSWERS:
            yield last.fit(train, y).predict(test).astype(int)


METHODS: dict[str, Callable[[Task], Curve]] = {
    "forest": forest,
    "rf-margin": lambda task: margin(task, RandomForestClassifier),
    "et-margin": lambda task: margin(task, ExtraTreesClassifier),
    "rf-committee": lambda task: activeml(task, "rf-committee"),
    "parzen": lambda task: activeml(task, "parzen"),
    "et-all": all_labels,
}


def measure(data: DataSet, seed: int, method: str) -> list[tuple[object, ...]]:
    task, began, lines = Task(data, seed), time.process_time(), []
    for answers, klass in zip(ANSWERS, METHODS[method](task), strict=True):
        right = float((klass == task.truth).mean())
        lines.append((data.name, seed, method, answers, f"{right:.5f}", f"{time.process_time() - began:.2f}"))
    return lines


def area(curve: np.ndarray) -> np.ndarray:
    """Return the mean height of curves (..., answers) from the first to the last number of answers."""
    return np.trapezoid(curve, ANSWERS, axis=-1) / (ANSWERS[-1] - ANSWERS[0])


def report(path: Path) -> None:
    found: dict[str, dict[tuple[str, str], dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in csv.DictReader(path.open()):
        found[line["method"]][line["set"], line["seed"]][int(line["answers"])] = 100 * float(line["accuracy"])
    methods = [name for name in METHODS if name in found]
    cells = sorted(set.intersection(*(set(found[name]) for name in methods)))
    curves = {name: np.array([[found[name][cell][n] for n in ANSWERS] for cell in cells]) for name in methods}
    names = sorted({name for name, _ in cells})
    print(f"{len(cells)} splits of {len(names)} sets that all methods have; accuracy, percent")
    for name in methods:
        means = np.array(
            [curves[name][[i for i, (s, _) in enumerate(cells) if s == n]].mean(axis=0) for n in names]
        )
        texts = " ".join(f"{value:5.1f}" for value in means.mean(axis=0))
        print(f"{name:14} area {area(means).mean():5.1f}   at {'/'.join(map(str, ANSWERS))}: {texts}")
    print(
        "\nforest minus peer, mean over sets ± standard error over sets: area, then at each number of answers"
    )
    for name in methods:
        if name != "forest":
            gap = np.array(
                [
                    (curves["forest"] - curves[name])[[i for i, (s, _) in enumerate(cells) if s == n]].mean(
                        axis=0
                    )
                    for n in names
                ]
            )
            parts = [area(gap), *gap.T]
            print(
                f"{name:14}",
                "  ".join(f"{p.mean():+5.1f} ± {p.std(ddof=1) / len(p) ** 0.5:.1f}" for p in parts),
            )
    print(
        "\narea by set: " + "  ".join(methods) + "   forest minus the best peer ± standard error over seeds"
    )
    for n in names:
        mine = [i for i, (s, _) in enumerate(cells) if s == n]
        areas = {name: area(curves[name][mine]) for name in methods}
        peers = [name for name in methods if name not in ("forest", "et-all")]
        best = max(peers, key=lambda name: areas[name].mean())
        gap = areas["forest"] - areas[best]
        error = gap.std(ddof=1) / len(gap) ** 0.5 if len(gap) > 1 else float("nan")
        print(
            f"{n:24}",
            "  ".join(f"{areas[name].mean():5.1f}" for name in methods),
            f"  {gap.mean():+5.1f} ± {error:.1f} ({best})",
        )


def main() -> None:
    warnings.filterwarnings(
        "ignore", message="The number of unique classes"
    )  # few labels are what is measured
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kinds", type=Path)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--methods", default=",".join(METHODS))
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        report(options.results)
        return
    done = set()
    if options.results.exists():
        done = {
            (line["set"], line["seed"], line["method"]) for line in csv.DictReader(options.results.open())
        }
    else:
        options.results.write_text(",".join(FIELDS) + "\n")
    methods = options.methods.split(",")
    try:
        import skactiveml  # noqa: F401, PLC0415
    except ModuleNotFoundError:
        print(
            "scikit-activeml is not installed: committee and Parzen window are NOT measured", file=sys.stderr
        )
        methods = [name for name in methods if name not in ("rf-committee", "parzen")]
    for seed in map(int, options.seeds.split(",")):
        for name in options.sets.split(","):
            wanted = [method for method in methods if (name, str(seed), method) not in done]
            if not wanted:
                continue
            if name not in BUILT_IN and options.data is None:
                print(f"{name} is NOT measured: it needs --data", file=sys.stderr)
                continue
            (data,) = built_in([name]) if name in BUILT_IN else in_folder(options.data, [name], options.kinds)
            for method in wanted:
                lines = measure(data, seed, method)
                with options.results.open("a") as file:
                    csv.writer(file, lineterminator="\n").writerows(lines)


if __name__ == "__main__":
    main()
