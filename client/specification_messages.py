"""Conversion of specifications to and from messages, whose fields have the same names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any, Final, cast

from google.protobuf.field_mask_pb2 import FieldMask

from quercus.belief.errors import shown
from quercus.client import plugins
from quercus.client.display_messages import (
    guidance_of,
    message_of_guidance,
    message_of_presentation,
    presentation_of,
)
from quercus.client.errors import InvalidArgument, invalid
from quercus.client.messages import filled
from quercus.client.resources import model_resource
from quercus.client.specifications import Specification
from quercus.specification import parameters
from quercus.specification.attributes import Attribute, Missing, Nominal, Numeric, Overflow
from quercus.specification.guidance import Guidance
from quercus.specification.learners import Pruning, PruningKind
from quercus.specification.model import CHANGEABLE
from quercus.specification.presentation import Presentation
from quercus.v1 import model_pb2
from quercus.v1.words import words_of

Change = float | str | Mapping[str, Any] | Pruning | Presentation | Guidance | None
_MAY_BE_NONE: Final = ("max_depth", "pruning", "presentation", "guidance")

_PRUNING = words_of(model_pb2.PruningKind.DESCRIPTOR, parameters.PRUNING_KIND.choices)
_MISSING = words_of(model_pb2.MissingPolicy.DESCRIPTOR, parameters.MISSING_VALUE.choices)
_OVERFLOW = words_of(model_pb2.OverflowPolicy.DESCRIPTOR, parameters.OVERFLOW.choices)


def message_of_specification(given: Specification) -> model_pb2.Specification:
    """Return the message of a specification; fields that are ``None`` stay absent.

    Values that cannot be encoded are refused here, all others by the server.
    """
    for k, name in enumerate(given.classes):
        if not isinstance(name, str):
            raise invalid(f"classes[{k}]", f"is {shown(name)} ({type(name).__name__}), must be text")
    for k, attribute in enumerate(given.attributes):
        if not isinstance(attribute, Nominal | Numeric):
            kind = type(attribute).__name__
            raise invalid(f"attributes[{k}]", f"expected Nominal or Numeric, got {shown(attribute)} ({kind})")
    try:
        return message_of_changes(vars(given))
    except InvalidArgument:
        raise
    except (TypeError, ValueError, OverflowError) as error:
        raise invalid("specification", str(error)) from None


def update_request(model: str, changes: Mapping[str, Change]) -> model_pb2.UpdateModelRequest:
    """Return the request of UpdateModel: the named fields and nothing else."""
    for name in changes:
        if name not in CHANGEABLE:
            raise invalid(name, f"cannot be changed; only {', '.join(CHANGEABLE)} can")
        if changes[name] is None and name not in _MAY_BE_NONE:
            raise invalid(name, f"is None, must have a value (only {', '.join(_MAY_BE_NONE)} may be none)")
    return filled(
        model_pb2.UpdateModelRequest,
        name=model_resource(model),
        specification=message_of_changes(changes),
        update_mask=FieldMask(paths=list(changes)),
    )


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
    """Return the specification in a message, without fields that only the server uses."""
    given: dict[str, Any] = {"attributes": (), "classes": ()}
    for field, value in message.ListFields():
        if field.name not in _FIELDS:
            continue
        given[field.name] = _READ[field.name](value) if field.name in _READ else value
    return Specification(**given)


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
    "pruning": lambda given: filled(
        model_pb2.Pruning, kind=_number_of(_PRUNING, given.kind), level=given.level
    ),
    "learner": lambda given: plugins.to_proto(given, "specification.learner"),
    "strategy": lambda given: plugins.to_proto(given, "specification.strategy"),
    "presentation": message_of_presentation,
    "guidance": message_of_guidance,
}
"""Fields whose values have messages of their own."""
_READ: Final[Mapping[str, Callable[[Any], Any]]] = {
    "attributes": lambda found: [_attribute_of(each) for each in found],
    "pruning": lambda found: Pruning(cast(PruningKind, _PRUNING[found.kind]), found.level),
    "learner": plugins.from_proto,
    "strategy": plugins.from_proto,
    "presentation": presentation_of,
    "guidance": guidance_of,
}
