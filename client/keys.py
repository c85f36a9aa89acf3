"""The keys for labelling, by the same rule in the terminal and the browser."""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Final

UNSEEN_S: Final = 0.25
"""Seconds for which a query must have been visible, without key presses, before a key can answer it."""


@dataclass(frozen=True)
class Command:
    """An action of a labeller that has a key.

    Attributes
    ----------
    name
        Name of the command, for programs.
    key
        The key, unless a class has it.
    mark
        The key if a class has the other: a sign.
    label
        Short description, shown with the key.
    help
        Description in a sentence.
    also
        A second key of the command.
    """

    name: str
    key: str
    mark: str
    label: str
    help: str
    also: str = ""


COMMANDS: Final = (
    Command("set", "s", "+", "one of several", "It is one of several classes: press their keys, then Enter."),
    Command(
        "plausibilities",
        "u",
        "%",
        "weigh classes",
        "Give the plausibility of each class, from 0 to 1; 1 means that no evidence is against it.",
    ),
    Command(
        "grade",
        "d",
        "-",
        "how sure",
        "Change how sure your next answer is: sure, rather sure, only a guess. Then press the key of the class.",
    ),
    Command(
        "refuse", "r", "/", "nobody can tell", "The class cannot be known. The row is not queried again."
    ),
    Command(
        "skip", "k", ">", "I cannot tell", "The row goes to other labellers, and you do not get it again."
    ),
    Command(
        "postpone", "p", ";", "later", "Not now. The row comes back in ten minutes, to you or somebody else."
    ),
    Command("comment", "c", '"', "comment", "Write a line that is kept with your next answer."),
    Command(
        "neighbours",
        "n",
        "=",
        "rows like it",
        "Show the rows of known class that are most like this one.",
    ),
    Command(
        "guidelines",
        "h",
        "#",
        "guidelines",
        "Show the guidelines of this model, and example rows of its classes.",
    ),
    Command(
        "zoom",
        "v",
        ".",
        "enlarge",
        "Show all of the item: its picture in the whole window, or at a terminal all values and the whole reason.",
    ),
    Command(
        "back",
        "b",
        "<",
        "undo",
        "Go back to your last answer: give another, or take it back.",
        "z",
    ),
    Command("own_answers", "a", "*", "my answers", "List your answers, and correct one of them."),
    Command("words", "w", ":", "words", "Explain the words on this screen."),
    Command("help", "?", "?", "help", "Show this list."),
    Command("quit", "q", "!", "quit", "Stop. The row is given back at once."),
)
"""The commands, in the order in which they are shown."""

KEY_RULE: Final = (
    "A class whose name is one letter, digit or sign has that key. Any other class has the digit that stands alone in "
    "its name, else the first letter of its name that no class before it has, else a digit. A command whose letter is "
    "the key of a class has a sign."
)

_MARKS: Final = "".join(command.mark for command in COMMANDS)
_COMMAND_LETTERS: Final = "".join(command.key + command.also for command in COMMANDS if command.key.isalpha())
_DIGITS: Final = "1234567890"
_LETTERS: Final = (
    "".join(each for each in string.ascii_lowercase if each not in _COMMAND_LETTERS) + _COMMAND_LETTERS
)
_KEYBOARD: Final = (
    string.ascii_uppercase
    + _LETTERS
    + _DIGITS
    + "".join(each for each in string.punctuation if each not in _MARKS)
    + _MARKS
)
"""The 94 characters on every keyboard, more than classes and commands need, in order of preference."""
_LONE_DIGIT: Final = re.compile(r"(?<![0-9])0*([0-9])(?![0-9])")


@dataclass(frozen=True)
class Grade:
    """A grade of certainty of a labeller.

    Attributes
    ----------
    name
        Name of the grade.
    others
        Plausibility of every other class, in [0, 1]; that of the named class is 1.
    """

    name: str
    others: float

    def label(self, name: str, classes: Sequence[str]) -> str | dict[str, float]:
        """Return the label that names a class with this certainty.

        Examples
        --------
        >>> [grade.label("a", ("a", "b")) for grade in GRADES]
        ['a', {'a': 1.0, 'b': 0.3}, {'a': 1.0, 'b': 0.7}]
        """
        return name if self.others == 0 else {each: 1.0 if each == name else self.others for each in classes}


GRADES: Final = (Grade("sure", 0.0), Grade("rather sure", 0.3), Grade("only a guess", 0.7))
"""The grades from the surest on, which is the default."""


