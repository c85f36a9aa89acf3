"""The screen of a labeller: the instance, the current belief, the reason of the query, the keys, the guidelines."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len
from rich.columns import Columns
from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.rule import Rule
from rich.table import Table as RichTable
from rich.text import Text

from quercus.client.guess import guess_of
from quercus.client.keys import GRADES, KEY_RULE, Grade, labelling_keys
from quercus.client.results import Answer, Example, Model, Neighbour, Query
from quercus.specification.console import SEND_DELAY_S
from quercus.specification.shares import decimal_text
from quercus.view.answers import answer_text, moment_text
from quercus.view.bars import hollow_bar, interval_line, sparkline
from quercus.view.guidance import by_class, example_values, paragraphs_of
from quercus.view.queries import QueryDescription, describe_query, fold_values, gain_text, question_text
from quercus.view.rows import ShownItem, ShownValue, shown_curves, shown_values, value_text
from quercus.view.words import TERMS, is_vacuous

MOST_KEYS = 9
"""Maximum number of classes whose keys the prompt lists; with more, only the list of plausibilities shows the keys."""
MIN_INTERVAL, MAX_INTERVAL = 8, 30
_FRAME = 4
MOST_VALUES: Final = 90
BLOCK_VALUES: Final = 18
"""Number of attributes in a column, if there is room for several columns."""
HELP_WIDTH: Final = 79
_GAP: Final = 3
_CURVE: Final = 60

_KEPT = (
    "Nothing is ever overwritten: a corrected answer stays in the history of the row. Every answer is kept with your "
    "name; uncertain answers keep their uncertainty."
)
TERMS_TEXT = "\n".join(f"{term}: {text}" for term, text in TERMS.items())


def help_text(classes: Sequence[str]) -> str:
    """Return the explanation of all keys of a model."""
    keys = labelling_keys(tuple(classes))
    back = keys.commands["back"][0]
    wait = f"{SEND_DELAY_S.default:g} s, or with your next answer"
    sent = f"It is sent after {wait}; until then {back} takes it back, and it is never sent."
    return "\n".join(
        [
            f"Press the key of the class. {sent} Enter accepts the model's guess, if the line of keys names one.",
            "",
            *(f"  {key}   {name}" for key, name in keys.class_keys()),
            "",
            "If you cannot say which one:",
            "",
            *(
                textwrap.fill(
                    command.help, HELP_WIDTH, initial_indent=f"  {key}   ", subsequent_indent=" " * 6
                )
                for key, command in keys.command_keys()
            ),
            "",
            KEY_RULE,
            "",
            _KEPT,
        ]
    )


def query_screen(query: Query, model: Model, width: int, height: int | None = None) -> list[RenderableType]:
    """Return the parts of a query's screen of ``width`` cells; the row comes last, next to the keys.

    If it does not fit into ``height`` lines with the line of keys, the reason is cut to its first sentence, and only as
    many values are shown as fit, those that the tree tests on the row's path first.
    """
    shown = describe_query(query, model, MOST_VALUES)
    whole = _screen_parts(query, model, width, shown, MOST_VALUES, is_short=False)
    if height is None:
        return whole
    room = height - 1 - len(prompt_line(query.classes, width, guess_of(query, model)).plain.split("\n"))
    if _height_of(whole, width) <= room:
        return whole
    found = whole
    for most in range(sum(len(values) for _, values in shown.groups), 0, -1):
        found = _screen_parts(query, model, width, shown, most, is_short=True)
        if _height_of(found, width) <= room:
            break
    return found


def _screen_parts(
    query: Query, model: Model, width: int, shown: QueryDescription, most: int, *, is_short: bool
) -> list[RenderableType]:
    """Return the screen with at most `most_values` values; a short one shows the reason without panel and details."""
    answer = f"answer {model.queries_answered + 1} of {model.budget}"
    title = f"instance {query.instance}  ·  query {query.number}  ·  {answer}"
    question = Text(question_text(query.classes), style="bold")
    above: list[RenderableType] = []
    if shown.why and is_short:
        above.append(Text(shown.why, style="dim"))
    elif shown.why:
        above.append(_titled_panel(Group(*_reason_parts(shown, width - _FRAME)), "why this one", "dim"))
    if shown.beside:
        above.append(_titled_panel(Group(*item_texts(shown.beside, width - _FRAME)), "beside it"))
    groups, rest = fold_values(shown.groups, query.reason, most)
    more = shown.more + sum(len(values) for _, values in rest)
    row = row_parts(groups, more, shown.curves, width - _FRAME)
    if rest:
        key = labelling_keys(query.classes).commands["zoom"][0]
        row = Group(row, Text(f"{key} shows all", style="dim"))
    panels = [_titled_panel(row, "instance")]
    evidence = _evidence_parts(query, shown)
    if evidence and not (is_short and is_vacuous(query.contour) and len(query.classes) <= MOST_KEYS):
        panels.append(_titled_panel(Group(*evidence), "known so far"))
    return [Rule(title, style="bold cyan", align="left"), question, *above, Columns(panels)]


def _height_of(parts: Sequence[RenderableType], width: int) -> int:
    """Return the number of lines that parts take."""
    console = Console(width=width, file=io.StringIO())
    return sum(len(console.render_lines(part, pad=False)) for part in parts)


def answer_screen(answer: Answer, model: Model, width: int) -> list[RenderableType]:
    """Return the screen of a given answer: the row, and the answer."""
    given = Text(f"{answer_text(answer)}  ({moment_text(answer.at)} UTC)", style="bold")
    curves = shown_curves(answer.values, model)
    row = row_parts(*shown_values(answer.values, model, MOST_VALUES), curves, width - _FRAME)
    panels = [_titled_panel(row, "instance"), _titled_panel(given, "your answer")]
    return [Rule(f"instance {answer.instance}", style="bold cyan", align="left"), Columns(panels)]


def row_parts(
    groups: Sequence[tuple[str, Sequence[ShownValue]]], more: int, curves: Sequence[ShownItem], width: int
) -> RenderableType:
    """Return a row: its values in columns, by group, the number of values not shown, and its curves."""
    shown: list[tuple[Text, Text]] = []
    for title, values in groups:
        shown += [(Text(title, style="underline"), Text())] if title else []
        shown += [
            (Text(value.title), Text(value.text, style="dim" if value.is_missing else "bold"))
            for value in values
        ]
    parts: list[RenderableType] = []
    if shown:
        for columns in range(math.ceil(len(shown) / BLOCK_VALUES), 0, -1):
            size = math.ceil(len(shown) / columns)
            blocks = [shown[k : k + size] for k in range(0, len(shown), size)]
            sizes = (
                (max(name.cell_len for name, _ in b), max(value.cell_len for _, value in b)) for b in blocks
            )
            if sum(names + 2 + texts + _GAP for names, texts in sizes) <= width:
                break  # otherwise prefer a longer column to truncated names
        tables = [RichTable(box=None, show_header=False, pad_edge=False) for _ in blocks]
        for table, block in zip(tables, blocks, strict=True):
            for row in block:
                table.add_row(*row)
        grid = RichTable.grid(padding=(0, _GAP))
        grid.add_row(*tables)
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


def neighbour_list(neighbours: Sequence[Neighbour]) -> RenderableType:
    """Return a table of rows of known class, nearest first, with the attributes in which each differs most."""
    table = RichTable("class", "instance", "leaf", "distance", "differs most in", box=None)
    for each in neighbours:
        differing = ", ".join(f"{name} ({value_text(each.values.get(name))})" for name in each.differing)
        leaf = "the same" if each.same_leaf else "another"
        table.add_row(each.class_name, each.instance, leaf, f"{each.distance:.2f}", differing)
    return table


def answer_list(answers: Sequence[Answer]) -> RenderableType:
    """Return a numbered table of the labeller's own answers, newest first."""
    table = RichTable("", "instance", "your answer", "when (UTC)", box=None)
    for number, answer in enumerate(answers, 1):
        table.add_row(str(number), answer.instance, answer_text(answer), moment_text(answer.at))
    return table


