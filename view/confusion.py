"""Confusion matrices for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quercus.client.results import ConfusionCell
from quercus.specification.shares import percent_text


@dataclass(frozen=True)
class ConfusionTable:
    """A confusion matrix for people; classes that do not occur are left out.

    Attributes
    ----------
    classes
        The given and the accepted classes that occur, in the order of the model.
    rows
        For each accepted class: its name, how often each class was given, and the share that was right, in words.
    precision
        For each class, the share of its uses that was right, in words.
    count, right
        Rows in all, and those on the diagonal.
    """

    classes: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...], str], ...]
    precision: tuple[str, ...]
    count: int
    right: int


def confusion_table(cells: Sequence[ConfusionCell], classes: Sequence[str]) -> ConfusionTable:
    """Return a confusion matrix for people.

    Examples
    --------
    >>> cells = [ConfusionCell(0, 0, 8), ConfusionCell(0, 2, 2), ConfusionCell(2, 2, 6)]
    >>> table = confusion_table(cells, ("oak", "ash", "elm"))
    >>> table.classes, table.rows, table.precision
    (('oak', 'elm'), (('oak', (8, 0), '100 %'), ('elm', (2, 6), '75 %')), ('80 %', '100 %'))
    >>> table.count, table.right
    (16, 14)
    """
    counts = {
        (each.said, each.holds): each.rows for each in cells if max(each.said, each.holds) < len(classes)
    }
    there = sorted({k for pair in counts for k in pair})
    rows, precision = [], []
    for k in there:
        said = tuple(counts.get((other, k), 0) for other in there)
        rows.append((classes[k], said, _share(counts.get((k, k), 0), sum(said))))
        precision.append(_share(counts.get((k, k), 0), sum(counts.get((k, other), 0) for other in there)))
    right = sum(counts.get((k, k), 0) for k in there)
    return ConfusionTable(
        tuple(classes[k] for k in there), tuple(rows), tuple(precision), sum(counts.values()), right
    )


def _share(part: int, whole: int) -> str:
    return percent_text(part / whole) if whole else "–"
