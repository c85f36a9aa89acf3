"""Comparison of a model's specification with a given one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from quercus.client import plugins
from quercus.client.errors import AlreadyExists
from quercus.client.plugins import PluginLike
from quercus.client.results import Model
from quercus.client.specifications import Specification
from quercus.specification.attributes import Nominal, plain_number

_NOT_PLAIN: Final = {"attributes", "classes", "learner", "strategy", "presentation", "guidance"}
"""Fields of a specification that are compared in other ways, or not at all, like the presentation of rows."""


def same_model(model: Model, given: Specification) -> Model:
    """Return the model if it has the given specification.

    Fields that are ``None`` are not compared; learned values of a nominal attribute are not a difference.

    Raises
    ------
    AlreadyExists
        If it does not; the error names the differences.
    """
    differing = differences(model.specification, given)
    if differing:
        text = "; ".join(differing)
        raise AlreadyExists(f"model {model.name!r} exists with another specification: {text}")
    return model


def differences(known: Specification, given: Specification) -> list[str]:
    """Return the differences, in words."""
    texts = [
        f"{name} {_value_text(getattr(known, name))}, given {_value_text(getattr(given, name))}"
        for name in vars(given)
        if name not in _NOT_PLAIN
        and getattr(given, name) is not None
        and getattr(given, name) != getattr(known, name)
    ]
    if known.classes != given.classes:
        texts.append(f"classes {', '.join(known.classes)}, given {', '.join(given.classes)}")
    for name in ("learner", "strategy"):
        if (chosen := getattr(given, name)) is not None:
            written = plugins.from_proto(plugins.to_proto(chosen, name))
            texts += _plugin_differences(name, getattr(known, name), written)
    names = [[each.name for each in one.attributes] for one in (known, given)]
    if names[0] != names[1]:
        texts.append(f"attributes {', '.join(names[0])}, given {', '.join(names[1])}")
        return texts
    for each, other in zip(known.attributes, given.attributes, strict=True):
        if isinstance(each, Nominal) and isinstance(other, Nominal):
            declared = tuple(each.values)[: len(other.values)]
            is_same = (declared, each.missing, each.overflow) == (other.values, other.missing, other.overflow)
            is_same = is_same and (other.max_values is None or other.most_values == each.most_values)
        else:
            is_same = each == other
        if not is_same:
            texts.append(f"attribute {each.name} {each}, given {other}")
    return texts


def _value_text(value: object) -> str:
    return plain_number(value) if isinstance(value, int | float) else str(value)


def _plugin_differences(field: str, known: PluginLike | None, given: Mapping[str, Any]) -> list[str]:
    parameters = known if isinstance(known, Mapping) else {"name": plugins.name_of(known)}
    texts: list[str] = []
    for key, value in given.items():
        if isinstance(value, Mapping):
            texts += _plugin_differences(field, parameters.get(key), value)
        elif parameters.get(key) != value:
            texts.append(f"{field} {key} {parameters.get(key)}, given {value}")
    return texts
