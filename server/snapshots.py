"""The stored form of a tree: the message for people, the arrays that classify, each readable without the other.

Decoding a message of 60,000 nodes to arrays takes the better part of a second of Python, which would stall the event
loop's thread at every new version; the arrays are read in a millisecond. Layout: a header of four little-endian
uint32 (format, and the lengths of the three compressed parts), then

1. the ``quercus.v1.Tree`` message without its nodes,
2. the same message with nothing but its nodes (the two bytes strings joined are the whole message),
3. the arrays of `COLUMNS`, one after the other, little-endian, with as many rows as there are nodes.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

import numpy as np

from quercus.proto.v1 import tree_pb2
from quercus.trees.flat import FlatTree

FORMAT: Final = 1
LEVEL: Final = 1  # of compression: fast
_HEADER: Final = struct.Struct("<4I")
_INTEGERS: Final = ("attribute", "parent", "branch", "klass", "count")
_FLOATS: Final = ("theta", "belief", "plausibility")
COLUMNS: Final = (*_INTEGERS, *_FLOATS)


@dataclass(frozen=True)
class UnreadableSnapshotError(Exception):
    """A stored tree in a format that this version does not know."""

    format: int

    def __str__(self) -> str:
        return f"a stored tree has format {self.format}; this version reads format {FORMAT}"


def encode(message: tree_pb2.Tree, flat: FlatTree) -> bytes:
    """Return the stored form of a tree given as message and as arrays."""
    head, nodes = tree_pb2.Tree(), tree_pb2.Tree(nodes=message.nodes)
    head.CopyFrom(message)
    del head.nodes[:]
    arrays = [np.ascontiguousarray(getattr(flat, name), dtype="<i8").tobytes() for name in _INTEGERS]
    arrays += [np.ascontiguousarray(getattr(flat, name), dtype="<f8").tobytes() for name in _FLOATS]
    parts = [
        zlib.compress(part, LEVEL)
        for part in (
            head.SerializeToString(deterministic=True),
            nodes.SerializeToString(deterministic=True),
            b"".join(arrays),
        )
    ]
    return b"".join([_HEADER.pack(FORMAT, *map(len, parts)), *parts])


def read_message(data: bytes) -> tree_pb2.Tree:
    """Return the whole message."""
    head, nodes, _ = _parts(data)
    return tree_pb2.Tree.FromString(zlib.decompress(head) + zlib.decompress(nodes))


def read_classifier(data: bytes) -> tuple[tree_pb2.Tree, FlatTree]:
    """Return the message without its nodes, and the arrays without what only people read (stops, intervals)."""
    packed_head, _, packed_arrays = _parts(data)
    head = tree_pb2.Tree.FromString(zlib.decompress(packed_head))
    raw = zlib.decompress(packed_arrays)
    classes = len(head.classes)
    nodes = len(raw) // (8 * (len(_INTEGERS) + len(_FLOATS) * classes))
    integers = np.frombuffer(raw, "<i8", len(_INTEGERS) * nodes).reshape(len(_INTEGERS), nodes)
    floats = np.frombuffer(raw, "<f8", offset=integers.nbytes).reshape(len(_FLOATS), nodes, classes)
    attribute, parent, branch, klass, count = integers
    theta, belief, plausibility = floats
    flat = FlatTree(
        attribute=attribute,
        parent=parent,
        branch=branch,
        klass=klass,
        count=count,
        theta=theta,
        belief=belief,
        plausibility=plausibility,
        undecided=np.zeros(nodes, dtype=bool),
        stop=np.zeros(nodes, dtype=np.int8),
        interval_start=np.zeros(nodes + 1, dtype=np.int64),
        interval_attribute=np.zeros(0, dtype=np.int64),
        interval_lower=np.zeros(0),
        interval_upper=np.zeros(0),
    )
    return head, flat


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    form, *lengths = _HEADER.unpack_from(data)
    if form != FORMAT:
        raise UnreadableSnapshotError(form)
    first = _HEADER.size
    second, third = first + lengths[0], first + lengths[0] + lengths[1]
    return data[first:second], data[second:third], data[third : third + lengths[2]]
