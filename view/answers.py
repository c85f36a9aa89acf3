"""An answer in words: its label and what became of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from quercus.client.results import Answer
from quercus.client.shown import guess_in
from quercus.specification.written_labels import Label, set_parts
from quercus.view.words import MOST_NAMED

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
    """Return the label of an answer in words, or what it was in its place."""
    return label_words(answer.label, answer.text) or KINDS[answer.kind] or CANNOT_TELL


def label_words(label: Label, written: str) -> str:
    """Return a label in words; masses, which have none, as they are written.

    Examples
    --------
    >>> label_words("ripe", "ripe"), label_words(frozenset({"ripe", "unripe"}), "unripe|ripe")
    ('ripe', 'unripe or ripe')
    >>> label_words({"unripe": 0.3, "ripe": 1.0, "overripe": 0.0}, "unripe:0.3 ripe:1")
    'ripe; less plausible: unripe 0.3'
    >>> label_words({str(k): 1.0 if k == 7 else 0.7 * (k < 6) for k in range(10)}, "0:0.7 1:0.7 ...")
    '7; less plausible: 6 others'
    >>> label_words({frozenset({"ripe", "unripe"}): 0.6, frozenset({"ripe"}): 0.4}, "{unripe|ripe}:0.6 {ripe}:0.4")
    '{unripe|ripe}:0.6 {ripe}:0.4'
    """
    if isinstance(label, frozenset):
        return " or ".join(set_parts(written))
    if not isinstance(label, dict):
        return written
    plausible = {name: value for name, value in label.items() if isinstance(name, str) and value > 0.0}
    if not plausible:
        return written
    top = max(plausible.values())
    likeliest = " or ".join(name for name, value in plausible.items() if value >= top)
    less = [f"{name} {value:.3g}" for name, value in plausible.items() if value < top]
    if len(less) > MOST_NAMED:
        less = [f"{len(less)} others"]
    return f"{likeliest}; less plausible: {', '.join(less)}" if less else likeliest


def remarks_on(answer: Answer) -> list[str]:
    """Return the remarks on an answer: its kind, its state, and other circumstances."""
    kind = KINDS[answer.kind] if answer.text else ""
    state = STATES[answer.state]
    if state and answer.later is not None:
        state += f" by event {answer.later}"
    former = ""
    if answer.former is not None:
        earlier = label_words(answer.former_label, answer.former_text)
        former = f"was {earlier or 'nothing'} (event {answer.former})"
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
