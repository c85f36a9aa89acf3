"""The stored form of a tree: its head as a message, its nodes as the columns of a `FlatTree`.

No part is a message a node: to write or read one takes ten microseconds of Python, the better part of a second for a
tree of 60,000 nodes, at every version. Layout: a header of four little-endian uint32 (format, and the lengths of the
three compressed parts), then

1. the ``quercus.v1.Tree`` message without its nodes,
2. the columns that classify: `INTEGERS`, a number a node; then `FLOATS`, a number a node and class,
3. the columns that people read: `VERDICTS` (undecided, stop, number of intervals), a number a node; then the
   intervals' attributes, lower and upper ends.

Integers are int64, numbers float64, verdicts int64, all little-endian.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from quercus.proto.v1 import tree_pb2
from quercus.trees.flat import FlatTree

FORMAT: Final = 2
LEVEL: Final = 1  # of compression: fast
INTEGERS: Final = ("attribute", "parent", "branch", "klass", "count")
FLOATS: Final = ("theta", "belief", "plausibility")
VERDICTS: Final = 3
_HEADER: Final = struct.Struct("<4I")
_NUMBER: Final = 8  # bytes of each


@dataclass(frozen=True)
class UnreadableSnapshotError(Exception):
    """A stored tree in a format that this version does not know."""

    format: int

    def __str__(self) -> str:
        return f"a stored tree has format {self.format}; this version reads format {FORMAT}"


def encode(head: tree_pb2.Tree, flat: FlatTree) -> bytes:
    """Return the stored form of a tree: `head` is its message without nodes."""
    counts = np.diff(flat.interval_start)
    routing = [*(getattr(flat, name) for name in INTEGERS), *(getattr(flat, name) for name in FLOATS)]
    reading = [flat.undecided, flat.stop, counts, flat.interval_attribute]
    parts = [
        zlib.compress(part, LEVEL)
        for part in (
            head.SerializeToString(deterministic=True),
            b"".join([*map(_packed, routing)]),
            b"".join([*map(_packed, (*reading, flat.interval_lower, flat.interval_upper))]),
        )
    ]
    return b"".join([_HEADER.pack(FORMAT, *map(len, parts)), *parts])


def is_current(data: bytes) -> bool:
    """Whether this version can read a stored tree."""
    return bool(_HEADER.unpack_from(data)[0] == FORMAT)


def read(data: bytes) -> tuple[tree_pb2.Tree, FlatTree]:
    """Return the message without its nodes, and the whole tree."""
    packed_head, routing, reading = _parts(data)
    head = tree_pb2.Tree.FromString(zlib.decompress(packed_head))
    columns = _routing(zlib.decompress(routing), len(head.classes))
    raw = zlib.decompress(reading)
    nodes = len(columns["attribute"])
    undecided, stop, counts = np.frombuffer(raw, "<i8", VERDICTS * nodes).reshape(VERDICTS, nodes)
    total, after = int(counts.sum()), VERDICTS * nodes * _NUMBER
    lower, upper = np.frombuffer(raw, "<f8", offset=after + total * _NUMBER).reshape(2, total)
    flat = FlatTree(
        **columns,
        undecided=undecided.astype(bool),
        stop=stop.astype(np.int8),
        interval_start=np.concatenate([[0], np.cumsum(counts)]),
        interval_attribute=np.frombuffer(raw, "<i8", total, offset=after),
        interval_lower=lower,
        interval_upper=upper,
    )
    return head, flat


def read_classifier(data: bytes) -> tuple[tree_pb2.Tree, FlatTree]:
    """Return the message without its nodes, and the tree without what only people read (stops, intervals)."""
    packed_head, routing, _ = _parts(data)
    head = tree_pb2.Tree.FromString(zlib.decompress(packed_head))
    columns = _routing(zlib.decompress(routing), len(head.classes))
    nodes = len(columns["attribute"])
    flat = FlatTree(
        **columns,
        undecided=np.zeros(nodes, dtype=bool),
        stop=np.zeros(nodes, dtype=np.int8),
        interval_start=np.zeros(nodes + 1, dtype=np.int64),
        interval_attribute=np.zeros(0, dtype=np.int64),
        interval_lower=np.zeros(0),
        interval_upper=np.zeros(0),
    )
    return head, flat


def _packed(column: NDArray[Any]) -> bytes:
    return np.ascontiguousarray(column, dtype="<f8" if column.dtype.kind == "f" else "<i8").tobytes()


def _routing(raw: bytes, classes: int) -> dict[str, NDArray[Any]]:
    nodes = len(raw) // (_NUMBER * (len(INTEGERS) + len(FLOATS) * classes))
    integers = np.frombuffer(raw, "<i8", len(INTEGERS) * nodes).reshape(len(INTEGERS), nodes)
    floats = np.frombuffer(raw, "<f8", offset=integers.nbytes).reshape(len(FLOATS), nodes, classes)
    return {**dict(zip(INTEGERS, integers, strict=True)), **dict(zip(FLOATS, floats, strict=True))}


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    form, *lengths = _HEADER.unpack_from(data)
    if form != FORMAT:
        raise UnreadableSnapshotError(form)
    first = _HEADER.size
    second, third = first + lengths[0], first + lengths[0] + lengths[1]
    return data[first:second], data[second:third], data[third : third + lengths[2]]
