"""A person at a terminal who answers queries with single keys."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from typing import Self

from rich.console import Console, RenderableType

from quercus.cli.label_queue import TerminalQueue
from quercus.cli.terminal import END, ENTER, ESCAPE, open_keyboard
from quercus.client.answers import AnswerFilter
from quercus.client.client import Client
from quercus.client.errors import QuercusError
from quercus.client.guess import guess_of
from quercus.client.keys import GRADES, UNSEEN_S, labelling_keys
from quercus.client.labels import LabelLike
from quercus.client.results import Answer as GivenAnswer
from quercus.client.results import Query
from quercus.specification.bounds import MAX_COMMENT_CHARACTERS
from quercus.view.answers import CANNOT_TELL
from quercus.view.terminal.queries import (
    MOST_KEYS,
    TERMS_TEXT,
    answer_list,
    answer_screen,
    guidance_parts,
    help_text,
    neighbour_list,
    print_parts,
    prompt_line,
    query_screen,
    set_line,
)

OWN_ANSWERS = 20
"""Number of own answers in the list."""
SENT_POLL_S = 0.2
"""Seconds between two checks for notices and signals."""


class Reply(Enum):
    """A reply other than a label, with the word that confirms it."""

    CANNOT_TELL = "refused"
    SKIP = "skipped"
    POSTPONE = "postponed"
    QUIT = "left"
    TAKEN_BACK = "taken back"  # the last answer was not sent yet, and its query is asked again


Answer = LabelLike | Reply


@dataclass(frozen=True)
class EditEarlier:
    """A replacement for an earlier answer; ``Reply.CANNOT_TELL`` retracts it."""

    earlier: Query | GivenAnswer
    model: str
    answer: Answer


_REPLIES = {
    "refuse": Reply.CANNOT_TELL, "skip": Reply.SKIP, "postpone": Reply.POSTPONE, "quit": Reply.QUIT,
}  # fmt: skip


class TerminalLabeller:
    """Shows queries at a terminal and reads the answers. A context manager, within which keys are not echoed.

    Parameters
    ----------
    client
        The client, which fetches the labeller's own answers and neighbours.
    queue
        The source of queries, which also keeps answers that are not sent yet.
    console
        The console to draw on.

    Attributes
    ----------
    answer_text : str
        The last answer in words.
    took_s : float
        Seconds from the screen of a query to the key of its answer.
    """

    def __init__(self, client: Client, queue: TerminalQueue, console: Console) -> None:
        self._client, self._queue, self._console = client, queue, console
        self._stack = ExitStack()
        self._guess: tuple[int, float] | None = None
        self._grade = GRADES[0]
        self._classes: tuple[str, ...] = ()  # classes of the current query; empty if there is none
        # the last query that was answered or refused, and the reply
        self._last: tuple[Query, str] | None = None
        self._shown_at = self._readable_at = 0.0
        self._comment = self.answer_text = ""
        self.took_s = 0.0

    def __enter__(self) -> Self:
        self._keyboard = self._stack.enter_context(open_keyboard(self._show_prompt, self._on_tick))
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def ask_query(self, query: Query) -> Answer | EditEarlier:
        """Show a query until it is answered, refused, skipped, postponed or left, or an earlier answer is changed."""
        self._show_query(query)
        since = self._shown_at
        answer = self._read_answer(query.classes, query)
        if answer is Reply.CANNOT_TELL or not isinstance(answer, Reply | EditEarlier):
            self._last = query, self.answer_text
        self.took_s = time.monotonic() - since
        return answer

    def wait_for_query(self, query_s: float) -> Query | None:
        """Return the next query, or ``None`` after ``query_s`` seconds; show the notices of that time."""
        query = self._queue.next_query(query_s)
        self.show_notices()
        return query

    def send_all(self) -> None:
        """Wait until the server has all answers."""
        while not self._queue.is_sent(SENT_POLL_S):
            self.show_notices()
        self.show_notices()

    def show_notices(self) -> bool:
        """Show notices from the background threads; return whether there were any."""
        notices = self._queue.take_notices()
        for text, style in notices:
            self._console.print(text, style=style)
        return bool(notices)

    def _on_tick(self, quietly: bool) -> None:
        self._queue.note_key_press(self._keyboard.pressed_at)
        if quietly:
            self._queue.raise_interrupt()
        elif self.show_notices():
            self._show_prompt()

    def _show_query(self, query: Query) -> None:
        """Show as much of a query as fits on the screen."""
        model = self._queue.counted_model(query.model)
        self._show_parts(query_screen(query, model, self._console.width, self._console.height))

    def _show_parts(self, parts: Sequence[RenderableType]) -> None:
        """Show something to answer; keys typed before it appeared are ignored."""
        self._console.print()
        print_parts(self._console, parts)
        self._keyboard.drop_typed()
        self._shown_at = time.monotonic()
        self._readable_at = self._shown_at + UNSEEN_S

    def _read_answer(self, classes: tuple[str, ...], asked: Query | None) -> Answer | EditEarlier:
        """Read keys until they make an answer; ``asked`` is None while an earlier answer is corrected."""
        outer, self._classes = self._classes, classes
        self._guess = None if asked is None else guess_of(asked, self._queue.counted_model(asked.model))
        self._grade = GRADES[0]
        try:
            while True:
                self._show_prompt()
                answer = self._handle_key(classes, asked)
                if answer is not None:
                    return answer
        finally:
            self._classes = outer

    def take_comment(self) -> str:
        """Return the comment that was typed since the last call."""
        comment, self._comment = self._comment, ""
        return comment

    def _show_prompt(self) -> None:
        if self._classes:
            line = prompt_line(self._classes, self._console.width, self._guess, self._grade)
            self._console.print(line)

    def _handle_key(self, classes: tuple[str, ...], asked: Query | None) -> Answer | EditEarlier:
        """Return the result of one key that is meant for the query shown; ``None``: ask again.

        A key that comes too early postpones the time from which keys count. Only the key that goes back counts at
        once: it is about the previous query.
        """
        keys = labelling_keys(classes)
        while True:
            key = self._keyboard.read_key()
            if key == END or keys.command_of(key) == "back" or time.monotonic() >= self._readable_at:
                break
            self._readable_at = time.monotonic() + UNSEEN_S  # held down, or meant for the previous screen
        command = "quit" if key == END else keys.command_of(key)
        if command is None:
            name = keys.class_of(key)
            if name is None and key == ENTER and self._guess is not None:
                name = classes[self._guess[0]]
            if name is not None:
                sure = "" if self._grade is GRADES[0] else f" ({self._grade.name})"
                self._echo_answer(name + sure)
                return self._grade.label(name, classes)
            if key.isprintable():
                self._print_warning(f"{key!r} has no meaning here; {keys.commands['help'][0]} shows the keys")
            return None
        if command in _REPLIES:
            reply = _REPLIES[command]
            self._echo_answer(reply.value)
            return reply
        if asked is None and command in {"back", "own_answers", "neighbours", "guidelines"}:
            self._print_warning(
                f"finish this correction first; {keys.commands['skip'][0]} leaves it as it is"
            )
            return None
        actions: dict[str, Callable[[], Answer | EditEarlier]] = {
            "set": lambda: self._choose_set(classes),
            "plausibilities": lambda: self._type_plausibilities(classes),
            "back": self._go_back,
            "own_answers": lambda: None if asked is None else self._change_own_answer(asked),
            "comment": self._read_comment,
            "grade": self._change_grade,
            "zoom": lambda: None if asked is None else self._show_all(asked),
            "neighbours": lambda: None if asked is None else self._show_neighbours(asked),
            "guidelines": lambda: None if asked is None else self._show_guidelines(asked.model),
            "words": lambda: self._console.print(TERMS_TEXT, style="cyan"),
            "help": lambda: self._console.print(help_text(classes), style="cyan"),
        }
        return actions[command]()

    def _go_back(self) -> Answer | EditEarlier:
        """Take back the last answer, or ask for a replacement; None: there is none, or it is unchanged."""
        waiting = self._queue.take_back()
        if waiting is not None:
            self._last, self._comment = None, waiting.comment
            self._console.print(f"taken back before it was sent: {waiting.text}", style="cyan")
            return Reply.TAKEN_BACK
        if self._last is None:
            self._print_warning("there is no earlier answer in this session")
            return None
        query, previous = self._last
        self._show_query(query)
        answer = self._ask_again(query.classes, query.instance, previous)
        if answer is None:
            return None
        self._last = None if answer is Reply.CANNOT_TELL else (query, self.answer_text)
        return EditEarlier(query, query.model, answer)

    def _change_grade(self) -> None:
        """Lower the certainty of the next answer by one grade; after the lowest it is certain again."""
        self._grade = GRADES[(GRADES.index(self._grade) + 1) % len(GRADES)]

    def _show_all(self, asked: Query) -> None:
        """Show the whole query, however many lines it takes."""
        model = self._queue.counted_model(asked.model)
        print_parts(self._console, query_screen(asked, model, self._console.width))

    def _show_neighbours(self, asked: Query) -> None:
        try:
            neighbours = self._client.neighbours(asked)
        except QuercusError as error:
            self._print_warning(str(error))
            return
        if neighbours:
            self._console.print(neighbour_list(neighbours))
        else:
            self._print_warning("no row of known class was found")

    def _show_guidelines(self, name: str) -> None:
        try:
            model = self._client.get_model(name)
            examples = self._client.examples(name) if model.specification.guidance is not None else ()
        except QuercusError as error:
            self._print_warning(str(error))
            return
        parts = list(guidance_parts(model, examples))
        for each in parts:
            self._console.print(each)
        if not parts:
            self._print_warning("this model has no guidelines yet")

    def _change_own_answer(self, asked: Query) -> EditEarlier | None:
        """List the labeller's own answers and ask for a correction of one; None: nothing is changed."""
        own = AnswerFilter(labellers=[asked.labeller], kinds=["answered", "corrected", "refused", "stated"])
        self.send_all()
        newest = self._client.answers(
            asked.model, own, limit=OWN_ANSWERS, newest_first=True, with_values=True
        )
        try:
            answers = [answer for answer in newest if answer.later is None]
        except QuercusError as error:
            self._print_warning(str(error))
            return None
        if not answers:
            self._print_warning("you gave no answer yet")
            return None
        self._console.print(answer_list(answers))
        self._console.print("Type the number of an answer; Escape goes back.")
        line = self._keyboard.read_line("> ")
        if line is None:
            return None
        if not line.strip().isdecimal() or not 1 <= int(line) <= len(answers):
            self._print_warning(f"{line!r} is not a number from 1 to {len(answers)}")
            return None
        chosen = answers[int(line) - 1]
        self._show_parts(answer_screen(chosen, self._queue.counted_model(asked.model), self._console.width))
        answer = self._ask_again(asked.classes, chosen.instance, chosen.text)
        if answer is None:
            return None
        if self._last is not None and self._last[0].instance == chosen.instance:
            self._last = None  # it has been replaced
        return EditEarlier(chosen, asked.model, answer)

    def _ask_again(self, classes: tuple[str, ...], instance: str, previous: str) -> Answer:
        """Ask for another answer; None: the old one is unchanged."""
        commands = labelling_keys(classes).commands
        self._console.print(
            f"\nback to instance {instance}; your answer was: {previous or CANNOT_TELL}. Give another one, "
            f"or {commands['refuse'][0]} to take it back; {commands['skip'][0]} leaves it as it is",
            style="cyan",
        )
        answer = self._read_answer(classes, None)
        if isinstance(answer, EditEarlier) or (isinstance(answer, Reply) and answer is not Reply.CANNOT_TELL):
            return None
        return answer

    def _read_comment(self) -> None:
        self._console.print("A comment for your next answer; Escape goes back.")
        line = self._keyboard.read_line("> ", MAX_COMMENT_CHARACTERS)
        if line is not None:
            self._comment = line.strip()

    def _choose_set(self, classes: tuple[str, ...]) -> LabelLike:
        chosen: list[str] = []
        keys = labelling_keys(classes)
        while True:
            self._console.print(set_line(classes, chosen, self._console.width))
            key = self._keyboard.read_key()
            if key in (ESCAPE, END):
                return None
            if key == ENTER and chosen:
                self._echo_answer(" or ".join(name for name in classes if name in chosen))
                return frozenset(chosen)
            name = keys.class_of(key)
            if name is None:
                continue
            chosen = [each for each in chosen if each != name] if name in chosen else [*chosen, name]

    def _type_plausibilities(self, classes: tuple[str, ...]) -> LabelLike:
        if len(classes) > MOST_KEYS:
            first, second = (key for key, _ in labelling_keys(classes).class_keys()[:2])
            how = f"Class keys with numbers (other classes have 0); e.g. {first}=1 {second}=0.5"
        else:
            example = " ".join(["1", "0.5", *["0"] * (len(classes) - 2)][: len(classes)])
            how = f"{len(classes)} numbers, for {', '.join(classes)}; e.g. {example}"
        self._console.print(f"How plausible is each class, from 0 to 1? {how}. Escape goes back.")
        while (line := self._keyboard.read_line("> ")) is not None:
            numbers = parse_plausibilities(line, classes)
            if isinstance(numbers, str):
                self._print_warning(numbers)
                continue
            given = dict(zip(classes, numbers, strict=True))
            shown = {name: x for name, x in given.items() if x or len(classes) <= MOST_KEYS}
            self._echo_answer(", ".join(f"{name} {x:g}" for name, x in shown.items()))
            return given
        return None

    def _print_warning(self, text: str) -> None:
        self._console.print(text, style="yellow")

    def _echo_answer(self, text: str) -> None:
        self.answer_text = text
        self._console.print(f"→ {text}", style="bold green")


