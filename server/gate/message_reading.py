"""Reads the messages of callers: small ones at once, large ones in a thread, and only up to a limit of objects.

The two bytes of an empty row become about forty bytes in memory, so the size of a message does not limit the cost of
reading it. The objects in a large message are therefore counted before protobuf creates them, by a walk over its bytes
that stops at the limit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import DecodeError

from quercus.belief.errors import InvalidInput
from quercus.server.gate.handlers import Deserialize
from quercus.server.wire.errors import is_out_of_memory
from quercus.server.wire.json_messages import EncodedMessage
from quercus.server.wire.limits import (
    INLINE_BYTES,
    INLINE_JSON_BYTES,
    MAX_ENTRIES,
    MAX_PARTS,
    UNCOUNTED_BYTES,
)

InThread = Callable[..., Awaitable[Any]]
"""Runs a function with its arguments in a thread."""


def is_small(data: bytes) -> bool:
    """Return whether a message is small enough to be read at once, not in a thread."""
    return len(data) <= (INLINE_JSON_BYTES if isinstance(data, EncodedMessage) else INLINE_BYTES)


class MessageReader:
    """Reads the messages of one method.

    Parameters
    ----------
    deserialize : `FromString` of the message class.
    in_thread : runs a function in a thread, for large messages.
    """

    def __init__(self, deserialize: Deserialize, in_thread: InThread) -> None:
        self._deserialize = deserialize
        self._kind: Any = deserialize.__self__  # type: ignore[attr-defined]
        self._in_thread = in_thread
        self._shape = MessageShape.of(self._kind.DESCRIPTOR)

    async def read_message(self, data: bytes) -> Any:
        """Return the message.

        Raises
        ------
        InvalidInput
            If the bytes are not a message of the method's type, or one with too many objects.
        """
        if is_small(data):
            return self.parse_message(data)
        return await self._in_thread(self.parse_message, data)

    def parse_message(self, data: bytes) -> Any:
        """Return a message like `read_message`, but in this thread, which takes long for a large one."""
        if isinstance(data, EncodedMessage):  # it has its own limits
            return data.read_as(self._kind)
        if len(data) > UNCOUNTED_BYTES:
            check_parts(data, self._shape)
        try:
            return self._deserialize(data)
        except DecodeError as error:
            if is_out_of_memory(error):
                raise
            raise InvalidInput("request", f"cannot be read ({error})") from None


_VARINT, _FIXED64, _LENGTH, _GROUP, _END_GROUP, _FIXED32 = range(6)
_CONTINUED: Final = bytes(range(128, 256))
"""Bytes of a varint that are not its last."""

_NUMBERS: Final = frozenset(
    {
        FieldDescriptor.TYPE_INT32,
        FieldDescriptor.TYPE_INT64,
        FieldDescriptor.TYPE_UINT32,
        FieldDescriptor.TYPE_UINT64,
        FieldDescriptor.TYPE_SINT32,
        FieldDescriptor.TYPE_SINT64,
        FieldDescriptor.TYPE_BOOL,
        FieldDescriptor.TYPE_ENUM,
    }
)
"""Varint types, of which one byte takes four or eight in memory; numbers of fixed size do not grow."""

_CHUNK: Final = 1 << 18
"""Bytes counted before another thread may get the interpreter's lock."""


@dataclass(frozen=True)
class _CountedField:
    """A field whose objects are counted: a message, or a list of messages, strings or numbers."""

    name: str
    is_repeated: bool
    is_numbers: bool
    parts: MessageShape | None


@dataclass
class MessageShape:
    """The counted fields of a type of message.

    Attributes
    ----------
    fields : by number.
    """

    fields: dict[int, _CountedField] = field(default_factory=dict)

    @classmethod
    def of(cls, descriptor: Descriptor, known: dict[str, MessageShape] | None = None) -> MessageShape:
        """Return the shape of a message type."""
        known = {} if known is None else known
        if descriptor.full_name in known:
            return known[descriptor.full_name]
        shape = known[descriptor.full_name] = cls()
        for each in descriptor.fields:
            is_numbers, is_text = each.type in _NUMBERS, each.cpp_type == FieldDescriptor.CPPTYPE_STRING
            parts = None if each.message_type is None else cls.of(each.message_type, known)
            if parts is not None or (each.is_repeated and (is_numbers or is_text)):
                shape.fields[each.number] = _CountedField(each.name, each.is_repeated, is_numbers, parts)
        return shape

    def _reachable_shapes(self, found: list[MessageShape] | None = None) -> list[MessageShape]:
        found = [] if found is None else found
        if not any(self is each for each in found):
            found.append(self)
            for each in self.fields.values():
                if each.parts is not None:
                    each.parts._reachable_shapes(found)
        return found

    @cached_property
    def has_numbers(self) -> bool:
        """True if the message, or a message within it, contains a list of numbers."""
        return any(each.is_numbers for shape in self._reachable_shapes() for each in shape.fields.values())

    @cached_property
    def first_bytes(self) -> bytes:
        """The possible first bytes of every counted message and string, for all encodings of its tag."""
        tags = {number << 3 | _LENGTH for shape in self._reachable_shapes() for number in shape.fields}
        return bytes({tag & 127 | high for tag in tags for high in ((0, 128) if tag < 128 else (128,))})


