"""Conversion of algorithms from the wire to the domain. Parameters of the model itself come from the specification."""

from __future__ import annotations

from typing import Any

from quercus.belief.errors import InvalidInput, field_prefix
from quercus.specification.algorithms import ALGORITHMS, LEGACY_DEFAULT, Algorithm, Forest
from quercus.specification.parameter import parameters_of
from quercus.v1 import model_pb2
from quercus.v1.words import words_of


def decode_algorithm(message: model_pb2.Algorithm) -> Algorithm:
    """Convert an algorithm to the domain; absent parameters get their defaults.

    Raises
    ------
    InvalidInput
        Naming the field below the algorithm, the value and the bound.
    """
    kind = message.WhichOneof("kind") or LEGACY_DEFAULT.name
    algorithm = ALGORITHMS[kind.replace("_", "-")]
    with field_prefix(kind):
        return algorithm(**_given_parameters(algorithm, getattr(message, kind)))


def _given_parameters(algorithm: type[Algorithm], message: Any) -> dict[str, Any]:
    """Return the parameters that a message has, by name."""
    choices = {each.name: each.choices for each in parameters_of(algorithm)}
    given: dict[str, Any] = {}
    for field, value in message.ListFields():
        name = "max_features" if field.name in ("number", "share") else field.name
        if field.message_type is not None:
            with field_prefix(name):
                given[name] = _decode_base(value)
        elif field.enum_type is None:
            given[name] = value
        elif value:
            words = words_of(field.enum_type, choices[name])
            if value not in words:
                raise InvalidInput(field.name, f"is {value}, which is no choice here")
            given[name] = words[value]
    if given.get("confidence") == 0.0:  # on the wire an absent one is the default
        given["confidence"] = None
    return given


def _decode_base(message: model_pb2.Algorithm) -> Algorithm:
    if message.HasField("forest"):
        raise InvalidInput("forest", f"must be a tree, not another {Forest.name}")
    return decode_algorithm(message)
