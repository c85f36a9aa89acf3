"""The columns of a file: with kinds inferred from the cells, or bound to a model's attributes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame
from quercus.client.specifications import Specification
from quercus.client.values import Between
from quercus.files.cells import names_without_sets, range_in, set_in
from quercus.files.errors import FileError
from quercus.files.inspection import (
    Choices,
    InspectedColumn,
    Remark,
    RemarkError,
    inspect_columns,
    inspect_rows,
    no_number,
)
from quercus.files.leaks import ColumnContent, LeakError, refuse_labels
from quercus.files.seen import SeenColumn, see_table
from quercus.files.table import FileRecord, FileTable, flag, listed_names
from quercus.specification.attributes import Attribute, Nominal, Numeric, other_names
from quercus.specification.names import control_fault
from quercus.specification.parameters import MAX_CLASSES, MAX_VALUES
from quercus.specification.values import Spellings, canonical_text, finite_number, is_truth, seconds_of
from quercus.specification.written_labels import read_class_set, read_label, set_parts

MOST_SPELLINGS = 10_000
"""Most cells whose names are kept while a file is read."""


@dataclass(frozen=True)
class FileSchema:
    """The schema of a file: its attributes and classes, and the numbers of its rows and of labelled ones.

    The classes are the given ones, or those of the class column in sorted order. ``columns`` are the inspected columns,
    and ``remarks`` are about them and the file; after `survey_file` a remark may be a refusal. ``first_fault`` is the
    fault of the first row that could not be read.
    """

    attributes: tuple[Attribute, ...]
    classes: tuple[str, ...]
    rows: int
    labelled: int = 0
    columns: tuple[InspectedColumn, ...] = field(default=(), compare=False)
    remarks: tuple[Remark, ...] = field(default=(), compare=False)
    first_fault: FileError | None = field(default=None, compare=False)


def infer_schema(
    table: FileTable,
    *,
    class_column: str | None,
    ignore: Collection[str] = (),
    nominal: Collection[str] = (),
    numeric: Collection[str] = (),
    attributes: Collection[str] = (),
    frame: Sequence[str] = (),
    every_row: bool = False,
) -> FileSchema:
    """Infer the schema of a file in one pass.

    A column is numeric if all cells that are not missing are numbers, or if the ARFF header says so; otherwise it is
    nominal, with its values as declared, or sorted. Probable mistakes are refused; columns that cannot help a model are
    left out and are in `FileSchema.remarks` (`quercus.files.inspection`).

    Parameters
    ----------
    table
        The file.
    class_column
        The column of the class; None if there is none.
    ignore, nominal, numeric
        Columns to leave out; columns of names, whatever they look like; and columns of numbers or times.
    attributes
        Columns that are attributes although they look like labels, or identify rows.
    frame
        The classes, if they are not taken from the class column, which may have fewer or none.
    every_row
        Whether a row with a fault is an error instead of a remark.

    Raises
    ------
    FileError
        If a given column is missing; if a cell should be a number and is not, or is a set of numbers; if labels would
        become an attribute; or if the class column has a class that is not in the frame.
    """
    choices = Choices(class_column, ignore, nominal, numeric, attributes)
    schema = survey_file(table, choices, frame)
    errors = [each.error for each in schema.remarks if each.error is not None]
    if every_row and schema.first_fault is not None:
        errors = [schema.first_fault]
    if errors:
        if len(errors) > 1:
            errors[0].add_note(f"{len(errors) - 1} more such: quercus inspect shows all")
        for doubt in table.doubts:
            errors[0].add_note(f"line {doubt.line} {doubt.says}; {doubt.advice}")
        raise errors[0]
    return schema


def survey_file(table: FileTable, choices: Choices, frame: Sequence[str] = ()) -> FileSchema:
    """Infer the schema of a file like `infer_schema`, but return refusals among the remarks.

    Raises
    ------
    FileError
        If a given column is missing, or the file cannot be read or has no rows.
    """
    for name, given in (
        ("--ignore", choices.ignore),
        ("--nominal", choices.nominal),
        ("--numeric", choices.numeric),
        ("--attribute", choices.attributes),
    ):
        for column in given:
            table.position(column, name)
    both = sorted(set(choices.nominal) & set(choices.numeric))
    if both:
        raise FileError(table.path, f"{shown(both[0])} is named by --nominal and by --numeric: choose one")
    at = None if choices.class_column is None else table.position(choices.class_column, "--class")
    wanted = [k for k, name in enumerate(table.names) if name not in choices.ignore]
    seen = see_table(table, wanted, at)
    if not seen.rows:
        raise seen.first_fault or FileError(table.path, "has a header but no rows")
    remarks = [*inspect_rows(seen)]
    remarks += [
        Remark(each.kind, "", f"line {each.line} {each.says}", each.advice, line=each.line)
        for each in table.doubts
    ]
    columns = inspect_columns(seen, choices)
    classes = tuple(frame)
    if at is not None:
        try:
            classes = _classes_of(table, seen.columns[at], classes)
        except FileError as error:
            remarks.append(_refusal("class", table.names[at], error))
    attributes: list[Attribute] = []
    for each in columns:
        remarks.extend(each.remarks)
        if each.is_attribute and all(remark.error is None for remark in each.remarks):
            try:
                is_taken = each.seen.name in choices.attributes
                attribute, beyond = _attribute_of(table, each, has_sets=not is_taken)
                attributes.append(attribute)
                remarks.extend(beyond)
            except FileError as error:
                remarks.append(_refusal("name", each.seen.name, error))
    kept = [
        ColumnContent(each.seen.name, each.seen.values, each.seen.is_numeric)
        for each in columns
        if each.is_attribute and each.seen.name not in choices.attributes
    ]
    try:
        refuse_labels(table.path, kept, classes, choices.class_column)
    except LeakError as error:
        remarks = [each for each in remarks if each.column not in error.columns]
        remarks.append(_refusal("labels", error.columns[0], error))
    if at is not None and not is_truth(classes):  # true and false are common values
        remarks += [
            Remark(
                "labels",
                each.name,
                "holds nothing but names of classes",
                f"if it is a label of the row, as another person's, leave it out with {flag('--ignore', each.name)}",
            )
            for each in kept
            if not each.numeric and len(set(each.values)) > 1 and set(each.values) <= set(classes)
        ]
    if not any(each.is_attribute for each in columns):
        said = [remark for each in columns for remark in each.remarks]
        if all(remark.outcome != "refused" for remark in said):
            left = [f"; left out: {remark}" for remark in said if remark.outcome == "left out"]
            reason = f"has no column left to learn from{''.join(left[:3])}"
            remarks.insert(0, _refusal("file", "", FileError(table.path, reason)))
    labelled = 0 if at is None else seen.columns[at].known
    return FileSchema(
        tuple(attributes), classes, seen.rows, labelled, columns, tuple(remarks), seen.first_fault
    )


def _refusal(kind: str, column: str, error: FileError) -> Remark:
    return Remark(kind, column, error.reason, "", "refused", error.line, error)


def _classes_of(table: FileTable, seen: SeenColumn, frame: tuple[str, ...]) -> tuple[str, ...]:
    """Return the classes of a class column; if they are given, its cells are checked.

    Raises
    ------
    FileError
        For the first label that is not of the given classes.
    """
    k = seen.position
    if not frame:
        if len(seen.values) > MAX_VALUES and not seen.column.values:
            reason = f"class column {shown(seen.name)} has more than 1,000 classes; 2 to {MAX_CLASSES} are possible"
            raise FileError(table.path, reason)
        return frame_of(table, k, seen.values)
    if seen.at_full:  # labels that differ in each row, such as plausibilities
        cells: Iterable[tuple[int, str]] = (
            (record.line, cell) for record in table.whole_rows() if (cell := record.cells[k]) is not None
        )
    else:
        cells = sorted((seen.line_of(cell), cell) for cell in seen.values)
    for line, cell in cells:
        try:
            read_label(cell, frame)
        except ValueError as error:
            raise table.error(FileRecord(line, ()), k, str(error)) from None
    return frame


def _attribute_of(
    table: FileTable, column: InspectedColumn, *, has_sets: bool
) -> tuple[Attribute, tuple[Remark, ...]]:
    """Return the attribute of a column, and, after a second pass over the file, a remark if it does not keep all names.

    If it `has_sets`, cells that are sets of its names are not names.

    Raises
    ------
    FileError
        If its name or a value is invalid.
    """
    seen = column.seen
    ignore = flag("--ignore", seen.name)
    try:
        if column.role != "names":
            return Numeric(seen.name), ()
        values = names_without_sets(seen.values) if has_sets else list(seen.values)
        for value in seen.values:
            if (fault := _fault_of_name(value)) is not None:
                beside = flag("--beside", f"text:{seen.name}")
                advice = f"leave the column out with {ignore}, or show it to labellers with {beside} (quercus push)"
                says, line = f"{shown(value)} {fault}", seen.line_of(value)
                remark = Remark("name", seen.name, says, advice, "refused", line)
                raise RemarkError(table, seen.position, remark)
        declared = seen.column.values
        if len(values) <= MAX_VALUES >= len(declared):
            return Nominal(seen.name, names_of(declared) if declared else sorted(names_of(values))), ()
        in_order = sorted(seen.values, key=seen.line_of)
        first = names_of(declared or (names_without_sets(in_order) if has_sets else in_order))[:MAX_VALUES]
        attribute = Nominal(seen.name, first if declared else sorted(first))
    except InvalidInput as error:
        raise FileError(
            table.path, f"column {shown(seen.name)}: {error}; leave the column out with {ignore}"
        ) from None
    codes_of, k = code_reader(attribute), seen.position
    beyond = [
        record.line
        for record in table.whole_rows()
        if (cell := record.cells[k]) is not None and attribute.most_values in codes_of(cell)
    ]
    if not beyond:
        return attribute, ()
    says = f"has more than {MAX_VALUES:,} different names: the first {MAX_VALUES:,} are kept, and those of "
    says += f"{len(beyond):,} row{'' if len(beyond) == 1 else 's'} count as {other_names(attribute.values)}"
    advice = f"leave the column out with {ignore}"
    return attribute, (Remark("values", seen.name, says, advice, "said", beyond[0]),)


def code_reader(attribute: Nominal) -> Callable[[str], tuple[float, ...]]:
    """Return a function from cells of a nominal attribute to the indices of their values, or of its bucket."""
    spellings = Spellings(attribute.values)
    codes = {value: float(i) for i, value in enumerate(attribute.values)}
    known: dict[str, tuple[float, ...]] = {}

    def codes_of(cell: str) -> tuple[float, ...]:
        found = known.get(cell)
        if found is None:
            names = set_in(cell, spellings)
            each = {names} if isinstance(names, str) else names
            found = tuple(sorted(codes.get(name, float(attribute.most_values)) for name in each))
            known[cell] = found
        return found

    return codes_of


def _fault_of_name(value: str) -> str | None:
    """Return the fault of a value as a name; None if it has none."""
    try:
        Nominal("values", [value])
    except InvalidInput as error:
        return error.reason
    return control_fault(value)


def names_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Return distinct values or classes in the spelling of models, which have ``true`` and ``false`` for truth values.

    Examples
    --------
    >>> names_of(["TRUE", "False"]), names_of(["1.0", "1", "2"]), names_of(["True", "maybe"])
    (('true', 'false'), ('1', '2'), ('True', 'maybe'))
    """
    names = tuple(dict.fromkeys(map(canonical_text, texts)))
    return tuple(dict.fromkeys(name.lower() for name in names)) if is_truth(names) else names


