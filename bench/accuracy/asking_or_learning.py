"""Asking compared with learning: forest and extra-trees learn from the rows that the other one asked for.

Run: python bench/accuracy/asking_or_learning.py --data FOLDER --kinds KINDS.json [--seeds 100,101] [--sets zoo,vote]

Splits and methods are those of `from_zero.py`. Printed is, for who asks and who learns, the accuracy in percent after
5, 10, 20, 40, 60 and 100 answers, less that of the forest which asks and learns: mean over sets, with standard errors.
"""

import argparse
import warnings
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from from_zero import (
    ANSWERS,
    BUILT_IN,
    Task,
    area,
    forest_asks,
    learned,
    margin_asks,
    untold_forest,
)
from sklearn.ensemble import ExtraTreesClassifier

from quercus.experiments.datasets import built_in, in_folder

SETS = "zoo,vote,ionosphere,sonar,soybean,car_evaluation,wifi_localization,digits"


def forest_learns(task: Task, told: list[int]) -> np.ndarray:
    model = untold_forest(task)
    for row in told:
        model.replace_contour(row, np.eye(task.size)[task.y[row]])
    return model.predict(task.test).klass


def curves(task: Task) -> Iterator[tuple[str, np.ndarray]]:
    asks = {
        "forest": lambda: forest_asks(task, untold_forest(task)),
        "extra-trees": lambda: margin_asks(task, ExtraTreesClassifier),
    }
    learns = {
        "forest": forest_learns,
        "extra-trees": lambda task, told: learned(task, ExtraTreesClassifier, told),
    }
    for asker, rows in asks.items():
        told = [list(found) for answers, found in enumerate(rows(), 1) if answers in ANSWERS]
        for learner, learn in learns.items():
            right = [100 * float((learn(task, each) == task.truth).mean()) for each in told]
            yield f"{asker} asks, {learner} learns", np.array(right)


def main() -> None:
    warnings.filterwarnings("ignore", message="The number of unique classes")  # few labels are meant
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kinds", type=Path, required=True)
    parser.add_argument("--seeds", default="100,101")
    parser.add_argument("--sets", default=SETS)
    options = parser.parse_args()
    found: dict[str, list[np.ndarray]] = defaultdict(list)
    for name in options.sets.split(","):
        (data,) = built_in([name]) if name in BUILT_IN else in_folder(options.data, [name], options.kinds)
        of_set = defaultdict(list)
        for seed in map(int, options.seeds.split(",")):
            for pair, curve in curves(Task(data, seed)):
                of_set[pair].append(curve)
        for pair, each in of_set.items():
            found[pair].append(np.mean(each, axis=0))
    print("area, then at", "/".join(map(str, ANSWERS)))
    base = np.array(found["forest asks, forest learns"])
    for pair, each in found.items():
        gap = np.array(each) - base
        parts = [area(gap), *gap.T]
        texts = (f"{part.mean():+5.1f} ± {part.std(ddof=1) / len(part) ** 0.5:.1f}" for part in parts)
        print(f"{pair:38}", "  ".join(texts))


if __name__ == "__main__":
    main()
