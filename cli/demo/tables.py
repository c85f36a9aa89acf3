"""The CSV files of the demo's processes, each with only the data that its process may know."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path

CLASSES = ("Barolo", "Grignolino", "Barbera")
"""The frame; scikit-learn numbers the wines in this order."""
TRAINING, TRUTH, HOLDOUT = "wine.csv", "truth.csv", "holdout.csv"
"""The rows of the sensor, the labels of the labellers, the test rows of the classifier."""


def write_table(path: Path, header: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a CSV file."""
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(header)
        writer.writerows(rows)


def read_table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, as text."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def row_numbers(row: dict[str, str]) -> dict[str, float]:
    """Return a row of measurements."""
    return {name: float(cell) for name, cell in row.items()}
