"""``quercus why``: compare an earlier prediction of a row with the current one, and show what changed it."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from quercus.cli.common import (
    DEFAULT_SERVER,
    JsonOption,
    ModelArgument,
    ServerOption,
    parse_time,
    report,
    utc_text,
)
from quercus.client.client import Client
from quercus.client.results import Answer, RowExplanation, RowPrediction
from quercus.view.models import nominal_names
from quercus.view.terminal.explanations import explanation_page


def why(
    *,
    model: ModelArgument,
    row: Annotated[str, typer.Argument(metavar="ROW", help="Id of the row.", show_default=False)],
    at: Annotated[
        str | None,
        typer.Option(
            "--at",
            metavar="TIME|EVENT",
            help="The earlier time (2026-11-22, 2026-11-22T09:30, or 2h or 3d ago), or the number of an event "
            "(default: when the row was pushed).",
        ),
    ] = None,
    server: ServerOption = DEFAULT_SERVER,
    as_json: JsonOption = False,
) -> None:
    """Compare an earlier prediction of a row with the current one, and show the answers that changed it.

    The server grows the model again from its log. An answer changed the prediction if, without it, the most likely
    class or the path of the row would differ. Times are UTC.

    Try:

        quercus why wine bottle-7
        quercus why wine bottle-7 --at 2d
        quercus why wine bottle-7 --at 214 --json
    """
    is_event = at is not None and re.fullmatch("[0-9]{1,18}", at)
    then = int(at or "") if is_event else parse_time(at, "--at")
    with Client(server) as client:
        found = client.explain_row(model, row, then)
        nominal = nominal_names(client.get_model(model))
        report(as_json, {"item": row} | _explanation_json(found), explanation_page(found, nominal))


def _explanation_json(found: RowExplanation) -> dict[str, Any]:
    return {
        "then": _prediction_json(found.then, found.classes),
        "now": _prediction_json(found.now, found.classes),
        "changes": [
            {
                "first_event": each.first_sequence,
                "event": each.sequence,
                "answer": _answer_json(each.answer),
                "specification": each.specification,
                "after": _prediction_json(each.after, found.classes),
            }
            for each in found.changes
        ],
        "change_count": found.change_count,
        "answers": [
            {**(_answer_json(each.answer) or {}), "before": _prediction_json(each.before, found.classes)}
            for each in found.answers
        ],
        "complete": found.complete,
        "path_beside_forest": found.beside,
    }


def _prediction_json(said: RowPrediction | None, classes: Any) -> dict[str, Any] | None:
    if said is None:
        return None
    return {
        "event": said.as_of,
        "time": utc_text(said.at),
        "class": said.class_name,
        "theta": dict(zip(classes, said.theta, strict=True)),
        "set": list(said.class_set),
        "path": [[step.attribute, step.value] for step in said.path],
    }


def _answer_json(answer: Answer | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    return {
        "number": answer.number,
        "item": answer.instance,
        "labeller": answer.labeller,
        "time": utc_text(answer.at),
        "answer": answer.text,
        "kind": answer.kind,
        "state": answer.state,
        "comment": answer.comment or None,
        "shown": answer.shown or None,
    }
