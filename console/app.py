"""The console as an application: routes, the order of middleware, and error pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from quercus.belief.errors import InvalidInput
from quercus.client import errors
from quercus.client.places import plain_text
from quercus.console.config import ConsoleConfig
from quercus.console.guard import RequestGuard
from quercus.console.pages import (
    bulk,
    classify,
    create,
    desk,
    disputes,
    history,
    items,
    label,
    model,
    models,
    sign_in,
    tokens,
    tree,
    why,
)
from quercus.console.sessions import Sessions
from quercus.console.web import FOLDER, Console, SignInNeeded, console_of, render_page, status_of, wants_json
from quercus.view.svg.classes import class_styles

EXPIRY_S = 60.0
_TITLES = {
    400: "That does not work",
    403: "Not allowed",
    404: "Not found",
    405: "Not found",
    409: "Not now",
    413: "Too large",
    415: "That does not work",
    429: "Too much at once",
    503: "The server is away",
}


async def healthz(_: Request) -> Response:
    """Report only that the console process runs; pages show the state of the server."""
    return PlainTextResponse("ok\n")


async def classes(_: Request) -> Response:
    """Return the style sheet for the marks of classes."""
    return Response(class_styles(), media_type="text/css")


ROUTES = [
    Route("/", models.models),
    Route("/sign-in", sign_in.sign_in, methods=["GET", "POST"]),
    Route("/sign-out", sign_in.sign_out, methods=["POST"]),
    Route("/m/{model}/label", label.label),
    Route("/m/{model}/label/history", history.history),
    Route("/m/{model}/label/next", label.next_query, methods=["POST"]),
    Route("/m/{model}/label/grown", label.newer_tree, methods=["POST"]),
    Route("/m/{model}/label/exchange", label.exchange, methods=["POST"]),
    Route("/m/{model}/label/leave", label.leave, methods=["POST"]),
    Route("/m/{model}/label/beat", label.heartbeat, methods=["POST"]),
    Route("/m/{model}/label/neighbours/{of}/{number:int}", label.neighbours),
    Route("/m/{model}/label/guidelines/{of}", label.guidelines),
    Route("/m/{model}/label/beside/{of}/{number:int}/{item:int}", label.media_item),
    Route("/m/{model}/label/{act}", label.labelling_action, methods=["POST"]),
    Route("/m/{model}/items", items.items),
    Route("/m/{model}/items/row", items.row),
    Route("/m/{model}/items/why", why.why),
    Route("/m/{model}/items/say", items.say, methods=["POST"]),
    Route("/m/{model}/items/beside", items.beside),
    Route("/m/{model}/items/bulk", bulk.bulk, methods=["POST"]),
    Route("/m/{model}/items.{form}", items.export),
    Route("/m/{model}", model.model),
    Route("/m/{model}/disputes", disputes.disputes),
    Route("/m/{model}/disputes/beside", disputes.media_beside),
    Route("/m/{model}/disputes/{act}", disputes.decide, methods=["POST"]),
    Route("/m/{model}/desk", desk.desk),
    Route("/m/{model}/desk/answers.{form}", desk.answers),
    Route("/m/{model}/desk/{act}", desk.desk_action, methods=["POST"]),
    Route("/m/{model}/extend", model.extend, methods=["POST"]),
    Route("/m/{model}/tree", tree.tree),
    Route("/m/{model}/tree/node", tree.node),
    Route("/m/{model}/tree/find", tree.find),
    Route("/m/{model}/tree/children", tree.children),
    Route("/m/{model}/tree.{kind}", tree.drawing),
    Route("/m/{model}/events", tree.events),
    Route("/m/{model}/classify", classify.classify, methods=["GET", "POST"]),
    Route("/create/progress", create.progress),
    Route("/create", create.create, methods=["GET", "POST"]),
    Route("/tokens", tokens.tokens, methods=["GET", "POST"]),
    Route("/tokens/revoke", tokens.revoke, methods=["POST"]),
    Route("/healthz", healthz),
    Route("/static/classes.css", classes),
    Mount("/static", StaticFiles(directory=FOLDER / "static")),
]


def application(config: ConsoleConfig) -> ASGIApp:
    """Return the application of a console."""
    console = Console(config, sign_on=config.sign_on)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        cleaning = asyncio.create_task(_expire_sessions(console.sessions), name="console-expiry")
        yield
        cleaning.cancel()
        await console.sessions.close()

    app = Starlette(
        routes=ROUTES,
        lifespan=lifespan,
        exception_handlers={
            SignInNeeded: _sign_in_first,
            ClientDisconnect: _nobody_reads,
            errors.QuercusError: _show_failure,
            InvalidInput: _show_failure,
            HTTPException: _show_refusal,
        },
    )
    app.state.console = console
    return RequestGuard(app, config.allowed_names, config.media, config.is_encrypted, console.sign_on)


async def _expire_sessions(sessions: Sessions) -> None:
    """End idle sessions every minute, so that no token stays in memory after its session."""
    while True:
        await asyncio.sleep(EXPIRY_S)
        await sessions.expire_idle()


async def _sign_in_first(request: Request, _: Exception) -> Response:
    if wants_json(request):
        return JSONResponse({"error": "sign in again: your answers are kept until then"}, 401)
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"/sign-in?next={quote(request.url.path + query)}", 303)


async def _nobody_reads(_: Request, __: Exception) -> Response:
    """Respond to a browser that was closed while it sent a file; nobody reads this."""
    return PlainTextResponse("", 400)


async def _show_failure(request: Request, error: Exception) -> Response:
    """Show an error of the server, or of the input."""
    if isinstance(error, errors.Unauthenticated):  # the token was revoked, or it expired
        console = console_of(request)
        await console.sessions.end_session(request.cookies.get(console.cookie_name, ""))
        return await _sign_in_first(request, error)
    return _error_page(request, status_of(error), plain_text(error))


async def _show_refusal(request: Request, error: Exception) -> Response:
    status, detail = (error.status_code, error.detail) if isinstance(error, HTTPException) else (500, "")
    return _error_page(request, status, "There is no such page." if status in (404, 405) else detail)


def _error_page(request: Request, status: int, message: str) -> Response:
    if wants_json(request):
        return JSONResponse({"error": message}, status)
    return render_page(
        request, "error.html", status, title=_TITLES.get(status, "That failed"), message=message
    )
