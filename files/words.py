"""Labels in words, as files and screens have them.

A class ``a``, a set ``a|b``, plausibilities ``a:1 b:0.4`` (a class left out is impossible), masses
``{a|b}:0.7 {a}:0.3``; ``?`` where nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

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
