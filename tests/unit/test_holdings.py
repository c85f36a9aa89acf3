"""Holdings that `make leases` takes for two labellers with one query, and holdings that it does not."""

from dataclasses import replace

import pytest
from support.holdings import Cut, Holding, doubles

ANN = Holding("q", "ann", "t1", asked=1.0, since=4.0, until=8.0)
BOB = Holding("q", "bob", "t2", asked=2.0, since=6.0, until=7.0)


def test_two_at_once_are_seen() -> None:
    assert list(doubles([BOB, ANN], [])) == [(ANN, BOB)]
    assert list(doubles([ANN, replace(BOB, query="another")], [])) == []
    assert list(doubles([ANN, replace(BOB, since=8.0, until=9.0)], [])) == []


@pytest.mark.parametrize("of", [{"query": "q"}, {"labeller": "ann"}, {"token_id": "t1"}])
@pytest.mark.parametrize(
    ("since", "until"), [(2.0, 2.1), (3.0, 4.5), (5.0, 5.1), (5.9, float("inf"))]
)  # also of a query that is not taken up yet
def test_what_ended_by_another_before_is_none(of: dict[str, str], since: float, until: float) -> None:
    assert list(doubles([ANN, BOB], [Cut(since, until, **of)])) == []


def test_who_took_up_what_had_ended_is_in_nobodys_way() -> None:
    late = replace(ANN, since=6.5)
    assert list(doubles([late, BOB], [Cut(1.5, 1.6, labeller="ann")])) == []


@pytest.mark.parametrize(
    "cut", [Cut(0.1, 0.2, query="q"), Cut(6.5, 6.6, query="q"), Cut(5.0, 5.1, labeller="bob"), Cut(5.0, 5.1)]
)
def test_a_cut_before_or_after_or_of_another_is_no_excuse(cut: Cut) -> None:
    found = list(doubles([ANN, replace(BOB, asked=5.5)], [cut]))
    assert [(earlier.labeller, later.labeller) for earlier, later in found] == [("ann", "bob")]
