"""Numbers drawn in a line of text: curves, bars, intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

_LARGE = 1e300
_LEVELS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 60, ends: tuple[float, float] | None = None) -> str:
    """Return a curve of at most ``width`` characters; a gap where values are missing (NaN).

    Values that share a character are averaged. ``ends`` are the values of the lowest and the highest character; None:
    the smallest and the largest value shown.

    Examples
    --------
    >>> sparkline([0, 1, 2, 3, 4, 5, 6, 7]), sparkline([1.0, math.nan, 1.0])
    ('▁▂▃▄▅▆▇█', '▄ ▄')
    >>> sparkline([-1e308, 0.0, 1e308]), sparkline([1.7e308] * 4, width=2)
    ('▁▅█', '▄▄')
    >>> sparkline([0.5, 0.75], ends=(0.0, 1.0))
    '▅▇'
    """
    if any(abs(value) > _LARGE for value in values):
        values = [value / 1e150 for value in values]  # otherwise a sum or a difference could overflow
    count = min(max(1, width), len(values))
    bounds = [round(k * len(values) / count) for k in range(count + 1)]
    pieces = ([each for each in values[start:end] if not math.isnan(each)] for start, end in pairwise(bounds))
    means = [sum(piece) / len(piece) if piece else math.nan for piece in pieces]
    known = [mean for mean in means if not math.isnan(mean)]
    if not known:
        return " " * count
    low, high = ends or (min(known), max(known))
    drawn = ""
    for mean in means:
        height = 3.0 if high <= low else (mean - low) / (high - low) * len(_LEVELS)
        drawn += " " if math.isnan(mean) else _LEVELS[int(max(0.0, min(len(_LEVELS) - 1.0, height)))]
    return drawn


def bar(value: float, width: int = 20) -> str:
    """Return a bar for a number in [0, 1], in eighths of a character.

    Examples
    --------
    >>> [bar(value, 4) for value in (0.0, 0.5, 0.03, 2.0)]
    ['', '██', '▏', '████']
    """
    eighths = round(max(0.0, min(1.0, value)) * width * 8)
    full, rest = divmod(eighths, 8)
    return "█" * full + (" ▏▎▍▌▋▊▉"[rest] if rest else "")


def hollow_bar(value: float, width: int = 20) -> str:
    """Return a bar of hollow cells for a plausibility, which is not a share.

    Examples
    --------
    >>> hollow_bar(0.5, 4), hollow_bar(0.01, 4), hollow_bar(0.0, 4)
    ('▯▯', '▯', '')
    """
    return "▯" * (max(1, round(value * width)) if value > 0 else 0)


def interval_line(ends: tuple[float, float], scale: tuple[float, float], width: int) -> str:
    """Return an interval on a scale that fills ``width`` characters.

    Examples
    --------
    >>> interval_line((0.25, 0.75), (0.0, 1.0), 9)
    '  ├───┤'
    """
    span = (scale[1] - scale[0]) or 1.0
    start, end = (round((value - scale[0]) / span * (width - 1)) for value in ends)
    return " " * start + "├" + "─" * max(0, end - start - 1) + "┤"
