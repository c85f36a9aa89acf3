"""Shares of time: a budget for work, and the recent use by models."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Final


class TimeBudget:
    """A share of the time, which can be saved up to a limit, and overdrawn to the same limit.

    Costs beyond the overdraft limit are not counted, so nobody waits longer than ``most_s / share``.

    Parameters
    ----------
    share : share of the time, above 0.
    most_s : the limit, in seconds, which is also the initial balance.
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


HALF_LIFE_S: Final = 10.0
"""Seconds after which used time counts half."""


class RecentTime:
    """The seconds that each model used recently; earlier use counts exponentially less."""

    def __init__(self) -> None:
        self._spent: dict[int, tuple[float, float]] = {}  # weighted seconds, and the time of the weighting

    def add_seconds(self, key: int, seconds: float, now: float) -> None:
        """Add the time of a step that has just ended."""
        self._spent[key] = self.seconds_of(key, now) + seconds, now

    def seconds_of(self, key: int, now: float) -> float:
        """Return the seconds that a model used, weighted as of `now`.

        Examples
        --------
        >>> recent = RecentTime()
        >>> recent.add_seconds(1, 2.0, now=100.0)
        >>> [recent.seconds_of(1, now) for now in (100.0, 110.0, 120.0)]
        [2.0, 1.0, 0.5]
        """
        spent, at = self._spent.get(key, (0.0, now))
        return float(spent * 0.5 ** ((now - at) / HALF_LIFE_S))

    def in_turn(self, keys: Iterable[int], now: float) -> list[int]:
        """Return models in the order of their turns: the one that used least comes first."""
        return sorted(keys, key=lambda key: self.seconds_of(key, now))

    def forget_model(self, key: int) -> None:
        """Forget a model."""
        self._spent.pop(key, None)
