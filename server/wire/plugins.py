"""Conversion of learners and strategies from the wire, and of their declarations to the wire."""

from __future__ import annotations

import math
from typing import Any

from quercus.belief.errors import InvalidInput, field_prefix, shown
from quercus.specification.learners import Declaration, SpecifiedLearner, declarations, has_base
from quercus.specification.parameter import Parameter
from quercus.specification.plugins import (
    STRATEGIES,
    Plugin,
    foreign_package,
    plugin_class,
    plugin_names,
    served_parameters,
)
from quercus.specification.strategies import Asks, QueryStrategy, strategy_class
from quercus.trees import AbsentStrategy
from quercus.v1 import model_pb2
from quercus.v1.parameters import NUMBER_OF_KIND, parameter_message, parameter_value


def decode_learner(message: model_pb2.Plugin) -> SpecifiedLearner:
    """Convert a learner to the domain; absent parameters get their defaults.

    Raises
    ------
    InvalidInput
        If it is invalid; the error names the field below the learner, the value and the bound.
    """
    learner = plugin_class(SpecifiedLearner, message.name, message.package)
    given = _given_values(learner, message)
    if message.HasField("base"):
        with field_prefix("base"):
            given["base"] = _decode_base(learner, message.base)
    return learner(**given)


def decode_strategy(message: model_pb2.Plugin, asks: Asks) -> QueryStrategy:
    """Convert a strategy to the domain; absent parameters get their defaults.

    Parameters
    ----------
    message : the strategy.
    asks : kind of model that it must choose queries for.

    Raises
    ------
    InvalidInput
        If it is invalid; the error names the field below the strategy, the value and the bound.
    """
    strategy = strategy_class(message.name, asks, message.package)
    return strategy(**_given_values(strategy, message))


def stored_strategy(message: model_pb2.Plugin, asks: Asks) -> QueryStrategy:
    """Convert the strategy of a stored model like `decode_strategy`.

    Returns
    -------
    QueryStrategy
        The strategy, or an `AbsentStrategy` if its package is not installed.
    """
    if is_absent(message):
        return AbsentStrategy(message.name, message.package)
    return decode_strategy(message, asks)


def is_absent(strategy: model_pb2.Plugin) -> bool:
    """Return whether a strategy comes from a package that is not installed."""
    return bool(strategy.package) and strategy.name not in plugin_names(STRATEGIES)


def _given_values(kind: type[Plugin], message: model_pb2.Plugin) -> dict[str, Any]:
    """Return the checked values of the parameters in a message, in order of name."""
    declared = {each.name: each for each in served_parameters(kind)}
    unknown = next((name for name in sorted(message.parameters) if name not in declared), None)
    if unknown is not None:
        known = ", ".join(declared) or "none"
        raise InvalidInput(unknown[:80], f"is not a parameter of {kind.name}; its parameters are {known}")
    if message.HasField("base") and not (issubclass(kind, SpecifiedLearner) and has_base(kind)):
        raise InvalidInput("base.name", f"is {shown(message.base.name)}, but {kind.name} has no base")
    return {
        name: declared[name].check(parameter_value(message.parameters[name]))
        for name in sorted(message.parameters)
    }


def _decode_base(learner: type[SpecifiedLearner], message: model_pb2.Plugin) -> SpecifiedLearner:
    named = model_pb2.Plugin(name=message.name or learner().base.name)  # type: ignore[attr-defined]
    named.MergeFrom(message)
    base = decode_learner(named)
    if not base.is_base:
        raise InvalidInput("name", f"is {shown(message.name)}, of which no {learner.name} can be made")
    return base


def canonical_plugin(kind: type[Plugin], message: model_pb2.Plugin) -> model_pb2.Plugin:
    """Return a valid learner or strategy with all its parameters, as values of their declared types.

    Absent parameters get their defaults, so that the stored form keeps its meaning when a later version has different
    ones.

    Parameters
    ----------
    kind : class of the learner or strategy.
    message : the message.
    """
    canonical = model_pb2.Plugin(name=message.name, package=foreign_package(kind.group, message.name))
    defaults = {each.name: each.default for each in served_parameters(kind)}
    for name, value in {**defaults, **_given_values(kind, message)}.items():
        canonical.parameters[name].CopyFrom(parameter_message(value))
    if issubclass(kind, SpecifiedLearner) and has_base(kind):
        base = message.base if message.HasField("base") else _default_base(kind)
        named = model_pb2.Plugin(name=base.name or kind().base.name)  # type: ignore[attr-defined]
        named.MergeFrom(base)
        canonical.base.CopyFrom(canonical_plugin(plugin_class(SpecifiedLearner, named.name), named))
    return canonical


def _default_base(kind: type[SpecifiedLearner]) -> model_pb2.Plugin:
    base: SpecifiedLearner = kind().base  # type: ignore[attr-defined]
    own = {each.name: getattr(base, each.name) for each in served_parameters(type(base))}
    return model_pb2.Plugin(
        name=base.name, parameters={name: parameter_message(value) for name, value in own.items()}
    )


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
