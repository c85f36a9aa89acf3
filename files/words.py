"""Classes and attributes as people type them."""

from __future__ import annotations

import csv

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame
from quercus.specification.attributes import Attribute, Nominal, Numeric
from quercus.specification.values import NOTHING
from quercus.specification.written_labels import read_name, write_name


def typed_attribute(text: str) -> Attribute:
    """Return an attribute from text: its name, a colon, and ``number``, ``names``, or its first names.

    Raises
    ------
    InvalidInput
        If the text has another form, or the attribute is invalid.

    Examples
    --------
    >>> typed_attribute("humidity:number").name, typed_attribute("colour: red, green").values
    ('humidity', ('red', 'green'))
    """
    name, colon, kind = (part.strip() for part in text.rpartition(":"))
    if not (colon and name and kind):
        raise InvalidInput(
            "attributes",
            f"has {shown(text)}, must be NAME:number, NAME:names or NAME:A,B,C with its first names",
        )
    if kind == "number":
        return Numeric(name)
    return Nominal(name, () if kind == "names" else [value.strip() for value in kind.split(",")])


def typed_classes(text: str) -> tuple[str, ...]:
    r"""Return the names of the 2 to 64 classes of a model from text (`typed_names`).

    Examples
    --------
    >>> typed_classes('edible, poisonous'), typed_classes('yes\n"no, or not yet"\n')
    (('edible', 'poisonous'), ('yes', 'no, or not yet'))
    """
    return Frame(typed_names(text)).classes


def typed_names(text: str) -> tuple[str, ...]:
    r"""Return names of classes from text with one on each line, or several separated by commas.

    In double quotes a name may have commas, and the escapes of `quercus.specification.written_labels` are optional.

    Raises
    ------
    InvalidInput
        If a name is empty or comes twice, or a quote is not closed.
    """
    try:
        lines = list(csv.reader(text.splitlines(), skipinitialspace=True, strict=True))
    except csv.Error as error:
        reason = f"{shown(text)} cannot be read ({error}): a quote inside of a quoted name is written twice"
        raise InvalidInput("classes", reason) from None
    names = [name.strip() for line in lines if any(map(str.strip, line)) for name in line]
    for place, name in enumerate(names):
        if not name:
            raise InvalidInput(
                "classes", f"name {place + 1} of {len(names)} is empty: is there one comma too many?"
            )
        if name == NOTHING:
            what = f"name {place + 1} is {NOTHING}, which stands for an unknown class"
            raise InvalidInput("classes", f"{what}; a class of that name is written {write_name(NOTHING)}")
        if name in names[:place]:
            raise InvalidInput(
                "classes", f"{shown(name)} comes twice: it is name {names.index(name) + 1} too"
            )
    classes = tuple(map(read_name, names))
    if len(set(classes)) < len(classes):
        raise InvalidInput("classes", f"{shown(text)} names a class twice, once with an escape")
    return classes
