"""The output of ``quercus models``: a table of models, and all about one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.table import Column, Table
from rich.text import Text

from quercus.cli.common import accuracy_text, attribute_text, lag_text, out
from quercus.client import algorithms
from quercus.client.reasons import why_it_stopped
from quercus.client.results import Model
from quercus.client.words import ASKED_ARE_HARDEST, confidence_text
from quercus.specification.algorithms import Pruning
from quercus.specification.model import Specification
from quercus.specification.parameter import Parameter, parameters_of


def table_of_models(models: Sequence[Model]) -> Table:
    """Return a table with a row for each model."""
    numbers = [Column(name, justify="right") for name in ("rows", "answers", "open", "tree", "lag", "behind")]
    table = Table("model", "classes", *numbers, box=None)
    for model in models:
        table.add_row(
            model.name,
            str(len(model.specification.classes)),
            f"{model.instance_count:,}",
            f"{model.queries_answered:,} of {model.budget:,}",
            f"{model.queries_open:,}",
            f"v{model.tree_version}",
            f"{model.lag:,}",
            f"{model.lag_s:.1f} s",
        )
    return table


def _value_text(parameter: Parameter, value: object) -> str:
    if value is None:
        return parameter.meaning_of_none
    return f"{value:,}" if isinstance(value, int) else str(value)


def print_model(model: Model) -> None:
    """Print the specification of a model and its progress."""
    spec = model.specification
    grid = Table(box=None, show_header=False, pad_edge=False)
    rows: list[tuple[str, object]] = [
        ("model", model.name),
        ("created", f"{model.created_at:%Y-%m-%d %H:%M:%S} UTC"),
        ("classes", ", ".join(spec.classes)),
        ("algorithm", algorithms.algorithm_text(spec.algorithm)),
        *(
            (each.name.replace("_", " "), _value_text(each, getattr(spec, each.name)))
            for each in parameters_of(Specification)
            if each.name not in {"budget", "ask"}  # they follow below, with what came of them
        ),
        ("pruning", _pruning_text(spec.pruning)),
        ("asks", why_it_stopped(model) or spec.ask),
        ("rows", f"{model.instance_count:,}"),
        (
            "queries",
            f"{model.queries_answered:,} answered of {model.budget:,}, {model.queries_leased:,} leased, ",
        ),
        (
            "",
            f"{model.queries_refused:,} refused, {model.queries_open:,} open, {model.conflicts:,} conflicts",
        ),
        ("tree", f"version {model.tree_version}, {lag_text(model)}"),
        *([("growth stopped", model.growth_stopped)] if model.growth_stopped else []),
        ("accuracy", accuracy_text(model.accuracy)),
        *_words_on_accuracy(model),
    ]
    for key, value in rows:
        grid.add_row(key, Text(str(value)))
    out.print(grid)
    attributes = Table("attribute", "kind", box=None, pad_edge=False, header_style="none")
    for attribute in spec.attributes:
        attributes.add_row(
            Text(attribute.name),
            Text(attribute_text(attribute, model.other_names.get(attribute.name, 0)), style="dim"),
        )
    out.print()
    out.print(attributes)


def _words_on_accuracy(model: Model) -> Iterator[tuple[str, str]]:
    """Yield what the accuracy leaves out: whether the rows are the hardest, and the estimate for all of them."""
    if model.accuracy is not None and model.queries_answered:
        yield "", f"({ASKED_ARE_HARDEST})"
    if model.average_confidence is not None:
        yield "on all rows", confidence_text(model.average_confidence)
        yield "", f"(to measure it: quercus classify {model.name} FILE --class COLUMN)"


def _pruning_text(pruning: Pruning | None) -> str:
    return "none" if pruning is None else f"{pruning.kind} at level {pruning.level:g}"