def parse_plausibilities(line: str, classes: tuple[str, ...]) -> list[float] | str:
    """Return the number of each class, or an error message.

    The line has either all numbers, separated by blanks or commas, or some of them as KEY=NUMBER or NAME=NUMBER; the
    other classes have 0.

    Examples
    --------
    >>> parse_plausibilities("1 .5 0", ("red", "blue", "10"))
    [1.0, 0.5, 0.0]
    >>> parse_plausibilities("10=1 b=.5", ("red", "blue", "10"))
    [0.0, 0.5, 1.0]
    >>> parse_plausibilities("1 2", ("red", "blue"))
    '2 is not between 0 and 1'
    """
    keys = labelling_keys(classes)
    words: dict[int, str] = {}  # by the position of the class
    if "=" in line:
        for pair in line.split():
            key, _, word = pair.rpartition("=")
            name = key if key in classes else keys.class_of(key)
            if name is None:
                return f"{pair!r} is not a class key with a number, as in {keys.classes[0][0]}=0.5"
            if classes.index(name) in words:
                return f"{pair!r} is a second number for {name}"
            words[classes.index(name)] = word
    else:
        words = dict(enumerate(line.replace(",", " ").split()))
        if len(words) != len(classes):
            return f"{len(classes)} numbers are needed, there are {len(words)}"
    numbers = [0.0] * len(classes)
    for place, word in words.items():
        try:
            numbers[place] = float(word if "_" not in word else "")
        except ValueError:
            return f"{word!r} is not a number"
        if not 0.0 <= numbers[place] <= 1.0:
            return f"{word} is not between 0 and 1"
    if not any(numbers):
        refuse = keys.commands["refuse"][0]
        return f"all are 0, but at least one class must be possible; press {refuse} (after Escape) if {CANNOT_TELL}"
    return numbers
