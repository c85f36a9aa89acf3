"""The page of a model: its numbers, labelling policy and labellers."""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.client.errors import AlreadyExists, InvalidArgument
from quercus.client.places import plain_text
from quercus.client.plugins import plugin_text
from quercus.client.results import Answer, Model
from quercus.console.sessions import Session
from quercus.console.web import check_may, read_posted, render_page, session_of, status_of
from quercus.files.words import typed_attribute, typed_names
from quercus.specification.values import finite_number
from quercus.view.answers import guesses_taken
from quercus.view.confusion import confusion_table
from quercus.view.disputes import dispute_text
from quercus.view.guidance import title_of
from quercus.view.learning import (
    TARGETS,
    all_cells,
    basis_text,
    curve_points,
    difference_text,
    fallen_text,
    fit_curve,
    gain_over_random,
    needed_rows,
    now_text,
)
from quercus.view.models import (
    accuracy_text,
    attribute_words,
    drift_texts,
    extension_texts,
    number_rows,
    policy_rows,
    state_text,
)
from quercus.view.pace import PACE_ANSWERS, seconds_an_answer
from quercus.view.svg.accuracy import learning_picture, point_rows

MAX_ATTRIBUTES = 500


async def model(request: Request) -> Response:
    """Show a model."""
    return await _model_page(request, {})


async def extend(request: Request) -> Response:
    """Add classes and attributes to a model, or show the page again with the fault in the form."""
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
    """Show a model; `given` has the values in the form of its extension, and `fault` the error in them."""
    session = session_of(request)
    name = request.path_params["model"]
    shown = await session.client.get_model(name)
    may_list = session.may_call("QueryService/ListLabellers")
    newest = await newest_answers(session, name) if may_list else []
    agreement = None
    if session.may_call("QueryService/GetAgreement"):
        agreement = await session.client.agreement(name)
    points = curve_points(shown.accuracy)
    fall = None if shown.drift is None else shown.drift.accuracy
    curve = None if fall else fit_curve(points)
    pace_s = seconds_an_answer(newest)
    target = _target_of(request)
    targets = sorted({*TARGETS, target} if target is not None else TARGETS)
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
            ("learner", plugin_text(shown.specification.learner)),
            ("query strategy", plugin_text(shown.specification.strategy)),
            ("created", f"{shown.created_at:%Y-%m-%d %H:%M} UTC"),
        ],
        policy=list(policy_rows(await session.client.labelling_policy(name))),
        labellers=await session.client.labellers(name) if may_list else None,
        attributes=[
            (each.name, *attribute_words(each, shown.other_names.get(each.name, 0)))
            for each in shown.specification.attributes[:MAX_ATTRIBUTES]
        ],
        learning=learning_picture(points, curve) if points else None,
        points=point_rows(points),
        title=title_of(shown),
        accuracy_said=_accuracy_text(shown),
        now=now_text(curve) if fall is None else fallen_text(points),
        basis=basis_text(shown.accuracy) if shown.accuracy and shown.accuracy.rows else "",
        has_curve=curve is not None,
        has_fallen=fall is not None,
        needed=list(needed_rows(curve, pace_s, targets)) if points else [],
        target="" if target is None else f"{100 * target:g}",
        pace_s=pace_s,
        gain=gain_over_random(shown.accuracy),
        confusion=confusion_table(all_cells(shown.accuracy), shown.specification.classes) if points else None,
        disputes=None if agreement is None or not agreement.shared else dispute_text(agreement),
        own=shown.average_confidence,
        difference=difference_text(shown.accuracy),
        guesses=guesses_taken(newest, shown.specification.classes) if may_list else None,
        more=max(0, len(shown.specification.attributes) - MAX_ATTRIBUTES),
    )


async def newest_answers(session: Session, model: str) -> list[Answer]:
    """Return the newest answers, from which the pace and the acceptance of guesses are computed."""
    return [each async for each in session.client.answers(model, limit=PACE_ANSWERS, newest_first=True)]


def _target_of(request: Request) -> float | None:
    """Return the target accuracy in the URL, from 0 to 1; None if missing or invalid."""
    percent = finite_number(request.query_params.get("target", "").strip().replace(",", "."))
    return percent / 100 if percent is not None and 1 <= percent <= 99.9 else None


def _accuracy_text(model: Model) -> str:
    """Return the accuracy in words, or the reason why there is none yet."""
    if model.accuracy and model.accuracy.rows:
        return f"{accuracy_text(model.accuracy)}."
    if not model.queries_answered:
        return "Nobody has answered yet. Each answer is compared with what the model predicted before it."
    return "It is not known yet: the first answers only teach. Later ones are predicted first, and then compared."