def _titled_panel(content: RenderableType, title: str, style: str = "cyan") -> Panel:
    return Panel(content, title=title, title_align="left", border_style=style)


def prompt_line(
    classes: Sequence[str], width: int, guess: tuple[int, float] | None = None, grade: Grade = GRADES[0]
) -> Text:
    """Return the line of keys, with the model's guess and the certainty of the next answer; wraps only between keys."""
    keys = labelling_keys(tuple(classes))
    parts = [Text("class?  ", style="bold")]
    if len(classes) > MOST_KEYS:
        parts.append(Text("its key: see above  "))
    else:
        for key, name in keys.class_keys():
            parts.append(Text.assemble((f" {key} ", "bold reverse"), f" {name}   "))
    if guess is not None:
        parts.append(Text.assemble((" Enter ", "bold reverse"), f" the guess, {classes[guess[0]]}   "))
    if grade is not GRADES[0]:
        parts.append(Text(f"you are: {grade.name}  ", style="bold yellow"))
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


def _evidence_parts(query: Query, shown: QueryDescription) -> list[RenderableType]:
    """Return the evidence about the class: words, and hollow bars unless it is vacuous; the keys of many classes."""
    text = [Text(shown.known)] if shown.known else []
    drawn = shown.known and not is_vacuous(query.contour)
    if not drawn and len(query.classes) <= MOST_KEYS:
        return [*text]
    table = RichTable(box=None, show_header=bool(drawn), pad_edge=False)
    for title in ("", "", "plausibility", ""):
        table.add_column(title, header_style="dim")
    for place, (key, name) in enumerate(labelling_keys(query.classes).class_keys()):
        value = query.contour[place] if drawn else 1.0
        bars = (Text(f"{hollow_bar(value):<20}", style="green"), decimal_text(value)) if drawn else ()
        table.add_row(Text(key, style="bold"), Text(name), *bars)
    return [*text, table]


