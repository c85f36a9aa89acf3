"""CSV files: a header line, then rows as long as the header. Empty cells and ``?`` are missing."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from quercus.belief.errors import shown
from quercus.files.errors import FileError
from quercus.files.table import (
    MAX_COLUMNS,
    FileColumn,
    FileDoubt,
    FileRecord,
    FileTable,
    listed_names,
    numbered_lines,
)
from quercus.specification.values import finite_number

MISSING = ("", "?")
DELIMITERS = ",;\t|"
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\s*\Z', re.IGNORECASE)
"""The first line of a file that tells Excel the separator of the cells."""


def open_csv(path: Path, delimiter: str = ",") -> FileTable:
    """Open a CSV file and read its header.

    Raises
    ------
    FileError
        When the file is empty or the header has an empty or duplicate name.
    """
    delimiter = _one_character(path, delimiter)
    line, names = _checked_header(path, next(_read_rows(path, delimiter), None))
    skipped = 0 if names[0] else 1
    unnamed = "has no name for the first column, as an index of pandas, which is left out"
    doubts = [FileDoubt("index", line, unnamed, "name it to use it")] if skipped else []
    columns = tuple(map(FileColumn, names[skipped:]))
    return FileTable(
        path,
        columns,
        lambda: _records(path, names, islice(_read_rows(path, delimiter), 1, None)),
        skipped=skipped,
        doubts=(*doubts, *_doubts_of_header(path, delimiter, names, line)),
    )


def csv_of_lines(path: Path, lines: Iterator[tuple[int, str]], delimiter: str = ",") -> FileTable:
    """Return the table in lines that can be read only once, such as from a pipe; errors refer to ``path``.

    The header is read at once, and the records can be iterated once.

    Raises
    ------
    FileError
        As `open_csv`.
    """
    delimiter = _one_character(path, delimiter)
    rows = _read_rows(path, delimiter, lines)
    _, names = _checked_header(path, next(rows, None))
    skipped = 0 if names[0] else 1
    columns = tuple(map(FileColumn, names[skipped:]))
    return FileTable(path, columns, lambda: _records(path, names, rows), skipped=skipped)


def _one_character(path: Path, delimiter: str) -> str:
    delimiter = "\t" if delimiter == r"\t" else delimiter  # as it is typed, and as messages show it
    if len(delimiter) != 1:
        raise FileError(path, f"the delimiter must be one character, got {shown(delimiter)}")
    return delimiter


def _checked_header(path: Path, header: tuple[int, list[str], str] | None) -> tuple[int, list[str]]:
    """Return the line number and the names of the header."""
    if header is None:
        raise FileError(path, "is empty: expected a header line with the names of the columns")
    line, names, fault = header
    if fault:
        raise FileError(path, fault, line)
    names = [name.strip() for name in names]
    if len(names) > MAX_COLUMNS:
        raise FileError(path, f"has {len(names):,} columns, more than {MAX_COLUMNS:,}", line)
    for index, name in enumerate(names):
        if not name and (index or len(names) == 1):
            reason = "the column has no name: name it in the header, or remove the column"
            raise FileError(path, reason, line, index + 1)
        if name in names[:index]:
            first = names.index(name) + 1
            raise FileError(path, f"the name {shown(name)} is taken by column {first}", line, index + 1)
    hint = _other_delimiter(names)
    if hint is not None:
        raise FileError(path, f"has one column only; is the separator {shown(hint)}? (--delimiter)", line)
    return line, names


def _doubts_of_header(path: Path, delimiter: str, names: list[str], line: int) -> list[FileDoubt]:
    """Return the doubt about a header with numbers above numbers, or with values of the row below it."""
    first = next((cells for _, cells, _ in list(islice(_read_rows(path, delimiter), 2))[1:]), [])
    pairs = [(name, cell.strip()) for name, cell in zip(names, first, strict=False) if name]
    values = [name for name, cell in pairs if name == cell]
    above = [name for name, cell in pairs if finite_number(cell) is not None]
    numbers = [name for name in above if finite_number(name) is not None]
    counted = [str(k + start) for start in (0, 1) for k in range(len(numbers))]
    is_count = numbers in (counted[: len(numbers)], counted[len(numbers) :])
    if (numbers and numbers == above and not is_count) or (values and set(values) != set(numbers)):
        found = listed_names(list(dict.fromkeys([*numbers, *values])))
        what = f"is taken for the names of the columns, and looks like a row of data ({found})"
        return [FileDoubt("header", line, what, "if it is one, put a line with names above it")]
    return []


def likely_delimiter(path: Path) -> str:
    """Return the first of `DELIMITERS` that splits the header into several names; the comma if none does.

    Raises
    ------
    FileError
        When the header cannot be read.
    """
    _, names, _ = next(_read_rows(path, DELIMITERS[0]), (0, [], ""))
    return _other_delimiter(names) or DELIMITERS[0]


def _other_delimiter(names: list[str]) -> str | None:
    return next((each for each in DELIMITERS[1:] if len(names) == 1 and each in names[0]), None)


def _records(
    path: Path, names: list[str], rows: Iterator[tuple[int, list[str], str]]
) -> Iterator[FileRecord]:
    skipped = 0 if names[0] else 1
    for line, cells, malformed in rows:
        fault = None
        if malformed:
            fault = FileError(path, malformed, line)
        elif len(cells) != len(names):
            count = f"{len(cells)} {'cell' if len(cells) == 1 else 'cells'}"
            odd = (
                f"{shown(names[len(cells)])} is the first that is absent"
                if len(cells) < len(names)
                else f"{shown(cells[len(names)])} is one too many"
            )
            reason = f"the row has {count}, the header has {len(names)}: {odd}"
            fault = FileError(path, reason, line, min(len(cells), len(names)) + 1)
        whole = [*cells, *[""] * (len(names) - len(cells))]
        stripped = [cell.strip() for cell in whole[skipped : len(names)]]
        yield FileRecord(line, [None if cell in MISSING else cell for cell in stripped], fault=fault)


def _read_rows(
    path: Path, delimiter: str, lines: Iterator[tuple[int, str]] | None = None
) -> Iterator[tuple[int, list[str], str]]:
    """Yield (first line, cells, fault) of each row of a file, or of given lines, that is not blank.

    A first line ``sep=;`` determines the delimiter. A row with a quote in the wrong place has a fault, but its cells
    are read.

    Raises
    ------
    FileError
        If no next row can be found, such as after a quote that is not closed.
    """
    lines = numbered_lines(path) if lines is None else lines
    number, first = next(lines, (0, ""))
    told = _SEPARATOR_LINE.match(first)
    if told is not None:
        delimiter, first = told[1], "\n"  # a blank line, so that lines keep their numbers
    of_row: list[str] = []

    def texts() -> Iterator[str]:
        for _, text in chain([(number, first)] if number else [], lines):
            of_row.append(text)
            yield text

    # a blank before a quote is not part of the cell, unless blanks separate cells
    form: dict[str, Any] = {"delimiter": delimiter, "skipinitialspace": delimiter != " "}
    reader = csv.reader(texts(), strict=True, **form)
    while True:
        line, fault = reader.line_num + 1, ""
        of_row.clear()
        try:
            cells = next(reader, None)
        except csv.Error as error:
            reason = "lines end in CR alone; convert them to LF" if "new-line" in str(error) else str(error)
            fault = f"malformed CSV: {reason}"
            if "expected after" not in str(error):
                raise FileError(path, fault, line) from None
            cells = next(csv.reader(of_row, **form))
        if cells is None:
            return
        if cells and not (len(cells) == 1 and not cells[0].strip()):
            yield line, cells, fault