@dataclass(frozen=True)
class LabellingKeys:
    """The keys of a model's classes and of the commands; all are different.

    Parameters
    ----------
    names
        The classes, in declared order.
    classes
        For each class its key, then its alternatives: the other case of its letter, and its name if that is a single
        character.
    commands
        The keys of each command, by its name.
    """

    names: tuple[str, ...]
    classes: tuple[tuple[str, ...], ...]
    commands: Mapping[str, tuple[str, ...]]

    def class_of(self, key: str) -> str | None:
        """Return the class of a key; ``None`` if there is none."""
        return next((name for name, keys in zip(self.names, self.classes, strict=True) if key in keys), None)

    def command_of(self, key: str) -> str | None:
        """Return the name of the command of a key; ``None`` if there is none."""
        return next(
            (each.name for each in COMMANDS if key in self.commands[each.name]),
            None,
        )

    def class_keys(self) -> list[tuple[str, str]]:
        """Return the key of each class, with the class."""
        return [(keys[0], name) for keys, name in zip(self.classes, self.names, strict=True)]

    def command_keys(self) -> list[tuple[str, Command]]:
        """Return the key of each command, with the command."""
        return [(self.commands[each.name][0], each) for each in COMMANDS]


@lru_cache(maxsize=256)
def labelling_keys(classes: tuple[str, ...]) -> LabellingKeys:
    """Return the keys for classes in declared order, by `KEY_RULE`.

    A class added after the others does not change the keys of other classes, unless its name is such a key.

    Parameters
    ----------
    classes
        At most 64 names, none twice.

    Examples
    --------
    >>> [keys[0] for keys in labelling_keys(("Barolo", "Grignolino", "Barbera")).classes]
    ['b', 'g', 'a']
    >>> labelling_keys(("0", "10", "5")).class_keys()
    [('0', '0'), ('1', '10'), ('5', '5')]
    >>> labelling_keys(("skunk", "fox")).commands["set"]
    ('+',)
    """
    shown = _choose_class_keys(classes)
    own = {key: name for name, key in shown.items()} | {name: name for name in classes if len(name) == 1}
    cases = {
        each: name
        for name, key in shown.items()
        for each in (key.swapcase(), name.swapcase())
        if len(each) == 1 and each not in own
    }
    commands = _choose_command_keys(frozenset(own), frozenset(cases))
    of_commands = frozenset(key for keys in commands.values() for key in keys)
    meanings = own | {key: name for key, name in cases.items() if key not in of_commands}
    of_classes = tuple(
        (shown[name], *(key for key, of in meanings.items() if of == name and key != shown[name]))
        for name in classes
    )
    return LabellingKeys(classes, of_classes, MappingProxyType(commands))


def _choose_class_keys(classes: tuple[str, ...]) -> dict[str, str]:
    """Return the key shown for each class, whether classes are declared at once or added later."""
    chosen: dict[str, str] = {}
    for name in classes:
        if len(name) == 1 and name in _KEYBOARD:
            moved = [other for other, key in chosen.items() if key.lower() == name.lower() and other != key]
            chosen[name] = name
        else:
            moved = [name]
        for each in moved:
            taken = {key for other, key in chosen.items() if other != each}
            lower = {key.lower() for key in taken}
            wished = (key for key in _wished_keys(each) if key not in lower)
            chosen[each] = next(wished, None) or next(key for key in _KEYBOARD if key not in taken)
    return chosen


def _wished_keys(name: str) -> Iterator[str]:
    """Yield keys for a class whose name has several characters, best first; letters in lower case, without accents."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    own = [each for each in plain if each in _KEYBOARD]
    yield from _LONE_DIGIT.findall(plain)
    yield from (each for each in own if each.isalpha())
    yield from (each for each in own if each.isdigit())
    if not any(each.isalpha() for each in own):
        yield from own
    if any(each.isdigit() for each in own):  # another digit would be misleading
        yield from _LETTERS
    yield from _DIGITS
    yield from _LETTERS


def _choose_command_keys(taken: frozenset[str], avoided: frozenset[str]) -> dict[str, tuple[str, ...]]:
    """Return the keys of the commands: never taken ones, and avoided ones only if there are no others."""
    chosen: dict[str, tuple[str, ...]] = {}
    for command in COMMANDS:
        letters = tuple(key for key in (command.key, command.also) if key and key not in taken | avoided)
        chosen[command.name] = letters or tuple(key for key in command.mark if key not in taken)
    for name, keys in chosen.items():
        if not keys:
            used = taken.union(*chosen.values())
            left = [key for key in reversed(_KEYBOARD) if key not in used]
            chosen[name] = (next((key for key in left if key not in avoided), left[0]),)
    return chosen


def aria_shortcut(keys: tuple[str, ...]) -> str:
    """Return the value of ``aria-keyshortcuts`` for keys that mean the same.

    Examples
    --------
    >>> aria_shortcut(("b", "B")), aria_shortcut(("+",)), aria_shortcut(("X",))
    ('b', 'Plus', 'Shift+X')
    """
    spoken = []
    for key in keys:
        if key.swapcase() != key and key.lower() in keys and key.isupper():
            continue  # the lower-case key covers it
        spoken.append("Plus" if key == "+" else f"Shift+{key}" if key.isupper() else key)
    return " ".join(spoken)
