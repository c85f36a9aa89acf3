"""Algorithms from the wire to the domain, and the declarations of learners to the wire."""

from __future__ import annotations

import math
from typing import Any

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.specification.algorithms import (
    Algorithm,
    algorithm_class,
    declarations,
    has_base,
    served_parameters,
)
from quercus.specification.parameter import Parameter
from quercus.specification.plugins import LEARNERS, foreign_package
from quercus.v1 import model_pb2
from quercus.v1.parameters import NUMBER_OF_KIND, parameter_message, parameter_value


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
            if not has_base(algorithm):
                raise InvalidInput("name", f"is {shown(message.base.name)}, but {algorithm.name} has no base")
            named = model_pb2.Algorithm(name=message.base.name or algorithm().base.name)  # type: ignore[attr-defined]
            named.MergeFrom(message.base)
            base = decode_algorithm(named)
            if not base.is_base:
                raise InvalidInput(
                    "name", f"is {shown(message.base.name)}, of which no {algorithm.name} can be made"
                )
            given["base"] = base
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


def encode_learners() -> list[model_pb2.Learner]:
    """Return the declarations of all learners."""
    return [
        model_pb2.Learner(
            name=each.name,
            summary=each.summary,
            parameters=map(_encode_parameter, each.parameters),
            bases=each.bases,
            strategies=[
                model_pb2.Strategy(name=name, summary=summary) for name, summary in each.strategies.items()
            ],
            package=each.package,
        )
        for each in declarations()
    ]


def _encode_parameter(parameter: Parameter) -> model_pb2.ParameterDeclaration:
    return model_pb2.ParameterDeclaration(
        name=parameter.name,
        description=parameter.description,
        kind=NUMBER_OF_KIND[parameter.kind],
        default=parameter_message(parameter.default),
        lowest=_encode_bound(parameter.lowest),
        highest=_encode_bound(parameter.highest),
        excludes_bounds=parameter.excludes_bounds,
        choices=parameter.choices,
        meaning_of_none=parameter.meaning_of_none,
    )


def _encode_bound(bound: float) -> model_pb2.Parameter:
    return parameter_message(bound if math.isfinite(bound) else None)
