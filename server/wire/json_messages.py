"""Messages as JSON in protobuf's mapping, with errors that name the field."""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.errors import shorten_text
from quercus.server.wire.limits import MAX_PARTS
from quercus.v1.ranges import NUMBERS, WHOLE_NUMBERS

MAX_DEPTH: Final = 50
"""Greatest depth of messages within messages."""

MAX_KEY_CHARACTERS: Final = 1_000
"""Most characters of a key, because `json_format` writes the place of each value within, even of right ones."""

REQUEST: Final = "request"
"""The field that errors name if a message is invalid as a whole."""

_IN_FIELD: Final = re.compile(r"Failed to parse (\w+) field: ")
_PLACE: Final = re.compile(r' at "?\w+\.?([^\s"]*?)"?\.*$')
_TOO_MANY_DIGITS: Final = "Exceeds the limit (4300 digits)"
_NOTHING: Final = re.compile(r'""|\[[ \t\r\n]*\]')
"""An empty text or list, which `json_format` takes for an object without fields."""
_UNPAIRED: Final = "half of a surrogate pair"
_WRITTEN_AS_TEXT: Final[dict[str, tuple[Any, str]]] = {
    "google.protobuf.Duration": (Duration, 'a duration, like "1.5s"'),
    "google.protobuf.Timestamp": (Timestamp, 'a time, like "2026-11-28T12:00:00Z"'),
    "google.protobuf.FieldMask": (FieldMask, 'names of fields, like "name,budget"'),
}
"""The messages that JSON writes as a text, with its form."""


class EncodedMessage(bytes):
    """The bytes of a message in another encoding than protobuf's, with a method to read them."""

    def read_as(self, kind: type[Message]) -> Message:
        """Return the message.

        Raises
        ------
        InvalidInput
            If the bytes are not a valid message; the error names the field.
        """
        raise NotImplementedError


class JsonMessage(EncodedMessage):
    """A message as JSON."""

    def read_as(self, kind: type[Message]) -> Message:
        """Return the message.

        Raises
        ------
        InvalidInput
            If the text is not JSON, or has an unknown field or an invalid value.

        Examples
        --------
        >>> from quercus.v1 import model_pb2
        >>> JsonMessage(b'{"name": "models/wine"}').read_as(model_pb2.GetModelRequest).name
        'models/wine'
        >>> JsonMessage(b'{"nmae": "models/wine"}').read_as(model_pb2.GetModelRequest)
        Traceback (most recent call last):
        ...
        quercus.belief.errors.InvalidInput: nmae: is not a field of GetModelRequest, which has name
        >>> JsonMessage(b'{"specification": {"budget": -1}}').read_as(model_pb2.CreateModelRequest)
        Traceback (most recent call last):
        ...
        quercus.belief.errors.InvalidInput: specification.budget: is -1, must be a whole number in [0, 4294967295]
        """
        text = json_text(self)
        if not text.lstrip(" \t\r\n").startswith("{"):
            raise InvalidInput(REQUEST, f"is {shown(text[:60])}, must be a JSON object")
        message = kind()
        try:
            content = json.loads(text, object_pairs_hook=_object_of)
            if _NOTHING.search(text) is not None:
                for misfit in _misfits(content, message.DESCRIPTOR, "", only_objects=True):
                    raise misfit
            json_format.ParseDict(content, message, max_recursion_depth=MAX_DEPTH)
        except (InvalidInput, MemoryError):
            raise
        except Exception as error:  # the parser lets errors of many types pass
            _check_fields(text, message)
            raise _explained_error(str(error)) from None
        return message


def json_text(data: bytes) -> str:
    """Return the text of JSON with a limited number of parts.

    The two bytes of an empty list take about 60 in memory.

    Raises
    ------
    InvalidInput
        If it is not UTF-8, or may have more than ``MAX_PARTS`` parts.
    """
    parts = data.count(b",") + data.count(b"{") + data.count(b"[")
    if parts > MAX_PARTS:
        raise InvalidInput(
            REQUEST,
            f"has {parts:,} values, objects and lists, at most {MAX_PARTS:,} are allowed: send less at once",
        )
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput(REQUEST, f"is not UTF-8 (byte {error.start})") from None


