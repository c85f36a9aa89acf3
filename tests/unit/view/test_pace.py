"""The pace of labellers, counted by hand."""

from datetime import UTC, datetime, timedelta
from typing import Any

from quercus.client import Answer
from quercus.client.results import Labeller
from quercus.view.pace import PACE_ANSWERS, labeller_rows, labels_given, pace_of, seconds_an_answer

NOW = datetime(2026, 11, 27, 12, tzinfo=UTC)


def said(who: str, minutes: float, kind: Any = "answered") -> Answer:
    at = NOW - timedelta(minutes=minutes)
    return Answer(1, "row", who, at, kind, "counts")


def test_labels_of_the_hour_and_the_day_are_counted_and_nothing_else() -> None:
    given = [
        said("ann", 0), said("ann", 59.9), said("ann", 60), said("ann", 1439), said("ann", 1440),
        said("ann", 5, "corrected"), said("ann", 5, "stated"), said("bob", 300, "refused"), said("bob", 200),
    ]  # fmt: skip
    paces = pace_of(given, NOW)
    assert {name: (each.hour, each.day) for name, each in paces.items()} == {"ann": (3, 5), "bob": (0, 1)}


def test_who_is_assigned_stands_in_the_list_before_the_first_answer() -> None:
    paces = pace_of([said("ann", 5), said("bob", 300)], NOW)
    rows = labeller_rows((), paces, ("bob", "carl"))
    assert [(name, pace.hour, pace.day, asked) for name, _, pace, asked in rows] == [
        ("ann", 1, 1, False), ("bob", 0, 1, True), ("carl", 0, 0, True),
    ]  # fmt: skip
    assert all(asked for *_, asked in labeller_rows((), paces, ()))


def test_the_pace_is_that_of_the_newest_answers_without_pauses() -> None:
    answers = [said("ann", k / 10) for k in range(PACE_ANSWERS)] + [said("bob", 100 + k) for k in range(50)]
    assert round(seconds_an_answer(answers) or 0, 3) == 6.0
    assert seconds_an_answer([said("ann", k / 10, "stated") for k in range(9)]) is None
    assert seconds_an_answer([said("ann", 10.0 * k) for k in range(9)]) is None  # pauses alone


def test_who_only_states_has_given_labels() -> None:
    assert labels_given(Labeller("ann", answered=2, refused=3, stated=4)) == 6
