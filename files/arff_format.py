"""ARFF files, by the rules of Weka's reader, except where Weka silently misreads them (`docs/files.md`).

Supported are nominal, numeric, integer, real and date attributes; names and values in single or double quotes, with
escapes; comments; ``?`` for missing values; sparse rows; and instance weights. Values are separated by a comma or by
blanks, so a value with a blank must be quoted. Blanks are the characters up to U+0020.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path

from quercus.belief.errors import shown
from quercus.files.errors import FileError
from quercus.files.table import (
    MAX_COLUMNS,
    FileColumn,
    FileRecord,
    FileTable,
    flag,
    listed_names,
    numbered_lines,
)
from quercus.specification.values import finite_number

NUMERIC = ("numeric", "real", "integer")
ISO_FORMAT = "yyyy-MM-dd'T'HH:mm:ss"
"""Format of the cells of a date attribute without a declared format."""
_LETTERS = {
    "yyyy": "%Y", "yy": "%y", "MM": "%m", "MMM": "%b", "dd": "%d", "d": "%d", "M": "%m", "HH": "%H", "H": "%H",
    "hh": "%I", "mm": "%M", "ss": "%S", "SSS": "%f", "a": "%p", "EEE": "%a", "Z": "%z", "XXX": "%z", "X": "%z",
}  # fmt: skip
_FORMAT = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|.", re.DOTALL)
_QUOTES = "'\""
_BLANKS = "".join(map(chr, range(0x21)))
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_BARE = re.compile(r"[^\x00-\x20,{}%'\"]+")
_KEYWORD = re.compile(r"@\w+")
_NOT_PLAIN = re.compile(r"[{}%'\"]|[^\x00-\x20,][\x00-\x20]+[^\x00-\x20,]")
_UNICODE = re.compile(r"u([0-9a-fA-F]{4})")


class _Cursor:
    """A reader of the tokens of a line, with the position for errors."""

    def __init__(self, path: Path, line: int, text: str, at: int = 0) -> None:
        self.path, self.line, self.text, self.at = path, line, text.rstrip("\r\n"), at

    def error(self, reason: str, column: int = 0, name: str = "") -> FileError:
        """Return an error on this line."""
        return FileError(self.path, reason, self.line, column, name)

    def skip_blanks(self) -> str:
        """Return the next character that is not blank without consuming it; empty at the end or at a comment."""
        while self.at < len(self.text) and self.text[self.at] in _BLANKS:
            self.at += 1
        rest = self.text[self.at : self.at + 1]
        return "" if rest == "%" else rest

    def take_character(self, character: str) -> bool:
        """Consume ``character`` if it is next, and return whether it was."""
        if self.skip_blanks() != character:
            return False
        self.at += 1
        return True

    def take_separator(self) -> str:
        """Consume and return the separator of two values, a comma or only blanks; empty if there is none."""
        before = self.at
        return "," if self.take_character(",") else " " if self.at > before else ""

    def take_keyword(self) -> str:
        """Consume a word such as ``@data``, and return it in lower case; empty if there is none."""
        match = _KEYWORD.match(self.text, self.at)
        self.at = self.at if match is None else match.end()
        return "" if match is None else match.group().lower()

    def take_value(self, column: int) -> tuple[str, bool]:
        """Consume a quoted or bare value; return it, and whether it was quoted."""
        first = self.skip_blanks()
        if first and first in _QUOTES:
            return self._take_quoted(first, column), True
        match = _BARE.match(self.text, self.at)
        if match is None:
            found = repr(first) if first else "the end of the line"
            raise self.error(f"expected a value, found {found}", column)
        self.at = match.end()
        return match.group(), False

    def take_cell(self, column: int) -> str | None:
        """Consume and return a value of a row; None for a bare ``?``."""
        value, quoted = self.take_value(column)
        return None if value == "?" and not quoted else value

    def _take_quoted(self, quote: str, column: int) -> str:
        self.at += 1
        out: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character == quote:
                text = "".join(out)
                if text.isascii():
                    return text
                try:  # Java writes a character beyond 16 bits as a pair of escapes
                    return text.encode("utf-16", "surrogatepass").decode("utf-16")
                except UnicodeDecodeError:
                    raise self.error(
                        "has half of a surrogate pair, which is not a character", column
                    ) from None
            if character == "\\" and self.at < len(self.text):
                if (code := _UNICODE.match(self.text, self.at)) is not None:
                    self.at = code.end()
                    character = chr(int(code.group(1), 16))
                else:
                    character = _ESCAPES.get(self.text[self.at], self.text[self.at])
                    self.at += 1
            out.append(character)
        raise self.error(f"the quote {quote} is not closed", column)


def open_arff(path: Path) -> FileTable:
    """Open an ARFF file and read its header.

    Raises
    ------
    FileError
        For a malformed header, and for relational attributes. String attributes, dates in an unknown format and
        attributes of unknown types are columns with a fault.
    """
    columns: list[FileColumn] = []
    seen_relation, line = False, 0
    for line, text in numbered_lines(path):
        cursor = _Cursor(path, line, text)
        if not cursor.skip_blanks():
            continue
        keyword = cursor.take_keyword()
        if keyword == "@relation":
            seen_relation = True
        elif keyword == "@attribute":
            columns.append(_parse_attribute(cursor, columns))
        elif keyword == "@data":
            if not columns:
                raise cursor.error("@data before any @attribute")
            fixed = tuple(columns)
            return FileTable(
                path,
                fixed,
                partial(_read_records, path, (line, cursor.at), fixed),
                is_arff=True,
                missing_mark="?",
            )
        else:
            raise cursor.error(f"expected @relation, @attribute or @data, found {text.strip()[:40]!r}")
    if not line:
        raise FileError(path, "is empty: expected an ARFF header (@relation, @attribute, @data)")
    missing = "@data" if seen_relation or columns else "@relation"
    raise FileError(path, f"ends without {missing}", line)


def _parse_attribute(cursor: _Cursor, before: list[FileColumn]) -> FileColumn:
    column = len(before) + 1
    if column > MAX_COLUMNS:
        raise cursor.error(f"there are more than {MAX_COLUMNS:,} attributes")
    name, _ = cursor.take_value(column)
    if not name.strip():
        raise cursor.error("the attribute has no name", column)
    if any(each.name == name for each in before):
        raise cursor.error(f"the name {shown(name)} is taken already", column, name)
    if cursor.take_character("{"):
        values = _declared_values(cursor, column, name)
        _check_line_end(cursor, column, name)
        return FileColumn(name, "nominal", values)
    kind = cursor.take_value(column)[0].lower() if cursor.skip_blanks() else ""
    if kind == "relational":
        raise cursor.error("is a relational attribute: a bag of rows is not a value; remove it", column, name)
    if kind == "date":
        written = cursor.take_value(column)[0] if cursor.skip_blanks() else ISO_FORMAT
        format_ = _strptime_format(written)
        _check_line_end(cursor, column, name)
        if format_ is not None:
            return FileColumn(name, "time", format=format_)
        reason = (
            f"has the date format {shown(written)}, which is not understood; write times as {ISO_FORMAT} does"
        )
        reason += f", or leave the column out with {flag('--ignore', name)}"
        return FileColumn(name, fault=cursor.error(reason, column, name))
    if kind not in NUMERIC:
        reason = f"is expected to be numeric, integer, real or {{values}}, found {shown(kind)}"
        if kind == "string":
            reason = "is a string attribute: free text cannot be learned from; declare its values ({a,b})"
        reason += f", or leave it out with {flag('--ignore', name)}"
        return FileColumn(name, fault=cursor.error(reason, column, name))
    if cursor.skip_blanks() != "[":  # a range, which Weka does not read either
        _check_line_end(cursor, column, name)
    return FileColumn(name, "numeric")


def _strptime_format(written: str) -> str | None:
    """Return a date format of Java as a format of Python; None if it has unknown letters.

    Examples
    --------
    >>> _strptime_format(ISO_FORMAT), _strptime_format("dd.MM.yyyy"), _strptime_format("w")
    ('%Y-%m-%dT%H:%M:%S', '%d.%m.%Y', None)
    """
    found = ""
    for part in _FORMAT.finditer(written):
        if part[1] is not None:
            found += part[1].replace("''", "'").replace("%", "%%") or "'"
        elif part[2] is None:
            found += part[0].replace("%", "%%")
        elif part[0] in _LETTERS:
            found += _LETTERS[part[0]]
        else:
            return None
    return found


def _declared_values(cursor: _Cursor, column: int, name: str) -> tuple[str, ...]:
    values: list[str] = []
    known: set[str] = set()
    while True:
        separator = cursor.take_separator()
        if (separator != "," or values) and cursor.take_character("}"):
            break
        if not cursor.skip_blanks() or (values and not separator):
            found = cursor.skip_blanks() or "the end of the line"
            raise cursor.error(f"expected ',' or '}}', found {found}", column, name)
        if separator == "," and not values:
            raise cursor.error("expected a value, found ','", column, name)
        value, _ = cursor.take_value(column)
        if value in known:
            raise cursor.error(f"the value {shown(value)} is declared twice", column, name)
        values.append(value)
        known.add(value)
    if not values:
        raise cursor.error("no value is declared", column, name)
    return tuple(values)


def _check_line_end(cursor: _Cursor, column: int, name: str) -> None:
    rest = cursor.skip_blanks()
    if rest == "{":
        raise cursor.error("attribute weights are not supported: remove {...}", column, name)
    if rest:
        raise cursor.error(f"{cursor.text[cursor.at :].strip()[:40]!r} is one too many", column, name)


def _read_records(path: Path, data: tuple[int, int], columns: tuple[FileColumn, ...]) -> Iterator[FileRecord]:
    """Yield the records after ``@data``, which ends at ``data`` (line, offset) and may precede one on its line."""
    declared = [(k, frozenset(column.values)) for k, column in enumerate(columns) if column.values]
    dates = [(k, column.format) for k, column in enumerate(columns) if column.kind == "time"]
    for line, text in numbered_lines(path):
        if line < data[0]:
            continue
        cursor = _Cursor(path, line, text, data[1] if line == data[0] else 0)
        if not cursor.skip_blanks():
            continue
        cells, weight, fault = _plain_cells(text[cursor.at :], len(columns)), 1.0, None
        try:
            if not cells:
                if cursor.take_character("{"):
                    _read_sparse(cursor, columns, cells)
                else:
                    _read_dense(cursor, columns, cells)
                weight = _row_weight(cursor, columns)
            for k, values in declared:
                cell = cells[k]
                if cell is not None and cell not in values:
                    named = listed_names([shown(value) for value in columns[k].values])
                    reason = f"{shown(cell)} is not one of the declared values {named}"
                    raise cursor.error(reason, k + 1, columns[k].name)
        except FileError as error:
            fault = error
            cells += [None] * (len(columns) - len(cells))
        for k, written in dates:
            if (cell := cells[k]) is not None:
                with suppress(ValueError):  # a cell in another format is not changed
                    cells[k] = datetime.strptime(cell, written).isoformat()
        yield FileRecord(line, cells, weight, fault)


def _plain_cells(text: str, count: int) -> list[str | None]:
    """Return the cells of a row of bare values between commas; empty for any other row.

    It reads such rows, which are the most common, in a third of the time.
    """
    if _NOT_PLAIN.search(text):
        return []
    cells = [cell.strip(_BLANKS) for cell in text.split(",")]
    return [None if cell == "?" else cell for cell in cells] if len(cells) == count and all(cells) else []


def _read_dense(cursor: _Cursor, columns: tuple[FileColumn, ...], cells: list[str | None]) -> None:
    """Read the cells of a row into a list; after a fault, it has the cells before it."""
    cells.append(cursor.take_cell(1))
    while len(cells) < len(columns):
        separator, rest = cursor.take_separator(), cursor.skip_blanks()
        if not rest and separator != ",":
            count = f"{len(cells)} value{'' if len(cells) == 1 else 's'}"
            absent = f"{len(columns)} are declared: {shown(columns[len(cells)].name)} is absent"
            raise cursor.error(f"the row has {count}, {absent}", len(cells) + 1)
        if not separator:
            raise cursor.error(f"expected ',' after the value, found {shown(rest)}", len(cells))
        cells.append(cursor.take_cell(len(cells) + 1))


def _row_weight(cursor: _Cursor, columns: tuple[FileColumn, ...]) -> float:
    """Read the rest of a row, which is empty, a comma as written by MOA, or the weight ``{w}``; return the weight."""
    cursor.take_separator()
    if not cursor.skip_blanks():
        return 1.0
    if not cursor.take_character("{"):
        raise cursor.error(f"the row has more than the {len(columns)} declared values", len(columns) + 1)
    text, _ = cursor.take_value(0)
    weight = finite_number(text)
    if weight is None or weight < 0:
        raise cursor.error(f"the weight {shown(text)} is not a number of at least 0")
    if not cursor.take_character("}") or cursor.skip_blanks():
        raise cursor.error("expected '}' and the end of the line after the weight")
    return weight


def _read_sparse(cursor: _Cursor, columns: tuple[FileColumn, ...], cells: list[str | None]) -> None:
    """Read a row ``{index value, ...}`` into a list.

    Omitted values are 0, which for a nominal attribute is its first value.
    """
    cells += [column.values[0] if column.values else "0" for column in columns]
    last = -1
    while not cursor.take_character("}"):
        if last >= 0 and not cursor.take_character(","):
            raise cursor.error("expected ',' or '}' in the sparse row", last + 1)
        text, _ = cursor.take_value(last + 2)
        index = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else -1
        if not 0 <= index < len(columns):
            raise cursor.error(f"{shown(text)} is not an attribute number in 0..{len(columns) - 1}")
        if index <= last:
            raise cursor.error(
                "the attribute numbers of a sparse row must increase", index + 1, columns[index].name
            )
        cells[index] = cursor.take_cell(index + 1)
        last = index
