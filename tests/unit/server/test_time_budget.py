"""A share of the time, saved up and overdrawn."""

import pytest

from quercus.server.growth import time_shares
from quercus.server.growth.time_shares import TimeBudget


class Clock:
    """Stands until it is moved."""

    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time_shares.time, "monotonic", made)
    return made


def test_what_is_saved_is_spent_at_once_and_then_a_share_of_the_time(clock: Clock) -> None:
    allowed = TimeBudget(0.25, 5.0)
    for cost_s in (3.0, 2.0):
        assert allowed.ready_at <= clock.now
        allowed.spend_seconds(cost_s)
    assert allowed.ready_at == clock.now
    allowed.spend_seconds(1.0)
    assert allowed.ready_at == clock.now + 4.0


def test_no_more_than_the_bound_is_saved_or_overdrawn(clock: Clock) -> None:
    allowed = TimeBudget(0.5, 2.0)
    clock.now += 1e6
    allowed.spend_seconds(2.5)
    assert allowed.ready_at == pytest.approx(clock.now + 1.0)
    allowed.spend_seconds(1e9)
    assert allowed.ready_at == pytest.approx(clock.now + 4.0)


def test_in_the_long_run_the_share_is_kept(clock: Clock) -> None:
    allowed, spent, began = TimeBudget(0.1, 5.0), 0.0, clock.now
    for _ in range(1000):
        clock.now = max(clock.now, allowed.ready_at)
        allowed.spend_seconds(0.3)
        spent += 0.3
        clock.now += 0.01
    assert spent == pytest.approx(5.0 + 0.1 * (clock.now - began), rel=0.01)
