"""A tree as an icicle: a row for each level, a box for each node, as wide as its share of the rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import escape

WIDTH, LEVEL = 1000.0, 26
MAX_LEVELS = 16
LEAST_WIDTH = 1.0
COLOURS = 8
"""Classes beyond these share colours; the text names them."""
CHAR_WIDTH = 7.2


@dataclass(frozen=True)
class Box:
    """A node to draw: its number, its parent's, the weight of its rows, and what is written on it."""

    number: int
    parent: int | None
    weight: float
    depth: int
    text: str
    title: str
    colour: int
    undecided: bool


def icicle(boxes: Sequence[Box], href: Callable[[int], str], selected: int = -1) -> str:
    """Return the picture; boxes come in pre-order.

    Examples
    --------
    >>> root = Box(0, None, 4, 0, "x", "root", 0, False)
    >>> picture = icicle([root, Box(1, 0, 1, 1, "a", "<a>", 1, True)], lambda number: f"?node={number}")
    >>> 'data-node="1"' in picture, "&lt;a&gt;" in picture, 'width="250.0"' in picture
    (True, True, True)
    """
    start: dict[int, float] = {}
    width: dict[int, float] = {}
    used: dict[int, float] = {}
    drawn: list[str] = []
    levels = 1
    for box in boxes:
        if box.parent is None:
            start[box.number], width[box.number] = 0.0, WIDTH
        elif box.parent in start:
            share = box.weight / max(boxes[box.parent].weight, 1e-9)
            start[box.number] = start[box.parent] + used.get(box.parent, 0.0)
            width[box.number] = width[box.parent] * share
            used[box.parent] = used.get(box.parent, 0.0) + width[box.number]
        if box.number not in start or box.depth >= MAX_LEVELS or width[box.number] < LEAST_WIDTH:
            start.pop(box.number, None)
            continue
        levels = max(levels, box.depth + 1)
        drawn.append(
            _drawn(box, start[box.number], width[box.number], href(box.number), box.number == selected)
        )
    height = levels * LEVEL
    return (
        f'<svg class="icicle" viewBox="0 0 {WIDTH:.0f} {height}" preserveAspectRatio="none" aria-hidden="true">'
        '<defs><pattern id="undecided" width="7" height="7" patternUnits="userSpaceOnUse" '
        'patternTransform="rotate(45)">'
        '<line class="hatch" x1="0" y1="0" x2="0" y2="7"/></pattern></defs>' + "".join(drawn) + "</svg>"
    )


def _drawn(box: Box, x: float, width: float, href: str, is_selected: bool) -> str:
    y = box.depth * LEVEL
    room = int((width - 8) / CHAR_WIDTH)
    text = box.text if len(box.text) <= room else box.text[: max(0, room - 1)] + "…"
    place = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LEVEL - 2}"'
    hatched = f'<rect class="hatched" {place}/>' if box.undecided else ""
    written = f'<text x="{x + 5:.1f}" y="{y + 16}">{escape(text)}</text>' if room >= 3 else ""
    kind = f"box c{box.colour % COLOURS}{' selected' if is_selected else ''}"
    return (
        f'<a href="{escape(href)}" tabindex="-1" data-node="{box.number}" class="{kind}">'
        f"<title>{escape(box.title)}</title><rect {place}/>{hatched}{written}</a>"
    )
