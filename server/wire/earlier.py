"""Specifications in stores that are older than parameters by name: each learner had a message of its own."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Any, Final

from google.protobuf.empty_pb2 import Empty
from google.protobuf.unknown_fields import UnknownFieldSet

from quercus.v1 import model_pb2
from quercus.v1.parameters import parameter_message

_FOREST: Final = 8
_CUTS: Final = ("max_cuts", int)
_LEARNERS: Final[dict[int, tuple[str, dict[int, tuple[str, Any]]]]] = {
    1: ("abc45", {}),
    2: ("e2m", {1: ("informed_only", bool)}),
    3: ("id3", {1: _CUTS, 2: ("significance", float)}),
    4: ("c45", {1: _CUTS, 2: ("min_branch", int), 3: ("confidence", float)}),
    5: ("averaging", {1: _CUTS}),
    6: (
        "total-uncertainty",
        {
            1: ("lam", float),
            2: ("combine", ("dempster", "mean")),
            3: _CUTS,
            4: ("folds", int),
            5: ("seed", int),
        },
    ),
    7: ("belief-entropy", {1: ("leaf", ("OBE", "LBE", "IBE"))}),
    8: (
        "forest",
        {
            2: ("trees", int),
            3: ("vote", ("label", "mass")),
            4: ("max_features", int),
            5: ("max_features", ("root", "half", "all")),
            6: ("seed", int),
        },
    ),
    9: ("active-forest", {1: ("trees", int), 2: ("seed", int)}),
}
"""Name and fields of the message of each learner; a tuple of texts are the values of an enum from 1."""


def stored_specification(data: bytes) -> model_pb2.Specification:
    """Return a specification that a store keeps, with its learner as it is written today."""
    message = model_pb2.Specification.FromString(data)
    if message.HasField("algorithm") and not message.algorithm.name:
        message.algorithm.CopyFrom(_today(message.algorithm.SerializeToString()))
    return message


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    found: Any = UnknownFieldSet(Empty.FromString(data))
    for field in found:
        yield field.field_number, field.data


def _today(data: bytes) -> model_pb2.Algorithm:
    algorithm = model_pb2.Algorithm()
    for learner, content in _fields(data):
        algorithm.name, declared = _LEARNERS[learner]
        for number, value in _fields(content):
            if learner == _FOREST and number == 1:
                algorithm.base.CopyFrom(_today(value))
                continue
            name, kind = declared[number]
            if not isinstance(kind, tuple) or value:  # 0 of an enum: the default
                algorithm.parameters[name].CopyFrom(parameter_message(_value_today(name, kind, value)))
    return algorithm


def _value_today(name: str, kind: Any, value: int) -> Any:
    if isinstance(kind, tuple):
        return kind[value - 1]
    if kind is not float:
        return kind(value)
    number = struct.unpack("<d", struct.pack("<Q", value))[0]  # protobuf reads 64 bits of a whole number
    return None if name == "confidence" and number == 0.0 else number  # 0: no pruning
