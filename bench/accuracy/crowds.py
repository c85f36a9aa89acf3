"""The classes of items that a crowd answered: Quercus against Dawid-Skene and the majority.

Run: python bench/accuracy/crowds.py --data FOLDER [--seeds 20] [--sets bluebird,dog,rte] [--confer .5]

FOLDER holds crowd_bluebird.csv, crowd_dog.csv.gz and crowd_rte.csv.gz. Each item keeps 3, 5 or 10 of its answers, drawn
by a seed, or all. Printed is the share of items whose likeliest class is the true one, in percent (of likeliest
classes that tie each counts by its share); the mean and its standard error over seeds, and the difference of Quercus
from the better of the two others, paired. Dawid & Skene is written here apart from Quercus: EM from the shares of the
answers, no prior, at most 100 rounds. `matrices` combines the evidence of the estimated matrices by Dempster's rule,
`cautious` by the cautious rule. With `--confer`, a labeller says what the first one of the item said, with this chance.
Below are mean Brier scores (shares of the answers for the majority).
"""

import argparse
import csv
import gzip
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quercus.belief.cautious import cautious
from quercus.belief.mass import consonant_mass
from quercus.belief.measures import pignistic
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

    def conferring(self, chance: float, seed: int) -> "Crowd":
        """Have each labeller, with a chance, say what the first one of the item said."""
        rng, said = np.random.default_rng(seed), self.said.copy()
        first = np.unique(self.items, return_index=True)[1]
        copied = rng.random(len(said)) < chance
        said[copied] = self.said[first][np.searchsorted(np.unique(self.items), self.items[copied])]
        return Crowd(self.items, self.labellers, said, self.truth, self.size)

    def brier(self, support: np.ndarray) -> float:
        """Mean Brier score of probabilities (n, l)."""
        shares = support / support.sum(axis=1, keepdims=True)
        return float(((shares - np.eye(self.size)[self.truth]) ** 2).sum(axis=1).mean())

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


def matrices_of(crowd: Crowd) -> np.ndarray:
    """Return the contour of each answer (k, l): its column of the labeller's estimated matrix, of maximum 1."""
    answers = CrowdAnswers.of(crowd.items, crowd.labellers, np.eye(crowd.size)[crowd.said])
    likely = estimate_crowd(answers).matrices[crowd.labellers, :, crowd.said]
    return likely / likely.max(axis=1, keepdims=True)


def product(crowd: Crowd) -> np.ndarray:
    """Combine the answers of each item by Dempster's rule."""
    logs = np.zeros((len(crowd.truth), crowd.size))
    np.add.at(logs, crowd.items, np.log(matrices_of(crowd)))
    found = np.exp(logs - logs.max(axis=1, keepdims=True))
    return found / found.sum(axis=1, keepdims=True)


def confer(crowd: Crowd) -> np.ndarray:
    """Combine them by the cautious rule."""
    contours = matrices_of(crowd)
    found = np.full((len(crowd.truth), crowd.size), 1.0 / crowd.size)
    for item in np.unique(crowd.items):
        distinct = np.unique(contours[crowd.items == item], axis=0)
        found[item] = pignistic(cautious(map(consonant_mass, distinct)))
    return found


METHODS: dict[str, Callable[[Crowd], np.ndarray]] = {
    "majority": majority,
    "Dawid-Skene": dawid_skene,
    "Quercus": quercus,
    "matrices": product,
    "cautious": confer,
}


def main() -> None:
    """Print a line a set and number of answers."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--confer", type=float, default=0.0)
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
            runs = range(options.seeds if count or options.confer else 1)
            parts = [whole.part(count, seed).conferring(options.confer, seed) for seed in runs]
            said = [[method(part) for method in METHODS.values()] for part in parts]
            brier = np.mean([[part.brier(each) for each in of] for part, of in zip(parts, said, strict=True)], axis=0)
            found = np.array([[part.right(each) for each in of] for part, of in zip(parts, said, strict=True)])
            better = int(found[:, :2].mean(axis=0).argmax())
            ahead = found[:, 2] - found[:, better]
            cells = [*found.T, ahead]
            texts = [
                f"{c.mean():8.1f}" + (f" ± {c.std(ddof=1) / len(c) ** 0.5:4.2f}" if len(c) > 1 else "")
                for c in cells
            ]
            print(f"{name:10}{count or most:8}{len(parts):6}", *(f"{text:>16}" for text in texts), flush=True)
            print(f"{'':10}{'Brier':>8}{'':6}", *(f"{score:16.3f}" for score in brier), flush=True)


if __name__ == "__main__":
    main()
