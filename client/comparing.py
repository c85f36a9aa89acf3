"""Comparison of a model's specification with a given one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from quercus.client import algorithms
from quercus.client.algorithms import AlgorithmLike
from quercus.client.errors import AlreadyExists
from quercus.client.results import Model, Specification
from quercus.specification.attributes import Attribute, Nominal

_PLAIN = (
    "alpha",
    "budget",
    "min_instances",
    "max_depth",
    "warmup_rows",
    "strategy",
    "pruning",
    "prediction_level",
    "split_significance",
    "ask",
    "memory_rows",
)


def same_model(found: Model, given: Specification) -> Model:
    """The model, when it is of the specification given.

    Fields that are ``None`` are not compared; learned values of a nominal attribute are no difference.

    Raises
    ------
    AlreadyExists
        Naming what differs.
    """
    differing = differences(found.specification, given)
    if differing:
        said = "; ".join(differing)
        raise AlreadyExists(f"model {found.name!r} is there with another specification: {said}")
    return found


def differences(found: Specification, given: Specification) -> list[str]:
    """The differences, in words."""
    told = [
        f"{name} {_text(getattr(found, name))}, given {_text(getattr(given, name))}"
        for name in _PLAIN
        if getattr(given, name) is not None and getattr(given, name) != getattr(found, name)
    ]
    if found.classes != given.classes:
        told.append(f"classes {', '.join(found.classes)}, given {', '.join(given.classes)}")
    if given.algorithm is not None:
        told += _algorithm(found.algorithm, algorithms.from_proto(algorithms.to_proto(given.algorithm)))
    names = [[each.name for each in one.attributes] for one in (found, given)]
    if names[0] != names[1]:
        told.append(f"attributes {', '.join(names[0])}, given {', '.join(names[1])}")
        return told
    pairs = zip(found.attributes, given.attributes, strict=True)
    told += [
        f"attribute {each.name} {each}, given {other}" for each, other in pairs if not _same(each, other)
    ]
    return told


def _text(value: object) -> str:
    return f"{value:g}" if isinstance(value, int | float) else str(value)


def _same(found: Attribute, given: Attribute) -> bool:
    if not (isinstance(found, Nominal) and isinstance(given, Nominal)):
        return found == given
    declared = tuple(found.values)[: len(given.values)]
    return declared == tuple(given.values) and found.missing == given.missing


def _algorithm(found: AlgorithmLike | None, given: Mapping[str, Any]) -> list[str]:
    known = found if isinstance(found, Mapping) else {"name": algorithms.name_of(found)}
    told: list[str] = []
    for key, value in given.items():
        if isinstance(value, Mapping):
            told += _algorithm(known.get(key), value)
        elif known.get(key) != value:
            told.append(f"algorithm {key} {known.get(key)}, given {value}")
    return told
