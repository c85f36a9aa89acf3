"""An oracle that refuses in one region: queries wasted there, and accuracy, as refused rows cover others or not.

Run: python bench/accuracy/refusals.py --data FOLDER --kinds KINDS.json [--seeds 3]
"""

import argparse
from pathlib import Path

import numpy as np

from quercus.experiments.datasets import in_folder
from quercus.trees.memory_forest.asking import NO_ROWS, choose_rows
from quercus.trees.memory_forest.forest import MemoryForest

QUERIES, LOOKS, TREES, SHARE = 80, (40, 80), 50, 0.3
World = tuple[np.ndarray, np.ndarray, np.ndarray]  # values, classes, whether nobody can answer


def generated(seed: int) -> World:
    rng = np.random.default_rng(seed)
    values = rng.random((700, 4))
    region = values[:, 2] > 1 - SHARE
    klass = ((values[:, 0] > 0.5) ^ (values[:, 1] > 0.5)).astype(int)
    return values, np.where(region, rng.integers(0, 2, 700), klass), region


def ionosphere(data: Path, kinds: Path) -> World:
    (found,) = in_folder(data, ["ionosphere"], kinds)
    scaled = np.nan_to_num((found.values - found.values.mean(0)) / (found.values.std(0) + 1e-9))
    along = np.linalg.svd(scaled - scaled.mean(0), full_matrices=False)[0][:, 0]
    return found.values, found.targets, along > np.quantile(along, 1 - SHARE)


def asked(world: World, seed: int, covers: bool) -> list[float]:
    """Return, for each look, the refusals and the accuracy outside the region and on all rows."""
    values, klass, region = world
    rows = np.random.default_rng(seed + 100).permutation(len(values))
    pool, rest = rows[: len(rows) * 7 // 10], rows[len(rows) * 7 // 10 :]
    size = int(klass.max()) + 1
    forest = MemoryForest(np.zeros(values.shape[1], bool), size, trees=TREES, seed=seed, level=0.75)
    forest.observe(values[pool], np.ones((len(pool), size)))
    free, refused, found = np.ones(len(pool), bool), [], []
    for query in range(1, QUERIES + 1):
        covering = np.array(refused, np.int64) if covers else NO_ROWS
        (choice,) = choose_rows(forest, np.flatnonzero(free), 1, covering)
        free[choice.row] = False
        if region[pool[choice.row]]:
            refused.append(choice.row)
        else:
            forest.replace_contour(choice.row, np.eye(size)[klass[pool[choice.row]]])
        if query in LOOKS:
            right = forest.predict(values[rest]).klass == klass[rest]
            found += [len(refused), right[~region[rest]].mean(), right.mean()]
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--kinds", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in ("generated", "ionosphere"):
        for covers in (False, True):
            runs = [
                asked(
                    generated(seed) if name == "generated" else ionosphere(options.data, options.kinds),
                    seed,
                    covers,
                )
                for seed in range(options.seeds)
            ]
            said = np.mean(runs, axis=0).round(3).tolist()
            print(f"{name}, refused rows {'cover' if covers else 'do not cover'}: {said}")


if __name__ == "__main__":
    main()
