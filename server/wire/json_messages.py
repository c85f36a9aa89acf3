"""Messages as JSON in protobuf's mapping, with errors that name the field."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf import json_format
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.errors import shorten_text
from quercus.server.wire.limits import MAX_PARTS
from quercus.v1.ranges import NUMBERS, WHOLE_NUMBERS

MAX_DEPTH: Final = 50
"""Greatest depth of messages within messages."""

REQUEST: Final = "request"
"""The field that errors name if a message is invalid as a whole."""

_IN_FIELD: Final = re.compile(r"Failed to parse (\w+) field: ")
_PLACE: Final = re.compile(r' at "?\w+\.?([^\s"]*?)"?\.*$')
_UNKNOWN: Final = re.compile(r'Message type "([\w.]+)" has no field named "(.*)"$', re.DOTALL)
_NO_FIELDS: Final = re.compile(
    r"(?:Failed to parse .* field: unhashable type: '(?:dict|list)'|'\w+' object is not iterable)\.*$",
    re.DOTALL,
)
"""The error for a list or a number instead of a message, whose elements are taken for names of fields."""
_MISFIT: Final = re.compile(
    r"[Vv]alue (?:out of range|too (?:large|small))|Couldn't parse (?:integer|NaN|-?Infinity)|OverflowError"
    r"|Invalid enum value|(?:int|float)\(\) argument must be"
    r'|has no field named "(?s:.)"'
)
"""In the errors for a value that is no number or that its field cannot hold, a name that an enum does not have, and a
text instead of a message, whose characters are taken for names of fields."""
_WRITTEN_WHOLE: Final = re.compile(r"[-+]?[0-9]{1,4000}", re.ASCII)
_TOO_MANY_DIGITS: Final = "Exceeds the limit (4300 digits)"
_KNOWN: Final = "\n Available Fields(except extensions): "


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
            json_format.Parse(text, message, max_recursion_depth=MAX_DEPTH)
        except (json_format.ParseError, RecursionError) as error:
            raise _misfit_in(text, message, str(error)) or _explained_error(str(error)) from None
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


class _Literal(float):
    """A number as it was written: 1e400 is infinite as a float."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _misfit_in(text: str, message: Message, error: str) -> InvalidInput | None:
    """Return the error for the first value that its field cannot hold; None if `error` is another one."""
    if _MISFIT.search(error) is None:
        return None
    content = json.loads(text, parse_float=_Literal, parse_constant=_Literal)
    kind: Any = message.DESCRIPTOR  # declared with two types
    return next(_misfits(content, kind, ""), None)


def _misfits(content: Any, kind: Descriptor, path: str) -> Iterator[InvalidInput]:
    """Yield an error for each value in JSON that its field cannot hold, with the path of the field."""
    if not isinstance(content, dict):
        return
    for name, value in content.items():
        field = kind.fields_by_camelcase_name.get(name) or kind.fields_by_name.get(name)
        if field is None:
            continue
        place, values = path + name, {path + name: value}
        if field.message_type is not None and field.message_type.GetOptions().map_entry:
            field = field.message_type.fields_by_name["value"]
            values = (
                {f"{place}[{key}]": each for key, each in value.items()} if isinstance(value, dict) else {}
            )
        elif field.is_repeated:
            values = {
                f"{place}[{k}]": each for k, each in enumerate(value if isinstance(value, list) else ())
            }
        for where, each in values.items():
            if isinstance(each, str) and _has_fields(field):
                yield InvalidInput(shorten_text(where), f"is {shown(each)}, must be a JSON object")
            elif field.message_type is not None:
                yield from _misfits(each, field.message_type, f"{where}.")
            elif bound := _broken_bound(each, field):
                yield InvalidInput(shorten_text(where), f"is {shown(each)}, must be {bound}")


def _has_fields(field: FieldDescriptor) -> bool:
    """Return whether a field is a message that JSON writes as an object; times and durations are texts."""
    kind = field.message_type
    return kind is not None and not kind.full_name.startswith("google.protobuf.")


def _broken_bound(value: Any, field: FieldDescriptor) -> str:
    """Return what a value must be, if its field for numbers cannot hold it, or if it is a name that an enum lacks."""
    if isinstance(value, str) and _WRITTEN_WHOLE.fullmatch(value):
        value = int(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if field.enum_type is not None and (is_number or isinstance(value, str)):
        low, high = WHOLE_NUMBERS[FieldDescriptor.CPPTYPE_INT32]
        is_known = low <= value <= high if is_number else value in field.enum_type.values_by_name
        names = ", ".join(each.name for each in field.enum_type.values if each.number)
        return "" if is_known else f"one of {names}"
    if isinstance(value, str | bool) or value is None:
        return ""
    if field.cpp_type in WHOLE_NUMBERS:
        low, high = WHOLE_NUMBERS[field.cpp_type]
        fits = is_number and low <= value <= high and value == int(value)
        return "" if fits else f"a whole number in [{low}, {high}]"
    if field.cpp_type in NUMBERS:
        least, most = NUMBERS[field.cpp_type]
        if isinstance(value, float) and math.isnan(value):
            return 'written "NaN", for which JSON has no number'
        fits = is_number and least <= value <= most
        return "" if fits else f"a number in [{least}, {most}]"
    return ""


def _explained_error(text: str) -> InvalidInput:
    """Convert an error message of `json_format` to an error that names the path of the field."""
    path: list[str] = []
    while (inside := _IN_FIELD.match(text)) is not None:
        path.append(inside[1])
        text = text[inside.end() :]
    text, _, known = text.partition(_KNOWN)
    place = _PLACE.search(text)
    if place is not None:
        text = text[: place.start()]
    field = max(place[1] if place is not None else "", ".".join(path), key=len)
    if (unknown := _UNKNOWN.match(text)) is not None:
        names = re.findall(r"'(\w+)'", known)
        field = f"{field}.{unknown[2][:60]}".lstrip(".")
        owner = unknown[1].rpartition(".")[2]
        reason = f"is not a field of {owner}, which has {', '.join(names) or 'none'}"
        return InvalidInput(shorten_text(field), shorten_text(reason))
    if _NO_FIELDS.match(text):
        return InvalidInput(shorten_text(field or REQUEST), "must be a JSON object")
    if _TOO_MANY_DIGITS in text:
        return InvalidInput(REQUEST, "has a whole number of more than 4,300 digits")
    reason = text.removeprefix("Failed to load JSON: ").removeprefix("Failed to load JSON: ").rstrip(".")
    return InvalidInput(shorten_text(field or REQUEST), f"cannot be read ({shorten_text(reason)})")
