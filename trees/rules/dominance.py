"""Which attribute splits a node, when gains are known as intervals (theory §3.2, §3.5)."""

from collections.abc import Iterable, Mapping, Sequence

TIE = 1e-9  # two numbers this near to each other are equal

Interval = tuple[float, float]


def non_dominated(intervals: Mapping[int, Interval]) -> tuple[int, ...]:
    """Return the attributes that none dominates, in declared order.

    ``j`` dominates ``i`` when its lower end exceeds the upper end of ``i``, and not by a tie.

    Examples
    --------
    >>> non_dominated({0: (0.7, 1.2), 1: (0.5, 1.3), 2: (0.3, 0.4)})
    (0, 1)
    """
    if not intervals:
        return ()
    bar = max(lower for lower, _ in intervals.values())
    return tuple(attribute for attribute in sorted(intervals) if bar <= intervals[attribute][1] + TIE)


def largest_mid_value(intervals: Mapping[int, Interval], among: Iterable[int]) -> int:
    """Return the attribute of `among` with the largest mid-value; of tied ones, the first declared.

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
