"""Labels in words, as files and screens have them.

A class ``a``, a set ``a|b``, plausibilities ``a:1 b:0.4`` (a class left out is impossible), masses
``{a|b}:0.7 {a}:0.3``; ``?`` where nothing is known.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from quercus.belief.errors import InvalidInput, shown
from quercus.belief.frame import Frame
from quercus.client.labels import LabelLike
from quercus.files.leaks import SET, set_parts
from quercus.files.schema import finite_number

NOTHING = "?"
_MASS = re.compile(r"\{([^{}]+)\}:(\S+)(?:\s+|\Z)")


def label_in_words(text: str, classes: Sequence[str]) -> LabelLike:
    """Read a label.

    Raises
    ------
    ValueError
        For an invalid text; it names the error.

    Examples
    --------
    >>> label_in_words("red", ["red", "white"]), sorted(label_in_words("red|white", ["red", "white"]))
    ('red', ['red', 'white'])
    >>> label_in_words("red:1 white:0.4", ["red", "white"])
    {'red': 1.0, 'white': 0.4}
    >>> {"|".join(sorted(s)): m for s, m in label_in_words("{red|white}:.3 {red}:.7", ["red", "white"]).items()}
    {'red|white': 0.3, 'red': 0.7}
    """
    text = text.strip()
    if text in classes:
        return text
    if text in ("", NOTHING):
        return None
    if text.startswith("{"):
        return _parse_masses(text, classes)
    if (found := _parse_plausibilities(text, classes)) is not None:
        return found
    if SET in text:
        names = _class_names(text, classes)
        return names if len(names) > 1 else next(iter(names))
    raise ValueError(f"{text!r} is not a class; the classes are {', '.join(classes)}")


def typed_classes(text: str) -> tuple[str, ...]:
    r"""Read the names of classes: one a line, or several between commas; in double quotes a name may have commas.

    Raises
    ------
    InvalidInput
        When a name is missing or comes twice, a quote has no end, or there are fewer than 2 or more than 64 names.

    Examples
    --------
    >>> typed_classes('edible, poisonous'), typed_classes('yes\n"no, or not yet"\n')
    (('edible', 'poisonous'), ('yes', 'no, or not yet'))
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
                "classes", f"name {place + 1} of {len(names)} is empty: is there a comma too much?"
            )
        if name == NOTHING:
            raise InvalidInput("classes", f"name {place + 1} is {NOTHING}, which stands for an unknown class")
        if name in names[:place]:
            raise InvalidInput(
                "classes", f"{shown(name)} comes twice: it is name {names.index(name) + 1} too"
            )
    return Frame(tuple(names)).classes


def _class_names(text: str, classes: Sequence[str]) -> frozenset[str]:
    names = set_parts(text)
    for name in names:
        if name not in classes:
            raise ValueError(f"in {text!r}: {name!r} is not a class; the classes are {', '.join(classes)}")
    return frozenset(names)


def _parse_masses(text: str, classes: Sequence[str]) -> LabelLike:
    found: dict[frozenset[str], float] = {}
    at = 0
    while at < len(text):
        match = _MASS.match(text, at)
        mass = None if match is None else finite_number(match[2])
        if match is None or mass is None:
            raise ValueError(f"{text!r} is not of the form {{a|b}}:0.7 {{a}}:0.3")
        found[_class_names(match[1], classes)] = mass
        at = match.end()
    return found


def _parse_plausibilities(text: str, classes: Sequence[str]) -> dict[str, float] | None:
    """Read ``a:1 b:0.4``, where names may have blanks; None: it is nothing of the kind."""
    found: dict[str, float] = {}
    at = 0
    longest_first = sorted(classes, key=len, reverse=True)
    while at < len(text):
        name = next((name for name in longest_first if text.startswith(f"{name}:", at)), None)
        if name is None:
            return None
        at += len(name) + 1
        word = text[at:].split(None, 1)[0] if text[at:].strip() else ""
        if (value := finite_number(word)) is None:
            return None
        found[name] = value
        at += len(word)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found or None
