"""Declarations of learners and strategies on the wire."""

import math
from typing import Any

from quercus.specification.algorithms import Declaration, declarations
from quercus.specification.parameter import Parameter
from quercus.v1 import model_pb2
from quercus.v1.parameters import NUMBER_OF_KIND, parameter_message


def encode_learners() -> list[model_pb2.Learner]:
    """Return the declarations of all learners."""
    return [
        model_pb2.Learner(
            **_declared(each), bases=each.bases, strategies=map(_encode_strategy, each.strategies)
        )
        for each in declarations()
    ]


def _encode_strategy(strategy: Declaration) -> model_pb2.Strategy:
    return model_pb2.Strategy(**_declared(strategy))


def _declared(each: Declaration) -> dict[str, Any]:
    parameters = map(_encode_parameter, each.parameters)
    return {"name": each.name, "summary": each.summary, "parameters": parameters, "package": each.package}


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
