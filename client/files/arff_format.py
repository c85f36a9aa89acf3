"""ARFF files: nominal, numeric, integer and real attributes, quoting, comments, ``?``, sparse rows."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from quercus.client.files.errors import FileError
from quercus.client.files.table import MAX_COLUMNS, Column, Record, Table, lines

NUMERIC = ("numeric", "real", "integer")
_QUOTES = "'\""
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_BARE = re.compile(r"[^\s,{}%'\"]+")
_NAME = re.compile(r"[^\s{}%'\"]+")


class _Cursor:
    """Reads tokens off one line, and knows where it stands for errors."""

    def __init__(self, path: Path, line: int, text: str) -> None:
        self.path, self.line, self.text, self.at = path, line, text.rstrip("\r\n"), 0

    def error(self, reason: str, column: int = 0, name: str = "") -> FileError:
        """An error on this line."""
        return FileError(self.path, reason, self.line, column, name)

    def skip(self) -> str:
        """The next character that is not blank, not consumed; empty at the end or at a comment."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
        rest = self.text[self.at : self.at + 1]
        return "" if rest == "%" else rest

    def take(self, character: str) -> bool:
        """Consume ``character`` if it is next."""
        if self.skip() != character:
            return False
        self.at += 1
        return True

    def value(self, column: int, pattern: re.Pattern[str] = _BARE) -> tuple[str, bool]:
        """A quoted or bare value, and whether it was quoted."""
        first = self.skip()
        if first and first in _QUOTES:
            return self._quoted(first, column), True
        match = pattern.match(self.text, self.at)
        if match is None:
            found = repr(first) if first else "the end of the line"
            raise self.error(f"expected a value, found {found}", column)
        self.at = match.end()
        return match.group(), False

    def _quoted(self, quote: str, column: int) -> str:
        self.at += 1
        out: list[str] = []
        while self.at < len(self.text):
            character = self.text[self.at]
            self.at += 1
            if character == quote:
                return "".join(out)
            if character == "\\" and self.at < len(self.text):
                character = _ESCAPES.get(self.text[self.at], self.text[self.at])
                self.at += 1
            out.append(character)
        raise self.error(f"the quote {quote} is not closed", column)


def open_arff(path: Path) -> Table:
    """Open an ARFF file and read its header.

    Raises
    ------
    FileError
        For a malformed header, and for string, date and relational attributes, which have no use here.
    """
    columns: list[Column] = []
    seen_relation, line = False, 0
    for line, text in lines(path):
        cursor = _Cursor(path, line, text)
        if not cursor.skip():
            continue
        keyword = _keyword(cursor)
        if keyword == "@relation":
            seen_relation = True
        elif keyword == "@attribute":
            columns.append(_attribute(cursor, columns))
        elif keyword == "@data":
            if not columns:
                raise cursor.error("@data before any @attribute")
            fixed = tuple(columns)
            return Table(path, fixed, partial(_records, path, line, fixed), is_arff=True)
        else:
            raise cursor.error(f"expected @relation, @attribute or @data, found {text.strip()[:40]!r}")
    if not line:
        raise FileError(path, "is empty: expected an ARFF header (@relation, @attribute, @data)")
    missing = "@data" if seen_relation or columns else "@relation"
    raise FileError(path, f"ends without {missing}", line)


def _keyword(cursor: _Cursor) -> str:
    match = re.compile(r"@\w+").match(cursor.text, cursor.at)
    if match is None:
        return ""
    cursor.at = match.end()
    return match.group().lower()


def _attribute(cursor: _Cursor, before: list[Column]) -> Column:
    number = len(before) + 1
    if number > MAX_COLUMNS:
        raise cursor.error(f"there are more than {MAX_COLUMNS:,} attributes")
    name, _ = cursor.value(number, _NAME)
    if not name.strip():
        raise cursor.error("the attribute has no name", number)
    if any(column.name == name for column in before):
        raise cursor.error(f"the name {name!r} is taken already", number, name)
    if cursor.take("{"):
        return Column(name, "nominal", _declared(cursor, number, name))
    kind = cursor.value(number)[0].lower() if cursor.skip() else ""
    if kind in NUMERIC:
        _end(cursor, number, name)
        return Column(name, "numeric")
    if kind in {"string", "date", "relational"}:
        raise cursor.error(f"{kind} attributes cannot be learned from; remove it from the file", number, name)
    raise cursor.error(f"expected numeric, integer, real or {{values}}, found {kind!r}", number, name)


