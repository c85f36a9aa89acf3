"""A model's state in words, by its budget and its queries."""

from datetime import UTC, datetime

import pytest

from quercus.client import Model, Numeric, Specification
from quercus.view.models import state_text


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
    specification = Specification([Numeric("ash")], ["a", "b"], budget=budget)
    created = datetime(2026, 11, 23, tzinfo=UTC)
    model = Model("wine", specification, created, 9, 9 - lag, 3, 100, answered, 0, 0, open_, 0)
    assert state_text(model) == said
