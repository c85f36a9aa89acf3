"""A file format for columns, with checksums.

Layout, little-endian: eight bytes that name the format, the length of the directory as uint64, the CRC-32 of the
directory as uint32, and the directory as JSON: a head, and name, type, shape, room and CRC-32 of each column. The
columns follow. Spaces after the directory and zeros after a column pad to a multiple of 64 bytes. A growing column is
followed by room for more rows, a hole that takes no space on the disk: a reader that maps the file into memory appends
there without copying.

A file is written beside its place and renamed; the checksums reveal damage by a power cut.
"""

from __future__ import annotations

import json
import math
import mmap
import os
import struct
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC: Final = b"QGROWTH2"
_HEADER: Final = struct.Struct("<8sQI")
TYPES: Final = ("|i1", "|u1", "<i2", "<u2", "<i4", "<i8", "|b1", "<f8")
MAX_DIRECTORY: Final = 16 * 1024 * 1024
ALIGNMENT: Final = 64
ROOM_SHARE: Final = 8
"""The room after a growing column is its number of rows divided by this."""

Columns = Mapping[str, NDArray[Any]]


class UnreadableFileError(Exception):
    """The file has another format, or is damaged; the message says which."""


class _Entry(NamedTuple):
    """The entry of a column in the directory; `room` counts the rows that may follow those of `shape`."""

    name: str
    kind: str
    shape: list[int]
    room: int
    checksum: int

    @property
    def row_bytes(self) -> int:
        return np.dtype(self.kind).itemsize * math.prod(self.shape[1:])

    def byte_bounds(self, start: int) -> tuple[int, int, int]:
        """Return the ends of the rows, the room and the padding of a column that begins at `start`."""
        rows = start + self.shape[0] * self.row_bytes
        room = rows + self.room * self.row_bytes
        return rows, room, room + -room % ALIGNMENT


def write_columns(
    path: Path, head: Mapping[str, Any], columns: Columns, growing: Collection[str] = ()
) -> None:
    """Write a file that only this user may read; raise ``OSError`` if that fails.

    Parameters
    ----------
    path : path of the file.
    head : head, of JSON's types.
    columns : arrays of `TYPES`, with one axis or more.
    growing : names of columns that get room for more rows.
    """
    flat = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    unknown = [name for name, column in flat.items() if column.dtype.str not in TYPES]
    if unknown:
        raise TypeError(f"columns {unknown} have a type that is none of {TYPES}")
    data = {name: column.reshape(-1).view(np.uint8).data for name, column in flat.items()}
    entries = [
        _Entry(
            name,
            column.dtype.str,
            list(column.shape),
            len(column) // ROOM_SHARE if name in growing else 0,
            zlib.crc32(data[name]),
        )
        for name, column in flat.items()
    ]
    directory = json.dumps({"head": head, "columns": entries}, separators=(",", ":")).encode()
    directory += b" " * (-(_HEADER.size + len(directory)) % ALIGNMENT)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_HEADER.pack(MAGIC, len(directory), zlib.crc32(directory)))
            file.write(directory)
            start = file.tell()
            for entry in entries:
                file.write(data[entry.name])
                _, _, start = entry.byte_bounds(start)
                file.seek(start)
            file.truncate()
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_columns(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return head and columns. Columns are views of the mapped file, but writing to them does not change the file.

    The rows of a growing column are followed by its room, whose values do not matter.

    Raises
    ------
    FileNotFoundError
        If there is no file.
    UnreadableFileError
        If it has another format, or is damaged.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < _HEADER.size:
            raise UnreadableFileError("it is too short")
        # a private mapping: kernels write into the arrays, but the file does not change
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    magic, length, checksum = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise UnreadableFileError("it is of another format")
    end = _HEADER.size + length
    if length > MAX_DIRECTORY or end > len(data) or zlib.crc32(data[_HEADER.size : end]) != checksum:
        raise UnreadableFileError("it is damaged")
    directory = json.loads(bytes(data[_HEADER.size : end]))
    columns: dict[str, NDArray[Any]] = {}
    for entry in (_Entry(*entry) for entry in directory["columns"]):
        if entry.kind not in TYPES:
            raise UnreadableFileError(f"column {entry.name} has the type {entry.kind}")
        start, (rows, room, end) = end, entry.byte_bounds(end)
        is_damaged = end > len(data) or zlib.crc32(data[start:rows]) != entry.checksum
        if is_damaged or any(data[room:end]):
            raise UnreadableFileError("it is damaged")
        whole = np.frombuffer(data[start:room], np.dtype(entry.kind))
        columns[entry.name] = whole.reshape(entry.shape[0] + entry.room, *entry.shape[1:])
    if end != len(data):
        raise UnreadableFileError("it is damaged")
    return directory["head"], columns


@dataclass(frozen=True, slots=True, eq=False)
class SavedEngine:
    """The state of an engine for saving, or as it was saved.

    Attributes
    ----------
    head : head, of JSON's types.
    columns : arrays, maybe views. Those read from a file include their room.
    growing : names of columns that get room for more rows in a file.
    """

    head: Mapping[str, Any]
    columns: Columns
    growing: frozenset[str] = frozenset()

    def under_name(self, name: str) -> SavedEngine:
        """Return the same state under a name, to be merged with others."""
        return SavedEngine(
            {name: self.head},
            {f"{name}.{key}": column for key, column in self.columns.items()},
            frozenset(f"{name}.{key}" for key in self.growing),
        )

    def merged_with(self, other: SavedEngine) -> SavedEngine:
        """Return this state and another, both `under_name`, as one."""
        return SavedEngine(
            {**self.head, **other.head}, {**self.columns, **other.columns}, self.growing | other.growing
        )

    def part_named(self, name: str) -> SavedEngine:
        """Return the part that `under_name` stored under this name."""
        prefix = f"{name}."
        mine = (key for key in self.columns if key.startswith(prefix))
        return SavedEngine(self.head[name], {key.removeprefix(prefix): self.columns[key] for key in mine})
