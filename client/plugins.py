"""Learners and strategies as people write them: a name, or a mapping of a name and parameters.

``"c45"``, or ``{"name": "forest", "trees": 20, "base": {"name": "averaging", "max_cuts": 8}}``. The server declares the
names and parameters (``Client.learners``) and checks their values. A value of ``None`` means none, such as no limit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from quercus.belief.errors import shown
from quercus.client.errors import invalid
from quercus.specification.learners import ACTIVE_FOREST, DEFAULT
from quercus.specification.parameter import Parameter
from quercus.v1 import model_pb2
from quercus.v1.parameters import NUMBER_OF_KIND, parameter_message, parameter_value

PluginLike = str | Mapping[str, Any]


def to_proto(given: PluginLike, field: str = "learner", *, is_base: bool = False) -> model_pb2.Plugin:
    """Return the message for CreateModel; raise InvalidArgument for anything that cannot be a learner.

    A base without a name is the default one.

    Examples
    --------
    >>> to_proto({"name": "c45", "min_branch": 4}).parameters["min_branch"].integer
    4
    """
    if not isinstance(given, str | Mapping):
        raise invalid(field, f"is {shown(given)}, must be a name or a mapping with a name")
    parameters = {"name": given} if isinstance(given, str) else dict(given)
    name, base = parameters.pop("name", None), parameters.pop("base", None)
    name = "" if is_base and name is None else name
    if not isinstance(name, str) or not (name or is_base):
        noun = "strategy" if field.endswith("strategy") else "learner"
        raise invalid(f"{field}.name", f"is {shown(name)}, must be the name of a {noun}")
    message = model_pb2.Plugin(name=name.replace("_", "-"))
    if base is not None:
        message.base.CopyFrom(to_proto(base, f"{field}.base", is_base=True))
    for key, value in parameters.items():
        try:
            message.parameters[key].CopyFrom(parameter_message(value))
        except (TypeError, ValueError) as error:
            raise invalid(f"{field}.{key}", f"is {shown(value)}: {error}") from None
    return message


def from_proto(message: model_pb2.Plugin) -> dict[str, Any]:
    """Return the name and the parameters in a message; parameters in order of name.

    Examples
    --------
    >>> from_proto(to_proto({"name": "forest", "vote": "mass", "max_features": 3, "base": "id3"}))
    {'name': 'forest', 'base': {'name': 'id3'}, 'max_features': 3, 'vote': 'mass'}
    """
    found: dict[str, Any] = {"name": message.name}
    if message.HasField("base"):
        found["base"] = from_proto(message.base)
    return found | {name: parameter_value(message.parameters[name]) for name in sorted(message.parameters)}


def parameter_of(message: model_pb2.ParameterDeclaration) -> Parameter:
    """Return the parameter that a message declares."""
    kind = next((kind for kind, number in NUMBER_OF_KIND.items() if number == message.kind), str)
    lowest, highest = parameter_value(message.lowest), parameter_value(message.highest)
    return Parameter(
        message.name,
        kind,
        parameter_value(message.default),
        message.description,
        -math.inf if lowest is None else lowest,
        math.inf if highest is None else highest,
        message.excludes_bounds,
        tuple(message.choices),
        message.meaning_of_none,
    )


def plugin_text(given: PluginLike | None) -> str:
    """Return the description of a learner or strategy in one line.

    Examples
    --------
    >>> plugin_text({"name": "forest", "trees": 20, "base": {"name": "c45", "min_branch": 4}})
    'forest (trees 20, base c45 (min_branch 4))'
    """
    if not isinstance(given, Mapping):
        return given or "the default"
    own = [
        f"{key} {plugin_text(value) if isinstance(value, Mapping) else value}"
        for key, value in given.items()
        if key != "name"
    ]
    return f"{given['name']} ({', '.join(own)})" if own else str(given["name"])


def name_of(learner: PluginLike | None) -> str:
    """Return the name of a specification's learner."""
    if isinstance(learner, Mapping):
        return str(learner["name"])
    return learner or DEFAULT


def has_one_tree(learner: PluginLike | None) -> bool:
    """Return whether a specification's learner has a single tree, in which rows have their paths."""
    return name_of(learner) not in {"forest", "total-uncertainty"}


def asks_with_forest(learner: PluginLike | None) -> bool:
    """Return whether a specification's learner is a forest that predicts and asks, with a tree beside it to read.

    On the server, `SpecifiedLearner.asks` decides this. A client has no classes of learners, so it uses the name.
    """
    return name_of(learner) == ACTIVE_FOREST
