"""The stored form of a tree version: its head as a message, its nodes as columns.

There is no message for each node, because reading or writing one takes ten microseconds of Python: more than half a
second for a tree of 60,000 nodes, at every version. Layout: a header of four little-endian uint32 (format, and the
lengths of the three compressed parts), then

1. the ``quercus.v1.Tree`` message without its nodes,
2. the columns for classification: `quercus.trees.learners.stored`,
3. the columns for people: stops, undecided nodes, intervals.

A part with columns consists of the length of its directory as uint32, the directory as JSON (name, type and shape of
each column), and the columns, one after the other, little-endian.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from quercus.trees import LearnedModel
from quercus.trees.learners.stored import (
    PEOPLE_READ,
    Columns,
    StoredForm,
    fitted_columns,
    form_of,
    join_trees,
)
from quercus.v1 import tree_pb2

FORMAT: Final = 5
LEVEL: Final = 1  # of compression: the fastest
_HEADER: Final = struct.Struct("<4I")
_LENGTH: Final = struct.Struct("<I")


class UnreadableSnapshotError(Exception):
    """A stored tree has a format that this version does not know, or is damaged.

    Parameters
    ----------
    form : format of the tree.
    """

    def __init__(self, form: int) -> None:
        super().__init__(form)
        self.format = form

    def __str__(self) -> str:
        if self.format == FORMAT:
            return "a stored tree is damaged"
        return f"a stored tree has format {self.format}; this version reads format {FORMAT}"


@dataclass(frozen=True, eq=False)
class StoredVersion:
    """A stored version.

    Attributes
    ----------
    head : message of the tree without nodes.
    form : rule that combines the trees' predictions.
    columns : columns of all trees, see `quercus.trees.learners.stored`.
    """

    head: tree_pb2.Tree
    form: StoredForm
    columns: Columns


def encode_snapshot(head: tree_pb2.Tree, model: LearnedModel) -> bytes:
    """Return the stored form of a model; `head` is its message without nodes."""
    columns = join_trees(model.flat_trees)
    reading = {name: columns.pop(name) for name in PEOPLE_READ if name in columns}
    parts = [
        zlib.compress(part, LEVEL)
        for part in (
            head.SerializeToString(deterministic=True),
            _pack_columns(columns | fitted_columns(model), asdict(form_of(model))),
            _pack_columns(reading),
        )
    ]
    return b"".join([_HEADER.pack(FORMAT, *map(len, parts)), *parts])


def is_readable(data: bytes) -> bool:
    """Return whether this version can read a stored tree; otherwise the tree is grown again."""
    try:
        read_snapshot(data)
    except UnreadableSnapshotError:
        return False
    return True


def is_earlier(data: bytes) -> bool:
    """Return whether an earlier version of Quercus wrote a stored tree, which is then grown again."""
    return len(data) >= _HEADER.size and 0 < _HEADER.unpack_from(data)[0] < FORMAT


def read_snapshot(data: bytes) -> StoredVersion:
    """Return a complete stored version; raise `UnreadableSnapshotError` if it cannot be read."""
    return _read_parts(data, 3)


def read_classifier(data: bytes) -> StoredVersion:
    """Return a stored version without the columns for people; raises like `read_snapshot`."""
    return _read_parts(data, 2)


def _read_parts(data: bytes, count: int) -> StoredVersion:
    try:
        form, *lengths = _HEADER.unpack_from(data)
        if form != FORMAT:
            raise UnreadableSnapshotError(form)
        parts, at = [], _HEADER.size
        for length in lengths[:count]:
            parts.append(zlib.decompress(data[at : at + length]))
            at += length
        head, classifying, *reading = parts
        columns, stored_form = _unpack_columns(classifying)
        for part in reading:
            columns |= _unpack_columns(part)[0]
        return StoredVersion(tree_pb2.Tree.FromString(head), StoredForm(**stored_form), columns)
    except (
        DecodeError,
        LookupError,
        OverflowError,
        TypeError,
        ValueError,
        struct.error,
        zlib.error,
    ) as error:  # damaged bytes; compressed parts have checksums
        raise UnreadableSnapshotError(FORMAT) from error


def _pack_columns(columns: Mapping[str, NDArray[Any]], form: Mapping[str, Any] | None = None) -> bytes:
    arrays = {name: np.ascontiguousarray(column, _stored_type(column)) for name, column in columns.items()}
    listed = [[name, array.dtype.str, list(array.shape)] for name, array in arrays.items()]
    directory = json.dumps({"form": form or {}, "columns": listed}).encode()
    return b"".join(
        [_LENGTH.pack(len(directory)), directory, *(array.tobytes() for array in arrays.values())]
    )


def _unpack_columns(raw: bytes) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    (length,) = _LENGTH.unpack_from(raw)
    at = _LENGTH.size + length
    directory = json.loads(raw[_LENGTH.size : at])
    columns: dict[str, NDArray[Any]] = {}
    for name, kind, shape in directory["columns"]:
        count = math.prod(shape)
        columns[name] = np.frombuffer(raw, kind, count, at).reshape(shape)
        at += columns[name].nbytes
    return columns, directory["form"]


def _stored_type(column: NDArray[Any]) -> str:
    if column.dtype.itemsize == 1:
        return column.dtype.str
    return column.dtype.newbyteorder("<").str
