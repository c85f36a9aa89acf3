"""The pace of the labellers of a model, and when its budget is spent at that pace."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from quercus.client.results import Answer, Labeller, Model

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
REPLIES = ("answered", "refused")
"""Kinds of answers that settle a query."""


@dataclass(frozen=True)
class Pace:
    """The pace of one labeller.

    Attributes
    ----------
    name
        Of the labeller.
    hour, day
        Replies to queries within the last hour, and the last 24 hours.
    last
        When the labeller replied last within the day; ``None``: not at all.
    """

    name: str
    hour: int = 0
    day: int = 0
    last: datetime | None = None


def pace_of(replies: Iterable[Answer], now: datetime) -> dict[str, Pace]:
    """Return the pace of each labeller who replied within a day before `now`, by name.

    Parameters
    ----------
    replies
        Answers of any kind and age, in any order; only replies to queries count.
    now
        The present time.
    """
    found: dict[str, Pace] = {}
    for each in replies:
        age = now - each.at
        if each.kind not in REPLIES or age >= DAY:
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


def end_text(model: Model, paces: dict[str, Pace]) -> str:
    """Return when the budget is spent at the pace of the last hour, or of the last day if nobody answered then."""
    left = model.budget - model.queries_answered
    if model.budget == 0:
        return "The model never asks: its budget is 0."
    if left <= 0:
        return "The budget is spent."
    hour, day = (sum(getattr(each, name) for each in paces.values()) for name in ("hour", "day"))
    if not day:
        return f"{left:,} answers are left. Nobody answered within 24 hours."
    hours, pace = (
        (left / hour, "this hour's pace") if hour else (24 * left / day, "the pace of the last 24 hours")
    )
    return f"{left:,} answers are left: at {pace}, {hours_text(hours)}."


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
