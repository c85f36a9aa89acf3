"""A complete data file with its labels: the frame, the attributes, and the values as an array."""

from __future__ import annotations

import math
import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from quercus.client.values import Floats
from quercus.files.cells import range_in
from quercus.files.errors import FileError, FileWarning
from quercus.files.inspection import Remark, no_number
from quercus.files.labels import FileLabel, label_of, open_labels
from quercus.files.opening import open_table
from quercus.files.schema import class_column, code_reader, infer_schema, number_in
from quercus.files.table import FileTable
from quercus.specification.attributes import Attribute, Nominal, WholeNominal
from quercus.specification.written_labels import Label

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class FileData:
    """The result of `read`.

    Parameters
    ----------
    path
        The data file.
    attributes
        ``Nominal`` or ``Numeric``, in the order of the columns.
    classes
        The frame, in order; empty if the classes are unknown.
    values
        (n, K) numbers of numeric attributes, and indices of the values of nominal ones; NaN for missing values. Names
        beyond the bound of an attribute have its number of values as index.
    labels
        A label for each row: a class, a frozenset of classes, plausibilities (l,), a dict of frozensets to masses, or
        None if nothing is known. None if there are no labels.
    truth
        Contents of the class column; None if there is none. They are the labels unless there was a label file.
    weights
        (n,) weights of the rows, 1 by default.
    remarks
        Remarks about faults and about columns that are left out, with column, line and advice.
    parts
        Ranges of uncertain values (sets or ranges), by row and attribute; `values` has NaN there.
    """

    path: Path
    attributes: tuple[Attribute, ...]
    classes: tuple[str, ...]
    values: Floats
    labels: tuple[FileLabel, ...] | None
    truth: tuple[Label, ...] | None
    weights: Floats
    remarks: tuple[Remark, ...] = ()
    parts: Mapping[tuple[int, int], tuple[tuple[float, float], ...]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def whole_attributes(self) -> tuple[Attribute, ...]:
        """The attributes, with a value for each index in their column, also for names beyond the bound."""
        return tuple(
            WholeNominal.of(each) if isinstance(each, Nominal) and each.most_values in column else each
            for each, column in zip(self.attributes, self.values.T, strict=True)
        )

    def frame(self) -> pd.DataFrame:
        """Return the values as a pandas DataFrame with columns of floats for numeric attributes, else categorical ones.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        import pandas as pd  # noqa: PLC0415  (only who asks for a DataFrame needs it)

        columns: dict[str, object] = {}
        for k, attribute in enumerate(self.whole_attributes):
            column = self.values[:, k]
            if isinstance(attribute, Nominal):
                codes = np.where(np.isnan(column), -1, column).astype(np.int64)
                categories = pd.CategoricalDtype(list(attribute.values))
                columns[attribute.name] = pd.Categorical.from_codes(codes, dtype=categories)
            else:
                columns[attribute.name] = column
        return pd.DataFrame(columns)


def read(
    path: Path | str,
    *,
    class_name: str | None = None,
    label_file: Path | str | None = None,
    label_column: str | None = None,
    ignore: Collection[str] = (),
    nominal: Collection[str] = (),
    numeric: Collection[str] = (),
    attributes: Collection[str] = (),
    delimiter: str = ",",
    missing: Collection[str] = (),
    quietly: bool = False,
) -> FileData:
    """Read a CSV, ARFF, Parquet or Arrow file, also a packed one, with the labels of its rows.

    Parameters
    ----------
    path
        The data file; its ending determines the format.
    class_name
        Column of the class or a set of classes (``A|B``), with empty cells for unknown ones. By default ``class``, or
        the last column of an ARFF file without a label file, else none.
    label_file
        File with a label for each row, in one of the forms of `quercus.files.labels`; its header determines the
        frame.
    label_column
        The column of classes in the label file, see `open_labels`.
    ignore, nominal, numeric
        Columns to leave out; columns of names, whatever they look like; and columns of numbers or of times in ISO 8601,
        which become seconds since 1970 UTC.
    attributes
        Columns that are attributes although they look like labels, or identify rows.
    delimiter
        Separator of both files, if they are CSV.
    missing
        Words for a missing value in both files, such as ``NA``, besides an empty cell and ``?``.
    quietly
        Do not warn of columns that are left out; they are in `FileData.remarks`.

    Raises
    ------
    FileError
        With file, line and column, if a file is invalid; also if labels would become an attribute.
    """
    table = open_table(path, delimiter=delimiter, missing=missing, quietly=quietly)
    is_labelled = label_file is not None and class_name is None and "class" not in table.names
    column = None if is_labelled else class_column(table, class_name)
    source = None
    if label_file is not None:
        labels_table = open_table(label_file, delimiter=delimiter, missing=missing)
        source = open_labels(labels_table, column=label_column)
    schema = infer_schema(
        table,
        class_column=column,
        ignore=ignore,
        nominal=nominal,
        numeric=numeric,
        attributes=attributes,
        frame=() if source is None else source.classes,
        every_row=True,
    )
    for each in schema.remarks:
        if each.outcome == "left out" and not quietly:
            warnings.warn(f"{table.path}: left out: {each}", FileWarning, stacklevel=2)
    classes = schema.classes if source is None else source.classes
    values, weights = np.full((schema.rows, len(schema.attributes)), math.nan), np.ones(schema.rows)
    columns = [
        (
            table.names.index(each.name),
            code_reader(each) if isinstance(each, Nominal) else partial(_ranges_in, table),
        )
        for each in schema.attributes
    ]
    parts: dict[tuple[int, int], tuple[tuple[float, float], ...]] = {}
    for row, record in enumerate(table):
        weights[row] = record.weight
        for k, (at, meaning) in enumerate(columns):
            cell = record.cells[at]
            if cell is None:
                continue
            try:
                found = meaning(cell)
            except ValueError as error:
                raise table.error(record, at, str(error)) from None
            if len(found) == 1:
                values[row, k] = found[0]
            elif isinstance(schema.attributes[k], Nominal):
                parts[row, k] = tuple((code, code) for code in found)
            else:
                parts[row, k] = ((found[0], found[1]),)
    truth: tuple[Label, ...] | None = None
    if column is not None:
        k = table.names.index(column)
        truth = tuple(label_of(table, record, k, classes) for record in table)
    labels: tuple[FileLabel, ...] | None = truth
    if source is not None:
        labels = tuple(source)
        if len(labels) != schema.rows:
            reason = f"has {len(labels):,} rows, {table.path} has {schema.rows:,}: one label per row"
            raise FileError(source.table.path, reason)
    return FileData(
        table.path, schema.attributes, classes, values, labels, truth, weights, schema.remarks, parts
    )


def _ranges_in(table: FileTable, cell: str) -> tuple[float, ...]:
    """Return the number in a cell, or the two ends of a range.

    Raises
    ------
    ValueError
        If it is neither.
    """
    value = number_in(cell)
    if value is not None:
        return (value,)
    found = range_in(cell)
    if found is None:
        raise ValueError(no_number(table, cell))
    return (found.low,) if found.low == found.high else (found.low, found.high)
