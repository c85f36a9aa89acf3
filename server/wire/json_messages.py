"""Messages as JSON in protobuf's mapping, with errors that name the field."""

from __future__ import annotations

import json
import re
from typing import Final

from google.protobuf import json_format
from google.protobuf.message import Message

from quercus.belief.errors import InvalidInput, shown
from quercus.server.wire.errors import shorten_text
from quercus.server.wire.limits import MAX_PARTS

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
        """
        text = json_text(self)
        if not text.lstrip(" \t\r\n").startswith("{"):
            raise InvalidInput(REQUEST, f"is {shown(text[:60])}, must be a JSON object")
        message = kind()
        try:
            json_format.Parse(text, message, max_recursion_depth=MAX_DEPTH)
        except (json_format.ParseError, RecursionError) as error:
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
    reason = text.removeprefix("Failed to load JSON: ").removeprefix("Failed to load JSON: ").rstrip(".")
    return InvalidInput(shorten_text(field or REQUEST), f"cannot be read ({shorten_text(reason)})")
