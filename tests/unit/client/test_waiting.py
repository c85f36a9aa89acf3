"""Requests that both clients share, and how long they wait for a query."""

import pytest

from quercus.client import (
    DeadlineExceeded,
    InvalidArgument,
    Lease,
    Numeric,
    Specification,
    requests,
    transport,
)
from quercus.client.commands.label_person import parse_plausibilities
from quercus.client.commands.label_screen import CLASS_KEYS


def idle(reason: str) -> Lease:
    return Lease((), reason, 0)


def test_patience_ends_at_once_without_any_and_never_with_none_given() -> None:
    assert requests.Patience(0.0).ended(idle("nothing_to_ask"), None)
    assert not requests.Patience(None).ended(idle("nothing_to_ask"), None)
    assert not requests.Patience(3600.0).ended(idle("all_leased"), None)


def test_growing_does_not_count_as_idle_but_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patience = requests.Patience(0.0)
    assert not patience.ended(idle("growing"), None)
    assert patience.wait_s >= 1.0  # never a loop that asks without waiting
    monkeypatch.setattr(requests, "LONGEST_GROWTH_S", 0.0)
    with pytest.raises(DeadlineExceeded, match="did not catch up"):
        patience.ended(idle("growing"), None)


@pytest.mark.parametrize(("idle_s", "longest_s"), [(0.0, 0.0), (2.0, 2.0), (None, requests.LONGEST_POLL_S)])
def test_a_poll_is_never_longer_than_the_patience_left(idle_s: float | None, longest_s: float) -> None:
    patience = requests.Patience(idle_s)
    assert patience.wait_s == 0.0  # the first look: the budget may be spent already
    patience.ended(idle("nothing_to_ask"), None)
    assert longest_s - 1.0 <= patience.wait_s <= longest_s


def test_an_update_names_its_fields_and_no_others() -> None:
    message = requests.update("m", {"budget": 0, "max_depth": None})
    assert list(message.update_mask.paths) == ["budget", "max_depth"]
    assert message.specification.budget == 0
    assert not message.specification.HasField("max_depth")
    with pytest.raises(InvalidArgument, match="classes: cannot be changed"):
        requests.update("m", {"classes": 3})
    with pytest.raises(InvalidArgument, match="budget"):
        requests.update("m", {"budget": -1})


def test_a_specification_that_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="specification"):
        requests.specification(Specification([Numeric("x")], ["a", "b"], budget=-1))


def test_query_states_are_known_by_name() -> None:
    assert len(requests.states(requests.STATES)) == 5
    with pytest.raises(InvalidArgument, match="'done' is none of open, leased"):
        requests.states(["done"])


def test_classify_requests_stay_below_the_message_limit() -> None:
    for attributes, classes in [(1, 2), (1000, 2), (1000, 64), (4, 64)]:
        rows = transport.classify_rows(attributes, classes)
        assert 1 <= rows <= transport.MAX_CLASSIFY_ROWS
        assert rows * 8 * max(attributes, 4 * classes) <= transport.MAX_SEND_BYTES / 2


def test_backoff_grows_and_is_bounded() -> None:
    assert all(0 < transport.backoff_s(n) <= transport.MAX_BACKOFF_S for n in range(1, 50))
    assert transport.backoff_s(1) <= transport.FIRST_BACKOFF_S


def test_the_newest_sequence_wins() -> None:
    sequences = transport.Sequences()
    sequences.saw("m", 5)
    sequences.saw("m", 3)
    assert (sequences.newest("m"), sequences.newest("other")) == (5, 0)
    sequences.forget("m")
    assert sequences.newest("m") == 0


def test_there_is_a_key_for_each_of_64_classes_and_none_is_a_command() -> None:
    assert len(CLASS_KEYS) >= 64
    assert len(set(CLASS_KEYS)) == len(CLASS_KEYS)
    assert not set(CLASS_KEYS) & set("surkq?")


@pytest.mark.parametrize(
    ("line", "words"),
    [("1 0", "3 numbers are needed, there are 2"), ("1 x 0", "'x' is not a number"), ("1 nan 0", "not between"),
     ("0 0 0", "all are 0")],
)  # fmt: skip
def test_plausibilities_that_make_no_sense(line: str, words: str) -> None:
    assert words in str(parse_plausibilities(line, 3))
