"""Tables written for other programs: CSV, JSON lines, Parquet, Arrow."""

from __future__ import annotations

import csv
import gzip
import json
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, Literal, Protocol, cast

Format = Literal["csv", "jsonl", "parquet", "arrow"]
FORMATS: Final[tuple[Format, ...]] = ("csv", "jsonl", "parquet", "arrow")
_BY_ENDING: Final[dict[str, Format]] = {**{each: each for each in FORMATS}, "feather": "arrow"}
CHUNK: Final = 10_000  # rows written to Parquet or Arrow at once
FORMULA_STARTS: Final = frozenset("=+-@\N{MINUS SIGN}")
"""First characters of cells that a spreadsheet takes for formulas, also in compatible forms such as full-width."""
Row = list[Any]


class TextTarget(Protocol):
    """A target for text, such as a file."""

    def write(self, text: str, /) -> object:
        """Write a text."""


class CannotWrite(Exception):  # noqa: N818 - a name that says what is wrong
    """A table cannot be written in this format; the message says what to do."""


@dataclass(frozen=True)
class OutputTable:
    """A table to write.

    Attributes
    ----------
    header
        Names of the columns.
    kinds
        Kinds of the columns: str, float, int or bool.
    rows
        Rows as long as the header, with None for unknown values.
    """

    header: list[str]
    kinds: Sequence[type]
    rows: Iterator[Row]


def format_of(file: Path) -> Format | None:
    """Return the format by the ending of a file's name; None if unknown, or for packed Parquet or Arrow."""
    form = _BY_ENDING.get(file.name.lower().removesuffix(".gz").rpartition(".")[2])
    return None if form in ("parquet", "arrow") and is_packed(file) else form


def is_packed(file: Path) -> bool:
    """Return whether a file is compressed with gzip, by its name."""
    return file.name.lower().endswith(".gz")


def write_table(
    found: OutputTable, path: Path, form: Format, *, packed: bool, for_spreadsheets: bool = False
) -> int:
    """Write a table to a file, if ``packed`` with gzip; return the number of rows."""
    if form in ("parquet", "arrow"):
        return write_columns(found, path, form)
    with open_text(path, packed=packed) as stream:
        if form == "csv":
            return write_csv(found, stream, for_spreadsheets=for_spreadsheets)
        return write_jsonl(found, stream)


def open_text(path: Path, *, packed: bool) -> IO[str]:
    """Open a text file for writing, if ``packed`` with gzip."""
    if packed:
        return cast(IO[str], gzip.open(path, "wt", encoding="utf-8", newline=""))
    return path.open("w", encoding="utf-8", newline="")


def write_csv(
    found: OutputTable, stream: TextTarget, *, for_spreadsheets: bool = False, with_header: bool = True
) -> int:
    """Write a table as CSV with numbers in full precision and empty unknown cells; return the number of rows.

    Parameters
    ----------
    found
        The rows to write.
    stream
        The stream to write to.
    for_spreadsheets
        Put an apostrophe before text that a spreadsheet would execute as a formula.
    with_header
        Write the names of the columns first.
    """

    def shield(cell: Any) -> Any:
        return shielded_cell(cell) if for_spreadsheets else cell

    writer = csv.writer(stream, lineterminator="\n")
    if with_header:
        writer.writerow(map(shield, found.header))
    count = 0
    for row in found.rows:
        writer.writerow(["" if cell is None else shield(cell) for cell in row])
        count += 1
    return count


def write_jsonl(found: OutputTable, stream: TextTarget) -> int:
    """Write a table as lines of JSON, an object for each row, null for unknown cells; return the number of rows."""
    count = 0
    for row in found.rows:
        line = json.dumps(dict(zip(found.header, row, strict=True)), ensure_ascii=False)
        stream.write(line + "\n")
        count += 1
    return count


def write_columns(found: OutputTable, path: Path, form: Literal["parquet", "arrow"]) -> int:
    """Write a table as a Parquet or Arrow file, which is also a Feather file; return the number of rows.

    Raises
    ------
    CannotWrite
        If pyarrow is not installed, or a numeric column has a range.
    """
    try:
        import pyarrow as pa  # noqa: PLC0415 - an optional package
        from pyarrow import parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        what = form.capitalize()
        raise CannotWrite(f"{what} needs pyarrow: pip install pyarrow; or name the file .csv") from None
    types = {str: pa.string(), float: pa.float64(), int: pa.int64(), bool: pa.bool_()}
    schema = pa.schema([(name, types[kind]) for name, kind in zip(found.header, found.kinds, strict=True)])
    count = 0
    with (
        parquet.ParquetWriter(path, schema) if form == "parquet" else pa.ipc.new_file(path, schema) as writer
    ):
        while rows := list(islice(found.rows, CHUNK)):
            columns = [list(column) for column in zip(*rows, strict=True)]
            for name, kind, column in zip(found.header, found.kinds, columns, strict=True):
                text = next((cell for cell in column if kind is float and isinstance(cell, str)), None)
                if text is not None:
                    what = f"{name} has the range {text}, which a column of numbers in {form.capitalize()} cannot hold"
                    raise CannotWrite(f"{what}: name the file .csv")
            writer.write_table(pa.table(columns, schema=schema))
            count += len(rows)
    return count


def shielded_cell(cell: Any) -> Any:
    """Return a cell, with an apostrophe before it if it would be a formula.

    Examples
    --------
    >>> shielded_cell("=HYPERLINK(1)"), shielded_cell(" \uff1d1"), shielded_cell("a=b"), shielded_cell(-1.5)
    ("'=HYPERLINK(1)", "' ＝1", 'a=b', -1.5)
    """
    if not isinstance(cell, str):
        return cell
    # A formula begins with a tab, a line end or, after invisible characters, with one of the starts.
    seen = (each for each in cell if not (each.isspace() or unicodedata.category(each) in ("Cc", "Cf")))
    first = unicodedata.normalize("NFKC", next(seen, " "))
    return f"'{cell}" if cell.startswith(("\t", "\r", "\n")) or first[0] in FORMULA_STARTS else cell
