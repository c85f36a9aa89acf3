"""The reasons why a model says of a row what it says, on a terminal."""

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
    """Return then and now, the changes between them, and the answers about the row."""
    classes = explanation.classes

    def said(word: str, prediction: RowPrediction) -> list[RenderableType]:
        when = f"{word}, after event {prediction.as_of:,} of {moment_text(prediction.at)}"
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
        table = Table("event", "when (UTC)", box=None, pad_edge=False)
        for title in ("what came", "what the model said from then on"):
            table.add_column(title, overflow="fold")
        for change, cause, effect in changes_in(explanation, nominal):
            number = str(change.sequence)
            table.add_row(number, moment_text(change.after.at), Text(cause), Text(effect))
        parts.append(table)
    if explanation.answers:
        table = Table("answer", "when (UTC)", box=None, pad_edge=False)
        for title in ("labeller", "label", "the model just before", ""):
            table.add_column(title, overflow="fold")
        for each in explanation.answers:
            answer, before = each.answer, each.before
            remarks = [*remarks_on(answer), seen_text(answer.shown, classes), answer.comment]
            table.add_row(
                str(answer.number), moment_text(answer.at), Text(answer.labeller), Text(answer_text(answer)),
                Text("" if before is None else prediction_text(before, classes)),
                Text(", ".join(filter(None, remarks))),
            )  # fmt: skip
        parts += [Text(), Text("Answers about this row"), table]
    notes = [BESIDE] * explanation.beside + [SEARCHED] * (not explanation.complete)
    return Group(*parts, *(Text(note, style="dim") for note in notes))
