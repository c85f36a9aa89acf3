"""The time that models took lately: those that took least have their turn first."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

HALF_LIFE_S: Final = 10.0
"""Seconds after which time that was spent counts half."""


class RecentTime:
    """The seconds that each model took lately; what lies back counts less and less."""

    def __init__(self) -> None:
        self._spent: dict[int, tuple[float, float]] = {}  # seconds as they counted at a time

    def add_seconds(self, key: int, seconds: float, now: float) -> None:
        """Add the time of a step that has just ended."""
        self._spent[key] = self.seconds_of(key, now) + seconds, now

    def seconds_of(self, key: int, now: float) -> float:
        """Return the seconds that a model took, as they count now.

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
        """Return models in the order of their turns: first the one that took least."""
        return sorted(keys, key=lambda key: self.seconds_of(key, now))

    def forget_model(self, key: int) -> None:
        """Forget a model."""
        self._spent.pop(key, None)
