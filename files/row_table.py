"""Rows of a model as a table for other programs: the known class, the model's guess, and the values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from quercus.client.results import Instance
from quercus.client.values import cell_of
from quercus.files.writing import OutputTable
from quercus.specification.attributes import Attribute, Numeric, column_names
from quercus.specification.written_labels import write_name
from quercus.view.rows import likeliest_classes

HEADER: Final[dict[str, type]] = {
    "item": str,
    "class": str,
    "guess": str,
    "doubt": float,
    "conflict": bool,
}


def row_table(
    rows: Iterable[Instance], attributes: Sequence[Attribute], classes: Sequence[str]
) -> OutputTable:
    """Return a table with a row for each row of a model.

    Parameters
    ----------
    rows
        The rows, with the guesses of the model.
    attributes, classes
        Attributes and classes of the model.
    """
    names = column_names([each.name for each in attributes], HEADER)
    kinds = [*HEADER.values(), *(float if isinstance(each, Numeric) else str for each in attributes)]
    cells = (
        [
            row.id,
            "|".join(map(write_name, likeliest_classes(row, classes))) or None,
            None if row.guess is None else write_name(row.guess.class_name),
            None if row.guess is None else round(row.guess.doubt, 6),
            row.conflict,
            *(cell_of(row.values.get(each.name)) for each in attributes),
        ]
        for row in rows
    )
    return OutputTable([*HEADER, *names], kinds, cells)
