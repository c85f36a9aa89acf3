"""Messages filled from user input, with errors that name the field of a value that does not fit."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, ParamSpec, TypeVar

from google.protobuf.descriptor import Descriptor, EnumDescriptor, FieldDescriptor
from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from quercus.belief.errors import shown
from quercus.client.errors import InvalidArgument, invalid
from quercus.v1.ranges import WHOLE_NUMBERS

P = ParamSpec("P")
M = TypeVar("M")
LONGEST_S: Final = 315_576_000_000
"""Maximum seconds of a protobuf duration."""
_WORDS = {
    FieldDescriptor.CPPTYPE_FLOAT: "a number",
    FieldDescriptor.CPPTYPE_DOUBLE: "a number",
    FieldDescriptor.CPPTYPE_BOOL: "true or false",
    FieldDescriptor.CPPTYPE_STRING: "text in Unicode",
    FieldDescriptor.CPPTYPE_ENUM: "the number of a choice",
}
REFUSALS = (TypeError, ValueError, OverflowError)
"""Errors of protobuf for a value that does not fit."""


def filled(kind: Callable[P, M], /, *args: P.args, **fields: P.kwargs) -> M:
    """Return a message of a class with these fields.

    Raises
    ------
    InvalidArgument
        If a value does not fit into its field; the error names the field, the value and the bound.

    Examples
    --------
    >>> from quercus.v1 import tree_pb2
    >>> filled(tree_pb2.GetTreeRequest, name="models/m/tree", member=99999999999)
    Traceback (most recent call last):
        ...
    quercus.client.errors.InvalidArgument: member: is 99999999999, must be a whole number in [-2147483648, 2147483647]
    """
    try:
        return kind(*args, **fields)
    except REFUSALS as error:
        raise _refusal(kind, fields, error) from None


def message_of(kind: Callable[..., M], given: object) -> M:
    """Return the message of an object with the same field names; enum values are given as words.

    Raises
    ------
    InvalidArgument
        As `filled` does, and for a word that the enum does not have.

    Examples
    --------
    >>> from quercus.client import LabellingPolicy
    >>> from quercus.v1 import query_pb2
    >>> message_of(query_pb2.LabellingPolicy, LabellingPolicy(per_hour=9, corrections="anyone")).corrections
    2
    """
    descriptor: Descriptor = kind.DESCRIPTOR  # type: ignore[attr-defined]
    fields = {
        field.name: getattr(given, field.name) for field in descriptor.fields if hasattr(given, field.name)
    }
    for name, value in fields.items():
        enum = descriptor.fields_by_name[name].enum_type
        if enum is not None:
            fields[name] = enum_value(enum, name, value)
    return filled(kind, **fields)


def to_duration(seconds: float, field: str) -> Duration:
    """Return seconds as a protobuf duration; ``field`` is the name for errors."""
    if isinstance(seconds, float) and not math.isfinite(seconds):
        raise invalid(field, f"is {seconds}, must be a finite number of seconds")
    if abs(seconds) > LONGEST_S:
        raise invalid(field, f"must be at most {LONGEST_S:,} seconds")
    message = Duration()
    message.FromNanoseconds(round(seconds * 1e9))
    return message


def to_timestamp(at: datetime | None) -> Timestamp | None:
    """Return a time as a protobuf timestamp; one without a zone is UTC."""
    if at is None:
        return None
    message = Timestamp()
    message.FromDatetime(at.astimezone(UTC) if at.tzinfo else at)
    return message


def enum_value(enum: EnumDescriptor, field: str, word: str) -> Any:
    """Return the enum value of a word, as users write it; raise InvalidArgument if there is none.

    Examples
    --------
    >>> from quercus.v1 import query_pb2
    >>> enum_value(query_pb2.AnswerState.DESCRIPTOR, "states", "pending")
    2
    """
    prefix = enum.values[0].name.removesuffix("UNSPECIFIED")
    words = {each.name.removeprefix(prefix).lower(): each.number for each in enum.values if each.number}
    if word.lower() not in words:
        raise invalid(field, f"{shown(word)} is not one of {', '.join(words)}")
    return words[word.lower()]


def _refusal(kind: Any, fields: dict[str, Any], error: Exception) -> InvalidArgument:
    """Return the error for the first field whose value the message refuses."""
    for name, value in fields.items():
        field = kind.DESCRIPTOR.fields_by_name.get(name)
        try:
            kind(**{name: value})
        except REFUSALS as refused:
            if field is None or value is None:
                return invalid(name, str(refused))
            if field.is_repeated and isinstance(value, list | tuple):
                for k, each in enumerate(value):
                    try:
                        kind(**{name: [each]})
                    except REFUSALS:
                        return invalid(f"{name}[{k}]", f"is {shown(each)}, must be {_must_be(field)}")
            return invalid(name, f"is {shown(value)}, must be {_must_be(field)}")
    return invalid(kind.DESCRIPTOR.name, str(error))


def _must_be(field: FieldDescriptor) -> str:
    if field.cpp_type in WHOLE_NUMBERS:
        return "a whole number in [{}, {}]".format(*WHOLE_NUMBERS[field.cpp_type])
    return _WORDS.get(field.cpp_type, f"of {field.name}")
