"""The time that the forest of many memories needs: from scratch, after an answer, for an agenda, for many answers.

Run: python bench/forest_growth.py

100 trees; 10 numeric attributes, 3 classes. CPU milliseconds, the least of some runs; kernels are compiled beforehand.
"""

import time
from collections.abc import Callable

import numpy as np

from quercus.trees.memory_forest.asking import choose_rows
from quercus.trees.memory_forest.forest import MemoryForest
from quercus.trees.memory_forest.members import Members

ATTRIBUTES, CLASSES, TREES = 10, 3, 100
AGENDA = 100


def world(rows: int, labelled: int) -> tuple[MemoryForest, np.ndarray]:
    rng = np.random.default_rng(0)
    values = rng.normal(size=(rows, ATTRIBUTES))
    klass = (values[:, 0] > 0).astype(int) + (values[:, 1] > 0.5)
    contours = np.ones((rows, CLASSES))
    contours[:labelled] = np.eye(CLASSES)[klass[:labelled]]
    forest = MemoryForest(np.zeros(ATTRIBUTES, bool), CLASSES, trees=TREES, seed=0, level=0.75)
    forest.observe(values, contours)
    forest.members()
    return forest, klass


def cpu_ms(what: Callable[[], object]) -> float:
    began = time.process_time()
    what()
    return 1000 * (time.process_time() - began)


def from_scratch(labelled: int) -> float:
    forest, _ = world(labelled, labelled)
    return min(cpu_ms(lambda: Members.of(forest.evidence.present_moment(), TREES, 0, None)) for _ in range(9))


def after_an_answer(rows: int, labelled: int) -> tuple[float, float]:
    """Return the CPU milliseconds until the forest is grown, and until the next agenda is ready."""
    forest, klass = world(rows, labelled)
    every = np.arange(labelled, rows)
    list(choose_rows(forest, every, AGENDA))
    growing, asking = [], []
    for row in range(labelled, labelled + 7):

        def learn(row: int = row) -> None:
            forest.replace_contour(row, np.eye(CLASSES)[klass[row]])
            forest.members()

        growing.append(cpu_ms(learn))
        asking.append(cpu_ms(lambda row=row: list(choose_rows(forest, np.arange(row + 1, rows), AGENDA))))
    return min(growing), min(a + b for a, b in zip(growing, asking, strict=True))


def at_once(answers: int, names: int = 0, doubtful: bool = False) -> float:
    """Answers that come together, until the forest is grown; attributes are numbers, or have so many names."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(answers, ATTRIBUTES))
    klass = (values[:, 0] > 0).astype(int) + (values[:, 1] > 0.5)
    if names:
        values = np.floor(np.abs(values) / np.abs(values).max() * names)
    contours = np.eye(CLASSES)[klass]
    if doubtful:
        contours = np.maximum(contours, np.round(rng.random((answers, CLASSES)), 2) * 0.8)
    forest = MemoryForest(np.full(ATTRIBUTES, names > 0), CLASSES, trees=TREES, seed=0, level=0.75)
    forest.observe(values, np.ones((answers, CLASSES)))

    def learn() -> None:
        for row in range(answers):
            forest.replace_contour(row, contours[row])
        forest.members()

    return cpu_ms(learn)


def main() -> None:
    from_scratch(30)
    print(f"from scratch, 100 labelled rows: {from_scratch(100):.1f} ms")
    for rows, labelled in ((1_000, 100), (100_000, 1_000)):
        grown, asked = after_an_answer(rows, labelled)
        print(
            f"an answer at {rows:,} rows, {labelled:,} labelled: grown {grown:.1f} ms, "
            f"next {AGENDA} queries {asked:.1f} ms"
        )
    for answers in (2_000, 20_000):
        print(f"{answers:,} answers at once: {at_once(answers) / 1000:.1f} s")
    for what, arguments in (("500 names an attribute", (500,)), ("all of them doubtful", (0, True))):
        print(f"1,000 answers at once, {what}: {at_once(1_000, *arguments) / 1000:.1f} s")


if __name__ == "__main__":
    main()
