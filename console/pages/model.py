"""The page of a model: its numbers, labelling policy and labellers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.client.algorithms import plugin_text
from quercus.client.errors import AlreadyExists, InvalidArgument
from quercus.client.places import plain_text
from quercus.client.results import Model
from quercus.console.sessions import Session
from quercus.console.web import check_may, read_posted, render_page, session_of, status_of
from quercus.files.words import typed_attribute, typed_names
from quercus.view.answers import guesses_taken
from quercus.view.models import (
    ASKED_ARE_HARDEST,
    accuracy_text,
    attribute_words,
    confidence_text,
    drift_texts,
    extension_texts,
    number_rows,
    policy_rows,
    state_text,
)
from quercus.view.svg.accuracy import accuracy_picture, block_rows

MAX_ATTRIBUTES = 500
JUDGED_ANSWERS = 500
"""Newest answers of which the page says how many took the model's guess."""


async def model(request: Request) -> Response:
    """Show a model."""
    return await _model_page(request, {})


async def extend(request: Request) -> Response:
    """Give a model further classes and attributes, or show the page again with what is wrong in the form."""
    session = session_of(request)
    check_may(session, "ModelService/ExtendModel")
    posted = await read_posted(request, session)
    given = {key: str(values[0]) for key, values in posted.items() if values}
    name = request.path_params["model"]
    try:
        lines = [line for line in given.get("attributes", "").splitlines() if line.strip()]
        await session.client.extend_model(
            name,
            classes=typed_names(given.get("classes", "")),
            attributes=[typed_attribute(line) for line in lines],
            request_id=given.get("request_id") or None,
        )
    except (InvalidInput, InvalidArgument, AlreadyExists) as error:
        return await _model_page(request, given, plain_text(error), status_of(error))
    return RedirectResponse(f"/m/{name}", 303)


async def _model_page(
    request: Request, given: Mapping[str, str], fault: str = "", status: int = 200
) -> Response:
    """Show a model; `given` is what stood in the form of its extension, and `fault` what is wrong with that."""
    session = session_of(request)
    name = request.path_params["model"]
    shown = await session.client.get_model(name)
    may_list = session.may_call("QueryService/ListLabellers")
    return render_page(
        request,
        "model.html",
        status,
        given=given,
        fault=fault,
        request_id=given.get("request_id") or uuid.uuid4().hex,
        changed=list(drift_texts(shown)),
        later=list(extension_texts(shown)),
        model=name,
        tab="model",
        info=shown,
        state=state_text(shown),
        numbers=[
            *number_rows(shown),
            ("learner", plugin_text(shown.specification.algorithm)),
            ("query strategy", plugin_text(shown.specification.strategy)),
            ("created", f"{shown.created_at:%Y-%m-%d %H:%M} UTC"),
        ],
        policy=list(policy_rows(await session.client.labelling_policy(name))),
        labellers=await session.client.labellers(name) if may_list else None,
        attributes=[
            (each.name, *attribute_words(each, shown.other_names.get(each.name, 0)))
            for each in shown.specification.attributes[:MAX_ATTRIBUTES]
        ],
        accuracy=accuracy_picture(shown.accuracy) if shown.accuracy and shown.accuracy.rows else None,
        accuracy_said=_accuracy_text(shown),
        asked_are_hardest=ASKED_ARE_HARDEST if shown.queries_answered else "",
        confidence=confidence_text(shown.average_confidence) if shown.average_confidence else "",
        accuracy_rows=block_rows(shown.accuracy) if shown.accuracy else (),
        guesses=await _guesses_taken(session, shown) if may_list else None,
        more=max(0, len(shown.specification.attributes) - MAX_ATTRIBUTES),
    )


async def _guesses_taken(session: Session, model: Model) -> tuple[int, int]:
    """Return how many of the newest answers were given beside a guess, and how many took it."""
    newest = session.client.answers(model.name, limit=JUDGED_ANSWERS, newest_first=True)
    return guesses_taken([each async for each in newest], model.specification.classes)


def _accuracy_text(model: Model) -> str:
    """Return the accuracy in words, or why there is none yet."""
    if model.accuracy and model.accuracy.rows:
        return f"{accuracy_text(model.accuracy)}."
    if not model.queries_answered:
        return "Nobody answered yet. Each answer is compared with what the model predicted before it."
    return "It is not known yet: the first answers only teach. Later ones are predicted first, and then compared."
