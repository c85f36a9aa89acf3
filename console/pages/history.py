"""A labeller's own answers, each of which can be corrected or taken back."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from quercus.client.answers import AnswerFilter
from quercus.client.results import Answer
from quercus.console.web import render_page, session_of
from quercus.view.answers import answer_text, remarks_on

MAX_ANSWERS = 200


async def history(request: Request) -> Response:
    """List the newest answers of the caller."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    wanted = AnswerFilter(labellers=[session.labeller])
    entries = [
        each async for each in session.client.answers(name, wanted, limit=MAX_ANSWERS, newest_first=True)
    ]
    return render_page(
        request,
        "history.html",
        model=name,
        tab="label",
        answers=entries,
        classes=tuple(model.specification.classes),
        can_change=can_change,
        is_chosen=is_chosen,
        said=answer_text,
        remarks_on=remarks_on,
        most=MAX_ANSWERS,
        flash=session.take_flash(),
    )


def can_change(answer: Answer) -> bool:
    """Return whether an answer is in force, so that it may be corrected."""
    stands = answer.state in ("counts", "pending") or (answer.kind == "refused" and answer.later is None)
    return answer.query is not None and stands


def is_chosen(answer: Answer, name: str) -> bool:
    """Return whether a class is among the most plausible classes of an answer."""
    if isinstance(answer.label, str):
        return answer.label == name
    if isinstance(answer.label, dict):
        return dict[Any, float](answer.label).get(name, 0) == max(answer.label.values(), default=1)
    return answer.label is not None and name in answer.label
