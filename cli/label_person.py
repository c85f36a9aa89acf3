"""A person who answers queries with single keys."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Self

from rich.console import Console

from quercus.cli.label_screen import CLASS_KEYS, HELP, prompt, query_screen, set_line, show
from quercus.cli.terminal import END, ENTER, ESCAPE, Keys, keys
from quercus.client.client import Client
from quercus.client.labels import LabelLike
from quercus.client.results import Query


@dataclass(frozen=True)
class CannotTell:
    """Nobody can tell."""


@dataclass(frozen=True)
class Quit:
    """No more."""


@dataclass(frozen=True)
class Skip:
    """Not for me."""


@dataclass(frozen=True)
class Postpone:
    """Not now."""


@dataclass(frozen=True)
class EditEarlier:
    """Another answer to an earlier query; a refusal takes it back."""

    query: Query
    answer: LabelLike | CannotTell


Answer = LabelLike | CannotTell | Skip | Postpone | EditEarlier


_ENDINGS: dict[str, tuple[str, CannotTell | Skip | Postpone | Quit]] = {
    "r": ("refused", CannotTell()),
    "k": ("skipped", Skip()),
    "p": ("postponed", Postpone()),
    "q": ("left", Quit()),
    END: ("left", Quit()),
}


class TerminalLabeller:
    """Shows queries at a terminal and reads the answers; a context manager, in which keys do not echo.

    Parameters
    ----------
    client
        For how many answers are spent.
    console
        Where to show.
    """

    def __init__(self, client: Client, console: Console) -> None:
        self._client = client
        self._console = console
        self._stack = ExitStack()
        self._asked: Query | None = None
        self._last: Query | None = None  # what was answered or refused last
        self._comment = ""

    def __enter__(self) -> Self:
        self._keyboard = self._stack.enter_context(keys(self._show_prompt))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask(self, query: Query) -> Answer | Quit:
        """Show a query until it is answered, refused, skipped, postponed or left, or an earlier answer is corrected."""
        model = self._client.get_model(query.model)
        self._console.print()
        show(self._console, query_screen(query, model, self._console.width))
        self._keyboard.forget()  # what was typed before the row was to be seen is no answer to it
        self._asked = query
        while True:
            self._show_prompt()
            answer = self._one(query, self._keyboard)
            if answer is not None:
                self._asked = None
                if not isinstance(answer, Skip | Postpone | Quit | EditEarlier):
                    self._last = query
                return answer

    def comment(self) -> str:
        """The comment that was typed since the last call."""
        comment, self._comment = self._comment, ""
        return comment

    def _show_prompt(self) -> None:
        if self._asked is not None:
            self._console.print(prompt(self._asked, self._console.width))

    def _one(self, query: Query, keyboard: Keys) -> Answer | Quit:
        """Return the result of one key; ``None``: ask again."""
        key = keyboard.read()
        by_key = dict(zip(CLASS_KEYS, query.classes, strict=False))
        if key in by_key:
            self._say(by_key[key])
            return by_key[key]
        if key == "s":
            return self._set(query, keyboard, by_key)
        if key == "u":
            return self._plausibilities(query, keyboard)
        if key in _ENDINGS:
            word, ending = _ENDINGS[key]
            self._say(word)
            return ending
        if key == "b":
            return self._back()
        if key == "c":
            self._comment = self._typed_comment(keyboard)
        elif key == "?":
            self._console.print(HELP, style="cyan")
        elif key.isprintable():
            self._console.print(f"{key!r} means nothing here; ? explains", style="yellow", markup=False)
        return None

    def _back(self) -> EditEarlier | None:
        """Ask about the last answer once more; None: there is none, or it was left as it is."""
        if self._last is None:
            self._console.print("there is no earlier answer in this session", style="yellow")
            return None
        query, self._last = self._last, None
        self._console.print(
            f"\nback to instance {query.instance}: another answer, or r to take it back; k leaves it as it is",
            style="cyan",
            markup=False,
        )
        now = self._asked
        answer = self.ask(query)
        self._asked = now
        if isinstance(answer, Skip | Postpone | Quit | EditEarlier):
            self._last = query
            return None
        self._last = None if isinstance(answer, CannotTell) else query
        return EditEarlier(query, answer)

    def _typed_comment(self, keyboard: Keys) -> str:
        self._console.print("A comment for your next answer; Escape goes back.")
        line = keyboard.line("> ")
        return self._comment if line is None else line.strip()

    def _set(self, query: Query, keyboard: Keys, by_key: dict[str, str]) -> LabelLike:
        chosen: list[str] = []
        while True:
            self._console.print(set_line(query, chosen, self._console.width))
            key = keyboard.read()
            if key in (ESCAPE, END):
                return None
            if key == ENTER and chosen:
                self._say(" or ".join(name for name in query.classes if name in chosen))
                return frozenset(chosen)
            name = by_key.get(key)
            if name is None:
                continue
            chosen = [each for each in chosen if each != name] if name in chosen else [*chosen, name]

    def _plausibilities(self, query: Query, keyboard: Keys) -> LabelLike:
        self._console.print(
            f"How plausible is each class, from 0 to 1? {len(query.classes)} numbers, for "
            f"{', '.join(query.classes)}; e.g. {_example(len(query.classes))}. Escape goes back.",
            markup=False,
        )
        while (line := keyboard.line("> ")) is not None:
            numbers = parse_plausibilities(line, len(query.classes))
            if isinstance(numbers, str):
                self._console.print(numbers, style="yellow", markup=False)
                continue
            self._say(", ".join(f"{name} {x:g}" for name, x in zip(query.classes, numbers, strict=True)))
            return dict(zip(query.classes, numbers, strict=True))
        return None

    def _say(self, text: str) -> None:
        self._console.print(f"→ {text}", style="bold green", markup=False)


def parse_plausibilities(line: str, size: int) -> list[float] | str:
    """Numbers typed with blanks or commas between them, or what is wrong with them.

    Examples
    --------
    >>> parse_plausibilities("1 .5 0", 3)
    [1.0, 0.5, 0.0]
    >>> parse_plausibilities("1 2", 2)
    '2 is not between 0 and 1'
    """
    words = line.replace(",", " ").split()
    if len(words) != size:
        return f"{size} numbers are needed, there are {len(words)}"
    numbers: list[float] = []
    for word in words:
        try:
            value = float(word)
        except ValueError:
            return f"{word!r} is not a number"
        if not 0.0 <= value <= 1.0:
            return f"{word} is not between 0 and 1"
        numbers.append(value)
    if not any(numbers):
        return "all are 0, but some class must be possible; press r (after Escape) if nobody can tell"
    return numbers


def _example(size: int) -> str:
    return " ".join(["1", "0.5", *["0"] * (size - 2)][:size])