def write_json(message: Message) -> bytes:
    """Return a message as JSON on one line."""
    return json.dumps(
        json_format.MessageToDict(message), ensure_ascii=False, separators=(",", ":"), allow_nan=False
    ).encode()


def _object_of(members: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON whose names differ and are short: `json_format` writes the place of each value."""
    found = dict(members)
    if len(found) < len(members):
        ((twice, _),) = Counter(name for name, _ in members).most_common(1)
        raise InvalidInput(REQUEST, f"has a duplicate key {shown(twice)} in an object")
    if found and len(longest := max(found, key=len)) > MAX_KEY_CHARACTERS:
        raise InvalidInput(
            REQUEST,
            f"has a key {shown(longest)} of {len(longest):,} characters, at most {MAX_KEY_CHARACTERS:,} are allowed",
        )
    return found


class _Literal(float):
    """A number as it was written: 1e400 is infinite as a float."""

    __slots__ = ("_text",)

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _check_fields(text: str, message: Message) -> None:
    """Raise an error for the first field that a message does not have, or value that its field cannot hold."""
    try:
        content = json.loads(text, parse_float=_Literal, parse_constant=_Literal)
        misfit = next(_misfits(content, message.DESCRIPTOR, ""), None)
    except (ValueError, RecursionError):  # it is not JSON, or too deep, which the parser explains
        return
    if misfit is not None:
        raise misfit from None


@cache
def _fields_of(kind: Descriptor) -> dict[str, FieldDescriptor]:
    """Return the fields of a message by both names; protobuf's own mappings fail for half of a surrogate pair."""
    return {name: field for field in kind.fields for name in (field.name, field.json_name)}


def _misfits(
    content: dict[str, Any], kind: Any, path: str, only_objects: bool = False
) -> Iterator[InvalidInput]:
    """Yield an error for each value in JSON that its field cannot hold, with the path of the field.

    With `only_objects`, values of numbers, texts and the like are passed over.
    """
    chosen: dict[str, str] = {}
    for name, value in content.items():
        field = _fields_of(kind).get(name)
        if field is None:
            names = ", ".join(each.json_name for each in kind.fields) or "none"
            yield _misfit(path + name[:60], f"is not a field of {kind.name}, which has {names}")
        elif value is not None and not (only_objects and field.message_type is None):  # null: not given
            place = path + name
            if field.containing_oneof is not None:
                other = chosen.setdefault(field.containing_oneof.name, name)
                if other != name:
                    yield _misfit(place, f"is given beside {other}: give one of them")
            parts: Iterable[tuple[Any, Any]] = ((None, value),)
            if field.message_type is not None and field.message_type.GetOptions().map_entry:
                field = field.message_type.fields_by_name["value"]
                if not isinstance(value, dict):
                    yield _misfit(place, f"is {_written(value)}, must be a JSON object")
                    continue
                parts = value.items()
            elif field.is_repeated:
                if not isinstance(value, list):
                    yield _misfit(place, f"is {_written(value)}, must be a JSON list")
                    continue
                parts = enumerate(value)
            for key, each in parts:
                if isinstance(key, str) and not _is_read_by(str.encode, key):
                    yield _misfit(_place_of(place, key), f"has {_UNPAIRED} in its name")
                elif needed := _needed_form(each, field):
                    yield _misfit(_place_of(place, key), f"is {_written(each)}, must be {needed}")
                elif field.message_type is not None and isinstance(each, dict):
                    yield from _misfits(each, field.message_type, f"{_place_of(place, key)}.", only_objects)


def _place_of(field: str, key: str | int | None) -> str:
    """Return the place of an element of a list or map; of the field itself without a key.

    A long key is cut, since the places of all messages within its value begin with it.
    """
    return field if key is None else f"{field}[{str(key)[:60]}]"


def _misfit(field: str, reason: str) -> InvalidInput:
    return InvalidInput(shorten_text(field), shorten_text(reason))


def _written(value: Any) -> str:
    """Return a value for an error message, null and truth values as in JSON."""
    return json.dumps(value) if value is None or isinstance(value, bool) else shown(value)


def _needed_form(value: Any, field: FieldDescriptor) -> str:
    """Return what a value must be, if its field cannot hold it; an empty text if it can."""
    if field.message_type is not None:
        if field.message_type.full_name in _WRITTEN_AS_TEXT:
            message, form = _WRITTEN_AS_TEXT[field.message_type.full_name]
            return "" if isinstance(value, str) and _is_read_by(message().FromJsonString, value) else form
        if isinstance(value, dict):
            return ""
        names = ", ".join(each.json_name for each in field.message_type.fields)
        return f"a JSON object with {names or 'no fields'}"
    if field.enum_type is not None:
        names = ", ".join(each.name for each in field.enum_type.values if each.number)
        return "" if _is_of_enum(value, field.enum_type) else f"one of {names}"
    if field.cpp_type in WHOLE_NUMBERS:
        low, high = WHOLE_NUMBERS[field.cpp_type]
        number = _whole_number(value)
        return "" if number is not None and low <= number <= high else f"a whole number in [{low}, {high}]"
    if field.cpp_type in NUMBERS:
        least, most = NUMBERS[field.cpp_type]
        if value is None:
            return 'a number, or "NaN" if it is missing'
        if isinstance(value, float) and math.isnan(value):
            return 'written "NaN", for which JSON has no number'
        if isinstance(value, str):
            fits = value != "nan" and _is_read_by(float, value)
        else:
            fits = isinstance(value, int | float) and least <= value <= most
        return "" if fits else f"a number in [{least}, {most}]"
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return "" if isinstance(value, bool) else "true or false"
    if field.type == FieldDescriptor.TYPE_BYTES:
        return "" if isinstance(value, str) and _is_read_by(_from_base64, value) else "bytes in base64"
    if isinstance(value, str):
        return "" if _is_read_by(str.encode, value) else f"a text without {_UNPAIRED}"
    return "a text"


def _is_read_by(read: Callable[[str], object], text: str) -> bool:
    try:
        read(text)
    except ValueError:
        return False
    return True


def _from_base64(text: str) -> bytes:
    """Return the bytes of a text with or without padding, as `json_format` reads it."""
    data = text.encode()
    return base64.urlsafe_b64decode(data + b"=" * (4 - len(data) % 4))


def _whole_number(value: Any) -> int | None:
    """Return the whole number that a value is or writes, as `json_format` reads it; None if it is none."""
    if isinstance(value, str) and " " not in value:
        if _is_read_by(int, value):
            return int(value)
        value = float(value) if _is_read_by(float, value) else None
    is_whole = isinstance(value, int) or (isinstance(value, float) and value.is_integer())
    return int(value) if is_whole and not isinstance(value, bool) else None


def _is_of_enum(value: Any, enum: EnumDescriptor) -> bool:
    """Return whether a value is a name of an enum, or any number that an enum can hold."""
    if isinstance(value, str):
        if not _is_read_by(int, value):
            return value in list(enum.values_by_name)  # the mapping itself fails for half of a surrogate pair
        value = int(value)
    low, high = WHOLE_NUMBERS[FieldDescriptor.CPPTYPE_INT32]
    return isinstance(value, int | float) and low <= value <= high


def _explained_error(text: str) -> InvalidInput:
    """Convert an error message of `json_format` to an error that names the path of the field."""
    path: list[str] = []
    while (inside := _IN_FIELD.match(text)) is not None:
        path.append(inside[1])
        text = text[inside.end() :]
    place = _PLACE.search(text)
    if place is not None:
        text = text[: place.start()]
    field = max(place[1] if place is not None else "", ".".join(path), key=len)
    if _TOO_MANY_DIGITS in text:
        return InvalidInput(REQUEST, "has a whole number of more than 4,300 digits")
    return InvalidInput(shorten_text(field or REQUEST), f"cannot be read ({shorten_text(text.rstrip('.'))})")
