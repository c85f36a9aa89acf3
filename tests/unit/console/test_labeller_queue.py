"""Pages of one labeller: what one has is for no other while it lives."""

import pytest

from quercus.console import labeller_queue
from quercus.console.labeller_queue import PageOwners


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(labeller_queue.time, "monotonic", lambda: now[0])
    return now


def test_a_page_that_is_silent_for_longer_than_a_lease_is_gone(clock: list[float]) -> None:
    pages = PageOwners(60.0)
    assert pages.claim("one", ["a", "b"]) == []
    assert pages.claim("two", ["b", "c"]) == ["b"]
    clock[0] += 59
    assert pages.claim("two", ["c"]) == []
    assert pages.owner("a") == "one"
    clock[0] += 2
    assert pages.owner("a") == ""
    assert pages.claim("two", ["a", "b", "c"]) == []
    assert [pages.owner(name) for name in "abc"] == ["two"] * 3
    assert pages.claim("one", ["a"]) == ["a"]  # it was asleep, and comes too late


def test_a_page_without_a_script_claims_nothing(clock: list[float]) -> None:
    pages = PageOwners(60.0)
    assert pages.claim("", ["a"]) == []
    assert pages.claim("one", ["a"]) == []
    pages.leave("one")
    assert pages.owner("a") == ""
    assert pages.claim("two", ["a"]) == []
    pages.forget("a")
    assert pages.owner("a") == ""
