"""The explanation of a row's prediction: earlier, now, and what changed it; a printable page."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from quercus.belief.errors import InvalidInput
from quercus.client.errors import FailedPrecondition, InvalidArgument, ResourceExhausted
from quercus.client.places import plain_text
from quercus.client.results import RowPrediction
from quercus.console.web import check_may, own_path, render_page, session_of
from quercus.view.answers import answer_text, remarks_on
from quercus.view.explanations import (
    BESIDE,
    SEARCHED,
    changes_head,
    changes_in,
    conditions_of,
    prediction_text,
    seen_text,
)
from quercus.view.models import nominal_names

T = TypeVar("T")
LEFT: Final = 499
"""Status of a page whose visitor has left."""
LOOK_S: Final = 0.5
"""Seconds between checks whether the visitor is still there."""


async def why(request: Request) -> Response:
    """Show the explanation of a row; the server replays the log for it, unless the visitor leaves."""
    session = session_of(request)
    check_may(session, "TreeService/ExplainRow")
    name, identifier = request.path_params["model"], request.query_params.get("id", "")
    at = request.query_params.get("at", "").strip()
    model = await session.client.get_model(name)
    nominal = nominal_names(model)
    found, fault = None, ""
    try:
        asked = session.client.explain_row(name, identifier, _then(at))
        found = await _unless_left(request, asked)
        if found is None:
            return Response(status_code=LEFT)
    except (InvalidInput, InvalidArgument, FailedPrecondition, ResourceExhausted) as error:
        fault = plain_text(error)

    def shown(prediction: RowPrediction) -> dict[str, Any]:
        return {
            "as_of": prediction.as_of,
            "at": prediction.at,
            "label": prediction.class_name,
            "text": prediction_text(prediction, model.specification.classes),
            "path": conditions_of(prediction, nominal),
        }

    return render_page(
        request,
        "why.html",
        400 if fault else 200,
        model=name,
        tab="items",
        id=identifier,
        at=at,
        fault=fault,
        back=own_path(request.query_params.get("back") or f"/m/{name}/items"),
        found=found,
        classes=tuple(model.specification.classes),
        ends=[] if found is None else [("Then", shown(found.then)), ("Now", shown(found.now))],
        head="" if found is None else changes_head(found),
        changes=[] if found is None else list(changes_in(found, nominal)),
        answers=[]
        if found is None
        else [
            (each.answer, seen_text(each.answer.shown, found.classes), each.before and shown(each.before))
            for each in found.answers
        ],
        said=answer_text,
        remarks_on=remarks_on,
        notes=[] if found is None else [BESIDE] * found.beside + [SEARCHED] * (not found.complete),
    )


async def _unless_left(request: Request, asked: Coroutine[Any, Any, T]) -> T | None:
    """Return the result; None if the visitor has left, which cancels the call and the replay."""
    asking = asyncio.ensure_future(asked)
    try:
        while not (await asyncio.wait({asking}, timeout=LOOK_S))[0]:
            if await request.is_disconnected():
                return None
        return asking.result()
    finally:
        asking.cancel()


def _then(text: str) -> int | datetime | None:
    """Return the typed event or time (UTC); None if empty.

    Examples
    --------
    >>> _then("214"), _then("2026-11-22T09:30"), _then("")
    (214, datetime.datetime(2026, 11, 22, 9, 30, tzinfo=datetime.timezone.utc), None)
    """
    if not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):  # a time zone can move the year out of range
        reason = f"is {text[:40]!r}, must be the number of an event, or a time such as 2026-11-22 09:30 (UTC)"
        raise InvalidInput("at", reason) from None
