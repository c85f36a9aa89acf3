"""The demo's data: scikit-learn's wine, split in two; each process reads a CSV file with only what it may know."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from quercus.client.values import Floats

CLASSES = ("Barolo", "Grignolino", "Barbera")
"""The frame; scikit-learn numbers the wines in this order."""
TRAINING, TRUTH, HOLDOUT = "wine.csv", "truth.csv", "holdout.csv"
"""The rows of the sensor, the labels of the labellers, the test rows of the classifier."""
HOLDOUT_SHARE = 0.3
ANSWERS_SHARE = 4
"""The budget is one answer for this number of training rows."""


@dataclass(frozen=True, eq=False)
class Split:
    """Training rows and held-out rows.

    Attributes
    ----------
    attributes : names of the measurements.
    ids : (n,) of the training rows.
    training : (n, K) values of the training rows.
    training_classes : (n,) their true classes.
    holdout : (m, K) values of the held-out rows.
    holdout_classes : (m,) their true classes.
    """

    attributes: tuple[str, ...]
    ids: tuple[str, ...]
    training: Floats
    training_classes: tuple[str, ...]
    holdout: Floats
    holdout_classes: tuple[str, ...]

    @property
    def budget(self) -> int:
        """A quarter of the training rows."""
        return len(self.ids) // ANSWERS_SHARE


def make_split(seed: int) -> Split:
    """Return the wine data split 70/30, each class in proportion, by ``seed``."""
    from sklearn.datasets import load_wine  # noqa: PLC0415  (sensor and classifier need none)
    from sklearn.model_selection import train_test_split  # noqa: PLC0415

    wine = load_wine()
    names = [CLASSES[number] for number in wine.target]
    training, holdout = train_test_split(
        np.arange(len(names)), test_size=HOLDOUT_SHARE, stratify=names, random_state=seed
    )
    return Split(
        attributes=tuple(wine.feature_names),
        ids=tuple(f"bottle-{row}" for row in training),
        training=wine.data[training],
        training_classes=tuple(names[row] for row in training),
        holdout=wine.data[holdout],
        holdout_classes=tuple(names[row] for row in holdout),
    )


def write_split(split: Split, folder: Path) -> None:
    """Write the rows of the sensor, the knowledge of the labellers, and the test rows of the classifier."""
    with_id = [[name, *row] for name, row in zip(split.ids, split.training.tolist(), strict=True)]
    write_table(folder / TRAINING, ["id", *split.attributes], with_id)
    write_table(folder / TRUTH, ["id", "class"], zip(split.ids, split.training_classes, strict=True))
    with_class = [[*row, c] for row, c in zip(split.holdout.tolist(), split.holdout_classes, strict=True)]
    write_table(folder / HOLDOUT, [*split.attributes, "class"], with_class)


def write_table(path: Path, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


def read_rows(path: Path, column: str) -> tuple[list[str], list[dict[str, float]]]:
    """Return a column of names in a CSV file, and the measurements of each row."""
    with path.open(newline="", encoding="utf-8") as stream:
        table = list(csv.DictReader(stream))
    names = [row.pop(column) for row in table]
    return names, [{name: float(cell) for name, cell in row.items()} for row in table]
