"""Intervals on a common scale."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

WIDTH = 100
MOST_BARS: Final = 10
"""Up to this many classes, all bars are shown at once."""
FOREMOST: Final = 5
"""Number of bars shown at once if there are more classes."""
Bar = tuple[str, float, float, float, str]
"""A class with its estimate, belief and plausibility, and their picture."""


def interval_bar(lower: float, upper: float, least: float, most: float) -> str:
    """Return the picture of an interval within a range, as wide as its container.

    Examples
    --------
    >>> 'x="25.0" width="50.0"' in interval_bar(1, 3, 0, 4)
    True
    """
    span = (most - least) or 1.0
    start = (lower - least) / span * WIDTH
    width = max(1.5, (upper - lower) / span * WIDTH)
    start = min(start, WIDTH - width)
    return (
        '<svg class="bar" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true">'
        '<line class="axis" x1="0" x2="100" y1="5" y2="5"/>'
        f'<rect class="fill" x="{start:.1f}" width="{width:.1f}" y="1" height="8"/></svg>'
    )


def interval_bars(rows: Sequence[tuple[str, float, float]]) -> list[tuple[str, float, float, str]]:
    """Return names, ends and pictures of intervals on a common scale."""
    if not rows:
        return []
    least, most = min(lower for _, lower, _ in rows), max(upper for _, _, upper in rows)
    return [(name, lower, upper, interval_bar(lower, upper, least, most)) for name, lower, upper in rows]


def share_bars(
    classes: Sequence[str], theta: Iterable[float], belief: Iterable[float], plausibility: Iterable[float]
) -> list[Bar]:
    """Return for each class its name, estimate, belief and plausibility, and a picture of the latter two."""
    rows = zip(classes, theta, belief, plausibility, strict=True)
    return [(name, share, low, high, interval_bar(low, high, 0.0, 1.0)) for name, share, low, high in rows]


def fold_bars(bars: Sequence[Bar]) -> tuple[Sequence[Bar], Sequence[Bar]]:
    """Return the bars to show at once, and the folded ones; if there are many, the likeliest classes come first.

    Examples
    --------
    >>> bars = share_bars("abcdefghijkl", [0.0, 0.1, 0.0, 0.9] + [0.0] * 8, [0.0] * 12, [1.0] * 12)
    >>> ["".join(name for name, *_ in part) for part in fold_bars(bars)], fold_bars(bars[:4]) == (bars[:4], [])
    (['dbace', 'fghijkl'], True)
    """
    if len(bars) <= MOST_BARS:
        return bars, []
    foremost = sorted(bars, key=lambda bar: -bar[1])[:FOREMOST]  # a stable sort
    return foremost, [bar for bar in bars if bar not in foremost]