def check_parts(data: bytes, shape: MessageShape) -> None:
    """Refuse a message with more than ``MAX_PARTS`` objects, or a list of more than ``MAX_ENTRIES``.

    A quick count of bytes lets most messages pass; others are walked through as far as the limit.

    Raises
    ------
    InvalidInput
        If there are too many; the message names the field.
    """
    most = 0
    for start in range(0, len(data), _CHUNK):
        piece = data[start : start + _CHUNK]
        most += len(piece) - len(piece.translate(None, shape.first_bytes))
    walk = _MessageWalk(data, everything=most > MAX_PARTS)
    try:
        walk.walk_message(0, len(data), shape, "")
    except IndexError:  # a truncated message, which protobuf reports; what came before is counted
        return


class _MessageWalk:
    """One walk over the bytes of a message.

    Parameters
    ----------
    data : the bytes.
    everything : whether all fields are counted, or only messages with lists of numbers.
    """

    def __init__(self, data: bytes, everything: bool) -> None:
        self._data = data
        self._everything = everything
        self.parts = 0

    def walk_message(self, at: int, end: int, shape: MessageShape, path: str) -> None:
        """Count the objects of one message; raise IndexError if its bytes are invalid."""
        data, fields, everything = self._data, shape.fields, self._everything
        entries: dict[int, int] = {}
        while at < end:
            tag, at = (data[at], at + 1) if data[at] < 128 else self._read_varint(at)
            kind, number = tag & 7, tag >> 3
            found = fields.get(number)
            if kind == _LENGTH:
                length, at = (data[at], at + 1) if data[at] < 128 else self._read_varint(at)
                if length > end - at:
                    raise IndexError
                is_many = found is not None and found.is_numbers
                more = len(data[at : at + length].translate(None, _CONTINUED)) if is_many else 1
            else:
                length, more = self._end_of_number(kind, at) - at, 1
            if found is None or not found.is_repeated:
                self.parts += 1
            else:
                self.parts += more
                entries[number] = count = entries.get(number, 0) + more
                if count > MAX_ENTRIES:
                    raise InvalidInput(
                        path + found.name,
                        f"has more than {MAX_ENTRIES:,} entries: send several smaller messages",
                    )
            if self.parts > MAX_PARTS:
                raise InvalidInput(
                    path + found.name if found is not None else path[:-1] or "request",
                    f"is more than the {MAX_PARTS:,} fields and entries of lists that one message may have: "
                    "send several smaller messages",
                )
            if found is not None and kind == _LENGTH and length:
                parts = found.parts
                if parts is not None and (everything or parts.has_numbers):
                    self.walk_message(at, at + length, parts, f"{path}{found.name}.")
            at += length

    def _end_of_number(self, kind: int, at: int) -> int:
        """Return the position after a number of a wire type."""
        if kind == _VARINT:
            return self._read_varint(at)[1]
        if kind in (_GROUP, _END_GROUP):  # its content is counted as if it were not nested
            return at
        if kind not in (_FIXED64, _FIXED32):
            raise IndexError
        return at + (8 if kind == _FIXED64 else 4)

    def _read_varint(self, at: int) -> tuple[int, int]:
        """Read a varint; return it and the position after it."""
        byte: Any = self._data[at]
        if byte < 128:
            return byte, at + 1
        value, shift = byte & 127, 0
        while byte > 127:
            at, shift = at + 1, shift + 7
            if shift > 63:
                raise IndexError
            byte = self._data[at]
            value |= (byte & 127) << shift
        return value, at + 1