def _reason_parts(shown: QueryDescription, width: int) -> list[RenderableType]:
    """Return the reason of a query: in sentences, and with the rivals' intervals if tests compete."""
    parts: list[RenderableType] = [Text(shown.why)]
    parts += [Text(each, style="dim") for each in (shown.facts, shown.place) if each]
    if not shown.rivals:
        return parts
    scale = min(low for _, low, _ in shown.rivals), max(high for _, _, high in shown.rivals)
    texts = [f"gain ratio {gain_text(low, high)}" for _, low, high in shown.rivals]
    taken = max(map(cell_len, texts)) + max(cell_len(name) for name, _, _ in shown.rivals) + 6
    room = max(MIN_INTERVAL, min(MAX_INTERVAL, width - taken))
    grid = RichTable.grid(padding=(0, 2))
    for (name, low, high), text in zip(shown.rivals, texts, strict=True):
        grid.add_row(
            Text(f"  {name}"), Text(interval_line((low, high), scale, room), style="yellow"), Text(text)
        )
    more = [Text(f"  and {shown.more_rivals:,} more", style="dim")] if shown.more_rivals else []
    return [*parts, grid, *more]


def print_parts(console: Console, parts: Sequence[RenderableType]) -> None:
    """Print several parts."""
    for part in parts:
        console.print(part)


def guidance_parts(model: Model, examples: Sequence[Example]) -> Iterator[RenderableType]:
    """Yield the guidelines of a model, and its examples by class."""
    guidance = model.specification.guidance
    for paragraph in paragraphs_of("" if guidance is None else guidance.text):
        yield Text("\n".join("".join(part.text for part in line) for line in paragraph) + "\n")
    for name, rows in by_class(examples, model.specification.classes).items():
        yield Text(name, style="bold")
        for each in rows:
            values = ", ".join(f"{title} {text}" for title, text in example_values(each, model))
            remark = f": {each.remark}" if each.remark else ""
            yield Text.assemble("  ", each.instance, remark, (f"  ({values})", "dim"))
