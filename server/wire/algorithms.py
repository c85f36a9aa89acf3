"""Conversion of algorithms from the wire to the domain. Parameters of the model itself come from the specification."""

from __future__ import annotations

from typing import Any

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.specification.algorithms import (
    Algorithm,
    algorithm_class,
    has_base,
    served_parameters,
)
from quercus.specification.parameter import Parameter
from quercus.specification.plugins import LEARNERS, foreign_package
from quercus.v1 import model_pb2
from quercus.v1.parameters import parameter_message, parameter_value


def decode_algorithm(message: model_pb2.Algorithm) -> Algorithm:
    """Convert an algorithm to the domain; absent parameters get their defaults.

    Raises
    ------
    InvalidInput
        Naming the field below the algorithm, the value and the bound.
    """
    algorithm = algorithm_class(message.name, message.package)
    given: dict[str, Any] = {
        name: declared.check(parameter_value(message.parameters[name]))
        for name, declared in _declared(algorithm, message)
    }
    if message.HasField("base"):
        with field_prefix("base"):
            given["base"] = _decode_base(algorithm, message.base)
    return algorithm(**given)


def _declared(algorithm: type[Algorithm], message: model_pb2.Algorithm) -> list[tuple[str, Parameter]]:
    """Return the parameters that a message has, with their declarations, in order of their names."""
    declared = {each.name: each for each in served_parameters(algorithm)}
    unknown = next((name for name in sorted(message.parameters) if name not in declared), None)
    if unknown is not None:
        known = ", ".join(declared) or "none"
        raise InvalidInput(
            unknown[:80], f"is not a parameter of {algorithm.name}; its parameters are {known}"
        )
    return [(name, declared[name]) for name in sorted(message.parameters)]


def _decode_base(algorithm: type[Algorithm], message: model_pb2.Algorithm) -> Algorithm:
    if not has_base(algorithm):
        raise InvalidInput("name", f"is {shown(message.name)}, but {algorithm.name} has no base")
    named = model_pb2.Algorithm(name=message.name or algorithm().base.name)  # type: ignore[attr-defined]
    named.MergeFrom(message)
    base = decode_algorithm(named)
    if not base.is_base:
        raise InvalidInput("name", f"is {shown(message.name)}, of which no {algorithm.name} can be made")
    return base


def canonical_algorithm(message: model_pb2.Algorithm) -> model_pb2.Algorithm:
    """Return a checked algorithm whose parameters have values of their declared types."""
    algorithm = algorithm_class(message.name)
    canonical = model_pb2.Algorithm(name=message.name, package=foreign_package(LEARNERS, message.name))
    for name, declared in _declared(algorithm, message):
        value = declared.check(parameter_value(message.parameters[name]))
        canonical.parameters[name].CopyFrom(parameter_message(value))
    if message.HasField("base"):
        base = model_pb2.Algorithm(name=algorithm().base.name)  # type: ignore[attr-defined]
        base.MergeFrom(message.base)
        canonical.base.CopyFrom(canonical_algorithm(base))
    return canonical