def _declared(cursor: _Cursor, number: int, name: str) -> tuple[str, ...]:
    values: list[str] = []
    while not cursor.take("}"):
        if values and not cursor.take(","):
            raise cursor.error("expected ',' or '}' between the values", number, name)
        value, _ = cursor.value(number, re.compile(r"[^,{}%'\"]+"))
        value = value.strip()
        if value in values:
            raise cursor.error(f"the value {value!r} is declared twice", number, name)
        values.append(value)
    if not values:
        raise cursor.error("no value is declared", number, name)
    _end(cursor, number, name)
    return tuple(values)


def _end(cursor: _Cursor, number: int, name: str) -> None:
    if cursor.skip():
        raise cursor.error(f"{cursor.text[cursor.at :].strip()[:40]!r} is too much", number, name)


def _records(path: Path, data_line: int, columns: tuple[Column, ...]) -> Iterator[Record]:
    declared = [frozenset(column.values) for column in columns]
    for line, text in lines(path):
        if line <= data_line:
            continue
        cursor = _Cursor(path, line, text)
        if not cursor.skip():
            continue
        cells = _sparse(cursor, columns) if cursor.take("{") else _dense(cursor, columns)
        for k, cell in enumerate(cells):
            if declared[k] and cell is not None and cell not in declared[k]:
                values = ", ".join(columns[k].values[:12])
                raise cursor.error(
                    f"{cell!r} is none of the declared values {values}", k + 1, columns[k].name
                )
        yield Record(line, cells)


def _dense(cursor: _Cursor, columns: tuple[Column, ...]) -> list[str | None]:
    cells: list[str | None] = []
    while True:
        value, quoted = cursor.value(len(cells) + 1, _CELL)
        cells.append(None if value == "?" and not quoted else value if quoted else value.strip())
        if not cursor.skip():
            break
        if not cursor.take(","):
            found = cursor.text[cursor.at :].strip()[:20]
            raise cursor.error(f"expected ',' after the value, found {found!r}", len(cells))
        if cursor.skip() == "{" and len(cells) == len(columns):
            raise cursor.error("instance weights ({...} at the end of a row) are not supported")
        if len(cells) == len(columns):
            raise cursor.error(f"the row has more than the {len(columns)} declared values", len(cells) + 1)
    if len(cells) < len(columns):
        name = columns[len(cells)].name
        reason = f"the row has {len(cells)} values, {len(columns)} are declared: {name!r} is absent"
        raise cursor.error(reason, len(cells) + 1)
    return cells


_CELL = re.compile(r"[^,{}%'\"]+")


def _sparse(cursor: _Cursor, columns: tuple[Column, ...]) -> list[str | None]:
    """A row ``{index value, ...}``.

    What is left out is 0, which for a nominal attribute is its first value.
    """
    cells: list[str | None] = [column.values[0] if column.values else "0" for column in columns]
    last = -1
    while not cursor.take("}"):
        if last >= 0 and not cursor.take(","):
            raise cursor.error("expected ',' or '}' in the sparse row", last + 1)
        text, _ = cursor.value(last + 2)
        index = int(text) if text.isascii() and text.isdigit() and len(text) < 7 else -1
        if not 0 <= index < len(columns):
            raise cursor.error(f"{text!r} is not an attribute number in 0..{len(columns) - 1}")
        if index <= last:
            raise cursor.error(
                "the attribute numbers of a sparse row must increase", index + 1, columns[index].name
            )
        value, quoted = cursor.value(index + 1)
        cells[index] = None if value == "?" and not quoted else value
        last = index
    if cursor.skip():
        raise cursor.error(f"{cursor.text[cursor.at :].strip()[:20]!r} after the sparse row is too much")
    return cells
