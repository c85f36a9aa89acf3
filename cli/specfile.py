"""Specifications as TOML or JSON files.

The keys are those of :class:`quercus.client.Specification`; an attribute with ``values`` is nominal, any
other numeric::

    classes = ["ill", "well"]
    alpha = 0.8
    budget = 20

    [[attributes]]
    name = "fever"
    values = ["no", "low", "high"]
    max_values = 20          # further names share one bucket; or: overflow = "refuse"

    [[attributes]]
    name = "age"
    edges = [18, 40, 65]     # or: bins = 4; or: cuts = 32, thresholds instead of bins
    missing = "reject"       # default: "branch"
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import MISSING, asdict, fields
from pathlib import Path
from typing import Any

from quercus.belief.errors import InvalidInput
from quercus.cli.model_options import NONE
from quercus.client import plugins
from quercus.client.errors import InvalidArgument
from quercus.client.specifications import Specification
from quercus.files.errors import FileError
from quercus.specification import model
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.guidance import ClassExample, Guidance
from quercus.specification.learners import Pruning
from quercus.specification.parameter import parameters_of
from quercus.specification.parameters import MAX_VALUES, OVERFLOW
from quercus.specification.presentation import AttributeView, MediaTemplate, Presentation, SeriesView

_OPTIONS = {each.name: each for each in parameters_of(model.Specification)}
_PLUGINS = ("learner", "strategy")
_KEYS = ("attributes", "classes", *_OPTIONS, "pruning", *_PLUGINS, "presentation", "guidance")
_VIEWS: dict[str, Any] = {"attributes": AttributeView, "series": SeriesView, "media": MediaTemplate}
_KINDS: dict[str, type[Attribute]] = {"nominal": Nominal, "numeric": Numeric}
_ATTRIBUTE_KEYS = ("name", "kind", "values", "bins", "edges", "missing", "cuts", "max_values", "overflow")


def read_specification(path: Path) -> Specification:
    """Read a specification from a ``.toml`` or ``.json`` file.

    Raises
    ------
    FileError
        Naming the line of malformed text, or the invalid key.
    """
    content = _parsed_content(path)
    if isinstance(content, dict) and isinstance(content.get("specification"), dict):
        content = content["specification"]  # as `quercus models show --json` prints it
    return from_dict(path, content)


def _parsed_content(path: Path) -> Any:
    """Return the parsed content of a ``.toml`` or ``.json`` file."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(path, f"cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise FileError(path, f"byte {error.start + 1} is not UTF-8") from None
    try:
        return json.loads(text) if path.suffix.lower() == ".json" else tomllib.loads(text)
    except json.JSONDecodeError as error:
        raise FileError(path, f"is not JSON: {error.msg}", error.lineno, error.colno) from None
    except tomllib.TOMLDecodeError as error:
        raise FileError(path, f"is not TOML: {error}") from None
    except RecursionError:
        raise FileError(path, "is nested too deep") from None
    except ValueError:
        raise FileError(path, "has an integer with thousands of digits") from None


def from_dict(path: Path, content: Any) -> Specification:
    """Return the specification in the content of a file; ``path`` is for errors."""
    if isinstance(content, dict) and "ask" in content:  # of an earlier file
        if content["ask"] not in (None, "to-the-budget"):
            raise FileError(
                path,
                f"ask {content['ask']!r} is not offered any more; without it a model asks up to its budget",
            )
        content = {key: value for key, value in content.items() if key != "ask"}
    table = _check_table(path, content, "the file", _KEYS)
    for key in ("attributes", "classes"):
        if key not in table:
            raise FileError(path, f"{key} is not given")
    with _naming_key(path):
        given = {key: table[key] for key in _OPTIONS if table.get(key) is not None}
        options: dict[str, Any] = {key: _OPTIONS[key].check(value) for key, value in given.items()}
    if "pruning" in table:
        pruning = _check_table(path, table["pruning"], "pruning", ("kind", "level"))
        with _naming_key(path, "pruning."):
            options["pruning"] = Pruning(**({"kind": None} | pruning))
    for key in _PLUGINS:
        if key in table:
            try:
                options[key] = plugins.from_proto(plugins.to_proto(_with_none(table[key]), key))
            except InvalidArgument as error:
                raise FileError(path, str(error)) from None
    if "presentation" in table:
        options["presentation"] = presentation_of(path, table["presentation"])
    if "guidance" in table:
        options["guidance"] = guidance_of(path, table["guidance"])
    attributes = _check_list(path, table["attributes"], "attributes")
    return Specification(
        [_read_attribute(path, each, f"attributes[{i}]") for i, each in enumerate(attributes)],
        _check_names(path, table["classes"], "classes"),
        **options,
    )


def read_presentation(path: Path) -> Presentation:
    """Read a presentation from a ``.toml`` or ``.json`` file: tables ``attributes``, ``series`` and ``media``."""
    return presentation_of(path, _parsed_content(path), "the file")


def read_guidance(path: Path) -> Guidance:
    """Read guidance for labellers from a ``.toml`` or ``.json`` file: title, text and a table ``examples``."""
    return guidance_of(path, _parsed_content(path), "the file")


def guidance_of(path: Path, content: Any, where: str = "guidance") -> Guidance:
    """Return the guidance for labellers in the content of a file."""
    table = _check_table(path, content, where, tuple(each.name for each in fields(Guidance)))
    known = tuple(each.name for each in fields(ClassExample))
    examples = []
    for i, entry in enumerate(_check_list(path, table.get("examples", []), f"examples of {where}")):
        given = _check_table(path, entry, f"examples[{i}]", known)
        with _naming_key(path, f"examples[{i}]."):
            examples.append(ClassExample(**({"class_name": "", "instance": ""} | given)))
    with _naming_key(path):
        return Guidance(**(table | {"examples": tuple(examples)}))


