"""CSV files: a header line, then rows as long as the header. Empty cells and ``?`` are missing."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from quercus.files.errors import FileError
from quercus.files.table import MAX_COLUMNS, FileColumn, FileRecord, FileTable, numbered_lines

MISSING = ("", "?")
DELIMITERS = ",;\t|"


def open_csv(path: Path, delimiter: str = ",") -> FileTable:
    """Open a CSV file and read its header.

    Raises
    ------
    FileError
        When the file is empty or the header has an empty or duplicate name.
    """
    if len(delimiter) != 1:
        raise FileError(path, f"the delimiter must be one character, got {delimiter!r}")
    header = next(_read_rows(path, delimiter), None)
    if header is None:
        raise FileError(path, "is empty: expected a header line with the names of the columns")
    line, names = header
    names = [name.strip() for name in names]
    if len(names) > MAX_COLUMNS:
        raise FileError(path, f"has {len(names):,} columns, more than {MAX_COLUMNS:,}", line)
    for index, name in enumerate(names):
        if not name:
            raise FileError(path, "the column has no name", line, index + 1)
        if name in names[:index]:
            first = names.index(name) + 1
            raise FileError(path, f"the name {name!r} is taken by column {first}", line, index + 1)
    hint = _other_delimiter(names)
    if hint is not None:
        raise FileError(path, f"has one column only; is the separator {hint!r}? (--delimiter)", line)
    return FileTable(path, tuple(map(FileColumn, names)), lambda: _read_records(path, delimiter, names))


def likely_delimiter(path: Path) -> str:
    """Return the first of `DELIMITERS` that gives the header several names, the comma if none does.

    Raises
    ------
    FileError
        When the header cannot be read.
    """
    _, names = next(_read_rows(path, DELIMITERS[0]), (0, []))
    return _other_delimiter(names) or DELIMITERS[0]


def _other_delimiter(names: list[str]) -> str | None:
    return next((each for each in DELIMITERS[1:] if len(names) == 1 and each in names[0]), None)


def _read_records(path: Path, delimiter: str, names: list[str]) -> Iterator[FileRecord]:
    rows = _read_rows(path, delimiter)
    next(rows, None)
    for line, cells in rows:
        if len(cells) != len(names):
            raise FileError(path, _ragged_text(cells, names), line, min(len(cells), len(names)) + 1)
        stripped = [cell.strip() for cell in cells]
        yield FileRecord(line, [None if cell in MISSING else cell for cell in stripped])


def _ragged_text(cells: list[str], names: list[str]) -> str:
    what = f"the row has {len(cells)} {'cell' if len(cells) == 1 else 'cells'}, the header has {len(names)}"
    if len(cells) < len(names):
        return f"{what}: {names[len(cells)]!r} is the first that is absent"
    return f"{what}: {cells[len(names)]!r} is too much"


def _read_rows(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(line at which the row starts, cells) of each row that is not blank."""
    reader = csv.reader((text for _, text in numbered_lines(path)), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            reason = "lines end in CR alone; convert them to LF" if "new-line" in str(error) else str(error)
            raise FileError(path, f"malformed CSV: {reason}", line) from None
        if cells is None:
            return
        if cells and not (len(cells) == 1 and not cells[0].strip()):
            yield line, cells
