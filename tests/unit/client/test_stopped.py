"""The texts about a model that stopped asking before its budget was spent."""

from datetime import UTC, datetime

import pytest

from quercus.client import Model, Numeric, Specification
from quercus.view.models import why_it_stopped


def model(
    ask: str | None = "while-contested",
    *,
    answered: int = 3,
    lag: int = 0,
    open_: int = 0,
    settled: bool | None = None,
) -> Model:
    specification = Specification([Numeric("ash")], ["a", "b"], budget=9, ask=ask)
    now = datetime(2026, 11, 23, tzinfo=UTC)
    return Model("wine", specification, now, 9, 9 - lag, 3, 100, answered, 0, 0, open_, 0, settled=settled)


def test_it_says_that_it_stopped_and_how_it_goes_on() -> None:
    assert why_it_stopped(model()) == (
        "it stopped asking: no split is contested and every leaf has a label, or no row is left; "
        "--ask to-the-budget goes on"
    )


def test_it_tells_a_settled_tree_from_one_without_rows_to_ask_about() -> None:
    assert why_it_stopped(model(settled=True)) == (
        "it stopped asking: no split is contested and every leaf has a label; --ask to-the-budget goes on"
    )
    assert why_it_stopped(model(settled=False)) == "it asks nothing now: no row that it may ask about is left"


@pytest.mark.parametrize(
    "other", [model("to-the-budget"), model(None), model(answered=9), model(lag=1), model(open_=1)]
)
def test_nothing_is_said_of_one_that_did_not(other: Model) -> None:
    assert why_it_stopped(other) == ""