def presentation_of(path: Path, content: Any, where: str = "presentation") -> Presentation:
    """Return the presentation in the content of a file."""
    table = _check_table(path, content, where, (*_VIEWS, "withheld"))
    withheld = tuple(_check_names(path, table.get("withheld", []), f"withheld of {where}"))
    views: dict[str, list[Any]] = {}
    for key, kind in _VIEWS.items():
        known = tuple(each.name for each in fields(kind))
        views[key] = []
        for i, entry in enumerate(_check_list(path, table.get(key, []), f"{key} of {where}")):
            given = _check_table(path, entry, f"{key}[{i}]", known)
            with _naming_key(path, f"{key}[{i}]."):
                required = {each.name: None for each in fields(kind) if each.default is MISSING}
                views[key].append(kind(**(required | given)))
    with _naming_key(path):
        return Presentation(**{key: tuple(entries) for key, entries in views.items()}, withheld=withheld)


def _with_none(content: Any) -> Any:
    """Return a learner or strategy with None in place of "none", since TOML has no null."""
    if isinstance(content, dict):
        return {key: _with_none(value) for key, value in content.items()}
    return None if content == NONE else content


def _read_attribute(path: Path, content: Any, where: str) -> Attribute:
    table = _check_table(path, content, where, _ATTRIBUTE_KEYS)
    kind = table.get("kind", "nominal" if "values" in table else "numeric")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise FileError(path, f'{where}.kind must be "nominal" or "numeric", is {kind!r}')
    known = {each.name for each in fields(_KINDS[kind])}
    given = {key: value for key, value in table.items() if key != "kind"}
    for key in given:
        if key not in known:
            raise FileError(path, f"{where}.{key} has no meaning for a {kind} attribute")
    if "values" in given:
        _check_names(path, given["values"], f"{where}.values")
    if "edges" in given:
        _check_list(path, given["edges"], f"{where}.edges")
    with _naming_key(path, f"{where}."):
        return _KINDS[kind](**({"name": None} | given))


@contextmanager
def _naming_key(path: Path, above: str = "") -> Iterator[None]:
    """Add the file and the key to the error about a value."""
    try:
        yield
    except InvalidInput as error:
        raise FileError(path, f"{above}{error.field} {error.reason}") from None


def _check_table(path: Path, content: Any, where: str, keys: Collection[str]) -> dict[str, Any]:
    if not isinstance(content, dict):
        raise FileError(path, f"{where} must be a table of {', '.join(keys)}, is {content!r}")
    unknown = [key for key in content if key not in keys]
    if unknown:
        raise FileError(path, f"{where} has no key {unknown[0]!r}; the keys are {', '.join(keys)}")
    return content


def _check_list(path: Path, content: Any, where: str) -> list[Any]:
    if not isinstance(content, list):
        raise FileError(path, f"{where} must be a list, is {content!r}")
    return content


def _check_names(path: Path, content: Any, where: str) -> list[str]:
    for each in _check_list(path, content, where):
        if not isinstance(each, str):
            raise FileError(path, f"{where} must be text, has {each!r} (write it in quotes)")
    return list(content)


def to_dict(specification: Specification) -> dict[str, Any]:
    """Return the form that :func:`read_specification` reads."""
    attributes: list[dict[str, Any]] = []
    for attribute in specification.attributes:
        entry: dict[str, Any] = {"name": attribute.name}
        if isinstance(attribute, Nominal):
            entry["values"] = list(attribute.values)
            if attribute.most_values != MAX_VALUES:
                entry["max_values"] = attribute.max_values
            if attribute.overflow != OVERFLOW.default:
                entry["overflow"] = attribute.overflow
        elif attribute.edges:
            entry["edges"] = list(attribute.edges)
        elif attribute.cuts is None:
            entry["bins"] = attribute.bins
        if isinstance(attribute, Numeric) and attribute.cuts is not None:
            entry["cuts"] = attribute.cuts
        attributes.append(entry | ({"missing": "reject"} if attribute.missing == "reject" else {}))
    given = {key: getattr(specification, key) for key in _OPTIONS}
    options: dict[str, Any] = {key: value for key, value in given.items() if value is not None}
    if specification.pruning is not None:
        options["pruning"] = {"kind": specification.pruning.kind, "level": specification.pruning.level}
    for key in _PLUGINS:
        if (chosen := getattr(specification, key)) is not None:
            options[key] = chosen if isinstance(chosen, str) else dict(chosen)
    if specification.presentation is not None:
        options["presentation"] = _presentation_dict(specification.presentation)
    if specification.guidance is not None:
        options["guidance"] = asdict(specification.guidance)
    return {"classes": list(specification.classes), **options, "attributes": attributes}


def _presentation_dict(given: Presentation) -> dict[str, Any]:
    """Return the form that :func:`presentation_of` reads, without keys at their defaults."""
    withheld = {"withheld": list(given.withheld)} if given.withheld else {}
    return withheld | {
        key: [
            {
                each.name: list(value) if isinstance(value, tuple) else value
                for each in fields(view)
                if (value := getattr(view, each.name)) != each.default
            }
            for view in getattr(given, key)
        ]
        for key in _VIEWS
        if getattr(given, key)
    }
