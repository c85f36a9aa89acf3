"""Models, their labelling policy and their labellers in tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Column, Table
from rich.text import Text

from quercus.client import plugins
from quercus.client.results import GoldQuestion, Labeller, Model
from quercus.specification.model import Specification
from quercus.specification.parameter import parameters_of
from quercus.view.answers import moment_text
from quercus.view.confusion import ConfusionTable, confusion_table
from quercus.view.learning import all_cells, curve_points, fallen_text, fit_curve, needed_rows, now_text
from quercus.view.models import (
    ASKED_ARE_HARDEST,
    accuracy_line,
    answers_text,
    attribute_words,
    confidence_text,
    deviation_text,
    drift_texts,
    extension_texts,
    gold_text,
    number_rows,
    state_text,
)

COUNT_COLUMNS: Final = ("answered", "stated", "refused", "held")
RARE_COUNTS: Final = ("skipped", "postponed", "expired", "corrected", "undone")


def models_table(models: Sequence[Model]) -> Table:
    """Return a table with a row for each model."""
    numbers = [Column(name, justify="right") for name in ("rows", "answers", "open", "tree", "lag", "behind")]
    # in a narrow terminal, cut the numbers rather than the name, which other commands need
    table = Table(Column("model", no_wrap=True), "classes", *numbers, box=None)
    for model in models:
        table.add_row(
            model.name,
            str(len(model.specification.classes)),
            f"{model.instance_count:,}",
            answers_text(model),
            f"{model.queries_open:,}",
            f"v{model.tree_version}",
            f"{model.lag:,}",
            f"{model.lag_s:.1f} s",
        )
    return table


def pairs_table(rows: Iterable[tuple[str, str]]) -> Table:
    """Return names and texts side by side."""
    grid = Table(box=None, show_header=False, pad_edge=False)
    for name, text in rows:
        grid.add_row(Text(name), Text(text))
    return grid


def model_page(model: Model) -> RenderableType:
    """Return the specification of a model, its progress, and its attributes."""
    attributes = Table("attribute", "kind", "values", box=None, pad_edge=False, header_style="none")
    for attribute in model.specification.attributes:
        kind, values = attribute_words(attribute, model.other_names.get(attribute.name, 0))
        attributes.add_row(Text(attribute.name), Text(kind, style="dim"), Text(values, style="dim"))
    parts: list[RenderableType] = [pairs_table(_model_rows(model)), Text()]
    if cells := all_cells(model.accuracy):
        parts += [confusion_grid(confusion_table(cells, model.specification.classes), "predicted"), Text()]
    return Group(*parts, attributes)


def confusion_grid(found: ConfusionTable, said: str) -> Table:
    """Return a confusion matrix: a row for each accepted class, a column for each given one."""
    grid = Table("label", box=None, pad_edge=False, header_style="none")
    for name in (*(f"{said} {name}" for name in found.classes), "recall"):
        grid.add_column(name, justify="right", overflow="fold")
    for name, counts, recall in found.rows:
        grid.add_row(name, *(f"{count:,}" for count in counts), recall)
    grid.add_row("precision", *found.precision, "")
    return grid


def _model_rows(model: Model) -> Iterator[tuple[str, str]]:
    spec = model.specification
    yield "model", model.name
    yield "created", f"{model.created_at:%Y-%m-%d %H:%M:%S} UTC"
    yield "classes", ", ".join(spec.classes)
    for text in extension_texts(model):
        yield "later", text
    yield "learner", plugins.plugin_text(spec.learner)
    yield "strategy", plugins.plugin_text(spec.strategy)
    for each in parameters_of(Specification):
        if each.name != "budget":  # it is shown with the number of answers
            value = getattr(spec, each.name)
            text = (
                each.meaning_of_none
                if value is None
                else f"{value:,}"
                if isinstance(value, int)
                else str(value)
            )
            yield each.name.replace("_", " "), text
    pruning = spec.pruning
    yield "pruning", "none" if pruning is None else f"{pruning.kind} at level {pruning.level:g}"
    yield "state", state_text(model)
    yield from number_rows(model)
    yield "accuracy", accuracy_line(model.accuracy)
    for text in drift_texts(model):
        yield "changed", text
    if model.accuracy is not None and model.queries_answered:
        yield "", f"({ASKED_ARE_HARDEST})"
    points = curve_points(model.accuracy)
    if model.drift is not None and model.drift.accuracy is not None:
        yield "", fallen_text(points)
    elif (curve := fit_curve(points)) is not None:
        yield "", now_text(curve)
        for accuracy, text in needed_rows(curve, None):
            yield f"for {accuracy} right", text
    if model.average_confidence is not None:
        yield "on all rows", confidence_text(model.average_confidence)
        yield "", f"(to measure it: quercus classify {model.name} FILE --class COLUMN)"


def labellers_table(statistics: Sequence[Labeller]) -> RenderableType:
    """Return a table of labellers that is 60 columns wide, with rare counts in words below it."""
    table = Table(box=None, pad_edge=False)
    table.add_column("labeller", overflow="fold")
    tried = any(each.gold_answered for each in statistics)
    columns = [name for name in COUNT_COLUMNS if name != "stated" or any(each.stated for each in statistics)]
    for head in (*columns, "agree", "reliable", *(["gold"] if tried else []), "median"):
        table.add_column(head, justify="right", no_wrap=True)
    lines: list[Text] = []
    for each in statistics:
        counts = [f"{getattr(each, name):,}" for name in columns]
        agreement = deviation_text(each.agreement, each.agreement_deviation)
        reliability = deviation_text(each.reliability, each.reliability_deviation)
        shares = [text.replace("0.", ".").replace(" ", "") for text in (agreement, reliability)]
        shares += [gold_text(each)] if tried else []
        table.add_row(each.name, *counts, *shares, "–" if each.median_s is None else f"{each.median_s:.1f} s")
        rare = [f"{getattr(each, name):,} {name}" for name in RARE_COUNTS if getattr(each, name)]
        if rare:
            lines.append(Text(f"{each.name}: also {', '.join(rare)}", style="dim"))
    return Group(table, *([Text(), *lines] if lines else []))


def gold_table(questions: Sequence[GoldQuestion]) -> Table:
    """Return a table of gold questions: the right answer, who marked it, and how it was answered."""
    table = Table("row", "answer", box=None, pad_edge=False)
    table.add_column("right", justify="right")
    for title in ("marked by", "when (UTC)", ""):
        table.add_column(title)
    for each in questions:
        right = f"{each.right:,} of {each.answered:,}" if each.answered else "–"
        table.add_row(each.instance, each.text, right, each.labeller, moment_text(each.at), each.comment)
    return table
