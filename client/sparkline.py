"""A curve in a line of text."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_LARGE = 1e300
_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 60) -> str:
    """Return a curve of at most ``width`` characters; a gap where values are missing (NaN).

    Several values of one character are shown as their mean.

    Examples
    --------
    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7]), sparkline([1.0, math.nan, 1.0])
    ('▁▂▃▄▅▆▇█', '▄ ▄')
    >>> sparkline([-1e308, 0.0, 1e308]), sparkline([1.7e308] * 4, width=2)
    ('▁▅█', '▄▄')
    """
    if any(abs(value) > _LARGE for value in values):
        values = [value / 1e150 for value in values]  # else a sum or a difference would be infinite
    count = min(max(1, width), len(values))
    bounds = [round(k * len(values) / count) for k in range(count + 1)]
    means = [_known_mean(values[start:end]) for start, end in pairwise(bounds)]
    known = [mean for mean in means if not math.isnan(mean)]
    if not known:
        return " " * count
    low, high = min(known), max(known)
    return "".join(" " if math.isnan(mean) else _level_character(mean, low, high) for mean in means)


def _level_character(value: float, low: float, high: float) -> str:
    if high <= low:
        return _LEVELS[3]
    return _LEVELS[min(len(_LEVELS) - 1, int((value - low) / (high - low) * len(_LEVELS)))]


def _known_mean(values: Sequence[float]) -> float:
    known = [value for value in values if not math.isnan(value)]
    return sum(known) / len(known) if known else math.nan
