"""Labellers who doubt, or err: the forest of many memories against random forests.

Run: python bench/accuracy/doubtful_answers.py --data FOLDER --kinds KINDS.json [--seeds 0,1,2]
     [--work sets,mixed,noise] [--sets penguins,wine] [--asking own|random]

Rows are split 70/30 as in from_zero.py; batches of 5 rows are asked about, each once. Printed is the accuracy in
percent on the 30 after 20, 60 and 100 answers, with everybody on the same splits, and the difference of the forest from
each other method, the last one of the mean over the three: mean over sets, ± standard error over sets.

- *sets*: with chance .4 an answer is a set of the true class and another one. A random forest takes one of the two by
  lot ("forced"), or both with half the weight ("pignistic").
- *mixed*: each row goes to a good labeller (right with chance .95) or a poor one (.55); the chances are known. A random
  forest weighs each row by 2 r - 1, or all alike.
- *noise*: all are right with chance .8.

What a labeller says of a row is drawn once, so that it is the same for everybody who asks. With `--asking own` the
forest asks as it does, and a random forest of 20 trees by margin; with `random` all are told the same rows.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from from_zero import Task
from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier

from quercus.experiments.datasets import in_folder
from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest

ANSWERS = (20, 60, 100)
BATCH = 5
SETS = "penguins,wine,glass,ionosphere,ecoli,iris,sonar,wifi_localization"
IN_DOUBT, GOOD, POOR, ALIKE = 0.4, 0.95, 0.55, 0.8


class DoubtfulAnswers:
    """The labels of all rows: a set of classes (n, l) each, and the chance (n,) that it contains the true class."""

    def __init__(self, task: Task, work: str) -> None:
        rng = np.random.default_rng((task.seed, len(task.y), 7))
        n, size = len(task.y), task.size
        other = (task.y + rng.integers(1, size, n)) % size
        self.sets = np.eye(size)[task.y]
        self.reliability = np.ones(n)
        if work == "sets":
            torn = np.flatnonzero(rng.random(n) < IN_DOUBT)
            self.sets[torn, other[torn]] = 1.0
        else:
            poor = rng.random(n) < 0.5
            self.reliability = np.where(poor, POOR, GOOD) if work == "mixed" else np.full(n, ALIKE)
            wrong = rng.random(n) >= self.reliability
            self.sets = np.eye(size)[np.where(wrong, other, task.y)]
        drawn = rng.random((n, size)) * self.sets
        self.forced = drawn.argmax(axis=1)


def forest(
    task: Task, said: DoubtfulAnswers, asking: str, contour: Callable[[DoubtfulAnswers, int], np.ndarray]
) -> list[float]:
    model = MemoryForest(task.named, task.size, trees=100, seed=task.seed, level=0.75)
    model.observe(task.train, np.ones((len(task.train), task.size)))
    free = np.ones(len(task.train), dtype=bool)
    found = []
    for rows in batches(
        task, free, asking, lambda: [c.row for c in choose_rows(model, np.flatnonzero(free), BATCH)]
    ):
        for row in rows:
            model.replace_contour(row, contour(said, row))
        if len(free) - free.sum() in ANSWERS:
            found.append(float((model.predict(task.test).klass == task.truth).mean()))
    return found


def random_forest(
    task: Task,
    said: DoubtfulAnswers,
    asking: str,
    rows_of: Callable[..., tuple],
    kind: type = RandomForestClassifier,
) -> list[float]:
    train, test = task.one_hot(task.train), task.one_hot(task.test)
    rng = np.random.default_rng(task.seed)
    free = np.ones(len(train), dtype=bool)

    def fitted(trees: int) -> RandomForestClassifier | ExtraTreesClassifier:
        rows, classes, weights = rows_of(said, np.flatnonzero(~free))
        model = kind(trees, random_state=task.seed)
        return model.fit(train[rows], classes, sample_weight=weights)

    def by_margin() -> np.ndarray:
        rows = rng.permutation(np.flatnonzero(free))
        if free.all() or len(set(said.forced[~free])) < 2:
            return rows[:BATCH]
        falling = np.sort(fitted(20).predict_proba(train[rows]), axis=1)
        return rows[np.argsort(falling[:, -1] - falling[:, -2], kind="stable")[:BATCH]]

    return [
        float((fitted(100).predict(test) == task.truth).mean())
        for _ in batches(task, free, asking, by_margin)
        if len(free) - free.sum() in ANSWERS
    ]


def batches(task: Task, free: np.ndarray, asking: str, choose: Callable[[], object]):
    """Yield the rows that are asked about, no longer free."""
    order = np.random.default_rng((task.seed, 11)).permutation(len(free))
    for start in range(0, ANSWERS[-1], BATCH):
        if start + BATCH > len(free):
            return
        rows = np.asarray(choose() if asking == "own" else order[start : start + BATCH])
        free[rows] = False
        yield rows


def plain(said: DoubtfulAnswers, rows: np.ndarray) -> tuple:
    return rows, said.forced[rows], None


def pignistic(said: DoubtfulAnswers, rows: np.ndarray) -> tuple:
    where, classes = np.nonzero(said.sets[rows])
    return rows[where], classes, (1.0 / said.sets[rows].sum(axis=1))[where]


def weighed(said: DoubtfulAnswers, rows: np.ndarray) -> tuple:
    return rows, said.forced[rows], 2 * said.reliability[rows] - 1


def discounted(said: DoubtfulAnswers, row: int) -> np.ndarray:
    return said.reliability[row] * said.sets[row] + 1 - said.reliability[row]


def exact(said: DoubtfulAnswers, row: int) -> np.ndarray:
    """The chance is exactly r, and a wrong answer names each other class equally often."""
    r, inside = said.reliability[row], said.sets[row]
    named = inside.sum()
    outside = 0.0 if r == 1.0 or named == len(inside) else (1 - r) * named / (r * (len(inside) - named))
    return np.maximum(inside, min(1.0, outside))


def wrong(said: DoubtfulAnswers, row: int) -> np.ndarray:
    """The chance is exactly r, and nothing is known of wrong answers but that they are wrong."""
    r = said.reliability[row]
    return np.maximum(said.sets[row], min(1.0, (1 - r) / r))


METHODS = {
    "forest": lambda *told: forest(*told, discounted),
    "forest, r exactly": lambda *told: forest(*told, exact),
    "forest, r or wrong": lambda *told: forest(*told, wrong),
    "forest, as if certain": lambda *told: forest(*told, lambda said, row: said.sets[row]),
    "RF, forced or plain": lambda *told: random_forest(*told, plain),
    "RF, pignistic": lambda *told: random_forest(*told, pignistic),
    "ET, pignistic": lambda *told: random_forest(*told, pignistic, ExtraTreesClassifier),
    "RF, weights 2r-1": lambda *told: random_forest(*told, weighed),
}
FORESTS = ("forest", "forest, r exactly", "forest, r or wrong", "forest, as if certain")
OF_WORK = {
    "sets": ("forest", "RF, forced or plain", "RF, pignistic", "ET, pignistic"),
    "mixed": (*FORESTS, "RF, forced or plain", "RF, weights 2r-1"),
    "noise": (*FORESTS, "RF, forced or plain"),
}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kinds", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--work", default=",".join(OF_WORK))
    parser.add_argument("--asking", choices=("own", "random"), default="own")
    options = parser.parse_args()
    names = options.sets.split(",")
    known = {data.name: data for data in in_folder(options.data, names, options.kinds)}
    tasks = {name: [Task(known[name], int(seed)) for seed in options.seeds.split(",")] for name in names}
    for work in options.work.split(","):
        found = {}
        for method in OF_WORK[work]:
            runs = {
                n: [METHODS[method](task, DoubtfulAnswers(task, work), options.asking) for task in tasks[n]]
                for n in names
            }
            short = {n: len(of[0]) for n, of in runs.items()}
            found[method] = {n: np.array(of) for n, of in runs.items() if short[n] == len(ANSWERS)}
        print(
            f"{work}: {len(found['forest'])} sets, seeds {options.seeds}, asking {options.asking}", flush=True
        )
        means = {
            method: np.array([100 * of.mean(axis=0) for of in each.values()])
            for method, each in found.items()
        }
        for method, mean in means.items():
            gap = np.column_stack([means["forest"] - mean, (means["forest"] - mean).mean(axis=1)])
            error = gap.std(axis=0, ddof=1) / len(gap) ** 0.5
            texts = "  ".join(f"{g:+5.1f} ± {e:3.1f}" for g, e in zip(gap.mean(axis=0), error, strict=True))
            print(
                f"  {method:28}",
                " ".join(f"{m:5.1f}" for m in mean.mean(axis=0)),
                f"   forest less it: {texts}",
            )
        for name in found["forest"]:
            cells = "  ".join(
                "/".join(f"{100 * a:.0f}" for a in each[name].mean(axis=0)) for each in found.values()
            )
            print(f"    {name:16} {cells}", flush=True)


if __name__ == "__main__":
    main()
