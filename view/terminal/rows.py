"""The row on the screen of a labeller: its values in columns, and what is shown beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table as RichTable
from rich.text import Text

from quercus.view.bars import sparkline
from quercus.view.rows import ShownItem, ShownValue

_Row = tuple[Text, Text]

MOST_VALUES: Final = 90
BLOCK_VALUES: Final = 18
"""Attributes in one column, where the screen has room for several."""
_GAP: Final = 3
_CURVE: Final = 60


def row_parts(
    groups: Sequence[tuple[str, Sequence[ShownValue]]], more: int, curves: Sequence[ShownItem], width: int
) -> RenderableType:
    """Return a row: its values in columns, by groups, the number of those left out, and its curves."""
    shown: list[_Row] = []
    for title, values in groups:
        shown += [(Text(title, style="underline"), Text())] if title else []
        shown += [
            (Text(value.title), Text(value.text, style="dim" if value.is_missing else "bold"))
            for value in values
        ]
    parts: list[RenderableType] = []
    if shown:
        columns = math.ceil(len(shown) / BLOCK_VALUES)
        while columns > 1 and _blocks_width(_split_columns(shown, columns)) > width:
            columns -= 1  # a longer column rather than names that are cut
        grid = RichTable.grid(padding=(0, _GAP))
        grid.add_row(*map(_block_table, _split_columns(shown, columns)))
        parts.append(grid)
    if more:
        parts.append(Text(f"and {more:,} more attributes", style="dim"))
    return Group(*parts, *item_texts(curves, width))


def item_texts(items: Sequence[ShownItem], width: int) -> Iterator[Text]:
    """Yield what is shown beside a row, as far as a terminal can show it."""
    room = min(_CURVE, max(8, width - 2))
    for item in items:
        if item.kind == "text":
            yield Text(f"{item.title}: {item.text}")
        for curve in item.curves:
            yield Text.assemble(f"{curve.title}: {curve.note}\n", (sparkline(curve.values, room), "cyan"))
        if item.kind in {"link", "image", "audio"}:
            pushed = f"{item.data}; shown in the console" if item.data else ""
            said = ", ".join(filter(None, [item.text, item.url, pushed]))
            yield Text(f"{item.title} ({item.kind}): {said}")


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
