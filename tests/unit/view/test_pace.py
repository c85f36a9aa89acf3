"""The pace of labellers, counted by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quercus.client import Answer
from quercus.view.pace import labeller_rows, pace_of

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def said(who: str, minutes: float, kind: Any = "answered") -> Answer:
    at = NOW - timedelta(minutes=minutes)
    return Answer(1, "row", who, at, kind, "counts")


def test_replies_of_the_hour_and_the_day_are_counted_and_nothing_else() -> None:
    replies = [
        said("ann", 0), said("ann", 59.9), said("ann", 60), said("ann", 1439), said("ann", 1440),
        said("ann", 5, "corrected"), said("ann", 5, "stated"), said("bob", 300, "refused"), said("bob", 200),
    ]  # fmt: skip
    paces = pace_of(replies, NOW)
    assert {name: (each.hour, each.day) for name, each in paces.items()} == {"ann": (2, 4), "bob": (0, 2)}
    assert paces["bob"].last == NOW - timedelta(minutes=200)


def test_who_is_assigned_stands_in_the_list_before_the_first_answer() -> None:
    paces = pace_of([said("ann", 5), said("bob", 300)], NOW)
    rows = labeller_rows((), paces, ("bob", "carl"))
    assert [(name, pace.hour, pace.day, asked) for name, _, pace, asked in rows] == [
        ("ann", 1, 1, False), ("bob", 0, 1, True), ("carl", 0, 0, True),
    ]  # fmt: skip
    assert all(asked for *_, asked in labeller_rows((), paces, ()))
