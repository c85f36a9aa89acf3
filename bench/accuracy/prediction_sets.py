"""The coverage and the size of prediction sets of stated coverage, on streams and after sixty answers.

Run: python bench/accuracy/prediction_sets.py [--streams electricity,weather_noaa,…] [--rows 10000] [--stream-seeds 1]
     [--sets iris,wine,… --keel FOLDER] [--seeds 4] [--answers 60] [--ways plain,doubtful,asked]

Streams: each block of 50 rows is predicted before its labels come, 50 rows later. `asked`: no label comes but those of
rows that the forest asks about, one in five of the last 500. The generated streams are those of
`asking_on_streams.py`. The first 1,000 rows are not counted. A seed draws the forest, and generated streams.

Sets: 70 % of the rows, unlabelled at first; 60 answers, about rows drawn at random, or that the forest asks about;
measured on the others. Names are scikit-learn's, or KEEL's (`few_labels.py` says what FOLDER is).

`doubtful`: four labels in ten are sets of two classes, of which one is true.

One line per set and way, at 80, 90 and 95 %: coverage in percent, and mean size. The likeliest class is always in the
set: where its accuracy (first column) is above the stated coverage, the coverage is too.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _data import FOLDER, KINDS, read_real
from asking_on_streams import GENERATED
from few_labels import read
from sklearn import datasets

from quercus.specification.attributes import Nominal
from quercus.trees import MemoryForest
from quercus.trees.memory_forest.asking import choose_rows

STREAMS = "electricity,weather_noaa,covertype_100k,airlines_5pct,abrupt,moving"
SKLEARN = {
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
    "breast_cancer": datasets.load_breast_cancer,
}
KEEL = "australian,banana,bupa,contraceptive,hayes-roth,heart,ionosphere,led7digit,mammographic"
COVERAGES = (0.8, 0.9, 0.95)
LATE, LAST, ASKED = 50, 500, 10  # rows, rows that may be asked about, rows of 50 that are
FIRST = 1_000
DOUBTFUL = 0.4
MOST = 1_500

Rows = tuple[np.ndarray, np.ndarray, np.ndarray, int]
"""Values, classes, whether an attribute has names, and the number of classes."""


def labels(y: np.ndarray, size: int, doubtful: bool, rng: np.random.Generator) -> np.ndarray:
    """Return the contours of labels."""
    contours = np.eye(size)[y]
    if doubtful:
        rows = np.flatnonzero(rng.random(len(y)) < DOUBTFUL)
        contours[rows, (y[rows] + rng.integers(1, size, len(rows))) % size] = 1.0
    return contours


class Found:
    """The findings about the rows of a set."""

    def __init__(self) -> None:
        self.right: list[np.ndarray] = []
        self.covered: list[np.ndarray] = []
        self.sizes: list[np.ndarray] = []

    def add(self, forest: MemoryForest, values: np.ndarray, y: np.ndarray) -> None:
        """Predict rows."""
        scores, theta = forest.calibration(), forest.theta(values)
        sets = np.array([scores.sets(theta, coverage) for coverage in COVERAGES])
        self.right.append(theta.argmax(axis=1) == y)
        self.covered.append(sets[:, np.arange(len(y)), y])
        self.sizes.append(sets.sum(axis=2))

    @property
    def row(self) -> np.ndarray:
        """Accuracy, three coverages, three sizes."""
        covered, sizes = (np.concatenate(each, axis=1).mean(axis=1) for each in (self.covered, self.sizes))
        return np.concatenate([[np.concatenate(self.right).mean()], covered, sizes])


def on_stream(rows: Rows, way: str, seed: int) -> np.ndarray:
    """Return what is found on a stream."""
    values, y, named, size = rows
    rng, found = np.random.default_rng(seed), Found()
    contours = labels(y, size, way == "doubtful", rng)
    forest = MemoryForest(named, size, trees=100, seed=seed, level=0.75)
    silent = np.ones((LATE, size))
    waiting, asked = list[int](), np.zeros(len(y), bool)
    for start in range(0, len(y) - LATE + 1, LATE):
        here = slice(start, start + LATE)
        if start >= FIRST:
            found.add(forest, values[here], y[here])
        if way != "asked":
            forest.observe(values[here], silent)
            for row in waiting:
                forest.replace_contour(row, contours[row])
            waiting = list(range(start, start + LATE))
            continue
        forest.observe(values[here], silent)
        for row in waiting:
            forest.replace_contour(row, contours[row], asked=True)
        candidates = np.flatnonzero(~asked[: start + LATE])
        waiting = [
            each.row for each in choose_rows(forest, candidates[candidates >= start + LATE - LAST], ASKED)
        ]
        asked[waiting] = True
    return found.row


def on_set(rows: Rows, way: str, seed: int, answers: int) -> np.ndarray:
    """Return what is found on a set."""
    values, y, named, size = rows
    rng, found = np.random.default_rng(seed), Found()
    order = rng.permutation(len(y))[:MOST]
    train, test = np.split(order, [int(0.7 * len(order))])
    contours = labels(y[train], size, way == "doubtful", rng)
    forest = MemoryForest(named, size, trees=100, seed=seed, level=0.75)
    forest.observe(values[train], np.ones((len(train), size)))
    free = np.ones(len(train), bool)
    for _ in range(min(answers, len(train))):
        if way == "asked":
            (chosen,) = choose_rows(forest, np.flatnonzero(free), 1)
            row = chosen.row
        else:
            row = int(rng.choice(np.flatnonzero(free)))
        free[row] = False
        forest.replace_contour(row, contours[row], asked=way == "asked")
    found.add(forest, values[test], y[test])
    return found.row


def stream_of(name: str, seed: int, rows: int) -> Rows:
    if name in GENERATED:
        return GENERATED[name](rows, np.random.default_rng(seed))
    data = read_real(FOLDER, name, KINDS)
    named = np.array([isinstance(attribute, Nominal) for attribute in data.attributes])
    return data.values[:rows], data.targets[:rows], named, len(data.classes)


def set_of(name: str, keel: Path | None) -> Rows | None:
    if name in SKLEARN:
        bunch = SKLEARN[name]()
        return bunch.data, bunch.target, np.zeros(bunch.data.shape[1], bool), len(bunch.target_names)
    if keel is None:
        return None
    data = read(keel, name)
    named = np.array([isinstance(attribute, Nominal) for attribute in data.attributes])
    return data.values, data.targets, named, len(data.classes)


def show(name: str, way: str, row: np.ndarray) -> None:
    cells = "   ".join(f"{100 * row[1 + k]:5.1f} {row[4 + k]:5.2f}" for k in range(3))
    print(f"{name:16} {way:9} {100 * row[0]:6.1f}   {cells}", flush=True)


def main() -> None:
    """Print a table of streams, and one of sets."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--streams", default=STREAMS)
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--stream-seeds", type=int, default=1)
    parser.add_argument("--sets", default=",".join([*SKLEARN, *KEEL.split(",")]))
    parser.add_argument("--keel", type=Path)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--answers", type=int, default=60)
    parser.add_argument("--ways", default="plain,doubtful,asked")
    options = parser.parse_args()
    ways = options.ways.split(",")
    print(
        f"{'set':16} {'way':9} {'right':>6}   "
        + "   ".join(f"{100 * each:4.0f} %  size" for each in COVERAGES)
    )
    for title, names in (("streams", options.streams), ("sets", options.sets)):
        rows_of: dict[str, list[np.ndarray]] = {way: [] for way in ways}
        for name in filter(None, names.split(",")):
            for way in ways:
                if title == "streams":
                    found = [
                        on_stream(stream_of(name, seed, options.rows), way, seed)
                        for seed in range(options.stream_seeds)
                    ]
                else:
                    rows = set_of(name, options.keel)
                    if rows is None:
                        print(f"SKIPPED: {name} is of KEEL: name the folder with --keel", file=sys.stderr)
                        break
                    found = [on_set(rows, way, seed, options.answers) for seed in range(options.seeds)]
                row = np.mean(found, axis=0)
                show(name, way, row)
                rows_of[way].append(row)
        for way, found in rows_of.items():
            if found:
                show(f"all {title}", way, np.mean(found, axis=0))


if __name__ == "__main__":
    main()
