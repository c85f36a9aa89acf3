"""The first page: all models with their actions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from quercus.client.results import Model
from quercus.console.web import render_page, session_of
from quercus.view.guidance import title_of
from quercus.view.models import STATES, growth_state, progress_text

MAX_MODELS = 500


async def models(request: Request) -> Response:
    """List the models that the caller may use."""
    session = session_of(request)
    usable: list[Model] = []
    is_cut = False
    async for model in session.client.models():
        if session.caller.may_use(model.name):
            usable.append(model)
        if len(usable) > MAX_MODELS:
            usable.pop()
            is_cut = True
            break
    grower = ""
    if session.caller.may_call("AdminService/GetStatus"):
        status = await session.client.status()
        grower = "" if status.is_grower_healthy else status.grower_text
    return render_page(
        request,
        "models.html",
        models=usable,
        is_cut=is_cut,
        state_of=growth_state,
        states=STATES,
        progress_of=progress_text,
        grower=grower,
        title_of=title_of,
        flash=session.take_flash(),
    )
