"""The screen of a labeller: the instance, the current belief, the reason of the query, the keys."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from quercus.cli.label_row import display_lines, row_values, value_text
from quercus.client.keys import KEY_RULE, labelling_keys
from quercus.client.reasons import facts_text, place_text, why_text
from quercus.client.results import Answer, Model, Neighbour, Query, Reason, Rival
from quercus.client.words import TERMS, is_vacuous, known_text
from quercus.specification.attributes import Nominal
from quercus.specification.shares import decimal_text

MOST_RIVALS = 8
MOST_KEYS = 9
"""Most classes whose keys the prompt lists; with more, only the list of plausibilities shows the keys."""
MIN_INTERVAL, MAX_INTERVAL = 8, 30
_FRAME = 4

_KEPT = (
    "Nothing is ever overwritten: a corrected answer stays in the history of the row. Every answer is kept with your "
    "name; uncertain answers keep their uncertainty."
)
TERMS_TEXT = "\n".join(f"{term}: {text}" for term, text in TERMS.items())


def help_text(classes: Sequence[str]) -> str:
    """Return the explanation of all keys of a model."""
    keys = labelling_keys(tuple(classes))
    return "\n".join(
        [
            "Answer with the key of the class: it sends at once.",
            "",
            *(f"  {key}   {name}" for key, name in keys.class_keys()),
            "",
            "If you cannot say which one:",
            "",
            *(f"  {key}   {command.help}" for key, command in keys.command_keys()),
            "",
            KEY_RULE,
            "",
            _KEPT,
        ]
    )


def query_screen(query: Query, model: Model, width: int) -> list[RenderableType]:
    """Return the parts of a query's screen of ``width`` cells; the row comes last, next to the keys."""
    answer = f"answer {model.queries_answered + 1} of {model.budget}"
    title = f"instance {query.instance}  ·  query {query.number}  ·  {answer}"
    panels = [
        _titled_panel(row_values(query.values, model, width - _FRAME), "instance"),
        _titled_panel(_evidence_text(query.classes, query.contour), "known so far"),
    ]
    why = _titled_panel(_reason_text(query, nominal_names(model), width - _FRAME), "why this one", "dim")
    beside = display_lines(query.instance, query.values, query.display, model, width - _FRAME)
    shown = [_titled_panel(Group(*beside), "beside it")] if beside else []
    return [Rule(title, style="bold cyan", align="left"), why, *shown, Columns(panels)]


def answer_screen(answer: Answer, model: Model, width: int) -> list[RenderableType]:
    """Return the screen of a given answer: the row, and the answer."""
    answer_text = Text(
        f"{answer.text or 'nobody can tell'}  ({answer.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC)", style="bold"
    )
    panels = [
        _titled_panel(row_values(answer.values, model, width - _FRAME), "instance"),
        _titled_panel(answer_text, "your answer"),
    ]
    return [Rule(f"instance {answer.instance}", style="bold cyan", align="left"), Columns(panels)]


def neighbour_list(neighbours: Sequence[Neighbour]) -> RenderableType:
    """Return a table of rows of known class, the nearest first, with the attributes in which each differs most."""
    table = RichTable("class", "instance", "leaf", "distance", "differs most in", box=None)
    for each in neighbours:
        differing = ", ".join(
            f"{name} ({value_text(each.values.get(name)).plain})" for name in each.differing
        )
        leaf = "the same" if each.same_leaf else "another"
        table.add_row(each.class_name, each.instance, leaf, f"{each.distance:.2f}", differing)
    return table


def answer_list(answers: Sequence[Answer]) -> RenderableType:
    """Return a numbered table of own answers, the newest first."""
    table = RichTable("", "instance", "your answer", "when (UTC)", box=None)
    for number, answer in enumerate(answers, 1):
        answer_text = answer.text or "nobody can tell"
        table.add_row(
            str(number), answer.instance, answer_text, f"{answer.at.astimezone(UTC):%Y-%m-%d %H:%M}"
        )
    return table


def nominal_names(model: Model) -> frozenset[str]:
    """Return the names of a model's nominal attributes."""
    return frozenset(each.name for each in model.specification.attributes if isinstance(each, Nominal))


def _titled_panel(content: RenderableType, title: str, style: str = "cyan") -> Panel:
    return Panel(content, title=title, title_align="left", border_style=style)


def prompt_line(classes: Sequence[str], width: int) -> Text:
    """Return the line of keys; it wraps only between keys."""
    keys = labelling_keys(tuple(classes))
    parts = [Text("class?  ", style="bold")]
    if len(classes) > MOST_KEYS:
        parts.append(Text("its key, from the list above  "))
    else:
        for key, name in keys.class_keys():
            parts.append(Text.assemble((f" {key} ", "bold reverse"), f" {name}   "))
    commands = (Text(f"· {key} {command.label} ", style="dim") for key, command in keys.command_keys())
    return _flow_parts([*parts, *commands], width)


