"""Messages of specifications: each field has the name of the message's."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, cast

from quercus.client import algorithms
from quercus.client.display_messages import message_of_presentation, presentation_of
from quercus.client.messages import filled
from quercus.client.specifications import Specification
from quercus.specification import parameters
from quercus.specification.algorithms import Pruning, PruningKind
from quercus.specification.attributes import Attribute, Missing, Nominal, Numeric, Overflow
from quercus.v1 import model_pb2
from quercus.v1.words import words_of

_PRUNING = words_of(model_pb2.PruningKind.DESCRIPTOR, parameters.PRUNING_KIND.choices)
_MISSING = words_of(model_pb2.MissingPolicy.DESCRIPTOR, parameters.MISSING_VALUE.choices)
_OVERFLOW = words_of(model_pb2.OverflowPolicy.DESCRIPTOR, parameters.OVERFLOW.choices)


def message_of_specification(given: Specification) -> model_pb2.Specification:
    """Return the message of a specification; fields that are ``None`` stay absent."""
    return message_of_changes(vars(given))


def message_of_changes(given: Mapping[str, Any]) -> model_pb2.Specification:
    """Return a message with some fields of a specification; those that are ``None`` stay absent.

    Raises
    ------
    InvalidArgument
        If a value does not fit into its field; the error names the field, the value and the bound.
    """
    written = {
        name: _WRITTEN[name](value) if name in _WRITTEN else value
        for name, value in given.items()
        if value is not None
    }
    return filled(model_pb2.Specification, **written)


def specification_of(message: model_pb2.Specification) -> Specification:
    """Return the specification in a message, without what the server alone keeps in it."""
    given: dict[str, Any] = {"attributes": (), "classes": ()}
    for field, value in message.ListFields():
        if field.name not in _FIELDS:
            continue
        given[field.name] = _READ[field.name](value) if field.name in _READ else value
    return Specification(**given)


def _pruning_message(pruning: Pruning) -> model_pb2.Pruning:
    return filled(model_pb2.Pruning, kind=_number_of(_PRUNING, pruning.kind), level=pruning.level)


def _number_of(words: Mapping[int, str], word: str) -> Any:
    return next(number for number, each in words.items() if each == word)


def _attribute_message(attribute: Attribute) -> model_pb2.Attribute:
    missing = _number_of(_MISSING, attribute.missing)
    if isinstance(attribute, Nominal):
        nominal = filled(
            model_pb2.NominalAttribute,
            values=attribute.values,
            max_values=attribute.max_values or 0,
            overflow=_number_of(_OVERFLOW, attribute.overflow),
        )
        return filled(model_pb2.Attribute, name=attribute.name, nominal=nominal, missing=missing)
    numeric = filled(
        model_pb2.NumericAttribute, bins=attribute.bins, edges=attribute.edges, cuts=attribute.cuts or 0
    )
    return filled(model_pb2.Attribute, name=attribute.name, numeric=numeric, missing=missing)


def _pruning_of(message: model_pb2.Pruning) -> Pruning:
    return Pruning(cast(PruningKind, _PRUNING[message.kind]), message.level)


def _attribute_of(message: model_pb2.Attribute) -> Attribute:
    missing = cast(Missing, _MISSING.get(message.missing, parameters.MISSING_VALUE.default))
    if message.WhichOneof("kind") == "nominal":
        overflow = cast(Overflow, _OVERFLOW.get(message.nominal.overflow, parameters.OVERFLOW.default))
        most = message.nominal.max_values
        most_or_default = None if most in {0, parameters.MAX_VALUES} else most
        return Nominal(message.name, message.nominal.values, missing, most_or_default, overflow)
    numeric = message.numeric
    return Numeric(
        message.name, numeric.bins or parameters.BINS.default, numeric.edges, missing, numeric.cuts or None
    )


_FIELDS: Final = frozenset(each.name for each in fields(Specification))
_WRITTEN: Final[Mapping[str, Callable[[Any], Any]]] = {
    "attributes": lambda given: [_attribute_message(each) for each in given],
    "pruning": _pruning_message,
    "algorithm": lambda given: algorithms.to_proto(given, "specification.algorithm"),
    "strategy": lambda given: algorithms.to_proto(given, "specification.strategy"),
    "presentation": message_of_presentation,
}
"""Fields whose values have messages of their own."""
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "attributes": lambda found: [_attribute_of(each) for each in found],
    "pruning": _pruning_of,
    "algorithm": algorithms.from_proto,
    "strategy": algorithms.from_proto,
    "presentation": presentation_of,
}
