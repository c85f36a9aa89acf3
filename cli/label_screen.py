"""The screen of a labeller: the instance, the current belief, the reason of the query, the keys."""

from __future__ import annotations

import math
import string
from collections.abc import Sequence

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from quercus.cli.common import bar
from quercus.client.results import ForestReason, Model, Query, Reason, Rival, Value

_Row = tuple[Text, Text]

MOST_RIVALS = 8
MOST_VALUES = 90
BLOCK_VALUES = 18
"""Attributes in one column, where the screen has room for several."""
MOST_KEYS = 9
"""With more classes the keys are told once, beside what is believed."""
MIN_INTERVAL, MAX_INTERVAL = 8, 30
_FRAME, _GAP = 4, 3
TIE = 2e-9
"""Sums of two ends closer than this are tied (theory §3.5): the earlier attribute stands."""

_COMMANDS = "surkpbcq"
CLASS_KEYS = (
    "123456789"
    + "".join(c for c in string.ascii_lowercase if c not in _COMMANDS)
    + string.ascii_uppercase
    + "0!@#$%&*+=~"
)
"""A key for each of up to 64 classes: digits, then letters that are no commands."""

HELP = """Answer with the key of the class. If you cannot say which one:

  s   it is one of several: press their keys, Enter to send
  u   uncertain: type how plausible each class is, 0 to 1 (1 = nothing speaks against it)
  r   nobody can tell: the row is never asked again
  k   skip: not for me; others are asked, you are not asked about this row again
  p   postpone: not now; it comes back in ten minutes, to you or to somebody else
  c   comment: a line that is kept with your next answer
  b   back to your last answer: give another one, or take it back with r
  q   stop; this row goes back at once
  ?   this help

The key of a class sends at once. Nothing is ever overwritten: a corrected answer stays in the history of the row.

Every answer is kept with your name; uncertain ones are used as what they are."""


def query_screen(query: Query, model: Model, width: int) -> list[RenderableType]:
    """A query, ready to print on a screen of ``width``; the row comes last, next to the keys."""
    answer = f"answer {model.queries_answered + 1} of {model.budget}"
    title = f"instance {query.instance}  ·  query {query.number}  ·  {answer}"
    panels = [
        Panel(
            _values(query, model, width - _FRAME), title="instance", title_align="left", border_style="cyan"
        ),
        Panel(_beliefs(query), title="believed so far", title_align="left", border_style="cyan"),
    ]
    why = Panel(
        _why(query.reason, width - _FRAME), title="why this one", title_align="left", border_style="dim"
    )
    return [Rule(title, style="bold cyan", align="left"), why, Columns(panels)]


def prompt(query: Query, width: int) -> Text:
    """The keys, broken between them where the line ends."""
    parts = [Text("class?  ", style="bold")]
    if len(query.classes) > MOST_KEYS:
        parts.append(Text("its key, from the list above  "))
    else:
        for key, name in zip(CLASS_KEYS, query.classes, strict=False):
            parts.append(Text.assemble((f" {key} ", "bold reverse"), f" {name}   "))
    commands = (
        "s set",
        "u uncertain",
        "r refuse",
        "k skip",
        "p later",
        "b back",
        "c comment",
        "? help",
        "q quit",
    )
    return _flow([*parts, *(Text(f"· {command} ", style="dim") for command in commands)], width)


def set_line(query: Query, chosen: Sequence[str], width: int) -> Text:
    """The set so far."""
    parts = [Text("one of:  ", style="bold")]
    for key, name in zip(CLASS_KEYS, query.classes, strict=False):
        if name in chosen:
            parts.append(Text(f"[x] {key} {name}   ", style="bold green"))
        elif len(query.classes) <= MOST_KEYS:
            parts.append(Text(f"[ ] {key} {name}   "))
    return _flow([*parts, Text("· Enter sends, ", style="dim"), Text("Escape goes back", style="dim")], width)


def _flow(parts: Sequence[Text], width: int) -> Text:
    """Parts in a row, a new line before one that would not fit whole."""
    text, used = Text(), 0
    for part in parts:
        size = cell_len(part.plain.rstrip())
        if used and used + size > width:
            text.append("\n")
            used = 0
        text.append_text(part)
        used += cell_len(part.plain)
    return text


def _values(query: Query, model: Model, width: int) -> RenderableType:
    names = [attribute.name for attribute in model.specification.attributes]
    shown = [(Text(name), _value(query.values.get(name))) for name in names[:MOST_VALUES]]
    columns = math.ceil(len(shown) / BLOCK_VALUES)
    while columns > 1 and _width(_blocks(shown, columns)) > width:
        columns -= 1  # a longer column rather than names that are cut
    grid = RichTable.grid(padding=(0, _GAP))
    grid.add_row(*map(_block, _blocks(shown, columns)))
    if len(names) <= MOST_VALUES:
        return grid
    return Group(grid, Text(f"and {len(names) - MOST_VALUES:,} more attributes", style="dim"))


def _value(value: Value) -> Text:
    if value is None:
        return Text("missing", style="dim")
    return Text(f"{value:.6g}" if isinstance(value, float) else str(value), style="bold")


def _blocks(shown: Sequence[_Row], columns: int) -> list[Sequence[_Row]]:
    size = math.ceil(len(shown) / columns)
    return [shown[k : k + size] for k in range(0, len(shown), size)]


