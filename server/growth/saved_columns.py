"""Columns in a file that is whole or is not read.

Layout, little-endian: eight bytes that name the format, the length of the directory as uint64, the BLAKE2b digest (32
bytes) of all that follows, the directory as JSON (a head, and name, type and shape of each column), and the columns one
after the other. A file is written beside its place and renamed into it; the digest reveals damage by a power cut.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

MAGIC: Final = b"QGROWTH1"
_HEADER: Final = struct.Struct("<8sQ32s")
TYPES: Final = ("|i1", "<i2", "<u2", "<i4", "<i8", "|b1", "<f8")
MAX_DIRECTORY: Final = 16 * 1024 * 1024

Columns = Mapping[str, NDArray[Any]]


class UnreadableFileError(Exception):
    """The file is none of this format, or is damaged; the message says which."""


def write_columns(path: Path, head: Mapping[str, Any], columns: Columns) -> None:
    """Put a file into its place, which only this user may read; ``OSError`` when it cannot be written."""
    flat = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    entries = [[name, column.dtype.str, column.shape] for name, column in flat.items()]
    unknown = [name for name, kind, _ in entries if kind not in TYPES]
    if unknown:
        raise TypeError(f"columns {unknown} have a type that is none of {TYPES}")
    directory = json.dumps({"head": head, "columns": entries}, separators=(",", ":")).encode()
    parts = [
        memoryview(directory),
        *(column.reshape(-1).view(np.uint8).data for column in flat.values()),
    ]
    digest = _digest_of(len(directory), *parts)
    beside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(_HEADER.pack(MAGIC, len(directory), digest))
            for part in parts:
                file.write(part)
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def read_columns(path: Path) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return head and columns; these are views of the mapped file, and writing to them does not change it.

    Raises
    ------
    FileNotFoundError
        There is none.
    UnreadableFileError
        It is of another format, or damaged.
    """
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_size < _HEADER.size:
            raise UnreadableFileError("it is too short")
        # a private mapping: arrays that may not be written to are of another type, and compile kernels anew
        data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
    magic, length, digest = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise UnreadableFileError("it is of another format")
    start = _HEADER.size + length
    if length > MAX_DIRECTORY or start > len(data):
        raise UnreadableFileError("it is damaged")
    if _digest_of(length, data[_HEADER.size :]) != digest:
        raise UnreadableFileError("it is damaged")
    directory = json.loads(bytes(data[_HEADER.size : start]))
    columns: dict[str, NDArray[Any]] = {}
    for name, kind, shape in directory["columns"]:
        if kind not in TYPES:
            raise UnreadableFileError(f"column {name} has the type {kind}")
        count = int(np.prod(shape, dtype=np.int64))
        columns[name] = np.frombuffer(data, np.dtype(kind), count, start).reshape(shape)
        start += columns[name].nbytes
    return directory["head"], columns


def _digest_of(length: int, *parts: memoryview) -> bytes:
    digest = hashlib.blake2b(length.to_bytes(8, "little"), digest_size=32)
    for part in parts:
        digest.update(part)
    return digest.digest()


@dataclass(frozen=True, slots=True, eq=False)
class SavedEngine:
    """An engine to be saved: `head` in JSON's types, and columns, which may be views."""

    head: Mapping[str, Any]
    columns: Columns

    def named(self, name: str) -> SavedEngine:
        """Return the same under a name, to be saved together with others."""
        return SavedEngine(
            {name: self.head}, {f"{name}.{key}": column for key, column in self.columns.items()}
        )

    def of(self, name: str) -> SavedEngine:
        """Return the part that `named` stored under this name."""
        prefix = f"{name}."
        mine = (key for key in self.columns if key.startswith(prefix))
        return SavedEngine(self.head[name], {key.removeprefix(prefix): self.columns[key] for key in mine})