def frame_of(table: FileTable, k: int, cells: Iterable[str]) -> tuple[str, ...]:
    """Return the frame of a class column: its classes as declared, else sorted, also those in sets such as ``A|B``.

    Raises
    ------
    FileError
        If a set has an empty name, there are fewer than two classes or more than 64, or a cell has plausibilities or
        masses of the others.
    """
    column = table.columns[k]
    named = [set_parts(cell) for cell in column.values or sorted(cells)]
    given = dict.fromkeys(name for names in named for name in names)
    classes = dict.fromkeys(names_of(given)) if all(name == name.strip() for name in given) else given
    if "" in classes:
        raise FileError(table.path, f"class column {shown(column.name)} has a set with an empty name in it")
    if not 2 <= len(classes) <= MAX_CLASSES:
        count = f"{len(classes):,} {'class' if len(classes) == 1 else 'classes'}"
        reason = f"class column {shown(column.name)} has {count}; 2 to {MAX_CLASSES} are possible"
        if len(classes) < 2:
            reason += ". If it names not all of them yet, name them all with --classes A,B,C"
        raise FileError(table.path, reason)
    frame = tuple(classes if column.values else sorted(classes))
    for name in frame:
        if ":" in name and _is_uncertain(name, [other for other in frame if other != name]):
            raise FileError(
                table.path,
                f"class column {shown(column.name)} has {shown(name)}, which is not a class: "
                "name the classes with --classes A,B,C",
            )
    try:
        return Frame(frame).classes
    except InvalidInput as error:
        for record in table.whole_rows():  # find the first cell with this fault
            cell = record.cells[k]
            if cell is not None and (fault := _fault_of_name(cell)) is not None:
                raise table.error(record, k, f"{shown(cell)} {fault}") from None
        raise FileError(table.path, f"column {shown(table.names[k])}: {error}") from None


