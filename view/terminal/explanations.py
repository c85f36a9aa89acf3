"""The explanation of a row's prediction, for a terminal."""

from __future__ import annotations

from collections.abc import Collection

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from quercus.client.results import RowExplanation, RowPrediction
from quercus.view.answers import answer_text, moment_text, remarks_on
from quercus.view.explanations import (
    BESIDE,
    SEARCHED,
    changes_head,
    changes_in,
    conditions_of,
    prediction_text,
    seen_text,
)


def explanation_page(explanation: RowExplanation, nominal: Collection[str]) -> RenderableType:
    """Return the earlier and the current prediction, the changes between them, and the answers about the row."""
    classes = explanation.classes

    def said(word: str, prediction: RowPrediction) -> list[RenderableType]:
        when = f"{word}, after event {prediction.as_of:,} of {moment_text(prediction.at)} UTC"
        path = conditions_of(prediction, nominal)
        return [
            Text(f"{when}: {prediction_text(prediction, classes)}"),
            *(Text(f"  {each}", style="dim") for each in path),
        ]

    parts: list[RenderableType] = [
        *said("then", explanation.then),
        *said("now", explanation.now),
        Text(),
        Text(changes_head(explanation)),
    ]
    if explanation.changes:
        table = _list_of("event")
        for change, cause, effect in changes_in(explanation, nominal):
            when = moment_text(change.after.at)
            table.add_row(str(change.sequence), when, Text.assemble(cause, "\n", (effect, "dim")))
        parts.append(table)
    if explanation.answers:
        table = _list_of("answer")
        for each in explanation.answers:
            answer, before = each.answer, each.before
            comment = f"“{answer.comment}”" if answer.comment else ""
            held = "" if before is None else f"the model said {prediction_text(before, classes)} before"
            remarks = [*remarks_on(answer), seen_text(answer.shown, classes), comment, held]
            told = ", ".join(filter(None, remarks))
            what = Text(f"{answer.labeller}: {answer_text(answer)}")
            if told:
                what.append(f"\n{told}", "dim")
            table.add_row(str(answer.number), moment_text(answer.at), what)
        parts += [Text(), Text("Answers about this row"), table]
    notes = [BESIDE] * explanation.beside + [SEARCHED] * (not explanation.complete)
    return Group(*parts, *(Text(note, style="dim") for note in notes))


def _list_of(numbered: str) -> Table:
    """Return a table of numbered, timed entries; each has a line, and its consequence below."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(numbered, justify="right", no_wrap=True)
    table.add_column("when (UTC)", no_wrap=True, style="dim")
    table.add_column("what", overflow="fold")
    return table
