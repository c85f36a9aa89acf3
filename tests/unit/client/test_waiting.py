"""Requests that both clients share, and how long they wait for a query."""

from typing import Any

import pytest

from quercus.cli.label_person import parse_plausibilities
from quercus.client import (
    Client,
    DeadlineExceeded,
    InvalidArgument,
    Numeric,
    Specification,
    query_calls,
    retrying,
)
from quercus.client.classifications import MAX_CLASSIFY_ROWS, classify_rows
from quercus.client.memory import SeenSequences
from quercus.client.messages import to_duration
from quercus.client.query_calls import LONGEST_POLL_S, WaitPolicy
from quercus.client.results import QUERY_STATE
from quercus.client.specification_messages import message_of_specification, update_request
from quercus.client.transport import DEFAULT_ADDRESS, MAX_SEND_BYTES, server_address
from quercus.client.treeview import render_request


def test_patience_ends_at_once_without_any_and_never_with_none_given() -> None:
    assert WaitPolicy(0.0).is_over("nothing_to_ask", None)
    assert not WaitPolicy(None).is_over("nothing_to_ask", None)
    assert not WaitPolicy(3600.0).is_over("all_leased", None)


def test_growing_does_not_count_as_idle_but_is_not_waited_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    patience = WaitPolicy(0.0)
    assert not patience.is_over("growing", None)
    assert patience.wait_s >= 1.0  # never a loop that asks without waiting
    monkeypatch.setattr(query_calls, "LONGEST_GROWTH_S", 0.0)
    with pytest.raises(DeadlineExceeded, match="did not catch up"):
        patience.is_over("growing", None)


@pytest.mark.parametrize(("idle_s", "longest_s"), [(0.0, 0.0), (2.0, 2.0), (None, LONGEST_POLL_S)])
def test_a_poll_is_never_longer_than_the_patience_left(idle_s: float | None, longest_s: float) -> None:
    patience = WaitPolicy(idle_s)
    assert patience.wait_s == 0.0  # the first look: the budget may be spent already
    patience.is_over("nothing_to_ask", None)
    assert longest_s - 1.0 <= patience.wait_s <= longest_s


def test_an_update_names_its_fields_and_no_others() -> None:
    message = update_request("m", {"budget": 0, "max_depth": None})
    assert list(message.update_mask.paths) == ["budget", "max_depth"]
    assert message.specification.budget == 0
    assert not message.specification.HasField("max_depth")
    with pytest.raises(InvalidArgument, match="classes: cannot be changed"):
        update_request("m", {"classes": 3})
    with pytest.raises(InvalidArgument, match="budget"):
        update_request("m", {"budget": -1})


def test_a_specification_that_cannot_be_written_down_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="budget: is -1, must be a whole number"):
        message_of_specification(Specification([Numeric("x")], ["a", "b"], budget=-1))


def test_query_states_are_known_by_name() -> None:
    with Client("127.0.0.1:1") as client:
        client.list_queries("m", QUERY_STATE.values())
        with pytest.raises(InvalidArgument, match="'done' is not one of open, leased"):
            client.list_queries("m", ["done"])


def test_classify_requests_stay_below_the_message_limit() -> None:
    for attributes, classes in [(1, 2), (1000, 2), (1000, 64), (4, 64)]:
        rows = classify_rows(attributes, classes)
        assert 1 <= rows <= MAX_CLASSIFY_ROWS
        assert rows * 8 * max(attributes, 4 * classes) <= MAX_SEND_BYTES / 2


def test_backoff_grows_and_is_bounded() -> None:
    assert all(0 < retrying.backoff_s(n) <= retrying.MAX_BACKOFF_S for n in (*range(1, 50), 1025, 10**9))
    assert retrying.backoff_s(1) <= retrying.FIRST_BACKOFF_S


def test_the_newest_sequence_wins() -> None:
    sequences = SeenSequences()
    sequences.record_sequence("m", "uid", 5)
    sequences.record_sequence("m", "uid", 3)
    assert sequences.newest_sequence("m") == 5
    assert sequences.newest_sequence("other") == 0


def test_a_number_is_of_one_model_and_goes_with_it() -> None:
    sequences = SeenSequences()
    sequences.record_sequence("m", "first", 500)
    sequences.record_uid("m", "first")
    assert sequences.newest_sequence("m") == 500
    sequences.record_sequence("m", "second", 3)
    assert (sequences.newest_sequence("m"), sequences.model_uid("m")) == (3, "second")
    sequences.record_uid("m", "third")
    assert sequences.newest_sequence("m") == 0
    sequences.forget_model("m")
    assert sequences.model_uid("m") == ""


@pytest.mark.parametrize(
    ("line", "words"),
    [("1 0", "3 numbers are needed, there are 2"), ("1 x 0", "'x' is not a number"), ("1 nan 0", "not between"),
     ("0 0 0", "all are 0")],
)  # fmt: skip
def test_plausibilities_that_make_no_sense(line: str, words: str) -> None:
    assert words in str(parse_plausibilities(line, ("o", "s", "x")))


@pytest.mark.parametrize(
    "given", ["foo", "http://127.0.0.1:50051", "127.0.0.1:99999", "host:", ":50051", "::1:6000"]
)
def test_what_is_no_address_is_refused(given: str) -> None:
    with pytest.raises(InvalidArgument, match="is not HOST:PORT"):
        server_address(given)


def test_the_address_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("QUERCUS_SERVER", raising=False)
    assert server_address(None) == DEFAULT_ADDRESS
    monkeypatch.setenv("QUERCUS_SERVER", "example.org:1")
    assert server_address(None) == "example.org:1"
    assert server_address("localhost:2") == "localhost:2"


@pytest.mark.parametrize(
    ("attributes", "classes", "words"),
    [
        ([Numeric("a")], [0, 1], r"classes\[0\]: is 0 \(int\), must be text"),
        (["a"], ["o", "s"], r"attributes\[0\]: expected Nominal or Numeric, got 'a' \(str\)"),
    ],
)
def test_a_specification_of_the_wrong_types_is_refused(attributes: Any, classes: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words):
        message_of_specification(Specification(attributes, classes))


def test_only_max_depth_has_no_limit() -> None:
    assert not update_request("m", {"max_depth": None}).specification.HasField("max_depth")
    with pytest.raises(InvalidArgument, match="budget: is None, must have a value"):
        update_request("m", {"budget": None})


@pytest.mark.parametrize("seconds", [float("nan"), float("inf")])
def test_durations_are_finite(seconds: float) -> None:
    with pytest.raises(InvalidArgument, match=r"lease_s: is .*, must be a finite number of seconds"):
        to_duration(seconds, "lease_s")


@pytest.mark.parametrize("seconds", [1e12, 1e300, 10**400, -(10**400)], ids="abcd")
def test_durations_are_those_that_a_message_holds(seconds: float) -> None:
    with pytest.raises(InvalidArgument, match=r"lease_s: must be at most 315,576,000,000 seconds"):
        to_duration(seconds, "lease_s")


def test_drawings_have_three_forms() -> None:
    with pytest.raises(InvalidArgument, match="'pdf' is not one of text, dot, svg"):
        render_request("m", None, "pdf")  # type: ignore[arg-type]
