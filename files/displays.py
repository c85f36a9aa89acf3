"""Columns of a file that labellers see beside a row: texts, links, curves, pictures and sounds."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, cast

from quercus.belief.errors import InvalidInput, shown
from quercus.files.errors import FileError
from quercus.files.table import FileRecord, FileTable
from quercus.specification.display import (
    MAX_DISPLAY_BYTES,
    MAX_ITEMS,
    DisplayItem,
    LinkItem,
    MediaItem,
    SeriesItem,
    TextItem,
)

KINDS: Final = ("text", "link", "series", "image", "audio")
_DATA = re.compile(r"data:[^,]*;base64,")


@dataclass(frozen=True)
class DisplayColumn:
    """A column of display items, whose title is the name of the column."""

    kind: str
    position: int
    title: str


def display_columns(table: FileTable, given: Sequence[str], flag: str) -> tuple[DisplayColumn, ...]:
    """Return the columns of texts ``KIND:COLUMN``.

    Raises
    ------
    FileError
        If a text has another form, or there is no such column.
    """
    if len(given) > MAX_ITEMS:
        raise FileError(
            table.path, f"{flag} is given {len(given)} times, a row has at most {MAX_ITEMS} items"
        )
    columns = []
    for text in given:
        kind, colon, name = text.partition(":")
        if not colon or kind not in KINDS:
            raise FileError(
                table.path, f"{flag} is {shown(text)}, must be KIND:COLUMN with one of {', '.join(KINDS)}"
            )
        columns.append(DisplayColumn(kind, table.position(name, flag), name))
    return tuple(columns)


def display_of(
    table: FileTable, record: FileRecord, columns: Sequence[DisplayColumn]
) -> list[DisplayItem] | None:
    """Return the display of a row, without items for missing cells; None if it has no items.

    Raises
    ------
    FileError
        When a cell is not an item of its kind; it names line and column.
    """
    items: list[DisplayItem] = []
    for column in columns:
        cell = record.cells[column.position]
        if cell is None:
            continue
        try:
            items.append(_item_of(column, cell, table.path.parent))
        except InvalidInput as error:
            raise table.error(record, column.position, str(error)) from None
    return items or None


def _item_of(column: DisplayColumn, cell: str, folder: Path) -> DisplayItem:
    match column.kind:
        case "text":
            return TextItem(column.title, cell)
        case "link":
            return LinkItem(column.title, cell)
        case "series":
            words = re.split(r"[\s,;]+", cell.strip(" []"))
            try:
                values = [float("nan") if word == "?" else float(word) for word in words]
            except ValueError:
                reason = f"is {cell[:80]!r}, must be numbers with blanks between them"
                raise InvalidInput("series", reason) from None
            return SeriesItem(column.title, values)
    kind = cast("Literal['image', 'audio']", column.kind)
    if re.match(r"https?://", cell):
        return MediaItem(kind, column.title, url=cell)
    if (begin := _DATA.match(cell)) is None:
        return MediaItem(kind, column.title, data=_bytes_beside(kind, cell, folder))
    try:
        return MediaItem(kind, column.title, data=base64.b64decode(cell[begin.end() :], validate=True))
    except (binascii.Error, ValueError):
        raise InvalidInput(kind, "is data: with a text that is not base64") from None


def _bytes_beside(kind: str, name: str, folder: Path) -> bytes:
    """Return the bytes of a file in the folder of the table or below; other files are refused."""
    if "\0" in name:
        raise InvalidInput(kind, f"is {name[:200]!r}, and no name of a file has a null character")
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise InvalidInput(kind, f"is {name[:200]!r}, must be a URL or a file below the folder of the table")
    try:
        with path.open("rb") as stream:
            data = stream.read(MAX_DISPLAY_BYTES + 1)
    except OSError as error:
        raise InvalidInput(kind, f"{name[:200]!r} cannot be read: {error.strerror}") from None
    if len(data) > MAX_DISPLAY_BYTES:
        raise InvalidInput(kind, f"{name[:200]!r} is larger than {MAX_DISPLAY_BYTES:,} bytes")
    return data
