"""Tables in files of any format: named columns, and records that are read one at a time."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from quercus.belief.errors import shown
from quercus.files.errors import FileError, cut_name
from quercus.files.packing import UNPACK_ERRORS, unpacked_lines

MAX_LINE_BYTES = 4 * 1024 * 1024
"""Most bytes of a line, so that a file that is not a table does not fill the memory."""
MAX_COLUMNS = 10_000

Kind = Literal["nominal", "numeric", "time", "unknown"]


@dataclass(frozen=True)
class FileColumn:
    """A column. Its kind is ``unknown`` in CSV files; ``values`` are the declared ones of an ARFF file.

    The cells of a ``time`` are in ISO 8601. ``fault`` is the reason why the column, such as free text, cannot be an
    attribute; it may still have ids, or items to show beside a row. ``is_index`` is True for the index of a pandas
    table, and ``is_text`` if the file declares texts. ``format`` is the format of times in an ARFF file.
    """

    name: str
    kind: Kind = "unknown"
    values: tuple[str, ...] = ()
    fault: FileError | None = None
    is_index: bool = False
    is_text: bool = False
    format: str = ""


@dataclass(frozen=True)
class FileRecord:
    """A row as texts: its first line, and its cells, None for missing values.

    ``weight`` is the number at the end of a row of an ARFF file. A row with a ``fault`` has more or fewer cells than
    there are columns, or is malformed; ``cells`` still has one for each column, missing if it could not be read.
    """

    line: int
    cells: Sequence[str | None]
    weight: float = 1.0
    fault: FileError | None = None


@dataclass(frozen=True)
class FileDoubt:
    """Something in a header that may not be intended: its kind in one word, a description, and advice."""

    kind: str
    line: int
    says: str
    advice: str


@dataclass(frozen=True)
class FileTable:
    """An opened file, whose columns are known and whose records are read in each iteration.

    Parameters
    ----------
    path
        The file.
    columns
        The columns, in order.
    read
        Function that opens the file again and iterates its records.
    is_arff
        Whether it is an ARFF file.
    missing
        Words for a missing value, besides those of the format.
    skipped
        Number of columns of the file before the first of ``columns`` that are left out.
    doubts
        Things in its header that may not be intended, each with its line.
    commas
        Columns with a decimal comma in their numbers, which is read as a point.
    missing_mark
        What stands for a missing value in this format, for advice.
    """

    path: Path
    columns: tuple[FileColumn, ...]
    read: Callable[[], Iterator[FileRecord]]
    is_arff: bool = False
    missing: frozenset[str] = frozenset()
    skipped: int = 0
    doubts: tuple[FileDoubt, ...] = ()
    commas: frozenset[str] = frozenset()
    missing_mark: str = "an empty cell or ?"

    def __iter__(self) -> Iterator[FileRecord]:
        for record in self.with_faults():
            if record.fault is not None:
                raise record.fault
            yield record

    def with_faults(self) -> Iterator[FileRecord]:
        """Iterate the records, including those with a fault, which `iter` raises."""
        records = self.read()
        if self.missing:
            records = (
                replace(record, cells=[None if cell in self.missing else cell for cell in record.cells])
                for record in records
            )
        if not self.commas:
            return records
        with_comma = [name in self.commas for name in self.names]
        return (
            replace(
                record,
                cells=[
                    cell.replace(",", ".") if has_comma and cell is not None else cell
                    for cell, has_comma in zip(record.cells, with_comma, strict=True)
                ],
            )
            for record in records
        )

    def whole_rows(self) -> Iterator[FileRecord]:
        """Iterate the records without a fault."""
        return (record for record in self.with_faults() if record.fault is None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def position(self, name: str, flag: str) -> int:
        """Return the index of a column that was given with ``flag``.

        Raises
        ------
        FileError
            If there is none, with the names of the columns.
        """
        if name in self.names:
            return self.names.index(name)
        raise FileError(
            self.path, f"{flag}: no column {shown(name)}; the columns are {listed_names(self.names)}"
        )

    def error(self, record: FileRecord, column: int, reason: str) -> FileError:
        """Return an error at a cell; ``column`` is the 0-based index."""
        name = self.columns[column].name
        return FileError(self.path, reason, record.line, column + 1 + self.skipped, name)


def flag(name: str, column: str) -> str:
    """Return a flag for a column as users type it.

    Examples
    --------
    >>> flag("--ignore", "unit price")
    "--ignore 'unit price'"
    """
    return f"{name} {shlex.quote(column)}"


def listed_names(names: Sequence[str], most: int = 12) -> str:
    """Return names for a message: at most ``most`` of them, with long ones cut."""
    return ", ".join(map(cut_name, names[:most])) + (
        f", ... ({len(names):,} in all)" if len(names) > most else ""
    )


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file with their 1-based numbers; line ends are kept, a byte order mark is removed.

    Raises
    ------
    FileError
        If the file cannot be opened or read, is not UTF-8, or a line is too long.
    """
    try:
        with unpacked_lines(path, MAX_LINE_BYTES + 1) as lines:
            for number, raw in enumerate(lines, 1):
                yield number, decoded_line(path, number, raw)
    except UNPACK_ERRORS as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FileError(path, f"cannot be read: {reason}") from None


def decoded_line(path: Path, number: int, raw: bytes) -> str:
    """Return the text of a line of a UTF-8 file.

    Raises
    ------
    FileError
        If it is not UTF-8, or too long.
    """
    if len(raw) > MAX_LINE_BYTES:
        raise FileError(path, f"is longer than {MAX_LINE_BYTES:,} bytes: no table?", number)
    if number == 1 and raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        bad = raw[error.start]
        raise FileError(
            path, f"byte {error.start + 1} (0x{bad:02x}) is not UTF-8; convert the file to UTF-8", number
        ) from None
    if "\0" in text:
        raise FileError(path, "holds a zero byte: this is not a text file", number)
    return text
