"""The pace of the labellers of a model: labels of each, and seconds an answer of all, by which what is left is told."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from heapq import nlargest
from itertools import pairwise
from typing import Final

from quercus.client.results import Answer, Labeller, Model

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
GIVEN = ("answered", "stated")
"""Kinds of answers with a label of a labeller's own, asked for or not."""
PACE_ANSWERS: Final = 500
"""Newest answers by which the pace is told."""
PAUSE_S: Final = 300.0
"""A longer gap between answers is a pause, and no part of the pace."""


def labels_given(labeller: Labeller) -> int:
    """Return how many labels somebody gave, asked for or not."""
    return labeller.answered + labeller.stated


def seconds_an_answer(answers: Iterable[Answer]) -> float | None:
    """Return the present pace: seconds an answer of all labellers together, without pauses; None below five answers.

    Parameters
    ----------
    answers
        Of any kind, in any order; the newest `PACE_ANSWERS` answers to queries count, which are what the budget counts.

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
    """The pace of one labeller.

    Attributes
    ----------
    name
        Of the labeller.
    hour, day
        Labels within the last hour, and the last 24 hours.
    last
        When the labeller gave the last one within the day; ``None``: none.
    """

    name: str
    hour: int = 0
    day: int = 0
    last: datetime | None = None


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
        if each.kind not in GIVEN or age >= DAY:
            continue
        known = found.get(each.labeller, Pace(each.labeller))
        last = each.at if known.last is None else max(known.last, each.at)
        found[each.labeller] = Pace(each.labeller, known.hour + (age < HOUR), known.day + 1, last)
    return found


def labeller_rows(
    labellers: Sequence[Labeller], paces: dict[str, Pace], assigned: Sequence[str]
) -> list[tuple[str, Labeller | None, Pace, bool]]:
    """Return name, counts, pace, and whether assigned, of each labeller there is, the fastest first."""
    known = {each.name: each for each in labellers}
    names = {*known, *paces, *assigned}
    rows = [
        (name, known.get(name), paces.get(name, Pace(name)), not assigned or name in assigned)
        for name in names
    ]
    return sorted(rows, key=lambda row: (-row[2].hour, -row[2].day, row[0]))


def end_text(model: Model, pace_s: float | None) -> str:
    """Return when the budget is spent at the present pace (`seconds_an_answer`)."""
    left = model.budget - model.queries_answered
    if model.budget == 0:
        return "The model never asks: its budget is 0."
    if left <= 0:
        return "The budget is spent."
    if pace_s is None:
        return f"{left:,} answers are left. Their pace is told from five answers on."
    took = hours_text(left * pace_s / 3600)
    return (
        f"{left:,} answers are left: at the present pace, an answer in {pace_s:.1f} s without pauses, {took}."
    )


def hours_text(hours: float) -> str:
    """Return how long something lasts, in words.

    Examples
    --------
    >>> hours_text(0.4), hours_text(3.2), hours_text(60)
    ('that takes 24 minutes', 'that takes 3 hours', 'that takes 3 days')
    """
    if hours < 1.5:
        return f"that takes {max(1, round(60 * hours)):,} minutes"
    if hours < 48:
        return f"that takes {round(hours):,} hours"
    return f"that takes {round(hours / 24 + 0.49):,} days"
