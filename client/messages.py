"""Messages filled with what a user gave: a value that a field cannot hold is an error that names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

from google.protobuf.descriptor import FieldDescriptor

from quercus.belief.errors import shown
from quercus.client.errors import InvalidArgument, invalid

P = ParamSpec("P")
M = TypeVar("M")
_BOUNDS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
}
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


def _refusal(kind: Any, fields: dict[str, Any], error: Exception) -> InvalidArgument:
    """Return the error for the first field whose value the message refuses."""
    for name, value in fields.items():
        field = kind.DESCRIPTOR.fields_by_name.get(name)
        try:
            kind(**{name: value})
        except REFUSALS as refused:
            if field is None or value is None:
                return invalid(name, str(refused))
            return _of_value(kind, field, value)
    return invalid(kind.DESCRIPTOR.name, str(error))


def _of_value(kind: Any, field: FieldDescriptor, value: Any) -> InvalidArgument:
    if field.is_repeated and isinstance(value, list | tuple):
        for k, each in enumerate(value):
            try:
                kind(**{field.name: [each]})
            except REFUSALS:
                return invalid(f"{field.name}[{k}]", f"is {shown(each)}, must be {_must_be(field)}")
    return invalid(field.name, f"is {shown(value)}, must be {_must_be(field)}")


def _must_be(field: FieldDescriptor) -> str:
    if field.cpp_type in _BOUNDS:
        return "a whole number in [{}, {}]".format(*_BOUNDS[field.cpp_type])
    return _WORDS.get(field.cpp_type, f"of {field.name}")
