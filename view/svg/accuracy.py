"""The learning curve of a model: its accuracy before each label, over the number of labels, with axes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from markupsafe import Markup

from quercus.specification.shares import percent_text
from quercus.view.learning import CurvePoint, LearningCurve

WIDTH, HEIGHT = 640.0, 240.0
LEFT, RIGHT, TOP, BOTTOM = 62.0, 12.0, 10.0, 44.0
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)
STEPS = 48
"""Number of points at which the fitted curve is drawn."""


def learning_picture(points: Sequence[CurvePoint], curve: LearningCurve | None) -> Markup:
    """Return the picture: a mark with its interval for each block, the fitted curve with its band, and both axes.

    Examples
    --------
    >>> picture = learning_picture([CurvePoint(11, 50, 40, 20.0), CurvePoint(51, 100, 50, 40.0)], None)
    >>> picture.count('class="point"'), "from 50 % at 30 labels to 80 % at 76 labels" in picture
    (2, True)
    >>> ">100 %</text>" in picture, ">120</text>" in picture
    (True, True)
    """
    end = _round_up(points[-1].last)
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM

    def x(labels: float) -> float:
        return LEFT + labels / end * (right - LEFT)

    def y(share: float) -> float:
        return TOP + (1.0 - share) * (bottom - TOP)

    parts = [
        f'<line class="axis" x1="{LEFT}" x2="{right}" y1="{y(share):.1f}" y2="{y(share):.1f}"/>'
        f'<text class="tick" x="{LEFT - 6}" y="{y(share) + 4:.1f}" text-anchor="end">{percent_text(share)}</text>'
        for share in GRID
    ]
    parts += [
        f'<text class="tick" x="{x(end * part / 4):.1f}" y="{bottom + 18}" text-anchor="{anchor}">'
        f"{end * part // 4:,}</text>"
        for part, anchor in ((0, "middle"), (1, "middle"), (2, "middle"), (3, "middle"), (4, "end"))
    ]
    parts.append(
        f'<text class="tick" x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">labels learned</text>'
    )
    if curve is not None:
        begin = max(1.0, points[0].middle)
        labels = [begin + (curve.labels - begin) * k / STEPS for k in range(STEPS + 1)]
        ends = [curve.accuracy(each) for each in labels]
        around = [(each, upper) for each, (_, _, upper) in zip(labels, ends, strict=True)]
        around += [(each, lower) for each, (lower, _, _) in reversed(list(zip(labels, ends, strict=True)))]
        band = " ".join(f"{x(each):.1f},{y(share):.1f}" for each, share in around)
        line = " ".join(
            f"{x(each):.1f},{y(middle):.1f}" for each, (_, middle, _) in zip(labels, ends, strict=True)
        )
        parts += [f'<polygon class="band" points="{band}"/>', f'<polyline class="line" points="{line}"/>']
    for point in points:
        lower, upper = point.interval
        at = x(point.middle)
        parts.append(
            f'<line class="whisker" x1="{at:.1f}" x2="{at:.1f}" y1="{y(lower):.1f}" y2="{y(upper):.1f}"/>'
            f'<circle class="point" cx="{at:.1f}" cy="{y(point.share):.1f}" r="4"/>'
        )
    said = [f"{percent_text(each.share)} at {each.middle:,.0f} labels" for each in (points[0], points[-1])]
    moved = f"from {said[0]} to {said[1]}" if len(points) > 1 else said[0]
    return Markup(  # noqa: S704 - only numbers
        f'<svg class="learning" viewBox="0 0 {WIDTH:.0f} {HEIGHT:.0f}" role="img" '
        f'aria-label="Accuracy over the number of labels learned, {moved}; the table below has every block">'
        f"{''.join(parts)}</svg>"
    )


def point_rows(points: Sequence[CurvePoint]) -> list[tuple[str, int, str, str]]:
    """Return for each point its labels, its rows, the accuracy and the interval of the accuracy.

    Examples
    --------
    >>> point_rows([CurvePoint(11, 50, 40, 20.0)])
    [('11 to 50', 40, '50 %', '37 % to 63 %')]
    """
    return [
        (
            f"{each.first:,} to {each.last:,}",
            each.rows,
            percent_text(each.share),
            " to ".join(map(percent_text, each.interval)),
        )
        for each in points
    ]


def _round_up(labels: int) -> int:
    """Return the end of the axis: the next number of which a quarter is round.

    Examples
    --------
    >>> [_round_up(labels) for labels in (7, 40, 41, 198, 1_020)]
    [8, 40, 80, 200, 1200]
    """
    quarter = max(1, math.ceil(labels / 4))
    size = int(10 ** math.floor(math.log10(quarter)))
    return next(4 * factor * size for factor in (1, 2, 3, 4, 5, 6, 8, 10) if factor * size >= quarter)
