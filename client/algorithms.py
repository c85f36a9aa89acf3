"""Learners as people write them: a name, or a mapping of a name and parameters.

``"c45"``, or ``{"name": "forest", "trees": 20, "base": {"name": "averaging", "max_cuts": 8}}``. The names and
parameters are those of the wire (``Algorithm`` in ``model.proto``); which numbers are possible is the server's to say.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from google.protobuf.message import Message

from quercus.belief.errors import shown
from quercus.client.errors import invalid
from quercus.specification.algorithms import ALGORITHMS, LEGACY_DEFAULT
from quercus.specification.parameter import parameters_of
from quercus.v1 import model_pb2
from quercus.v1.words import words_of

AlgorithmLike = str | Mapping[str, Any]
_CHOICES = {each.name: each.choices for kind in ALGORITHMS.values() for each in parameters_of(kind)}
_CHOICES["share"] = _CHOICES["max_features"]


def to_proto(given: AlgorithmLike, field: str = "algorithm") -> model_pb2.Algorithm:
    """Return the message for CreateModel; raise for a name or parameter that does not exist.

    Examples
    --------
    >>> to_proto({"name": "c45", "min_branch": 4}).c45.min_branch
    4
    """
    if not isinstance(given, str | Mapping):
        raise invalid(field, f"is {shown(given)}, must be a name or a mapping with a name")
    parameters = {"name": given} if isinstance(given, str) else dict(given)
    name = parameters.pop("name", None)
    if not isinstance(name, str) or name.replace("_", "-") not in ALGORITHMS:
        raise invalid(f"{field}.name", f"is {shown(name)}, must be one of {', '.join(ALGORITHMS)}")
    message = model_pb2.Algorithm()
    below = getattr(message, name.replace("-", "_"))
    below.SetInParent()
    for key, value in parameters.items():
        if value is not None:
            _set_parameter(below, key, value, f"{field}.{key}")
    return message


def from_proto(message: model_pb2.Algorithm) -> dict[str, Any]:
    """Return the name and the parameters in a message.

    Examples
    --------
    >>> from_proto(to_proto({"name": "forest", "vote": "mass", "max_features": 3, "base": "id3"}))
    {'name': 'forest', 'base': {'name': 'id3'}, 'vote': 'mass', 'max_features': 3}
    """
    kind = message.WhichOneof("kind") or LEGACY_DEFAULT.name
    parameters: dict[str, Any] = {"name": kind.replace("_", "-")}
    below: Message = getattr(message, kind)
    for each, value in below.ListFields():
        key = "max_features" if each.name in ("number", "share") else each.name
        if each.message_type is not None:
            parameters[key] = from_proto(value)
        elif each.enum_type is not None:
            parameters[key] = _choice_words(each.enum_type)[value]
        else:
            parameters[key] = value
    return parameters


def algorithm_text(algorithm: AlgorithmLike | None) -> str:
    """Return the description of an algorithm in one line.

    Examples
    --------
    >>> algorithm_text({"name": "forest", "trees": 20, "base": {"name": "c45", "min_branch": 4}})
    'forest (trees 20, base c45 (min_branch 4))'
    """
    if not isinstance(algorithm, Mapping):
        return name_of(algorithm)
    own = [
        f"{key} {algorithm_text(value) if isinstance(value, Mapping) else value}"
        for key, value in algorithm.items()
        if key != "name"
    ]
    return f"{algorithm['name']} ({', '.join(own)})" if own else str(algorithm["name"])


def name_of(algorithm: AlgorithmLike | None) -> str:
    """Return the name of a specification's algorithm; old stores have none."""
    if isinstance(algorithm, Mapping):
        return str(algorithm["name"])
    return algorithm or LEGACY_DEFAULT.name


def _set_parameter(below: Message, key: str, value: Any, field: str) -> None:
    if key == "max_features" and below.DESCRIPTOR.name == "Forest":
        key = "share" if isinstance(value, str) else "number"
    described = below.DESCRIPTOR.fields_by_name.get(key)
    if described is None or (key in ("share", "number") and not field.endswith("max_features")):
        known = ", ".join(_parameter_names(below)) or "none"
        raise invalid(field, f"is not a parameter of this learner; its parameters are {known}")
    if described.message_type is not None:
        getattr(below, key).CopyFrom(to_proto(value, field))
        return
    if described.enum_type is not None:
        words = {word: number for number, word in _choice_words(described.enum_type).items()}
        if not isinstance(value, str) or value not in words:
            raise invalid(field, f"is {shown(value)}, must be one of {', '.join(words)}")
        value = words[value]
    try:
        setattr(below, key, value)
    except (TypeError, ValueError) as error:
        raise invalid(field, f"is {shown(value)}: {error}") from None


def _parameter_names(below: Message) -> list[str]:
    names = [each.name for each in below.DESCRIPTOR.fields]
    return list(dict.fromkeys("max_features" if name in ("number", "share") else name for name in names))


def _choice_words(enum: Any) -> dict[int, str]:
    """Return the choices of an enum by number, as users write them."""
    return words_of(enum, _CHOICES[enum.name.lower()])
