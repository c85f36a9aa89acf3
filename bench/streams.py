"""Streams, predict-then-learn: CPU and accuracy of the default forest beside River's forest of ten trees and its tree.

Six of River's generators. Each row is predicted before its label is known; labels come in blocks of 50, one block late,
for everybody: 50 to 99 rows after their row. The forest is `ActiveForestClassifier()` as it comes, with a seed:
``predict`` for the 50 rows of a block, then ``partial_fit`` with the block whose labels have come. River's models have
their defaults, and a seed, and get their rows one by one: they have no other way. All three go through the same 1,000
rows in turn, so that the speed of the machine, which varies, is the same for all. The rows are there, in the form that
each wants, before its clock starts.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from _measure import Clock
from _report import Report, Row, options, reporting
from river.datasets import synth
from river.forest import ARFClassifier
from river.tree import HoeffdingTreeClassifier

from quercus.estimators import ActiveForestClassifier

BLOCK, TURN = 50, 1_000
OF_FOREST, OF_TREE = 0.1, 1.5  # wanted of the CPU of River's forest, and of its tree where nothing changes

Rows = tuple[list[dict], np.ndarray, np.ndarray]  # as River wants them; values (n, K) and classes (n,)


def changing_sea(rows: int) -> Iterator:
    """Yield rows of SEA with another threshold in each quarter; one label in ten is wrong."""
    return chain.from_iterable(
        synth.SEA(variant=variant, noise=0.1, seed=variant).take(-(-rows // 4)) for variant in range(4)
    )


def changing_led(rows: int) -> Iterator:
    """Yield rows of LED with 17 idle attributes; in the second half four of the seven are others."""
    return chain.from_iterable(
        synth.LEDDrift(
            seed=drifted, noise_percentage=0.1, irrelevant_features=True, n_drift_features=drifted
        ).take(-(-rows // 2))
        for drifted in (0, 4)
    )


def agrawal(rows: int) -> Iterator:
    return synth.Agrawal(classification_function=4, seed=0, perturbation=0.05).take(rows)


def hyperplane(rows: int) -> Iterator:
    return synth.Hyperplane(seed=0, n_features=10, n_drift_features=5, mag_change=0.001).take(rows)


def still_rbf(rows: int) -> Iterator:
    return synth.RandomRBF(seed_model=0, seed_sample=0, n_classes=5, n_features=10, n_centroids=50).take(rows)


def moving_rbf(rows: int) -> Iterator:
    return synth.RandomRBFDrift(
        seed_model=0, seed_sample=0, n_classes=5, n_features=10, n_centroids=50, change_speed=0.001
    ).take(rows)


STREAMS: dict[str, tuple[Callable[[int], Iterator], bool]] = {  # and whether it stays the same
    "SEA": (changing_sea, False),
    "Agrawal": (agrawal, True),
    "moving RBF": (moving_rbf, False),
    "still RBF": (still_rbf, True),
    "LED with drift": (changing_led, False),
    "hyperplane": (hyperplane, False),
}


def drawn(make: Callable[[int], Iterator], count: int) -> Rows:
    pairs = list(make(count))
    dictionaries = [row for row, _ in pairs]
    return (
        dictionaries,
        np.array([list(row.values()) for row in dictionaries], dtype=np.float64),
        np.array([int(label) for _, label in pairs]),
    )


@dataclass
class Learner:
    """A learner on its way through a stream: CPU seconds, and rows that were predicted right."""

    clock: Clock = field(default_factory=Clock)
    right: int = 0


class Forest(Learner):
    def __init__(self, classes: int) -> None:
        super().__init__()
        self.model = ActiveForestClassifier(classes=list(range(classes)), random_state=0)
        self.waiting: deque[tuple[np.ndarray, np.ndarray]] = deque()

    def go_through(self, _, values: np.ndarray, classes: np.ndarray) -> None:
        for start in range(0, len(values), BLOCK):
            X, y = values[start : start + BLOCK], classes[start : start + BLOCK]
            with self.clock:
                known = hasattr(self.model, "model_")
                found = self.model.predict(X) if known else np.zeros(len(X), dtype=np.int64)
            self.right += int((found == y).sum())
            self.waiting.append((X, y))
            if len(self.waiting) > 1:
                with self.clock:
                    self.model.partial_fit(*self.waiting.popleft())


class River(Learner):
    def __init__(self, model) -> None:
        super().__init__()
        self.model = model
        self.waiting: deque[tuple[list[dict], list[int]]] = deque()

    def go_through(self, dictionaries: list[dict], _, classes: np.ndarray) -> None:
        for start in range(0, len(dictionaries), BLOCK):
            X, y = dictionaries[start : start + BLOCK], classes[start : start + BLOCK].tolist()
            with self.clock:
                found = [self.model.predict_one(row) for row in X]
            self.right += sum(one == other for one, other in zip(found, y, strict=True))
            self.waiting.append((X, y))
            if len(self.waiting) > 1:
                with self.clock:
                    for row, label in zip(*self.waiting.popleft(), strict=True):
                        self.model.learn_one(row, label)


def measure(report: Report, name: str, rows: Rows, *, stays: bool) -> None:
    dictionaries, values, classes = rows
    forest = Forest(int(classes.max()) + 1)
    rivers = {
        "ARF, 10 trees": River(ARFClassifier(n_models=10, seed=0)),
        "HoeffdingTree": River(HoeffdingTreeClassifier()),
    }
    for start in range(0, len(values), TURN):
        here = slice(start, start + TURN)
        for learner in (forest, *rivers.values()):
            learner.go_through(dictionaries[here], values[here], classes[here])
    mine, arf, tree = (each.clock.seconds for each in (forest, *rivers.values()))
    wanted = f"≤ {OF_FOREST:g} × ARF" + (f", ≤ {OF_TREE:g} × tree" if stays else "")
    best = max(each.right for each in rivers.values())
    report.add(
        Row(
            f"{name}, {len(values):,} rows: CPU",
            f"{mine:.2f} s",
            "; ".join(f"{title} {each.clock.seconds:.2f} s" for title, each in rivers.items()),
            f"{mine / arf:.3f} of ARF, {mine / tree:.2f} of the tree",
            wanted,
            bool(mine <= OF_FOREST * arf and (not stays or mine <= OF_TREE * tree)),
        ),
        Row(
            f"{name}, {len(values):,} rows: accuracy",
            f"{forest.right / len(values):.4f}",
            "; ".join(f"{title} {each.right / len(values):.4f}" for title, each in rivers.items()),
            f"{100 * (forest.right - best) / len(values):+.1f} points",
            "≥ the better one",
            bool(forest.right >= best),
        ),
    )


def main() -> None:
    quick = options().quick
    count = 4_000 if quick else 20_000
    with reporting(
        "Streams, predict-then-learn, labels 50 to 99 rows late", ("river", "scikit-learn"), quick=quick
    ) as report:
        for name, (make, stays) in STREAMS.items():
            measure(report, name, drawn(make, count), stays=stays)
        report.note(
            "The ratio is Quercus's CPU as a share of the peer's: below 1 Quercus is the better one. Rows of the "
            "forest come 50 at a time, those of River one at a time; attributes are numbers for everybody."
        )


if __name__ == "__main__":
    main()
