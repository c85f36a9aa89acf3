"""An answer in words: its label and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from quercus.client.results import Answer
from quercus.client.shown import guess_in

CANNOT_TELL: Final = "nobody can tell"
KINDS: Final = {
    "answered": "",
    "refused": CANNOT_TELL,
    "corrected": "corrected",
    "undone": "taken back",
    "stated": "stated",
    "retracted": "taken back",
    "adjudicated": "adjudicated",
    "marked": "gold question",
}
"""The kinds of an answer in words; an ordinary one needs none."""
STATES: Final = {
    "counts": "",
    "pending": "waits for others",
    "replaced": "replaced",
    "undone": "taken back",
    "empty": "",
    "gold": "to a gold question",
}
"""The states of an answer in words; one that counts needs none."""


def answer_text(answer: Answer) -> str:
    """Return the label of an answer, or, without a label, its kind."""
    return answer.text or KINDS[answer.kind] or CANNOT_TELL


def remarks_on(answer: Answer) -> list[str]:
    """Return the remarks on an answer: its kind, its state, and other circumstances."""
    kind = KINDS[answer.kind] if answer.text else ""
    state = STATES[answer.state]
    if state and answer.later is not None:
        state += f" by event {answer.later}"
    former = ""
    if answer.former is not None:
        former = f"was {answer.former_text or 'nothing'} (event {answer.former})"
    trust = f"reliability {answer.reliability:.2g}" if answer.reliability < 1.0 else ""
    return list(filter(None, [kind, former, state, trust, "contradicts" if answer.conflict else ""]))


def guesses_taken(answers: Iterable[Answer], classes: Sequence[str]) -> tuple[int, int]:
    """Count the answers given while the model's guess was shown, and those among them that equal the guess."""
    given = (each for each in answers if each.kind == "answered" and each.state != "gold")
    guessed = [(guess_in(each.shown), each) for each in given]
    beside = [(guess, each) for guess, each in guessed if guess is not None and guess < len(classes)]
    return len(beside), sum(each.label == classes[guess] for guess, each in beside)


def moment_text(at: datetime) -> str:
    """Return a time (UTC) to the minute."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"
