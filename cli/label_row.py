"""The row on the screen of a labeller: its values as the model presents them, and its display."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from quercus.client.results import Model
from quercus.client.sparkline import sparkline
from quercus.client.values import Value
from quercus.specification.attributes import plain_number
from quercus.specification.display import DisplayItem, LinkItem, MediaItem, SeriesItem, TextItem, media_type
from quercus.specification.presentation import Presentation

_Row = tuple[Text, Text]

MOST_VALUES = 90
BLOCK_VALUES = 18
"""Attributes in one column, where the screen has room for several."""
_GAP = 3
_CURVE = 60


def row_values(values: Mapping[str, Value], model: Model, width: int) -> RenderableType:
    """Return the values of a row: each curve in one line, other attributes in columns, by groups."""
    presentation = model.specification.presentation or Presentation()
    views = presentation.shown_views(each.name for each in model.specification.attributes)
    shown: list[_Row] = []
    group = ""
    for view in views[:MOST_VALUES]:
        if view.group != group:
            group = view.group
            shown.append((Text(group, style="underline"), Text("")))
        text = value_text(values.get(view.attribute), view.format, view.unit)
        shown.append((Text(view.title or view.attribute), text))
    parts: list[RenderableType] = []
    if shown:
        columns = math.ceil(len(shown) / BLOCK_VALUES)
        while columns > 1 and _blocks_width(_split_columns(shown, columns)) > width:
            columns -= 1  # a longer column rather than names that are cut
        grid = RichTable.grid(padding=(0, _GAP))
        grid.add_row(*map(_block_table, _split_columns(shown, columns)))
        parts.append(grid)
    if len(views) > MOST_VALUES:
        parts.append(Text(f"and {len(views) - MOST_VALUES:,} more attributes", style="dim"))
    for curve in presentation.series:
        numbers = [_number_or_nan(values.get(name)) for name in curve.attributes]
        parts.append(_curve_text(curve.title, numbers, curve.unit, width))
    return Group(*parts)


def value_text(value: Value, form: str = "", unit: str = "") -> Text:
    """Return a value as text for the screen."""
    if value is None:
        return Text("missing", style="dim")
    text = (format(value, form) if form else plain_number(value)) if isinstance(value, float) else str(value)
    return Text.assemble((text, "bold"), f" {unit}" if unit else "")


def display_lines(
    instance: str, values: Mapping[str, Value], display: Sequence[DisplayItem], model: Model, width: int
) -> list[RenderableType]:
    """Return the display of a row and the media of the model's templates, as far as a terminal can show them."""
    presentation = model.specification.presentation or Presentation()
    lines = [_item_renderable(item, width) for item in display]
    for template in presentation.media:
        url = template.fill_url(instance, values)
        if url is not None:
            lines.append(Text(f"{template.title} ({template.kind}): {url}"))
    return lines


def _item_renderable(item: DisplayItem, width: int) -> RenderableType:
    match item:
        case TextItem():
            return Text(f"{item.title}: {item.text}")
        case SeriesItem():
            return _curve_text(item.title, item.values, item.unit, width)
        case LinkItem():
            return Text(f"{item.title} (link): {item.url}")
        case MediaItem():
            what = item.url or f"{media_type(item.data)}, {len(item.data):,} bytes; shown in the console"
            return Text(f"{item.title} ({item.kind}): {item.alt + ', ' if item.alt else ''}{what}")


def _curve_text(title: str, values: Sequence[float], unit: str, width: int) -> Text:
    known = [value for value in values if not math.isnan(value)]
    span = f"{min(known):.4g} to {max(known):.4g}" if known else "no value"
    room = min(_CURVE, max(8, width - 2))
    head = f"{title}: {span}{' ' + unit if unit else ''}, {len(values):,} values\n"
    return Text.assemble(head, (sparkline(values, room), "cyan"))


def _number_or_nan(value: Value) -> float:
    return value if isinstance(value, float) else math.nan


def _split_columns(shown: Sequence[_Row], columns: int) -> list[Sequence[_Row]]:
    size = math.ceil(len(shown) / columns)
    return [shown[k : k + size] for k in range(0, len(shown), size)]


def _blocks_width(blocks: Sequence[Sequence[_Row]]) -> int:
    """Return the width of blocks side by side, in cells."""
    widths = [max(name.cell_len for name, _ in b) + 2 + max(value.cell_len for _, value in b) for b in blocks]
    return sum(widths) + _GAP * len(widths)


def _block_table(rows: Sequence[_Row]) -> RenderableType:
    table = RichTable(box=None, show_header=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table
