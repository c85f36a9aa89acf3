"""Labels to bytes and back: the form in which the log keeps them.

One byte, version (high half) and kind (low half), then the payload, little-endian:

====  ============== =====================================================
0x11  class set      mask, uint64
0x12  plausibilities one float64 a class
0x13  masses         masks, uint64 each, then as many masses, float64 each
====  ============== =====================================================

Numbers are restored bit for bit. The format is fixed: a change gets a new version, and old bytes stay readable.
"""

import struct
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from quercus.belief.contour import check_contours
from quercus.belief.errors import InvalidInput
from quercus.belief.frame import full_mask
from quercus.belief.label import (
    ClassSet,
    Label,
    Masses,
    Plausibilities,
    check_label,
    contour,
    set_contours,
)
from quercus.belief.mass import MassFunction

_SET, _PLAUSIBILITIES, _MASSES = 0x11, 0x12, 0x13
_SET_RECORD = np.dtype([("kind", "u1"), ("mask", "<u8")])  # packed: 9 bytes
_WORD = 8


def encode(label: Label) -> bytes:
    """Return the bytes of `label`.

    Examples
    --------
    >>> encode(ClassSet(0b101)).hex()
    '110500000000000000'
    """
    match label:
        case ClassSet(mask):
            return struct.pack("<BQ", _SET, mask)
        case Plausibilities(values):
            return pack_contour(values)
        case Masses(mass):
            masks = [focal for focal, _ in mass.focal]
            return struct.pack(
                f"<B{len(masks)}Q{len(masks)}d", _MASSES, *masks, *(value for _, value in mass.focal)
            )


def decode(data: bytes, size: int) -> Label:
    """Return the label whose bytes are `data`, on a frame of `size` classes.

    Raises
    ------
    InvalidInput
        When the bytes are not a label of this format, or the label does not fit the frame.
    """
    if not data:
        raise InvalidInput("label", "has no bytes, must have at least its kind byte")
    kind, payload = data[0], data[1:]
    words, rest = divmod(len(payload), _WORD)
    if rest:
        raise InvalidInput("label", f"has a payload of {len(payload)} bytes, must be a multiple of {_WORD}")
    return check_label(_read_label(kind, payload, words, size), size)


def _read_label(kind: int, payload: bytes, words: int, size: int) -> Label:
    if kind == _SET and words == 1:
        return ClassSet(struct.unpack("<Q", payload)[0])
    if kind == _PLAUSIBILITIES:
        return Plausibilities(struct.unpack(f"<{words}d", payload))
    if kind == _MASSES and words % 2 == 0:
        half = words // 2
        numbers = struct.unpack(f"<{half}Q{half}d", payload)
        return Masses(MassFunction(size, tuple(zip(numbers[:half], numbers[half:], strict=True))))
    raise InvalidInput(
        "label", f"has kind byte {kind:#04x} with {words} numbers, which this version cannot read"
    )


def widened(data: bytes, size: int, new_size: int) -> bytes:
    """Return the encoding, on a frame with further classes added at its end, of a label on `size` classes.

    A vacuous label (a set of all classes, the same plausibility for each, all mass on the frame) stays vacuous. Every
    other label excludes the new classes. Bytes that are not a label are returned unchanged.

    Examples
    --------
    >>> from quercus.belief.label import ClassSet
    >>> [decode(widened(encode(ClassSet(mask)), 2, 3), 3) for mask in (0b11, 0b10)]
    [ClassSet(mask=7), ClassSet(mask=2)]
    >>> decode(widened(encode(Plausibilities((1.0, 0.5))), 2, 3), 3)
    Plausibilities(values=(1.0, 0.5, 0.0))
    """
    kind, payload = data[:1], data[1:]
    if kind == bytes((_PLAUSIBILITIES,)):
        first = payload[:_WORD]
        says_nothing = payload == first * size and first != bytes(_WORD)
        return data + (first if says_nothing else bytes(_WORD)) * (new_size - size)
    full = struct.pack("<Q", full_mask(size))
    if payload in {full, full + struct.pack("<d", 1.0)}:  # a set, or all of a mass
        return kind + struct.pack("<Q", full_mask(new_size)) + payload[_WORD:]
    return data


def pack_contour(values: Sequence[float]) -> bytes:
    """Return ``encode(Plausibilities(values))``, for a contour that was checked."""
    return struct.pack(f"<B{len(values)}d", _PLAUSIBILITIES, *values)


def encode_sets(masks: NDArray[np.uint64]) -> list[bytes]:
    """Return ``[encode(ClassSet(mask)) for mask in masks]`` quickly, for masks uint64 (n,).

    The masks are not checked: see :func:`quercus.belief.label.set_contours`.
    """
    records = np.empty(len(masks), dtype=_SET_RECORD)
    records["kind"] = _SET
    records["mask"] = masks
    return _cut_labels(records)


def encode_contours(contours: NDArray[np.float64]) -> list[bytes]:
    """Return ``[encode(Plausibilities(tuple(contour))) for contour in contours]`` quickly, for contours (n, l).

    The contours are not checked: see :func:`quercus.belief.contour.check_contours`.
    """
    records = np.empty(len(contours), dtype=_contour_record(contours.shape[1]))
    records["kind"] = _PLAUSIBILITIES
    records["values"] = contours
    return _cut_labels(records)


@cache
def _contour_record(size: int) -> np.dtype[np.void]:
    return np.dtype([("kind", "u1"), ("values", "<f8", (size,))])


def _cut_labels(records: NDArray[np.void]) -> list[bytes]:
    """Return the bytes of each record."""
    data, step = records.tobytes(), records.dtype.itemsize
    return [data[at : at + step] for at in range(0, len(data), step)]


def decode_contours(labels: Sequence[bytes], size: int) -> NDArray[np.float64]:
    """Return the contours of many encoded labels, float64 (n, size).

    Each distinct label is decoded only once; class sets and plausibilities are decoded in bulk.

    Raises
    ------
    InvalidInput
        As :func:`decode`.
    """
    numbers = {data: number for number, data in enumerate(dict.fromkeys(labels))}
    table = _decode_distinct(list(numbers), size)
    if len(numbers) == len(labels):
        return table
    return table[np.fromiter(map(numbers.__getitem__, labels), dtype=np.intp, count=len(labels))]


def _decode_distinct(labels: list[bytes], size: int) -> NDArray[np.float64]:
    graded_record = _contour_record(size)
    sets = _label_places(labels, _SET, _SET_RECORD)
    graded = _label_places(labels, _PLAUSIBILITIES, graded_record)
    contours = np.empty((len(labels), size))
    masks = np.frombuffer(b"".join(labels[at] for at in sets), _SET_RECORD)["mask"]
    contours[sets] = set_contours(masks.astype(np.uint64), size)
    values = np.frombuffer(b"".join(labels[at] for at in graded), graded_record)["values"]
    contours[graded] = check_contours(values, size)
    for at in set(range(len(labels))).difference(sets, graded):
        contours[at] = contour(decode(labels[at], size), size)
    return contours


def _label_places(labels: list[bytes], kind: int, record: np.dtype[np.void]) -> list[int]:
    return [at for at, data in enumerate(labels) if len(data) == record.itemsize and data[0] == kind]
