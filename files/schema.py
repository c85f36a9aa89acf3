"""The meaning of a file's columns: kinds inferred from the cells, or bound to a model's attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame
from quercus.client.results import Between, Specification
from quercus.files.errors import FileError
from quercus.files.leaks import ColumnContent, refuse_labels
from quercus.files.table import FileRecord, FileTable, listed_names
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.parameters import MAX_CLASSES, MAX_VALUES
from quercus.specification.written_labels import finite_number, read_class_set, read_label, set_parts

NOT_A_NUMBER = frozenset({"na", "n/a", "nan", "null", "none", "nil", "inf", "-inf", "+inf", "infinity", "-"})
"""Words that programs write into columns of numbers, in lower case. Here a missing value is an empty cell or ?."""


def no_number(cell: str) -> str:
    """The fault of a cell in a column of numbers."""
    missing = f"an empty cell or ? is a missing value; if {cell!r} is one too: --missing {cell!r}"
    return f"{cell!r} is not a finite number ({missing})"


@dataclass(frozen=True)
class FileSchema:
    """The schema of a file: its attributes, its classes, the number of its rows, and of those with a label.

    The classes are the given ones, or those of the class column in sorted order.
    """

    attributes: tuple[Attribute, ...]
    classes: tuple[str, ...]
    rows: int
    labelled: int = 0


class _ColumnGuess:
    """The kinds that the cells of one column allow."""

    def __init__(self, table: FileTable, k: int, force_nominal: bool) -> None:
        self._table, self._k = table, k
        self.column = table.columns[k]
        self.numeric = self.column.kind != "nominal" and not force_nominal
        self.values: set[str] = set()
        self._odd: FileError | None = None

    def see_cell(self, cell: str, record: FileRecord) -> None:
        """Take a cell in; values are kept up to one more than there may be."""
        if self.numeric and finite_number(cell) is None:
            self._see_text(cell, record)
        if len(self.values) <= MAX_VALUES:
            self.values.add(cell)

    def _see_text(self, cell: str, record: FileRecord) -> None:
        declared = self.column.kind == "numeric"
        if declared or cell.lower() in NOT_A_NUMBER:
            hint = "" if declared else f"; take the column as names with --nominal {self.column.name!r}"
            self._odd = self._odd or self._table.error(record, self._k, no_number(cell) + hint)
            if declared:
                raise self._odd
        else:
            self.numeric = False

    def check_numeric(self) -> None:
        """Refuse a column of numbers that has words for missing ones, which would become names in silence."""
        if (
            self.numeric
            and self._odd is not None
            and any(finite_number(cell) is not None for cell in self.values)
        ):
            raise self._odd
        self.numeric = self.numeric and self._odd is None


def infer_schema(
    table: FileTable,
    *,
    class_column: str | None,
    ignore: Collection[str] = (),
    nominal: Collection[str] = (),
    attributes: Collection[str] = (),
    frame: Sequence[str] = (),
) -> FileSchema:
    """Read a file once and say what its columns are.

    A column is numeric when every cell that is not missing is a number, or when the ARFF header says so; else
    nominal, with its values as declared, or sorted. Numbers among which there are words such as ``NA`` are
    refused.

    Parameters
    ----------
    table
        The file.
    class_column
        Holds the class; ``None``: no column does.
    ignore, nominal
        Columns to leave out, and columns of numbers that are names nevertheless.
    attributes
        Columns that are attributes although they look like labels.
    frame
        The classes, where something else than the class column says them; the column may have fewer, or none.

    Raises
    ------
    FileError
        When a column named is not there, has no value at all, or has too many distinct ones; when a cell
        should be a number and is none; when labels would become an attribute; when the class column names a
        class that is not in the frame.
    """
    for flag, names in (("--ignore", ignore), ("--nominal", nominal), ("--attribute", attributes)):
        for name in names:
            table.position(name, flag)
    wanted = [k for k, name in enumerate(table.names) if name not in ignore]
    at = None if class_column is None else table.position(class_column, "--class")
    _refuse_faults(table, wanted)
    guesses = {k: _ColumnGuess(table, k, table.names[k] in nominal or k == at) for k in wanted}
    rows = labelled = 0
    for record in table:
        rows += 1
        labelled += at is not None and record.cells[at] is not None
        for k in wanted:
            cell = record.cells[k]
            if cell is not None:
                guesses[k].see_cell(cell, record)
    if not rows:
        raise FileError(table.path, "has a header but no rows")
    for guess in guesses.values():
        guess.check_numeric()
    others = {k: guess for k, guess in guesses.items() if k != at}
    if not others:
        raise FileError(table.path, "has no column left to learn from")
    classes = tuple(frame)
    if at is not None and frame:
        _refuse_strangers(table, at, classes)
    elif at is not None:
        classes = frame_of(table, at, _class_values(table, guesses[at]))
    cells = {
        k: ColumnContent(guess.column.name, guess.values, guess.numeric)
        for k, guess in others.items()
        if guess.column.name not in attributes
    }
    refuse_labels(table.path, cells.values(), classes, class_column)
    found = tuple(_checked_attribute(table, guess) for guess in others.values())
    return FileSchema(found, classes, rows, labelled)


def _refuse_faults(table: FileTable, columns: Iterable[int]) -> None:
    fault = next((table.columns[k].fault for k in columns if table.columns[k].fault is not None), None)
    if fault is not None:
        raise fault


def _refuse_strangers(table: FileTable, at: int, frame: tuple[str, ...]) -> None:
    """Refuse labels of classes that are not in the frame, at the first of them."""
    for record in table:
        cell = record.cells[at]
        try:
            _ = cell is None or read_label(cell, frame)
        except ValueError as error:
            raise table.error(record, at, str(error)) from None


def _checked_attribute(table: FileTable, guess: _ColumnGuess) -> Attribute:
    try:
        return _guessed_attribute(table, guess)
    except InvalidInput as error:
        raise _error_of_value(table, table.names.index(guess.column.name), error) from None


def _error_of_value(table: FileTable, k: int, error: InvalidInput) -> FileError:
    """Return the error of a column at the first cell that has the fault alone, else of the column."""
    name = table.names[k]
    if error.field == "name":
        place, hint = k + 1 + table.skipped, "rename it, or leave it out with --ignore"
        return FileError(table.path, f"column {place} ({shown(name)}): its name {error.reason}; {hint}")
    for record in table:
        cell = record.cells[k]
        try:
            _ = cell is None or Nominal(name, [cell])
        except InvalidInput as fault:
            hint = f"leave the column out with --ignore {name!r}"
            return table.error(record, k, f"{shown(cell)} {fault.reason}; {hint}")
    return FileError(table.path, f"column {name!r}: {error}")


def _guessed_attribute(table: FileTable, guess: _ColumnGuess) -> Attribute:
    name = guess.column.name
    if guess.numeric and (guess.values or guess.column.kind == "numeric"):
        return Numeric(name)
    if len(guess.values) > MAX_VALUES:
        raise FileError(
            table.path,
            f"column {name!r} is not numeric and has more than {MAX_VALUES:,} distinct values; "
            f"leave it out with --ignore {name!r}",
        )
    if not guess.values and not guess.column.values:
        raise FileError(
            table.path, f"column {name!r} has no value at all; leave it out with --ignore {name!r}"
        )
    return Nominal(name, guess.column.values or sorted(guess.values))


def _class_values(table: FileTable, guess: _ColumnGuess) -> set[str]:
    if len(guess.values) > MAX_VALUES and not guess.column.values:
        reason = (
            f"class column {guess.column.name!r} has more than 1,000 classes; 2 to {MAX_CLASSES} are possible"
        )
        raise FileError(table.path, reason)
    return guess.values


def frame_of(table: FileTable, k: int, cells: Iterable[str]) -> tuple[str, ...]:
    """The frame of a class column: its classes as declared, else sorted; a set such as ``A|B`` names two.

    Raises
    ------
    FileError
        When a set has an empty name, there are fewer than two classes or more than 64, or a cell has plausibilities
        or masses of the others.
    """
    column = table.columns[k]
    named = [set_parts(cell) for cell in column.values or sorted(cells)]
    classes = dict.fromkeys(name for names in named for name in names)
    if "" in classes:
        raise FileError(table.path, f"class column {column.name!r} has a set with an empty name in it")
    if not 2 <= len(classes) <= MAX_CLASSES:
        count = f"{len(classes):,} {'class' if len(classes) == 1 else 'classes'}"
        reason = f"class column {column.name!r} has {count}; 2 to {MAX_CLASSES} are possible"
        if len(classes) < 2:
            reason += ". If it names not all of them yet, name them all with --classes A,B,C"
        raise FileError(table.path, reason)
    frame = tuple(classes if column.values else sorted(classes))
    for name in frame:
        if ":" in name and _is_uncertain(name, [other for other in frame if other != name]):
            raise FileError(
                table.path,
                f"class column {column.name!r} has {name!r}, which is no class: name the classes with --classes A,B,C",
            )
    try:
        return Frame(frame).classes
    except InvalidInput as error:
        raise _error_of_value(table, k, error) from None


def _is_uncertain(text: str, classes: Sequence[str]) -> bool:
    """Return whether a text is plausibilities or masses over some classes."""
    try:
        return isinstance(read_label(text, classes), dict)
    except ValueError:
        return False


def class_column(table: FileTable, given: str | None) -> str | None:
    """The column that holds the class: as given, else ``class``, else the last of an ARFF file, else none."""
    if given is not None:
        table.position(given, "--class")
        return given
    if "class" in table.names:
        return "class"
    return table.names[-1] if table.is_arff else None


class Binding:
    """The columns of a file that are a model's attributes.

    Parameters
    ----------
    table
        The file; columns that the model does not have are left out.
    specification
        Specification of the model.
    uncertain
        Whether a cell may be one of several names, ``red|green``, or a number between two, ``2..3``.

    Raises
    ------
    FileError
        When an attribute has no column, or an ARFF file declares its kind otherwise.
    """

    def __init__(self, table: FileTable, specification: Specification, *, uncertain: bool = False) -> None:
        self.table = table
        self._uncertain = uncertain
        self._values = [frozenset(getattr(each, "values", ())) for each in specification.attributes]
        names = {attribute.name: attribute for attribute in specification.attributes}
        missing = [name for name in names if name not in table.names]
        if missing:
            known = listed_names(table.names)
            reason = f"has no column for the model's {listed_names(missing)}; the columns are {known}"
            raise FileError(table.path, reason)
        self._at = [table.names.index(name) for name in names]
        _refuse_faults(table, self._at)
        self._numeric = [isinstance(attribute, Numeric) for attribute in names.values()]
        for k, numeric in zip(self._at, self._numeric, strict=True):
            kind = table.columns[k].kind
            if kind == "nominal" and numeric:
                name = table.names[k]
                raise FileError(table.path, f"declares {name!r} nominal, it is numeric in the model")
        self.unused = tuple(name for name in table.names if name not in names)

    def row(self, record: FileRecord) -> list[Any]:
        """The values of a record, in the order of the attributes: text, numbers, ``None`` for missing."""
        if record.weight != 1.0:
            reason = f"the row has the weight {record.weight:g}; a model counts every row once"
            raise FileError(self.table.path, reason, record.line)
        return [
            self._numeric_cell(record, k) if numeric else self._nominal_cell(record.cells[k], values)
            for k, numeric, values in zip(self._at, self._numeric, self._values, strict=True)
        ]

    def _nominal_cell(self, cell: str | None, values: frozenset[str]) -> str | frozenset[str] | None:
        if cell is None or not self._uncertain or "|" not in cell or cell in values:
            return cell
        return frozenset(name for part in cell.split("|") if (name := part.strip()))

    def __iter__(self) -> Iterator[list[Any]]:
        return (self.row(record) for record in self.table)

    def _numeric_cell(self, record: FileRecord, k: int) -> float | Between | None:
        cell = record.cells[k]
        if cell is None:
            return None
        value = finite_number(cell)
        if value is None and self._uncertain and ".." in cell:
            low, _, high = cell.partition("..")
            ends = finite_number(low.strip()), finite_number(high.strip())
            if ends[0] is None or ends[1] is None or ends[0] > ends[1]:
                raise self.table.error(record, k, f"{cell!r} is no range: give two numbers in rising order")
            return Between(ends[0], ends[1])
        if value is None:
            raise self.table.error(record, k, no_number(cell))
        return value


def class_of(table: FileTable, record: FileRecord, k: int, classes: Sequence[str]) -> str | None:
    """The class in a cell, ``None`` when it is missing; an error when it is not in the frame."""
    cell = record.cells[k]
    try:
        found = None if cell is None else read_class_set(cell, classes)
    except ValueError as error:
        raise table.error(record, k, str(error)) from None
    if isinstance(found, frozenset):
        raise table.error(record, k, f"{cell!r} is not a class, but one of {len(found)}")
    return found
