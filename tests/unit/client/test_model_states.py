"""A model's state in words, by its budget and its queries."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from quercus.client import Model, Numeric, Specification
from quercus.view.models import number_rows, progress_text, state_text
from quercus.view.pace import end_text
from quercus.view.terminal.models import models_table


def model(budget: int, answered: int = 0, open_: int = 0, lag: int = 0) -> Model:
    specification = Specification([Numeric("ash")], ["a", "b"], budget=budget)
    created = datetime(2026, 11, 23, tzinfo=UTC)
    return Model("wine", specification, created, 9, 9 - lag, 3, 100, answered, 0, 0, open_, 0)


@pytest.mark.parametrize(
    ("budget", "answered", "open_", "lag", "said"),
    [
        (0, 0, 0, 0, "It never asks: its budget is 0."),
        (9, 9, 0, 0, "The budget is spent."),
        (9, 3, 2, 0, "It has queries for labellers."),
        (9, 3, 0, 0, "It has no queries now."),
        (0, 0, 0, 2, "The tree is learning from new events."),
    ],
)
def test_its_state(budget: int, answered: int, open_: int, lag: int, said: str) -> None:
    assert state_text(model(budget, answered, open_, lag)) == said


@pytest.mark.parametrize(
    ("budget", "in_tables", "alone"),
    [(0, "never asks", "It never asks: its budget is 0."), (1200, "7 of 1,200", "7 of 1,200 answers")],
)
def test_its_answers(budget: int, in_tables: str, alone: str) -> None:
    given = model(budget, answered=7 if budget else 0)
    paper = io.StringIO()
    Console(file=paper, width=80).print(models_table([given]))
    assert f" {in_tables} " in paper.getvalue()
    assert dict(number_rows(given))["answers"] == in_tables
    assert progress_text(given) == alone
    assert budget or end_text(given, None) == alone
