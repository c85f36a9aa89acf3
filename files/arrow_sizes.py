"""Sizes of the packed buffers of an Arrow file, read before they are unpacked.

pyarrow unpacks a batch whole: one of a kilobyte that holds zeros may take gigabytes. Each of its packed buffers begins
with its unpacked size; a FlatBuffer before them says where they are.

Sources: Message.fbs and File.fbs of the Arrow columnar format,
https://arrow.apache.org/docs/format/Columnar.html#serialization-and-interprocess-communication-ipc; the layout of
FlatBuffers, https://flatbuffers.dev/internals.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import unpack_from
from typing import Any, Final

_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_END: Final = 10
"""Bytes at the end of a file: the length of its footer, and the magic."""


def unpacked_sizes(source: Any, *, is_file: bool) -> Iterator[int]:
    """Yield the unpacked size that each packed buffer declares.

    Parameters
    ----------
    source
        A memory map that pyarrow has opened already, so that its footer is well formed. Its position changes.
    is_file
        Whether it is a file with a footer, or a stream.

    Raises
    ------
    pyarrow.ArrowException, EOFError, struct.error
        When it is damaged.
    """
    from pyarrow import ipc  # noqa: PLC0415 - an optional package

    if is_file:
        for place in _blocks(source):
            source.seek(place)
            yield from _sizes_in(ipc.read_message(source))
    else:
        source.seek(0)
        for message in ipc.MessageReader.open_stream(source):
            yield from _sizes_in(message)


def _blocks(source: Any) -> Iterator[int]:
    """Yield the places at which the messages of a file begin, by its footer."""
    (length,) = unpack_from("<i", source.read_at(4, source.size() - _END))
    footer = source.read_at(length, source.size() - _END - length)
    root = _followed(footer, 0)
    for field in (2, 3):  # dictionaries, record batches
        for block in _structs(footer, _field(footer, root, field), 24):
            yield unpack_from("<q", footer, block)[0]


def _sizes_in(message: Any) -> Iterator[int]:
    """Yield the sizes in one message: none but those of batches have any."""
    data, body = message.metadata, message.body
    root = _followed(data, 0)
    kind, header = _field(data, root, 1), _field(data, root, 2)
    if not kind or data[kind] not in {_DICTIONARY_BATCH, _RECORD_BATCH}:
        return
    batch = _followed(data, header)
    if data[kind] == _DICTIONARY_BATCH:
        batch = _followed(data, _field(data, batch, 1))
    if not _field(data, batch, 3):  # no compression
        return
    for buffer in _structs(data, _field(data, batch, 2), 16):
        offset, length = unpack_from("<qq", data, buffer)
        if length:
            yield max(0, unpack_from("<q", body, offset)[0])  # -1: it is not packed


def _field(data: Any, table: int, number: int) -> int:
    """Return the place of a field of a table; 0: it is left out."""
    places = table - unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= unpack_from("<H", data, places)[0]:
        return 0
    offset = unpack_from("<H", data, places + 4 + 2 * number)[0]
    return table + offset if offset else 0


def _followed(data: Any, place: int) -> int:
    """Return the place to which a reference leads."""
    return place + int(unpack_from("<I", data, place)[0])


def _structs(data: Any, place: int, size: int) -> range:
    """Return the places of the structures of a list."""
    if not place:
        return range(0)
    first = _followed(data, place)
    return range(first + 4, first + 4 + size * unpack_from("<I", data, first)[0], size)
