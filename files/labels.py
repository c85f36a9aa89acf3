"""Files of labels, and columns of true classes.

A label file has a row for each row of the data, in one of three forms, which its header determines:

- *masses*: a column for each focal set, with classes separated by ``|`` (``A``, ``B``, ``A|B``); unless the frame is
  given, one of them is for the whole frame; a cell is the mass of the set; other columns are left out;
- *plausibilities*: a column for each class; a cell is the plausibility of the class;
- *class*: one column; a cell is a label as text (`quercus.specification.written_labels`), or missing.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from quercus.belief.errors import shown
from quercus.client.values import Floats
from quercus.files.errors import FileError
from quercus.files.leaks import CLASS, ColumnContent, names_classes, refuse_second
from quercus.files.opening import open_table
from quercus.files.schema import class_column, class_of, frame_of, which_class
from quercus.files.table import FileRecord, FileTable, listed_names
from quercus.specification.parameters import MAX_VALUES
from quercus.specification.values import finite_number
from quercus.specification.written_labels import Label, read_label, set_parts

SUM_TOLERANCE = 2e-3
"""Greatest deviation from 1 of a sum of masses, printed with three digits per cell; masses are rescaled."""

Form = Literal["masses", "plausibilities", "class"]
FileLabel = Label | Floats
"""A label from a cell, or plausibilities (l,) in the order of the frame."""


@dataclass(frozen=True)
class LabelFile:
    """An opened label file, see `open_labels`; iterating reads the labels.

    Parameters
    ----------
    table
        The file.
    form
        One of the three forms.
    classes
        The frame.
    columns
        The used columns: the index of each, and the classes of its set; no classes for a class column.
    """

    table: FileTable
    form: Form
    classes: tuple[str, ...]
    columns: tuple[tuple[int, tuple[str, ...]], ...]

    def __iter__(self) -> Iterator[FileLabel]:
        return map(self.label, self.table)

    def label(self, record: FileRecord) -> FileLabel:
        """Return the label of a record."""
        if self.form == "class":
            return label_of(self.table, record, self.columns[0][0], self.classes)
        if self.form == "masses":
            row = {frozenset(names): self._cell_share(record, k, "mass") for k, names in self.columns}
            total = math.fsum(row.values())
            if abs(total - 1.0) > SUM_TOLERANCE:
                reason = (
                    f"the masses of sets of {listed_names(self.classes)} sum to {total:.6g}, must sum to 1"
                )
                raise FileError(self.table.path, reason, record.line)
            return {names: mass / total for names, mass in row.items() if mass}
        plausibilities = np.zeros(len(self.classes))
        for k, (name,) in self.columns:
            plausibilities[self.classes.index(name)] = self._cell_share(record, k, "plausibility")
        if not plausibilities.any():
            reason = "every plausibility is 0; at least one class must be possible"
            raise FileError(self.table.path, reason, record.line)
        return plausibilities

    def _cell_share(self, record: FileRecord, k: int, what: str) -> float:
        cell = record.cells[k]
        value = None if cell is None else finite_number(cell)
        if value is None or not 0.0 <= value <= 1.0:
            given = "a missing value" if cell is None else shown(cell)
            raise self.table.error(record, k, f"{given} is not a {what} in [0, 1]")
        return value


def open_labels(
    table: FileTable, classes: Sequence[str] | None = None, *, column: str | None = None
) -> LabelFile:
    """Return the label file in a table.

    Parameters
    ----------
    table
        The opened file.
    classes
        The frame. If None, it is taken from the header (for a class column, from its cells in sorted order).
    column
        The class column. If None, the file has masses if a name has ``|``, plausibilities if the columns are the
        classes, else the class column ``class`` or the only column.

    Raises
    ------
    FileError
        If the header does not match the frame, or the file is ambiguous.
    """
    frame = tuple(classes or ())
    if column is not None:
        return _class_file(table, table.position(column, "--label-column"), frame)
    if any(len(_set_of(name, frame)) > 1 for name in table.names):
        return _mass_file(table, frame)
    alone = len(table.names) == 1 and not set(table.names) & set(frame)
    if alone or (CLASS in table.names and CLASS not in frame):
        _refuse_beside(table, frame)
        k = table.names.index(CLASS) if CLASS in table.names else 0
        found = _class_file(table, k, frame)
        columns = column_cells(table, [at for at in range(len(table.names)) if at != k])
        others = [each.name for each in columns if names_classes(each, found.classes)]
        if others:  # it is unclear which of them is the label
            what = f"the columns {listed_names([table.names[k], *others])} all hold labels"
            raise FileError(table.path, f"{what}; say which one it is with --label-column", 1)
        return found
    names = [_set_of(name, frame)[0] for name in table.names]
    frame = frame or tuple(names)
    strangers = [name for name in names if name not in frame]
    absent = [name for name in frame if name not in names]
    if strangers or absent:
        what = f"no column for the class {listed_names(absent)}"
        if strangers:
            what = f"{listed_names(strangers)} is not a class"
        hint = "" if set(names) & set(frame) else "; is one a column of classes? (--label-column)"
        raise FileError(
            table.path, f"the header must name the classes {listed_names(frame)}: {what}{hint}", 1
        )
    return LabelFile(table, "plausibilities", frame, tuple((k, (name,)) for k, name in enumerate(names)))


def column_cells(table: FileTable, columns: Sequence[int]) -> list[ColumnContent]:
    """Return the contents of some columns, in one pass over the file if there are any."""
    seen: dict[int, set[str]] = {k: set() for k in columns}
    for record in table.whole_rows() if seen else ():
        for k, values in seen.items():
            cell = record.cells[k]
            if cell is not None and len(values) <= MAX_VALUES:
                values.add(cell)
    return [
        ColumnContent(table.names[k], values, all(finite_number(value) is not None for value in values))
        for k, values in seen.items()
    ]


def _refuse_beside(table: FileTable, frame: tuple[str, ...]) -> None:
    """Refuse a class column beside columns of plausibilities, since either may be the label."""
    others = [name for name in table.names if name in frame]
    first = next(table.whole_rows(), None)
    if not frame and first is not None and len(table.names) > 2:
        numbers = {
            name: finite_number(cell or "") for name, cell in zip(table.names, first.cells, strict=True)
        }
        shares = [name for name, value in numbers.items() if value is not None and 0 <= value <= 1]
        others = shares if len(shares) == len(table.names) - 1 else []
    if others:
        what = f"the columns {listed_names(others)} and 'class' both give labels"
        raise FileError(table.path, f"{what}; say which class column it is (--label-column) or remove one", 1)


def _class_file(table: FileTable, k: int, frame: tuple[str, ...]) -> LabelFile:
    if not frame:
        cells = {record.cells[k] for record in table.whole_rows()} - {None}
        frame = frame_of(table, k, (cell for cell in cells if cell is not None))
    return LabelFile(table, "class", frame, ((k, ()),))


def _set_of(name: str, frame: tuple[str, ...]) -> tuple[str, ...]:
    """Return the class, or the classes of the set, of a name in the header."""
    names = set_parts(name)
    return (name,) if name in frame and not set(names) <= set(frame) else names


def _mass_file(table: FileTable, frame: tuple[str, ...]) -> LabelFile:
    """Return the label file of masses. Columns of single names that are not classes are left out.

    If one of them is needed, the sum of the masses shows it.
    """
    sets = {k: _set_of(name, frame) for k, name in enumerate(table.names)}
    if not frame:
        whole = max(sets.values(), key=len)
        frame = tuple(dict.fromkeys(name for names in sets.values() for name in names if name in whole))
    used: dict[frozenset[str], int] = {}
    for k, names in sets.items():
        where = (1, k + 1)
        strangers = [name for name in names if name not in frame]
        if len(names) == 1 and strangers:
            continue
        if strangers:
            reason = f"{listed_names(strangers)} is not one of the classes {listed_names(frame)}"
            raise FileError(table.path, f"in {shown(table.names[k])}: {reason}", *where)
        if frozenset(names) in used:
            first = used[frozenset(names)] + 1
            raise FileError(table.path, f"the set {shown(table.names[k])} is that of column {first}", *where)
        used[frozenset(names)] = k
    return LabelFile(table, "masses", frame, tuple((k, sets[k]) for k in used.values()))


def label_of(table: FileTable, record: FileRecord, k: int, classes: Sequence[str]) -> Label:
    """Return the label in a cell; None if it is missing.

    Raises
    ------
    FileError
        If it is not a label, or a name is not in the frame.
    """
    cell = record.cells[k]
    try:
        return None if cell is None else read_label(cell, classes)
    except ValueError as error:
        raise table.error(record, k, str(error)) from error


def read_truth(
    path: Path,
    column: str | None,
    classes: Sequence[str],
    *,
    id_column: str | None = None,
    delimiter: str = ",",
    missing: Collection[str] = (),
) -> dict[str, str | None]:
    """Return the true class of each instance, by its id; None for a missing value.

    Parameters
    ----------
    path
        A CSV or ARFF file.
    column
        The column of the class; by default ``class``, the only column, or the last one of an ARFF file.
    classes
        The frame.
    id_column
        The column of the instances' ids; by default the id is the 0-based number of the row.
    delimiter, missing
        See `open_table`.

    Raises
    ------
    FileError
        If the column of the class is missing or ambiguous, a class is not in the frame, or an id comes twice.
    """
    table = open_table(path, delimiter=delimiter, missing=missing)
    k = truth_column(table, column, classes)
    ids = None if id_column is None else table.position(id_column, "--id-column")
    answers: dict[str, str | None] = {}
    for row, record in enumerate(table):
        key = str(row) if ids is None else record.cells[ids]
        if key is None or key in answers:
            raise table.error(
                record, ids or 0, "the id is missing" if key is None else f"the id {shown(key)} comes twice"
            )
        answers[key] = class_of(table, record, k, classes)
    return answers


def truth_column(table: FileTable, given: str | None, classes: Sequence[str]) -> int:
    """Return the index of the column of the true class.

    Raises
    ------
    FileError
        If it is not given and missing or ambiguous.
    """
    if given is not None and given in table.names:
        return table.names.index(given)
    if len(table.names) == 1:
        return 0
    if given is not None:
        return table.position(given, "--class")
    column = class_column(table, None)
    if column is None:
        raise FileError(table.path, which_class(table))
    k = table.names.index(column)
    others = column_cells(table, [at for at in range(len(table.names)) if at != k])
    refuse_second(table.path, others, classes, table.names[k])
    return k
