r"""Labels as text: the grammar for all files, commands and screens.

.. code-block:: text

    label          = "?"                                      nothing is known
                   | name                                     a class
                   | name "|" name ...                        a set: one of these classes
                   | name ":" number " " name ":" number ...  plausibilities; a class left out is impossible
                   | "{" set "}:" number ...                  masses of sets, with blanks between them

In a name, special characters have a backslash before them: ``\\``, ``\|``, ``\{``, ``\}``; ``\?`` is the class named
``?``; a colon before a number is ``\:``. Control characters, line ends, and blanks at the ends of a name are
``\uXXXX``. A backslash before any other character stands for itself.

A text that does not follow the grammar, or contains something that is not a class, may still be the name of a class:
``R|B`` is the set of R and B if both are classes, and otherwise the class ``R|B``. Writers escape special characters,
so that the text does not depend on the classes.

A class is found by any spelling of its value (`quercus.specification.values`): ``true`` by ``TRUE``, ``1`` by ``1.0``.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from quercus.belief.errors import shown
from quercus.specification.values import NOTHING, NUMBER, Spellings, finite_number

SET: Final = "|"
"""Separator of the classes of a set."""

Label = str | frozenset[str] | dict[str, float] | dict[frozenset[str], float] | None
"""The meaning of a text: a class, a set, plausibilities by class, masses by set, or nothing."""
_SIGNS: Final = frozenset("\\|{}")
_MEANT: Final = re.compile(r"[\\|{}:?]")
_INVISIBLE: Final = frozenset({"Cc", "Cs", "Zl", "Zp"})
_ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|([\\|{}:?]))")
_COLON_OF_NUMBER: Final = re.compile(r":(?=[+\-.\d])", re.ASCII)
_NAME: Final = r"(?:\\.|[^\\{}])+?"
_PLAUSIBILITY: Final = re.compile(rf"({_NAME}):({NUMBER.pattern})(?:\s+|\Z)", re.ASCII | re.DOTALL)
_MASS: Final = re.compile(rf"\{{({_NAME})\}}:(\S+)(?:\s+|\Z)", re.DOTALL)
_PART: Final = re.compile(r"(?:\\.|\\\Z|[^\\|])*", re.DOTALL)


class UnknownClassError(ValueError):
    """A text contains something that is not a class."""


def write_name(name: str) -> str:
    r"""Return the name of a class as written in the text of a label.

    Examples
    --------
    >>> print(*map(write_name, ["red", "R|B", "?", "a{1}", "HP:0001", "to: do", " a"]), sep="   ")
    red   R\|B   \?   a\{1\}   HP\:0001   to: do   \u0020a
    """
    if name == NOTHING:
        return "\\?"
    ends = len(name) - len(name.lstrip()), len(name.rstrip())
    escaped = "".join(
        f"\\u{ord(sign):04x}"
        if not ends[0] <= at < ends[1] or unicodedata.category(sign) in _INVISIBLE
        else f"\\{sign}"
        if sign in _SIGNS
        else sign
        for at, sign in enumerate(name)
    )
    return _COLON_OF_NUMBER.sub(r"\\:", escaped)


def write_set(names: Iterable[str]) -> str:
    """Return a set of classes as text, in the given order."""
    return SET.join(map(write_name, names))


def write_label(
    label: str
    | Collection[str]
    | Mapping[str, float]
    | Mapping[tuple[str, ...], float]
    | Mapping[frozenset[str], float]
    | None,
) -> str:
    r"""Return the text of a label: a class, a set, plausibilities by class, masses by sets, or None for no information.

    Examples
    --------
    >>> print(write_label("R|B"), write_label(["R", "B"]), write_label({"R": 1.0, "B": 0.4}), write_label(None))
    R\|B R|B R:1.0 B:0.4 ?
    >>> write_label({("R", "B"): 0.7, ("R",): 0.3})
    '{R|B}:0.7 {R}:0.3'
    """
    if label is None:
        return NOTHING
    if isinstance(label, str):
        return write_name(label)
    if not isinstance(label, Mapping):
        return write_set(_ordered(label))
    return " ".join(
        f"{write_name(key) if isinstance(key, str) else f'{{{write_set(_ordered(key))}}}'}:{float(value)!r}"
        for key, value in label.items()
    )


def _ordered(names: Collection[str]) -> Iterable[str]:
    """Return the names of a set in a fixed order."""
    return sorted(names) if isinstance(names, frozenset) else names


def read_name(text: str) -> str:
    r"""Return the name of a class from its text; special characters without a backslash stand for themselves.

    Examples
    --------
    >>> print(read_name(r"R\|B"), read_name("R|B"), read_name(r"C:\new"), read_name(r" \u0020a "), sep=",")
    R|B,R|B,C:\new, a
    """
    return _ESCAPE.sub(lambda found: found[2] or chr(int(found[1], 16)), text.strip())


def set_parts(text: str) -> tuple[str, ...]:
    r"""Return the classes of a set, each once.

    Examples
    --------
    >>> set_parts("cat | dog|cat"), set_parts("cat"), set_parts(r"R\|B|R")
    (('cat', 'dog'), ('cat',), ('R|B', 'R'))
    """
    if "\\" not in text:  # most have none
        return tuple(dict.fromkeys(map(str.strip, text.split(SET))))
    parts, at = [], 0
    while at <= len(text):
        found = _PART.match(text, at)
        end = at if found is None else found.end()
        parts.append(read_name(text[at:end]))
        at = end + 1
    return tuple(dict.fromkeys(parts))


def read_class_set(text: str, classes: Collection[str]) -> str | frozenset[str]:
    r"""Return the class or the set that a text names.

    Raises
    ------
    ValueError
        If it contains something that is not a class; an `UnknownClassError` unless only the separator is wrong.

    Examples
    --------
    >>> read_class_set(r"R\|B", ("R", "B", "R|B")), sorted(read_class_set("R|B", ("R", "B", "R|B")))
    ('R|B', ['B', 'R'])
    >>> read_class_set("R|B", ("R|B", "G"))
    'R|B'
    """
    text = text.strip()
    names = set_parts(text)
    known = [_class_of(name, classes) for name in names]
    found = [name for name in known if name is not None]
    if len(found) == len(names):
        return found[0] if len(set(found)) == 1 else frozenset(found)
    if (whole := _class_of(text, classes)) is not None:
        return whole
    strangers = [name for name, each in zip(names, known, strict=True) if each is None]
    where = "" if len(names) == 1 else f"in {shown(text)}: "
    said = (
        f"{', '.join(map(repr, strangers))} {'is not a class' if len(strangers) == 1 else 'are not classes'}"
    )
    reason = f"{where}{said}; the classes are {_listed_classes(classes)}"
    if (written := _with_other_sign(text, classes)) is not None:
        raise ValueError(f"{reason}; one of several classes is written {written}")
    raise UnknownClassError(reason)


def _class_of(name: str, classes: Collection[str]) -> str | None:
    """Return the class that a name means, in its own spelling; None if it is unknown."""
    return name if name in classes else _spellings(tuple(classes)).of(name)


@lru_cache(maxsize=64)
def _spellings(classes: tuple[str, ...]) -> Spellings:
    return Spellings(classes)


def read_label(text: str, classes: Sequence[str]) -> Label:
    r"""Return the label that a text describes.

    Raises
    ------
    ValueError
        For an invalid text; it names the error. `UnknownClassError` if a name is not a class.

    Examples
    --------
    >>> read_label("red", ["red", "white"]), sorted(read_label("red|white", ["red", "white"]))
    ('red', ['red', 'white'])
    >>> read_label("red:1 white:0.4", ["red", "white"]), read_label("?", ["red", "white"])
    ({'red': 1.0, 'white': 0.4}, None)
    >>> {write_set(sorted(s)): m for s, m in read_label("{red|white}:.3 {red}:.7", ["red", "white"]).items()}
    {'red|white': 0.3, 'red': 0.7}
    """
    text = text.strip()
    if text in classes and _MEANT.search(text) is None:
        return text  # the fast path, for most rows
    if text in ("", NOTHING):
        return None
    if text.startswith("{"):
        return text if text in classes else _read_masses(text, classes)
    found = _read_plausibilities(text, classes)
    return read_class_set(text, classes) if found is None else found


def _read_masses(text: str, classes: Collection[str]) -> dict[frozenset[str], float]:
    found: dict[frozenset[str], float] = {}
    at = 0
    while at < len(text):
        match = _MASS.match(text, at)
        mass = None if match is None else finite_number(match[2])
        if match is None or mass is None:
            reason = f"{shown(text)} is not of the form {{a|b}}:0.7 {{a}}:0.3"
            if (written := _set_in_braces(text, classes)) is not None:
                reason = f"{reason}; without masses it is written {written}"
            raise ValueError(reason)
        named = read_class_set(match[1], classes)
        names = frozenset([named]) if isinstance(named, str) else named
        if names in found:
            raise ValueError(f"{shown(text)} has two masses for {{{write_set(sorted(names))}}}")
        found[names] = mass
        at = match.end()
    return found


def _read_plausibilities(text: str, classes: Collection[str]) -> dict[str, float] | None:
    """Read ``a:1 b:0.4``, where names may have blanks; return None for any other text."""
    found: dict[str, float] = {}
    at = 0
    while at < len(text):
        match = _PLAUSIBILITY.match(text, at)
        if match is None:
            return None
        written = (read_name(match[1]), match[1].strip())
        name = next((each for said in written if (each := _class_of(said, classes)) is not None), None)
        if name is None or not math.isfinite(float(match[2])):
            return None
        if name in found:
            raise ValueError(f"{shown(text)} has two plausibilities for {write_name(name)}")
        found[name] = float(match[2])
        at = match.end()
    return found or None


def _set_in_braces(text: str, classes: Collection[str]) -> str | None:
    """Return the correct text of a set that is written in braces like masses; None for any other text."""
    inner = text.removeprefix("{").removesuffix("}").strip()
    found = [_class_of(name, classes) for name in set_parts(inner)]
    known = [name for name in found if name is not None]
    return write_set(known) if len(known) == len(found) else _with_other_sign(inner, classes)


def _with_other_sign(text: str, classes: Collection[str]) -> str | None:
    """Return the correct text of a set with another separator; None for any other text."""
    for sign in "#;,/":
        parts = [part.strip() for part in text.split(sign)]
        found = [each for part in parts if (each := _class_of(part, classes)) is not None]
        if 1 < len(parts) == len(found):
            return write_set(found)
    return None


def _listed_classes(classes: Collection[str], most: int = 12) -> str:
    names = list(classes)
    return ", ".join(names[:most]) + (f", ... ({len(names):,} in all)" if len(names) > most else "")