def _is_uncertain(text: str, classes: Sequence[str]) -> bool:
    """Return whether a text is plausibilities or masses over some classes."""
    try:
        return isinstance(read_label(text, classes), dict)
    except ValueError:
        return False


def class_column(table: FileTable, given: str | None) -> str | None:
    """Return the column of the class: the given one, else ``class``, else the last of an ARFF file, else None."""
    if given is not None:
        table.position(given, "--class")
        return given
    if "class" in table.names:
        return "class"
    return table.names[-1] if table.is_arff else None


def which_class(table: FileTable, otherwise: str = "") -> str:
    """Return the question for the column of the class; `otherwise` is advice besides that to name it."""
    names = listed_names(table.names)
    return f"which column holds the class? Name it with --class COLUMN{otherwise}; the columns are {names}"


def number_in(cell: str) -> float | None:
    """Return the number in a cell, or its time in seconds since 1970 UTC; None if it is neither.

    Examples
    --------
    >>> number_in("2.5"), number_in("1970-01-02"), number_in("1970-01-01T01:00:00+01:00"), number_in("x")
    (2.5, 86400.0, 0.0, None)
    """
    value = finite_number(cell)
    return seconds_of(cell) if value is None else value


class Binding:
    """The columns of a file that are a model's attributes.

    Parameters
    ----------
    table
        The file; columns that are not in the model are left out.
    specification
        Specification of the model.
    uncertain
        Whether every cell with a bar is a set of names, ``red|green``, as for rows to classify; else only cells with
        known names are (`quercus.files.cells`).
    later
        Names of attributes that were added to the model later and need no columns.

    Raises
    ------
    FileError
        If an attribute has no column, or an ARFF file declares another kind.
    """

    def __init__(
        self,
        table: FileTable,
        specification: Specification,
        *,
        uncertain: bool = False,
        later: Collection[str] = (),
    ) -> None:
        self.table = table
        self._uncertain = uncertain
        names = {attribute.name: attribute for attribute in specification.attributes}
        missing = [name for name in names if name not in table.names and name not in later]
        if missing:
            known = listed_names(table.names)
            reason = f"has no column for the model's {listed_names(missing)}; the columns are {known}"
            raise FileError(table.path, reason)
        self._at = [table.names.index(name) if name in table.names else None for name in names]
        for k, attribute in zip(self._at, names.values(), strict=True):
            if k is None:
                continue
            column = table.columns[k]
            if column.kind == "nominal" and isinstance(attribute, Numeric) and table.is_arff:
                raise FileError(
                    table.path, f"declares {shown(column.name)} nominal, it is numeric in the model"
                )
            if column.fault is not None:
                raise column.fault
        self._readers = [
            None
            if k is None
            else self._number_reader(k)
            if isinstance(each, Numeric)
            else self._name_reader(k, each.values)
            for k, each in zip(self._at, names.values(), strict=True)
        ]
        self.unused = tuple(name for name in table.names if name not in names)

    def row(self, record: FileRecord) -> list[Any]:
        """Return the values of a record in the order of the attributes: texts, numbers, or None for missing values."""
        if record.weight != 1.0:
            reason = f"the row has the weight {record.weight:g}; a model counts every row once"
            raise FileError(self.table.path, reason, record.line)
        cells = record.cells
        return [
            None if k is None or read is None or (cell := cells[k]) is None else read(cell, record)
            for k, read in zip(self._at, self._readers, strict=True)
        ]

    def __iter__(self) -> Iterator[list[Any]]:
        return (self.row(record) for record in self.table)

    def _name_reader(
        self, k: int, values: Sequence[str]
    ) -> Callable[[str, FileRecord], str | frozenset[str]]:
        """Return the reader of a column of names, with a cache of cells."""
        spellings = Spellings(values)
        known: dict[str, str | frozenset[str]] = {}

        def read(cell: str, record: FileRecord) -> str | frozenset[str]:
            found = known.get(cell)
            if found is None:
                found = set_in(cell, spellings, of_any=self._uncertain)
                if len(known) < MOST_SPELLINGS:
                    known[cell] = found
            return found

        return read

    def _number_reader(self, k: int) -> Callable[[str, FileRecord], float | Between]:
        def read(cell: str, record: FileRecord) -> float | Between:
            value = number_in(cell)
            if value is not None:
                return value
            try:
                found = range_in(cell)
            except ValueError as error:
                raise self.table.error(record, k, str(error)) from None
            if found is None:
                raise self.table.error(record, k, no_number(self.table, cell))
            return found

        return read


def class_of(table: FileTable, record: FileRecord, k: int, classes: Sequence[str]) -> str | None:
    """Return the class in a cell; None if it is missing. Raise `FileError` if it is not in the frame."""
    cell = record.cells[k]
    try:
        found = None if cell is None else read_class_set(cell, classes)
    except ValueError as error:
        raise table.error(record, k, str(error)) from None
    if isinstance(found, frozenset):
        raise table.error(record, k, f"{shown(cell)} is not a class, but one of {len(found)}")
    return found
