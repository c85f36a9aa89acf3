"""Labels for many rows: they are shown before they are stored, and can be undone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.belief.errors import InvalidInput
from quercus.console.bulk import MAX_BULK, plan_bulk, too_many
from quercus.console.pages.history import AnswerChoice
from quercus.console.pages.items import Choice
from quercus.console.sessions import Session
from quercus.console.web import check_may, own_path, read_posted, render_page, session_of, text_field
from quercus.view.answers import answer_text
from quercus.view.words import counted

CHOSEN = ("checked", "all", "answers")
"""The possible selections: the checked rows, all rows of a filter, or all rows of a filter of one's own answers."""


async def bulk(request: Request) -> Response:
    """Show the planned labels of many rows, then store them; or undo them."""
    session = session_of(request)
    check_may(session, "InstanceService/StateEvidence")
    given = await read_posted(request, session)
    name, act = request.path_params["model"], text_field(given, "act")
    if act == "preview":
        rows = await _chosen_rows(session, name, given)
        label, back = text_field(given, "label") or None, own_path(text_field(given, "back"))
        session.bulk = await plan_bulk(session.client, name, session.labeller, rows, label, back)
        return render_page(request, "bulk.html", model=name, tab="items", plan=session.bulk, said=answer_text)
    plan = session.bulk if act == "do" else session.bulk_done if act == "undo" else None
    if plan is None or plan.model != name or plan.key != text_field(given, "plan"):
        raise HTTPException(
            409, "these rows were chosen on another page, or are already done: choose them again"
        )
    if act == "do":
        await plan.carry_out(session.client)
        session.bulk, session.bulk_done = None, plan
        one = len(plan.changed) == 1
        lost, labelled = ("has lost", "is labelled") if one else ("have lost", "are labelled")
        done = f"{lost} your label" if plan.label is None else f"{labelled} {plan.label}"
        session.flash = f"{counted(len(plan.changed), 'row')} {done}."
    else:
        await plan.take_back(session.client)
        session.bulk_done = None
        session.flash = f"{counted(len(plan.changed), 'row')}: as before."
    return RedirectResponse(plan.back, 303)


async def _chosen_rows(session: Session, model: str, given: Mapping[str, Any]) -> list[str]:
    """Return the ids of the rows that a form selects."""
    of = text_field(given, "of")
    fields = {key.removeprefix("f-"): str(texts[0]) for key, texts in given.items() if key.startswith("f-")}
    if of == "checked":
        return [str(each) for each in given.get("row", [])]
    if of == "all":
        choice = Choice(fields)
        page = await session.client.row_page(model, choice.wanted, choice.order, size=MAX_BULK)
        if page.next_page:
            raise too_many(page.total)
        return [each.id for each in page.rows]
    if of == "answers":
        mine = AnswerChoice(fields).wanted(session.labeller)
        rows: dict[str, None] = {}
        async for each in session.client.answers(model, mine, newest_first=True):
            rows[each.instance] = None
            if len(rows) > MAX_BULK:
                raise InvalidInput("rows", f"are more than {MAX_BULK:,}, the most at once: narrow the filter")
        return list(rows)
    raise InvalidInput("of", f"is {of[:40]!r}, must be one of {', '.join(CHOSEN)}")
