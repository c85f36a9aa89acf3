"""Files of labels: contours (a column a class) and true classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from quercus.client.files.errors import FileError
from quercus.client.files.schema import class_of, number
from quercus.client.files.table import Table, listed, open_table
from quercus.client.results import Floats


def contours(table: Table, classes: Sequence[str]) -> Iterator[Floats]:
    """The plausibilities (l,) of each row, in the order of ``classes``.

    Raises
    ------
    FileError
        When the header is not the frame, or a cell is no plausibility, or a row has none above 0.
    """
    strangers = [name for name in table.names if name not in classes]
    absent = [name for name in classes if name not in table.names]
    if strangers or absent:
        what = (
            f"{listed(strangers)} is no class" if strangers else f"no column for the class {listed(absent)}"
        )
        raise FileError(table.path, f"the header must name the classes {listed(classes)}: {what}", 1)
    order = [table.names.index(name) for name in classes]
    for record in table:
        row = np.empty(len(order))
        for c, k in enumerate(order):
            cell = record.cells[k]
            value = None if cell is None else number(cell)
            if value is None or not 0.0 <= value <= 1.0:
                shown = "a missing value" if cell is None else repr(cell)
                raise table.error(record, k, f"{shown} is not a plausibility in [0, 1]")
            row[c] = value
        if not row.any():
            raise FileError(
                table.path, "every plausibility is 0; at least one class must be possible", record.line
            )
        yield row


def truth(
    path: Path,
    column: str | None,
    classes: Sequence[str],
    *,
    id_column: str | None = None,
    delimiter: str = ",",
) -> dict[str, str | None]:
    """The true class of each instance, ``None`` where the file has a missing value.

    Parameters
    ----------
    path
        A CSV or ARFF file.
    column
        Holds the class; default: ``class``, the only column, or the last one of an ARFF file.
    classes
        The frame.
    id_column
        Holds the instances' ids; default: the id is the 0-based number of the row.

    Raises
    ------
    FileError
        When no column is meant, a class is not in the frame, or an id comes twice.
    """
    table = open_table(path, delimiter=delimiter)
    k = truth_column(table, column)
    ids = None if id_column is None else table.position(id_column, "--id-column")
    answers: dict[str, str | None] = {}
    for row, record in enumerate(table):
        key = str(row) if ids is None else record.cells[ids]
        if key is None or key in answers:
            raise table.error(
                record, ids or 0, "the id is missing" if key is None else f"the id {key!r} comes twice"
            )
        answers[key] = class_of(table, record, k, classes)
    return answers


def truth_column(table: Table, given: str | None) -> int:
    """Index of the column that holds the class in a file of answers."""
    if given is not None and given in table.names:
        return table.names.index(given)
    if len(table.names) == 1:
        return 0
    if given is not None:
        return table.position(given, "--class")
    if "class" in table.names:
        return table.names.index("class")
    if table.is_arff:
        return len(table.names) - 1
    reason = f"which column holds the class? Name it with --class; the columns are {listed(table.names)}"
    raise FileError(table.path, reason)
