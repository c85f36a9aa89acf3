"""A file of rows: named columns, then records one at a time, whatever the format."""

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
"""A longer line is not a table; reading it whole would let one file fill the memory."""
MAX_COLUMNS = 10_000

Kind = Literal["nominal", "numeric", "time", "unknown"]


@dataclass(frozen=True)
class FileColumn:
    """A column. ``unknown``: a CSV file does not say; ``values`` are those an ARFF file declares.

    The cells of a ``time`` are written in ISO 8601. ``fault`` says why the column cannot be an attribute, such as free
    text; it may still hold ids, or what is shown beside a row. ``is_index``: it numbers the rows of a pandas table.
    ``is_text``: the file says that its cells are texts. ``format``: how the times of an ARFF file are written there.
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
    """A row of text: ``cells[k]`` is ``None`` where the value is missing. ``line`` is where it starts.

    ``weight`` is the number at the end of a row of an ARFF file. ``fault``: the row has more or fewer cells than there
    are columns, or is malformed; ``cells`` has one for each column all the same, missing where none could be read.
    """

    line: int
    cells: Sequence[str | None]
    weight: float = 1.0
    fault: FileError | None = None


@dataclass(frozen=True)
class FileDoubt:
    """Something in a header that may not be intended: its kind in one word, what it is, and what to do."""

    kind: str
    line: int
    says: str
    advice: str


@dataclass(frozen=True)
class FileTable:
    """An opened file: its columns are read, its records are read each time they are iterated.

    Parameters
    ----------
    path
        The file.
    columns
        In order.
    read
        Opens the file again and gives its records.
    is_arff
        True for an ARFF file.
    missing
        Words for a missing value, in addition to the format's own.
    skipped
        Columns of the file before the first of ``columns``, which are left out.
    doubts
        Things in its header that may not be intended, each with its line.
    commas
        Columns whose numbers have a decimal comma: their cells are read with a point in its place.
    """

    path: Path
    columns: tuple[FileColumn, ...]
    read: Callable[[], Iterator[FileRecord]]
    is_arff: bool = False
    missing: frozenset[str] = frozenset()
    skipped: int = 0
    doubts: tuple[FileDoubt, ...] = ()
    commas: frozenset[str] = frozenset()

    def __iter__(self) -> Iterator[FileRecord]:
        for record in self.with_faults():
            if record.fault is not None:
                raise record.fault
            yield record

    def with_faults(self) -> Iterator[FileRecord]:
        """Iterate the records, also those with a fault, at which `iter` ends with an error."""
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
        """Iterate the records without those that have a fault."""
        return (record for record in self.with_faults() if record.fault is None)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(column.name for column in self.columns)

    def position(self, name: str, flag: str) -> int:
        """Index of a column that ``flag`` names.

        Raises
        ------
        FileError
            When there is none, naming those there are.
        """
        if name in self.names:
            return self.names.index(name)
        raise FileError(
            self.path, f"{flag}: no column {shown(name)}; the columns are {listed_names(self.names)}"
        )

    def error(self, record: FileRecord, column: int, reason: str) -> FileError:
        """An error at a cell; ``column`` is the 0-based index."""
        name = self.columns[column].name
        return FileError(self.path, reason, record.line, column + 1 + self.skipped, name)


def flag(name: str, column: str) -> str:
    """Return a flag as it is typed.

    Examples
    --------
    >>> flag("--ignore", "unit price")
    "--ignore 'unit price'"
    """
    return f"{name} {shlex.quote(column)}"


def listed_names(names: Sequence[str], most: int = 12) -> str:
    """Names in a message: some of them, and of a long one the beginning."""
    return ", ".join(map(cut_name, names[:most])) + (
        f", ... ({len(names):,} in all)" if len(names) > most else ""
    )


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a UTF-8 file with their 1-based numbers; line ends kept, a byte order mark removed.

    Raises
    ------
    FileError
        When the file cannot be opened or read, is not UTF-8, or a line is too long.
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
        When it is not UTF-8, or too long.
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
