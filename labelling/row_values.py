"""The stored form of a row: its values, followed by the ranges of uncertain values.

Values are little-endian float64: numbers, indices of names, or NaN where a value is missing or uncertain. All NaN have
the same bytes, and -0.0 is stored as 0.0, so equal rows have equal bytes. A row with uncertain values begins with a
tag, 8 bytes that no value can have, which contain the number of attributes. After the values, each uncertain one
follows: its attribute and the number of its ranges (uint32 each), then both ends of every range (float64).
"""

import struct
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from quercus.belief.errors import InvalidInput

Floats = NDArray[np.float64]
Range = tuple[float, float]  # both ends included
Parts = Mapping[tuple[int, int], tuple[Range, ...]]  # by row and attribute

WIDTH: Final = 8
_TAG: Final = 0x7FF5 << 48
_TAGGED: Final = np.uint64(0x7FF5)
_HEAD: Final = struct.Struct("<Q")
_MISSING: Final = np.array([np.nan], "<f8").tobytes()
_CELL: Final = struct.Struct("<II")


def pack_rows(values: Floats, parts: Parts) -> list[bytes]:
    """Return the stored form of rows (n, K); `parts` has the ranges of uncertain values.

    Examples
    --------
    >>> packed = pack_rows(np.array([[1.0, np.nan], [-0.0, 2.0]]), {(0, 1): ((2.0, 9.0),)})
    >>> [len(row) for row in packed], unpack_rows(packed)
    ([48, 16], (array([[ 1., nan],
           [ 0.,  2.]]), {(0, 1): ((2.0, 9.0),)}))
    """
    array = np.ascontiguousarray(values + 0.0, dtype="<f8")  # + 0.0 turns -0.0 into 0.0
    missing = np.isnan(array)
    if missing.any():
        array = np.where(missing, np.nan, array).astype("<f8", copy=False)
    data = array.tobytes()
    width = WIDTH * array.shape[1]
    rows = [data[start : start + width] for start in range(0, len(data), width)]
    behind: dict[int, list[bytes]] = {}
    for row, k in sorted(parts):
        ends = np.array(parts[row, k], "<f8") + 0.0
        behind.setdefault(row, []).append(_CELL.pack(k, len(ends)) + ends.tobytes())
    for row, cells in behind.items():
        rows[row] = b"".join((_HEAD.pack(_TAG | array.shape[1]), rows[row], *cells))
    return rows


def attribute_count(row: bytes) -> int:
    """Return the number of attributes of a stored row.

    Raises
    ------
    InvalidInput
        If the bytes are not a stored row.
    """
    if len(row) % WIDTH or not row:
        raise InvalidInput("values", f"have {len(row)} bytes, must be 8 each")
    (head,) = _HEAD.unpack_from(row)
    if head >> 48 != _TAG >> 48:
        return len(row) // WIDTH
    count = int(head & 0xFFFFFFFF)
    if not 0 < WIDTH * (1 + count) < len(row):
        raise InvalidInput(
            "values", f"have {len(row)} bytes, too few for uncertain values of {count} attributes"
        )
    return count


def widened_row(row: bytes, count: int) -> bytes:
    """Return a stored row, extended to `count` attributes; the new values are missing.

    Examples
    --------
    >>> (packed,) = pack_rows(np.array([[np.nan]]), {(0, 0): ((2.0, 9.0),)})
    >>> unpack_row(widened_row(packed, 2))
    (array([nan, nan]), {0: ((2.0, 9.0),)})
    """
    had = attribute_count(row)
    more = _MISSING * (count - had)
    if had * WIDTH == len(row):
        return row + more
    at = WIDTH * (1 + had)
    return _HEAD.pack(_TAG | count) + row[WIDTH:at] + more + row[at:]


def unpack_rows(rows: Sequence[bytes]) -> tuple[Floats, dict[tuple[int, int], tuple[Range, ...]]]:
    """Return the values (n, K) of stored rows, and the ranges of uncertain values, by row and attribute.

    Uncertain values are NaN in the first array.

    Raises
    ------
    InvalidInput
        If the bytes are not stored rows with the same number of attributes.
    """
    if len(set(map(len, rows))) == 1 and len(rows[0]) % WIDTH == 0:
        table = np.frombuffer(b"".join(rows), dtype="<f8").reshape(len(rows), -1)
        if not (table[:, :1].view(np.uint64) >> np.uint64(48) == _TAGGED).any():
            return table.astype(np.float64, copy=False), {}
    plain, parts = [], {}
    for place, row in enumerate(rows):
        count = attribute_count(row)
        if count * WIDTH == len(row):
            plain.append(row)
            continue
        at = WIDTH * (1 + count)
        plain.append(row[WIDTH:at])
        while at < len(row):
            k, ranges = _CELL.unpack_from(row, at)
            at += _CELL.size
            ends = struct.unpack_from(f"<{2 * ranges}d", row, at) if at + 16 * ranges <= len(row) else ()
            if not ranges or not ends or k >= count:
                raise InvalidInput("values", f"have an uncertain value of attribute {k} that cannot be read")
            parts[place, k] = tuple(zip(ends[::2], ends[1::2], strict=True))
            at += 16 * ranges
    if len(set(map(len, plain))) > 1:
        raise InvalidInput("values", "of one model have different numbers of attributes")
    array = np.frombuffer(b"".join(plain), dtype="<f8").reshape(len(rows), -1).astype(np.float64, copy=False)
    return array, parts


def unpack_row(row: bytes) -> tuple[Floats, dict[int, tuple[Range, ...]]]:
    """Return the values (K,) of a stored row, and the ranges of uncertain values, by attribute."""
    values, parts = unpack_rows([row])
    return values[0], {k: ranges for (_, k), ranges in parts.items()}
