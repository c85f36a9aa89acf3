"""Curves in one picture, with labels at the ends of both axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from markupsafe import escape

from quercus.view.rows import Curve

WIDTH, HEIGHT = 600.0, 120.0
MAX_POINTS = 1_200
"""Maximum number of points: more are thinned out, keeping the smallest and the largest value of each piece."""


def draw_curves(given: Sequence[Curve]) -> str:
    """Return the picture of curves on common axes; its label describes it for those who cannot see it.

    Examples
    --------
    >>> picture = draw_curves([Curve("a<b", [0.0, 1.0, math.nan, 2.0])])
    >>> picture.count("<polyline"), "a&lt;b: 0 to 2" in picture
    (2, True)
    """
    known = [value for curve in given for value in curve.values if not math.isnan(value)]
    least, most = (min(known), max(known)) if known else (0.0, 0.0)
    first, last = min(curve.start for curve in given), max(curve.end for curve in given)
    lines = [
        f'<polyline class="line mark-{k}" points="{points}"/>'
        for k, curve in enumerate(given)
        for points in _runs_of_points(curve, (first, last), (least, most))
    ]
    label = "; ".join(f"{curve.title}: {curve.span}" for curve in given)
    return (
        f'<svg class="curve" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(label)}"><line class="axis" x1="0" '
        f'x2="{WIDTH:.0f}" y1="{HEIGHT}" y2="{HEIGHT}"/>' + "".join(lines) + "</svg>"
    )


def _runs_of_points(curve: Curve, across: tuple[float, float], up: tuple[float, float]) -> Iterator[str]:
    """Yield the points of each run without a gap."""
    run: list[str] = []
    for k, value in _thin_out(curve.values):
        if math.isnan(value):
            if run:
                yield " ".join(run)
            run = []
            continue
        x = _relative_position(curve.position(k), *across) * WIDTH
        y = HEIGHT - 4 - _relative_position(value, *up) * (HEIGHT - 8)
        run.append(f"{x:.1f},{y:.1f}")
    if run:
        yield " ".join(run if len(run) > 1 else run * 2)


def _relative_position(value: float, low: float, high: float) -> float:
    """Return the relative position of a value between two others, from 0 to 1, without overflow of the difference."""
    return (value / 2 - low / 2) / (high / 2 - low / 2) if high / 2 > low / 2 else 0.5


def _thin_out(values: Sequence[float]) -> Iterator[tuple[int, float]]:
    size = max(1, math.ceil(2 * len(values) / MAX_POINTS))
    for start in range(0, len(values), size):
        piece = [(k, values[k]) for k in range(start, min(start + size, len(values)))]
        known = [each for each in piece if not math.isnan(each[1])] or piece[:1]
        yield from sorted({min(known, key=lambda each: each[1]), max(known, key=lambda each: each[1])})
