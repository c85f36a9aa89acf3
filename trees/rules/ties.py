"""Ties, and the choice among the intervals of one node (theory §3.2, §3.5); `choice` decides many nodes at once."""

from collections.abc import Iterable, Mapping, Sequence

from quercus.kernels.growth import TIE  # two numbers within it are tied; defined in kernels/growth/kinds.hpp

__all__ = ["TIE", "Interval", "first_largest", "largest_mid_value"]

Interval = tuple[float, float]


def largest_mid_value(intervals: Mapping[int, Interval], among: Iterable[int]) -> int:
    """Return the attribute of `among` with the largest mid-value; of ties, the one declared first.

    Examples
    --------
    >>> largest_mid_value({0: (0.7, 1.2), 1: (0.5, 1.3)}, (0, 1))
    0
    """
    attributes = sorted(among)
    mids = [(intervals[attribute][0] + intervals[attribute][1]) / 2 for attribute in attributes]
    return attributes[first_largest(mids)]


def first_largest(values: Sequence[float]) -> int:
    """Return the first index whose value is tied with the largest.

    Examples
    --------
    >>> first_largest([0.3, 0.5, 0.5 + 1e-12])
    1
    """
    bar = max(values) - TIE
    return next(index for index, value in enumerate(values) if value >= bar)
