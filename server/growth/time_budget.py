"""A budget of time: a share of all time, part of which can be saved up."""

from __future__ import annotations

import time


class TimeBudget:
    """A share of the clock, saved up to a bound and overdrawn to the same bound.

    Costs above the overdraft limit count as the limit, so nobody waits longer than ``most_s / share``.

    Parameters
    ----------
    share : share of the time, above 0.
    most_s : saved at the beginning, and at most.
    """

    def __init__(self, share: float, most_s: float) -> None:
        self._share = share
        self._most_s = most_s
        self._left_s = most_s
        self._counted_at = time.monotonic()

    @property
    def ready_at(self) -> float:
        """Monotonic time from which the budget may be spent again."""
        return self._counted_at + max(0.0, -self._left_s) / self._share

    def spend_seconds(self, cost_s: float) -> None:
        """Subtract a cost, in seconds."""
        now = time.monotonic()
        saved_s = min(self._most_s, self._left_s + self._share * (now - self._counted_at))
        self._left_s = max(-self._most_s, saved_s - cost_s)
        self._counted_at = now
