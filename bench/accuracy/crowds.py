"""The classes of items that a crowd answered: Quercus against Dawid-Skene and the majority.

Run: python bench/accuracy/crowds.py --data FOLDER [--seeds 20] [--sets bluebird,dog,rte]

FOLDER holds crowd_bluebird.csv, crowd_dog.csv.gz and crowd_rte.csv.gz. Each item keeps 3, 5 or 10 of its answers, drawn
by a seed, or all. Printed is the share of items whose likeliest class is the true one, in percent (of likeliest
classes that tie each counts by its share); the mean and its standard error over seeds, and the difference of Quercus
from the better of the two others, paired. Dawid & Skene is written here apart from Quercus: EM from the shares of the
answers, no prior, at most 100 rounds.
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quercus.labelling.crowds import CrowdAnswers, estimate_crowd

FILES = {"bluebird": "crowd_bluebird.csv", "dog": "crowd_dog.csv.gz", "rte": "crowd_rte.csv.gz"}
COUNTS = (3, 5, 10, None)
ROUNDS = 100
SETTLED = 1e-6


@dataclass(frozen=True)
class Crowd:
    """Answers (k,): of which item, by whom, which class; and the true classes (n,)."""

    items: np.ndarray
    labellers: np.ndarray
    said: np.ndarray
    truth: np.ndarray
    size: int

    @classmethod
    def read(cls, file: Path) -> "Crowd":
        data = file.read_bytes()
        text = (gzip.decompress(data) if file.suffix == ".gz" else data).decode()
        truth: dict[str, str] = {}
        answers: list[tuple[str, str, str]] = []
        for row, cells in enumerate(csv.DictReader(text.splitlines())):
            item = cells.get("item", str(row))
            truth[item] = cells["class"]
            if "answer" in cells:
                answers.append((item, cells["worker"], cells["answer"]))
            else:
                answers += [(item, who, what) for who, what in cells.items() if who != "class"]
        classes = sorted({*truth.values(), *(what for _, _, what in answers)})
        names, items = np.unique([item for item, _, _ in answers], return_inverse=True)
        _, labellers = np.unique([who for _, who, _ in answers], return_inverse=True)
        said = np.array([classes.index(what) for _, _, what in answers])
        return cls(items, labellers, said, np.array([classes.index(truth[n]) for n in names]), len(classes))

    def part(self, count: int | None, seed: int) -> "Crowd":
        """Keep so many answers of each item."""
        if count is None:
            return self
        order = np.random.default_rng(seed).permutation(len(self.items))
        order = order[np.argsort(self.items[order], kind="stable")]
        first = np.searchsorted(self.items[order], self.items[order])
        kept = order[np.arange(len(order)) - first < count]
        return Crowd(self.items[kept], self.labellers[kept], self.said[kept], self.truth, self.size)

    def right(self, support: np.ndarray) -> float:
        """Share of items whose class has the most support (n, l), in percent."""
        best = support >= support.max(axis=1, keepdims=True) - 1e-9
        return 100 * float((best[np.arange(len(self.truth)), self.truth] / best.sum(axis=1)).mean())


def majority(crowd: Crowd) -> np.ndarray:
    votes = np.zeros((len(crowd.truth), crowd.size))
    np.add.at(votes, (crowd.items, crowd.said), 1.0)
    return votes


def dawid_skene(crowd: Crowd) -> np.ndarray:
    votes = majority(crowd)
    q = votes / votes.sum(axis=1, keepdims=True)
    for _ in range(ROUNDS):
        counts = np.zeros((crowd.labellers.max() + 1, crowd.size, crowd.size))
        np.add.at(counts, (crowd.labellers, slice(None), crowd.said), q[crowd.items])
        counts += 1e-10
        matrices = counts / counts.sum(axis=2, keepdims=True)
        joint = np.tile(np.log(q.mean(axis=0) + 1e-300), (len(q), 1))
        np.add.at(joint, crowd.items, np.log(matrices[crowd.labellers, :, crowd.said]))
        before, q = q, np.exp(joint - joint.max(axis=1, keepdims=True))
        q /= q.sum(axis=1, keepdims=True)
        if np.abs(q - before).max() < SETTLED:
            break
    return q


def quercus(crowd: Crowd) -> np.ndarray:
    answers = CrowdAnswers.of(crowd.items, crowd.labellers, np.eye(crowd.size)[crowd.said])
    return estimate_crowd(answers).classes


METHODS: dict[str, Callable[[Crowd], np.ndarray]] = {
    "majority": majority,
    "Dawid-Skene": dawid_skene,
    "Quercus": quercus,
}


def main() -> None:
    """Print a line a set and number of answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--sets", default=",".join(FILES))
    options = parser.parse_args()
    if missing := [
        FILES[name] for name in options.sets.split(",") if not (options.data / FILES[name]).exists()
    ]:
        sys.exit(f"SKIPPED: {options.data} has no {', '.join(missing)}")
    print(f"{'set':10}{'answers':>8}{'seeds':>6}", *(f"{name:>16}" for name in METHODS), "less the better")
    for name in options.sets.split(","):
        whole = Crowd.read(options.data / FILES[name])
        most = np.bincount(whole.items).max()
        for count in COUNTS:
            if count is not None and count >= most:
                continue
            parts = [whole.part(count, seed) for seed in range(1 if count is None else options.seeds)]
            found = np.array([[part.right(method(part)) for method in METHODS.values()] for part in parts])
            better = int(found[:, :2].mean(axis=0).argmax())
            ahead = found[:, 2] - found[:, better]
            cells = [*found.T, ahead]
            texts = [
                f"{c.mean():8.1f}" + (f" ± {c.std(ddof=1) / len(c) ** 0.5:4.2f}" if len(c) > 1 else "")
                for c in cells
            ]
            print(f"{name:10}{count or most:8}{len(parts):6}", *(f"{text:>16}" for text in texts), flush=True)


if __name__ == "__main__":
    main()
