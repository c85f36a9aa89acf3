"""Query strategies on streams that change: accuracy of the active forest, with few labels that come late.

Run: python bench/accuracy/asking_on_streams.py RESULTS.csv [--data FOLDER --kinds KINDS.json]
     [--sets electricity,weather_noaa] [--ways random,margin] [--seeds 3] [--first-seed 0] [--rows 20000] [--trees 100]
     [--share .05] [--report]

Prequential: each row is predicted before anything is asked about it. Rows come 50 at a time; then some of the last 500
are asked about, so many that 5 % of all rows so far have been; their labels come 50 rows later. Nothing else is told.

The ways: `random` rows of the last 500; strategies of the forest (docs/strategies.md); `unaged` is `margin` where
each answer covers alike, however old it is. The generated streams are hidden trees over ten numbers, with one label in
twenty wrong: `abrupt` has another tree after each third of the rows; `gradual` goes over to another one in the middle
half; `recurring` has two in turns, a tenth of the rows each; in `moving` the rows are of twelve clouds that walk. The
seed draws the stream, the forest and the random rows; of real streams, the latter two alone.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from quercus.trees.memory_forest.worth import disagreement_worth, margin_worth

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from _data import read_real
from _streams import CLASSES, NUMBERS, HiddenTree, Truth, hidden_tree, with_noise

from quercus.specification.attributes import Nominal
from quercus.trees.memory_forest import asking
from quercus.trees.memory_forest.forest import MemoryForest

LATE = 50
LAST = 500  # rows that may be asked about
GENERATED_ROWS, CLOUDS = 10_000, 12
REAL = ("electricity", "weather_noaa", "covertype_100k", "room_occupancy", "airlines_5pct")
FIELDS = ("set", "way", "seed", "rows", "trees", "share", "asked", "accuracy", "late_accuracy", "cpu_s")

Stream = tuple[
    np.ndarray, np.ndarray, np.ndarray, int
]  # values, classes, whether an attribute has names, classes
Chooser = Callable[[MemoryForest, np.ndarray, int], list[int]]


def hidden_trees(count: int, rng: np.random.Generator) -> list[HiddenTree]:
    return [hidden_tree(Truth(3, 0.25, int(seed))) for seed in rng.integers(1 << 30, size=count)]


def labelled(
    trees: Sequence[HiddenTree], which: np.ndarray, X: np.ndarray, rng: np.random.Generator
) -> Stream:
    """Return rows of which each is labelled by the tree at its number in `which`."""
    said = np.array([tree.classes_of(X) for tree in trees])[which, np.arange(len(X))]
    return X, with_noise(said, rng), np.zeros(NUMBERS, bool), CLASSES


def abrupt(rows: int, rng: np.random.Generator) -> Stream:
    return labelled(hidden_trees(3, rng), np.arange(rows) * 3 // rows, rng.random((rows, NUMBERS)), rng)


def gradual(rows: int, rng: np.random.Generator) -> Stream:
    chance = np.clip((np.arange(rows) / rows - 0.25) * 2.0, 0.0, 1.0)
    which = (rng.random(rows) < chance).astype(int)
    return labelled(hidden_trees(2, rng), which, rng.random((rows, NUMBERS)), rng)


def recurring(rows: int, rng: np.random.Generator) -> Stream:
    return labelled(hidden_trees(2, rng), np.arange(rows) * 10 // rows % 2, rng.random((rows, NUMBERS)), rng)


def moving(rows: int, rng: np.random.Generator) -> Stream:
    at, to = rng.random((2, CLOUDS, NUMBERS))
    klass, cloud = rng.integers(CLASSES, size=CLOUDS), rng.integers(CLOUDS, size=rows)
    part = (np.arange(rows) / rows)[:, np.newaxis]
    X = (1.0 - part) * at[cloud] + part * to[cloud] + rng.normal(0.0, 0.12, (rows, NUMBERS))
    return X, klass[cloud], np.zeros(NUMBERS, bool), CLASSES


GENERATED = {each.__name__: each for each in (abrupt, gradual, recurring, moving)}


def at_random(rng: np.random.Generator) -> Chooser:
    return lambda _, candidates, count: rng.choice(candidates, count, replace=False).tolist()


WORTHS = {"margin": margin_worth, "memory-disagreement": disagreement_worth}


def by_strategy(name: str) -> Chooser:
    def choose(forest: MemoryForest, candidates: np.ndarray, count: int) -> list[int]:
        return [found.row for found in asking.choose_rows(forest, candidates, count, worth=WORTHS[name])]

    return choose


def unaged(forest: MemoryForest, candidates: np.ndarray, count: int) -> list[int]:
    aged = asking.remembered_rows
    asking.remembered_rows = lambda forest: [(forest.evidence.labelled, 1.0)]
    try:
        return by_strategy("margin")(forest, candidates, count)
    finally:
        asking.remembered_rows = aged


def prequential(
    stream: Stream, choose: Chooser, seed: int, trees: int, share: float
) -> tuple[int, np.ndarray]:
    """Return how many rows were asked about, and whether each row was predicted right."""
    values, classes, named, size = stream
    forest = MemoryForest(named, size, trees=trees, seed=seed, level=0.75)
    right, asked = np.zeros(len(values), bool), np.zeros(len(values), bool)
    waiting: list[int] = []
    for start in range(0, len(values), LATE):
        end = min(start + LATE, len(values))
        right[start:end] = forest.predict(values[start:end]).klass == classes[start:end]
        forest.observe(values[start:end], np.ones((end - start, size)))
        for row in waiting:
            forest.replace_contour(row, np.eye(size)[classes[row]])
        due = int(share * end) - int(asked.sum())
        first = max(0, end - LAST)
        candidates = first + np.flatnonzero(~asked[first:end])
        waiting = choose(forest, candidates, due) if due else []
        asked[waiting] = True
    return int(asked.sum()), right


def report(path: Path) -> None:
    """Print the mean over seeds, and differences from margin, paired by seed, with their standard errors."""
    lines = list(csv.DictReader(path.open()))
    found = {(line["set"], line["way"], line["seed"]): 100 * float(line["accuracy"]) for line in lines}
    sets, ways = (list(dict.fromkeys(line[key] for line in lines)) for key in ("set", "way"))
    differences: dict[str, list[float]] = {way: [] for way in ways}
    for name in sets:
        shown = []
        for way in ways:
            seeds = [seed for set_, way_, seed in found if (set_, way_) == (name, way)]
            if not seeds:
                continue
            mine = np.array([found[name, way, seed] for seed in seeds])
            pairs = [
                found[name, way, s] - found[name, "margin", s] for s in seeds if (name, "margin", s) in found
            ]
            differences[way].append(float(np.mean(pairs)) if pairs else 0.0)
            error = np.std(pairs, ddof=1) / np.sqrt(len(pairs)) if len(pairs) > 1 else np.nan
            shown.append(f"{way} {mine.mean():.1f} ({np.mean(pairs) if pairs else 0:+.1f} ± {error:.1f})")
        print(f"{name:16}", "  ".join(shown))
    for way, each in differences.items():
        error = np.std(each, ddof=1) / np.sqrt(len(each)) if len(each) > 1 else np.nan
        print(f"mean over {len(each)} streams, {way}: {np.mean(each):+.2f} ± {error:.2f} beside margin")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--kinds", type=Path)
    parser.add_argument("--sets", default=",".join((*REAL, *GENERATED)))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--trees", type=int, default=100)
    parser.add_argument("--share", type=float, default=0.05)
    parser.add_argument("--report", action="store_true")
    options = parser.parse_args()
    if options.report:
        report(options.results)
        return
    if not options.results.exists():
        options.results.write_text(",".join(FIELDS) + "\n")
    done = {(line["set"], line["way"], int(line["seed"])) for line in csv.DictReader(options.results.open())}
    for name in options.sets.split(","):
        for seed in range(options.first_seed, options.first_seed + options.seeds):
            stream = stream_of(name, seed, options)
            for way in options.ways.split(","):
                if stream is None or (name, way, seed) in done:
                    continue
                began = time.process_time()
                choose = at_random(np.random.default_rng(seed)) if way == "random" else WAYS[way]
                asked, right = prequential(stream, choose, seed, options.trees, options.share)
                line = (
                    name,
                    way,
                    seed,
                    len(right),
                    options.trees,
                    options.share,
                    asked,
                    f"{right.mean():.5f}",
                )
                spent = f"{time.process_time() - began:.1f}"
                with options.results.open("a") as file:
                    late = f"{right[len(right) // 2 :].mean():.5f}"
                    csv.writer(file, lineterminator="\n").writerow((*line, late, spent))


def stream_of(name: str, seed: int, options: argparse.Namespace) -> Stream | None:
    if name in GENERATED:
        return GENERATED[name](min(GENERATED_ROWS, options.rows), np.random.default_rng((seed, 14)))
    if options.data is None:
        print(f"{name} needs --data: it is NOT measured", file=sys.stderr)
        return None
    data = read_real(options.data, name, options.kinds)
    rows = min(options.rows, len(data))
    named = np.array([isinstance(attribute, Nominal) for attribute in data.attributes])
    return data.values[:rows], data.targets[:rows], named, len(data.classes)


WAYS: dict[str, Chooser | None] = {
    "random": None,
    "unaged": unaged,
    "margin": by_strategy("margin"),
    "memory-disagreement": by_strategy("memory-disagreement"),
}


if __name__ == "__main__":
    main()
