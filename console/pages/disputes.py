"""Rows in dispute: the list, the labels of a row, the decision by the key of a class; agreement of labellers."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.client.errors import QuercusError
from quercus.client.keys import labelling_keys
from quercus.client.places import plain_text
from quercus.client.results import Dispute, Reason
from quercus.console.labeller_queue import label_of
from quercus.console.pages.label import grid_of_classes
from quercus.console.row_parts import RowParts, items_of, media_response
from quercus.console.web import address_of, console_of, read_posted, render_page, session_of, text_field
from quercus.view.confusion import confusion_table
from quercus.view.disputes import (
    agreement_rows,
    dispute_text,
    likeliest,
    may_decide,
    pair_rows,
    said_text,
    sureness_text,
    who_decides,
)
from quercus.view.queries import question_text
from quercus.view.rows import shown_values
from quercus.view.words import known_text

MOST_LISTED = 200
"""Maximum number of disputes that the page lists."""
MOST_DECIDED = 10
"""Maximum number of decisions that a session remembers; undo goes back through them."""
MOST_MATRICES = 20
"""Maximum number of labellers whose confusion matrix is shown."""


async def disputes(request: Request) -> Response:
    """List the rows in dispute, and show one of them."""
    session = session_of(request)
    name = request.path_params["model"]
    model = await session.client.get_model(name)
    policy = await session.client.labelling_policy(name)
    classes = tuple(model.specification.classes)
    filters = _filters(
        request.query_params.get("class", ""), request.query_params.get("labeller", ""), classes
    )
    found = session.client.disputes(
        name, *([filters[key]] if filters[key] else [] for key in ("class", "labeller"))
    )
    listed: list[Dispute] = []
    async for each in found:
        listed.append(each)
        if len(listed) > MOST_LISTED:
            break
    row = request.query_params.get("row", "") or (listed[0].instance if listed else "")
    current = await session.client.get_dispute(name, row) if row else None
    keys = labelling_keys(classes)
    agreement = None
    if session.may_call("QueryService/GetAgreement"):
        agreement = await session.client.agreement(name)
    decides = may_decide(session.caller, policy)
    return render_page(
        request,
        "disputes.html",
        model=name,
        tab="model",
        info=model,
        said=None if agreement is None else f"{dispute_text(agreement)}.",
        listed=listed[:MOST_LISTED],
        more=len(listed) > MOST_LISTED,
        current=current,
        following=_following(listed, row),
        filters=filters,
        link=lambda **changes: address_of(f"/m/{name}/disputes", filters | changes),
        parts=None
        if current is None
        else RowParts.of(
            items_of(
                row,
                current.values,
                current.display,
                model,
                console_of(request).config.media,
                f"/m/{name}/disputes/beside?{urlencode({'row': row})}&item=",
            ),
            *shown_values(current.values, model),
            Reason(()),
        ),
        known="" if current is None else known_text(classes, list(current.known.values())),
        question=question_text(classes),
        decided=_decided(current),
        may_decide=decides,
        who=who_decides(policy),
        classes=list(zip(keys.classes, keys.names, strict=True)),
        class_names=classes,
        class_grid=grid_of_classes(keys.names),
        commands=keys.commands,
        likeliest=likeliest,
        sureness=sureness_text,
        words=said_text,
        labellers=_labellers(listed)
        if agreement is None
        else [each.labeller for each in agreement.confusions],
        last=list(reversed(session.decided.get(name, ()))),
        figures=[] if agreement is None else list(agreement_rows(agreement)),
        pairs=[] if agreement is None else pair_rows(agreement),
        matrices=[]
        if agreement is None
        else [
            (each.labeller, confusion_table(each.cells, classes))
            for each in agreement.confusions[:MOST_MATRICES]
        ],
        more_matrices=0 if agreement is None else max(0, len(agreement.confusions) - MOST_MATRICES),
        flash=session.take_flash(),
    )


async def decide(request: Request) -> Response:
    """Decide a row, or undo a decision; then show the next row, or the row that is in dispute again."""
    session = session_of(request)
    given = await read_posted(request, session)
    name, act = request.path_params["model"], request.path_params["act"]
    if act not in ("settle", "undo"):
        raise HTTPException(404)
    model = await session.client.get_model(name)
    classes = tuple(model.specification.classes)
    row = text_field(given, "row")
    labeller = "" if session.caller.needs_token else session.labeller
    filters = _filters(text_field(given, "of-class", ""), text_field(given, "of-labeller", ""), classes)
    next_row = text_field(given, "next", "")
    try:
        if act == "undo":
            await session.client.undo_adjudication(name, row, labeller=labeller)
            session.forget_decision(name, row)
            session.flash = f"{row}: taken back. Its labels count again."
            next_row = row
        else:
            chosen = given["several"] if "several" in given else text_field(given, "class", "")
            await session.client.adjudicate(name, row, label_of(chosen, classes), labeller=labeller)
            words = chosen if isinstance(chosen, str) else " or ".join(map(str, chosen))
            session.note_decision(name, row, words, MOST_DECIDED)
            session.flash = f"{row}: {words}, in your name. The other labels stay in its history."
    except (InvalidInput, QuercusError) as error:
        session.flash, next_row = f"Not taken: {plain_text(error)}", row
    return RedirectResponse(address_of(f"/m/{name}/disputes", filters | {"row": next_row}), 303)


async def media_beside(request: Request) -> Response:
    """Return a picture or a sound that was pushed beside a row."""
    session = session_of(request)
    dispute = await session.client.get_dispute(
        request.path_params["model"], request.query_params.get("row", "")
    )
    return media_response(dispute.display, request.query_params.get("item", ""))


def _filters(of_class: str, of_labeller: str, classes: Sequence[str]) -> dict[str, str]:
    """Return the filters of the list; a class that the model does not have is ignored."""
    return {"class": of_class if of_class in classes else "", "labeller": of_labeller}


def _following(listed: Sequence[Dispute], row: str) -> str:
    """Return the row after one in the list; after the last row, or one that is not in the list, the first."""
    names = [each.instance for each in listed]
    place = names.index(row) + 1 if row in names else 0
    others = [*names[place:], *names[:place]]
    return next((each for each in others if each != row), "")


def _decided(current: Dispute | None) -> str:
    """Return the decision about a row in words; empty if there is none."""
    if current is None or not current.labels or current.labels[-1].kind != "adjudicated":
        return ""
    return current.labels[-1].text


def _labellers(listed: Sequence[Dispute]) -> list[str]:
    return sorted({each.labeller for dispute in listed for each in dispute.labels})
