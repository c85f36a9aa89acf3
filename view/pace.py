"""The pace of a model's labellers: labels of each, seconds per answer of all together, and so the time left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import pairwise
from typing import Final

from quercus.client.results import Answer, Labeller, Model
from quercus.view.models import STATES
from quercus.view.words import counted

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
GIVEN = ("answered", "stated")
"""Kinds of answers with a label of a labeller's own, asked for or not."""
PACE_ANSWERS: Final = 500
"""Number of newest answers from which the pace is computed."""
PAUSE_S: Final = 300.0
"""A longer gap between answers, in seconds, is a pause, and not counted."""


def labels_given(labeller: Labeller) -> int:
    """Return the number of labels that a labeller gave, asked for or not."""
    return labeller.answered + labeller.stated


def seconds_an_answer(answers: Iterable[Answer]) -> float | None:
    """Return the present pace: seconds per answer of all labellers together, without pauses; None below five answers.

    Parameters
    ----------
    answers
        Of any kind, in any order; the newest `PACE_ANSWERS` answers to queries count, as only they spend the budget.

    Examples
    --------
    >>> start = datetime(2026, 11, 27)
    >>> moments = [start + timedelta(seconds=s) for s in (0, 4, 8, 900, 906, 910)]
    >>> seconds_an_answer(Answer(1, "row", "ann", at, "answered", "counts") for at in moments)
    4.5
    """
    newest = sorted(nlargest(PACE_ANSWERS, (each.at for each in answers if each.kind == "answered")))
    gaps = [(later - before).total_seconds() for before, later in pairwise(newest)]
    going = [gap for gap in gaps if gap <= PAUSE_S]
    return sum(going) / len(going) if len(going) >= 4 else None


@dataclass(frozen=True)
class Pace:
    """The labels of one labeller within the last hour, and the last 24 hours."""

    hour: int = 0
    day: int = 0


def pace_of(answers: Iterable[Answer], now: datetime) -> dict[str, Pace]:
    """Return the pace of each labeller who gave a label within a day before `now`, by name.

    Parameters
    ----------
    answers
        Of any kind and age, in any order; those with a label of the labeller's own count (`GIVEN`).
    now
        The present time.
    """
    found: dict[str, Pace] = {}
    for each in answers:
        age = now - each.at
        if each.kind in GIVEN and age < DAY:
            known = found.get(each.labeller, Pace())
            found[each.labeller] = Pace(known.hour + (age < HOUR), known.day + 1)
    return found


def labeller_rows(
    labellers: Sequence[Labeller], paces: dict[str, Pace], assigned: Sequence[str]
) -> list[tuple[str, Labeller | None, Pace, bool]]:
    """Return name, counts, pace and assignment of each labeller, the fastest first."""
    known = {each.name: each for each in labellers}
    names = {*known, *paces, *assigned}
    rows = [
        (name, known.get(name), paces.get(name, Pace()), not assigned or name in assigned) for name in names
    ]
    return sorted(rows, key=lambda row: (-row[2].hour, -row[2].day, row[0]))


def end_text(model: Model, pace_s: float | None) -> str:
    """Return the time until the budget is spent at the present pace (`seconds_an_answer`), in a sentence."""
    left = model.budget - model.queries_answered
    if model.budget == 0:
        return STATES["silent"][1]
    if left <= 0:
        return "The budget is spent."
    are_left = f"{counted(left, 'answer')} {'is' if left == 1 else 'are'} left"
    if pace_s is None:
        return f"{are_left}. The time left is shown after five answers."
    pace = f"an answer in {pace_s:.1f} s without pauses"
    return f"{are_left}: at the present pace, {pace}, that takes {time_text(left * pace_s)}."


def time_text(seconds: float) -> str:
    """Return a duration in words.

    Examples
    --------
    >>> time_text(60), time_text(1440), time_text(11_520), time_text(216_000)
    ('1 minute', '24 minutes', '3 hours', '3 days')
    """
    minutes = seconds / 60
    if minutes < 90:
        return counted(max(1, round(minutes)), "minute")
    hours = minutes / 60
    return counted(round(hours), "hour") if hours < 48 else counted(round(hours / 24 + 0.49), "day")
