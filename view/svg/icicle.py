"""A tree as an icicle plot: a row for each level, and a box for each node, as wide as its share of rows.

The page of the console provides the text of the boxes (`quercus.console.pages.tree`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import escape

from quercus.view.svg.classes import has_pattern, pattern_definitions

WIDTH, LEVEL = 1000.0, 26
MAX_LEVELS = 16
LEAST_WIDTH = 2.0
NARROW_LEVEL = 16
"""Height of a level where the page sets none, as on a phone."""
CHAR_WIDTH = 7.2


@dataclass(frozen=True)
class Cell:
    """A node's number, its parent's number, the weight of its rows, and its depth."""

    number: int
    parent: int | None
    weight: float
    depth: int


@dataclass(frozen=True)
class Box:
    """The appearance of a node: its text, title and mark, and whether it is undecided."""

    text: str
    title: str
    mark: str
    undecided: bool


def draw_icicle(
    cells: Sequence[Cell], box_of: Callable[[int], Box], href: Callable[[int], str], selected: int = -1
) -> str:
    """Return the picture; `box_of` is called only for nodes wide enough to be seen.

    Cells are in pre-order; the first one is the whole width of the first level.

    Examples
    --------
    >>> cells = [Cell(0, None, 4, 0), Cell(1, 0, 1, 1)]
    >>> picture = draw_icicle(cells, lambda number: Box("a", "<a>", "mark-1", True), lambda number: f"?node={number}")
    >>> 'data-node="1"' in picture, "&lt;a&gt;" in picture, 'width="250.0"' in picture
    (True, True, True)
    """
    weights = {cell.number: cell.weight for cell in cells}
    start: dict[int, float] = {}
    width: dict[int, float] = {}
    used: dict[int, float] = {}
    drawn: list[str] = []
    marks: set[str] = set()
    levels = 1
    for cell in cells:
        number, parent, depth = cell.number, cell.parent, cell.depth - cells[0].depth
        if number == cells[0].number:
            start[number], width[number] = 0.0, WIDTH
        elif parent in start:
            start[number] = start[parent] + used.get(parent, 0.0)
            width[number] = width[parent] * cell.weight / max(weights[parent], 1e-9)
            used[parent] = used.get(parent, 0.0) + width[number]
        if number not in start or depth >= MAX_LEVELS or width[number] < LEAST_WIDTH:
            start.pop(number, None)
            continue
        levels = max(levels, depth + 1)
        place = start[number], depth * LEVEL, width[number]
        box = box_of(number)
        marks.add(box.mark)
        drawn.append(_draw_box(number, box, place, href(number), is_selected=number == selected))
    height = levels * LEVEL
    return (
        f'<svg class="icicle" viewBox="0 0 {WIDTH:.0f} {height}" height="{levels * NARROW_LEVEL}" '
        'preserveAspectRatio="none" aria-hidden="true">'
        f"<defs>{pattern_definitions(marks)}</defs>{''.join(drawn)}</svg>"
    )


def _draw_box(
    number: int, box: Box, place: tuple[float, float, float], href: str, *, is_selected: bool
) -> str:
    x, y, width = place
    room = int((width - 8) / CHAR_WIDTH)
    text = box.text if len(box.text) <= room else box.text[: max(0, room - 1)] + "…"
    at = f'x="{x:.1f}" y="{y}" width="{width:.1f}" height="{LEVEL - 2}"'
    strokes = f'<rect class="strokes" {at} fill="url(#strokes-{box.mark})"/>' if has_pattern(box.mark) else ""
    inset = min(2.5, width / 4)
    dashed = (
        f'<rect class="undecided" x="{x + inset:.1f}" y="{y + 2.5}" width="{width - 2 * inset:.1f}" '
        f'height="{LEVEL - 7}"/>'
        if box.undecided
        else ""
    )
    written = f'<text x="{x + 5:.1f}" y="{y + 16}">{escape(text)}</text>' if room >= 3 else ""
    kind = f"box {box.mark}{' selected' if is_selected else ''}"
    return (
        f'<a href="{escape(href)}" tabindex="-1" data-node="{number}" class="{kind}">'
        f"<title>{escape(box.title)}</title><rect {at}/>{strokes}{dashed}{written}</a>"
    )