def set_line(classes: Sequence[str], chosen: Sequence[str], width: int) -> Text:
    """Return the line that shows the classes chosen so far."""
    parts = [Text("one of:  ", style="bold")]
    for key, name in labelling_keys(tuple(classes)).class_keys():
        if name in chosen:
            parts.append(Text(f"[x] {key} {name}   ", style="bold green"))
        elif len(classes) <= MOST_KEYS:
            parts.append(Text(f"[ ] {key} {name}   "))
    return _flow_parts(
        [*parts, Text("· Enter sends, ", style="dim"), Text("Escape goes back", style="dim")], width
    )


def _flow_parts(parts: Sequence[Text], width: int) -> Text:
    """Return parts in a row, with a line break before a part that does not fit."""
    text, used = Text(), 0
    for part in parts:
        size = cell_len(part.plain.rstrip())
        if used and used + size > width:
            text.append("\n")
            used = 0
        text.append_text(part)
        used += cell_len(part.plain)
    return text


def _evidence_text(classes: Sequence[str], contour: Sequence[float]) -> RenderableType:
    """Return the evidence about the class: in words, and as hollow bars unless it is vacuous."""
    text = Text(known_text(classes, contour))
    vacuous = not contour or is_vacuous(contour)
    if vacuous and len(classes) <= MOST_KEYS:
        return text
    contour = contour or (1.0,) * len(classes)  # withheld: the keys alone
    table = RichTable(box=None, show_header=not vacuous, pad_edge=False)
    for title in ("", "", "plausibility", ""):
        table.add_column(title, header_style="dim")
    for (key, name), value in zip(labelling_keys(tuple(classes)).class_keys(), contour, strict=True):
        drawn = () if vacuous else (Text(f"{hollow_bar(value):<20}", style="green"), decimal_text(value))
        table.add_row(Text(key, style="bold"), Text(name), *drawn)
    return Group(text, table)


def hollow_bar(value: float, width: int = 20) -> str:
    """Return a bar of hollow cells for a plausibility, which is not a share.

    Examples
    --------
    >>> hollow_bar(0.5, 4), hollow_bar(0.01, 4), hollow_bar(0.0, 4)
    ('▯▯', '▯', '')
    """
    return "▯" * (max(1, round(value * width)) if value > 0 else 0)


def _reason_text(query: Query, nominal: Collection[str], width: int) -> RenderableType:
    """Return the reason of a query: in sentences, and with the rivals' intervals if tests compete."""
    reason = query.reason
    told = filter(None, (facts_text(query), place_text(reason, nominal)))
    lines = [Text(why_text(query)), *(Text(each, style="dim") for each in told)]
    return Group(*lines, *_rival_table(reason, width))


def _rival_table(reason: Reason, width: int) -> list[RenderableType]:
    shown = reason.rivals[:MOST_RIVALS]
    if not shown:
        return []
    low = min(rival.lower for rival in reason.rivals)
    high = max(rival.upper for rival in reason.rivals)
    texts = [_gain_text(rival) for rival in shown]
    taken = max(map(cell_len, texts)) + max(cell_len(rival.name) for rival in shown) + 6
    room = max(MIN_INTERVAL, min(MAX_INTERVAL, width - taken))
    grid = RichTable.grid(padding=(0, 2))
    for rival, text in zip(shown, texts, strict=True):
        drawn = Text(_interval_drawing(rival, low, high, room), style="yellow")
        grid.add_row(Text(f"  {rival.name}"), drawn, Text(text))
    if len(reason.rivals) <= MOST_RIVALS:
        return [grid]
    return [grid, Text(f"  and {len(reason.rivals) - MOST_RIVALS:,} more", style="dim")]


def _gain_text(rival: Rival) -> str:
    """Return the gain ratio of a test; how far it lies below 0, that is below chance, tells a labeller nothing."""
    if rival.lower >= 0:
        return f"gain ratio {rival.lower:.3f} to {rival.upper:.3f}"
    return f"gain ratio at most {rival.upper:.3f}" if rival.upper >= 0 else "gain ratio below 0"


def _interval_drawing(rival: Rival, low: float, high: float, width: int) -> str:
    """Return the drawing of an interval on the scale of all."""
    span = (high - low) or 1.0
    start = round((rival.lower - low) / span * (width - 1))
    end = round((rival.upper - low) / span * (width - 1))
    return " " * start + "├" + "─" * max(0, end - start - 1) + "┤"


def print_parts(console: Console, parts: Sequence[RenderableType]) -> None:
    """Print several parts."""
    for part in parts:
        console.print(part)
