"""The keys with which a person labels: one list for the terminal and the browser."""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final

UNSEEN_S: Final = 0.25
"""Keys pressed sooner after a query is shown are no answer to it: the labeller cannot have read it."""


@dataclass(frozen=True)
class Command:
    """A key and its effect.

    Attributes
    ----------
    name
        Name of the command, for programs.
    key
        The key to press.
    label
        In a word or two, beside the key.
    help
        In a sentence.
    also
        A second key for the same.
    """

    name: str
    key: str
    label: str
    help: str
    also: str = ""


COMMANDS: Final = (
    Command("set", "s", "several", "It is one of several classes: press their keys, then Enter."),
    Command(
        "plausibilities",
        "u",
        "uncertain",
        "Give the plausibility of each class, from 0 to 1; 1 means that no evidence is against it.",
    ),
    Command("refuse", "r", "refuse", "The class cannot be known. The row is not queried again."),
    Command("skip", "k", "skip", "Not for me. Other labellers get the row, and you do not get it again."),
    Command("postpone", "p", "later", "Not now. The row comes back in ten minutes, to you or somebody else."),
    Command("comment", "c", "comment", "Write a line that is kept with your next answer."),
    Command(
        "neighbours", "n", "neighbours", "Show the rows of known class that are most similar to this one."
    ),
    Command("back", "b", "back", "Go back to your last answer: give another, or take it back with r.", "z"),
    Command("own_answers", "a", "my answers", "List your answers, and correct one of them."),
    Command("words", "w", "words", "Explain the words on this screen."),
    Command("help", "?", "help", "Show this list."),
    Command("quit", "q", "quit", "Stop. The row is given back at once."),
)
"""The commands, in the order in which they are shown."""

BACK_KEYS: Final = frozenset(
    key for command in COMMANDS if command.name == "back" for key in (command.key, command.also)
)
_TAKEN: Final = {key for command in COMMANDS for key in (command.key, command.also)}
CLASS_KEYS: Final = (
    "123456789"
    + "".join(c for c in string.ascii_lowercase if c not in _TAKEN)
    + string.ascii_uppercase
    + "0!@#$%&*+=~-:;,/"
)
"""A key for each of up to 64 classes: digits, then letters that are no commands."""


def command_of(key: str) -> Command | None:
    """Return the command of a key; ``None`` where it has none.

    Examples
    --------
    >>> command_of("z").name, command_of("x")
    ('back', None)
    """
    return next((command for command in COMMANDS if key in {command.key, command.also} and key), None)


def class_of(key: str, classes: tuple[str, ...]) -> str | None:
    """Return the class of a key; ``None`` where it has none.

    Examples
    --------
    >>> class_of("2", ("ill", "well")), class_of("3", ("ill", "well"))
    ('well', None)
    """
    return dict(zip(CLASS_KEYS, classes, strict=False)).get(key)
