"""The fields of a request in words: ``specification.attributes[7].nominal.values[0]`` is a value of an attribute."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from quercus.belief.errors import InvalidInput, shown
from quercus.client.errors import QuercusError
from quercus.client.specifications import Specification
from quercus.specification.attributes import Nominal

_PATH: Final = re.compile(r"[A-Za-z_]\w*(\[\d+\])?(\.[A-Za-z_]\w*(\[\d+\])?)*")
_STEP: Final = re.compile(r"([A-Za-z_]\w*)(?:\[(\d+)\])?")
_ROW: Final = re.compile(r"rows\[(\d+)\](?:\.(.+))?", re.DOTALL)
_OF_ROWS: Final = {"ids": "id", "labels": "label", "displays": "what is shown beside it", "statements": ""}
"""Lists with an element per row, and the word for an element."""
_NAMES: Final = {"model_id": "the model's name", "instance_id": "id", "name": "name"}
"""Fields for which users have other words."""


@dataclass(frozen=True)
class Place:
    """A field of a request in the user's terms.

    Attributes
    ----------
    row : position of a row, counted from 0.
    attribute : name of an attribute.
    value : a value of the attribute, as its name.
    class_name : name of a class.
    parameter : anything else, such as ``alpha``.
    """

    row: int | None = None
    attribute: str | None = None
    value: str | None = None
    class_name: str | None = None
    parameter: str = ""

    @property
    def text(self) -> str:
        """The place in words, such as ``attribute 'says', value 'yes'``."""
        parts = [
            "" if self.row is None else f"row {self.row:,}",
            "" if self.attribute is None else f"attribute {shown(self.attribute)}",
            "" if self.value is None else f"value {shown(self.value)}",
            "" if self.class_name is None else f"class {shown(self.class_name)}",
            self.parameter,
        ]
        return ", ".join(filter(None, parts))


def place_of(field: str, specification: Specification | None = None) -> Place:
    """Return the place that the path of a field denotes, in the user's terms.

    Parameters
    ----------
    field
        The path, as in ``specification.attributes[7].nominal.values[0]``; anything else is returned unchanged, a
        variable of the environment among it.
    specification
        The specification in the request, or that of its model.

    Examples
    --------
    >>> place_of("specification.learner.trees").text, place_of("rows[17].skin colour").text
    ('trees', "row 17, attribute 'skin colour'")
    """
    if (in_row := _ROW.fullmatch(field)) is not None:
        return Place(row=int(in_row[1]), attribute=in_row[2])
    if field.isupper() or _PATH.fullmatch(field) is None:
        return Place(parameter=field)
    steps = [(name, None if index == "" else int(index)) for name, index in _STEP.findall(field)]
    row = attribute = value = class_name = holder = None
    rest: list[str] = []
    for k, (name, index) in enumerate(steps):
        is_last, is_own = k == len(steps) - 1, k == 0 or steps[k - 1][0] == "specification"
        if index is None:
            if not is_last:
                continue  # it only contains what follows
            if name != "name" or k == 0:
                rest.append(_NAMES.get(name, name.replace("_", " ")))
            elif steps[k - 1][1] is None:  # a name is the name of its container
                rest.append(steps[k - 1][0].replace("_", " "))
        elif name in _OF_ROWS:
            row = index
            rest += [_OF_ROWS[name]] if is_last else []
        elif name == "attributes" and is_own and (given := _element(specification, name, index)) is not None:
            attribute, holder = given.name, given
        elif name == "values" and attribute is not None:
            value = (
                holder.values[index] if isinstance(holder, Nominal) and index < len(holder.values) else None
            )
        elif name == "classes" and is_own and (given := _element(specification, name, index)) is not None:
            class_name = given
        else:
            rest.append(f"{_singular(name)} {index + 1}")
    return Place(row, attribute, value, class_name, ", ".join(filter(None, rest)))


def _element(specification: Specification | None, name: str, index: int) -> Any:
    elements = () if specification is None else getattr(specification, name)
    return elements[index] if index < len(elements) else None


def _singular(name: str) -> str:
    """Return the word for an element of a list."""
    words = name.replace("_", " ")
    if words == "series":
        return words
    return words.removesuffix("es") if words.endswith("sses") else words.removesuffix("s")


def faults_of(error: Exception) -> Iterator[tuple[str, str]]:
    """Yield the fields that an error names, each with the reason."""
    if isinstance(error, QuercusError):
        yield from ((each.field, each.reason) for each in error.violations)
    elif isinstance(error, InvalidInput):
        yield error.field, error.reason


def plain_text(error: Exception, specification: Specification | None = None) -> str:
    """Return the message of an error with its fields in a user's words.

    Examples
    --------
    >>> plain_text(InvalidInput("specification.alpha", "is 7, must lie in [0, 1]"))
    'alpha: is 7, must lie in [0, 1]'
    """
    text = str(error)
    for field, reason in faults_of(error):
        text = text.replace(f"{field}: {reason}", f"{place_of(field, specification).text}: {reason}")
    return text


@contextmanager
def naming_places(specification: Specification) -> Iterator[None]:
    """In errors of the server, replace the paths of fields by the names in a specification."""
    try:
        yield
    except QuercusError as error:
        error.message = plain_text(error, specification)
        raise