def _width(blocks: Sequence[Sequence[_Row]]) -> int:
    """Cells that blocks take side by side."""
    widths = [max(name.cell_len for name, _ in b) + 2 + max(value.cell_len for _, value in b) for b in blocks]
    return sum(widths) + _GAP * len(widths)


def _block(rows: Sequence[_Row]) -> RenderableType:
    table = RichTable(box=None, show_header=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def _beliefs(query: Query) -> RenderableType:
    table = RichTable(box=None, show_header=False, pad_edge=False)
    for key, name, value in zip(CLASS_KEYS, query.classes, query.contour, strict=False):
        table.add_row(
            Text(key, style="bold"), Text(name), Text(f"{bar(value):<20}", style="green"), f"{value:.2f}"
        )
    if len(set(query.contour)) == 1:
        table.add_row("", Text("nothing is known", style="dim"), "", "")
    return table


def _why_of_forest(reason: Reason, forest: ForestReason, at: str) -> RenderableType:
    lines = []
    if forest.entropy is None:
        names = ", ".join(f"{r.name} ({r.lower:.3f} to {r.upper:.3f})" for r in reason.rivals[:MOST_RIVALS])
        lines.append(f"The split is contested {at} ({reason.node_count:,} rows): gain ratios {names}.")
    else:
        low, high = forest.entropy
        lines.append(
            f"The row ends {at}, in a leaf of {reason.node_count:,} rows: entropy {low:.2f} to {high:.2f} bits."
        )
    said = ", ".join(f"{value:.2f}" for value in forest.theta)
    lines.append(f"The forest says {said}; members differ by {forest.disagreement:.2f}.")
    lines.append(f"The row stands for {forest.stands_for:,} unlabelled rows (score {reason.score:.3f}).")
    head = RichTable.grid()
    for line in lines:
        head.add_row(Text(line))
    return head


def _why(reason: Reason, width: int) -> RenderableType:
    where = " and ".join(branch_text(name, value) for name, value in reason.path)
    at = f"where {where}" if where else "at the root"
    grid = RichTable.grid(padding=(0, 2))
    head = RichTable.grid()
    rows = f"{reason.node_count:,} rows"
    if reason.forest is not None:
        return _why_of_forest(reason, reason.forest, at)
    if not reason.attribute:
        head.add_row(Text(f"The row ends {at}, in a leaf of {rows}."))
        head.add_row(
            Text(f"This label would tell most by the strategy {reason.strategy} (score {reason.score:.3f}).")
        )
        return head
    things = "attributes" if all(rival.threshold is None for rival in reason.rivals) else "tests"
    head.add_row(Text(f"The tree is undecided {at} ({rows}): each of these {things} may be the best split."))
    low = min((rival.lower for rival in reason.rivals), default=0.0)
    high = max((rival.upper for rival in reason.rivals), default=1.0)
    shown = reason.rivals[:MOST_RIVALS]
    ends = [f"gain ratio {rival.lower:.3f} to {rival.upper:.3f}" for rival in shown]
    beside = max(map(cell_len, ends), default=0) + max((cell_len(r.name) for r in shown), default=0) + 6
    room = max(MIN_INTERVAL, min(MAX_INTERVAL, width - beside))
    for rival, numbers in zip(shown, ends, strict=True):
        drawn = Text(_interval(rival, low, high, room), style="yellow")
        grid.add_row(Text(f"  {rival.name}"), drawn, Text(numbers))
    head.add_row(grid)
    if len(reason.rivals) > MOST_RIVALS:
        head.add_row(Text(f"  and {len(reason.rivals) - MOST_RIVALS:,} more", style="dim"))
    child = branch_text(reason.attribute, reason.value)
    unit = " bits" if reason.strategy == "published" else ""
    head.add_row(Text(f"This label would tell most about {child} (score {reason.score:.3f}{unit})."))
    if reason.rivals:
        best = max(rival.lower + rival.upper for rival in reason.rivals)
        now = next(r.name for r in reason.rivals if r.lower + r.upper >= best - TIE)
        undecided = (
            f"The {len(reason.rivals)} stay undecided until one beats the others; {now} stands in meanwhile."
        )
        head.add_row(Text(undecided, style="dim"))
    return head


def branch_text(attribute: str, value: str) -> str:
    """A branch in words.

    Examples
    --------
    >>> branch_text("hue", "< 0.9"), branch_text("hue", "[0.9, 1.1)"), branch_text("wind", "weak")
    ('hue < 0.9', 'hue in [0.9, 1.1)', 'wind = weak')
    """
    if value.startswith(("< ", "≥ ")):
        return f"{attribute} {value}"
    return f"{attribute} in {value}" if value.startswith("[") else f"{attribute} = {value}"


def _interval(rival: Rival, low: float, high: float, width: int) -> str:
    """An interval drawn within the range of all."""
    span = (high - low) or 1.0
    start = round((rival.lower - low) / span * (width - 1))
    end = round((rival.upper - low) / span * (width - 1))
    return " " * start + "├" + "─" * max(0, end - start - 1) + "┤"


def show(console: Console, parts: Sequence[RenderableType]) -> None:
    """Print several parts."""
    for part in parts:
        console.print(part)
