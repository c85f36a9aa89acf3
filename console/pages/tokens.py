"""Tokens of the server, for operators: create, list, revoke; and the newest entries of the audit log."""

from __future__ import annotations

from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.client.errors import FailedPrecondition, InvalidArgument, PermissionDenied, ResourceExhausted
from quercus.client.places import plain_text
from quercus.console.sessions import Session
from quercus.console.web import check_may, read_posted, render_page, session_of, status_of, text_field

DAY_S: Final = 86_400.0
LIFETIMES: Final = {
    "1": ("a day", DAY_S),
    "7": ("a week", 7 * DAY_S),
    "30": ("30 days", 30 * DAY_S),
    "90": ("90 days", 90 * DAY_S),
    "365": ("a year", 365 * DAY_S),
    "never": ("never", None),
}
"""Times after which a token may expire, by the value of the form."""
ROLES: Final = {
    "reader": "reads models, trees, rows and answers; classifies",
    "sensor": "pushes rows",
    "labeller": "is asked and answers, under its own name",
    "corrector": "corrects and takes back the answers of others",
    "operator": "does everything; an operator for all models also creates tokens",
}
SHOWN_TOKENS: Final = 2_000
SHOWN_MODELS: Final = 200
SHOWN_ENTRIES: Final = 30


async def tokens(request: Request) -> Response:
    """List the tokens, and create one; its creator sees it once, on the next page."""
    session = session_of(request)
    check_may(session, "AdminService/CreateToken")
    if request.method == "GET":
        return await _page(request, session, {})
    given = await read_posted(request, session)
    try:
        await _make_token(session, given)
    except (InvalidArgument, PermissionDenied, FailedPrecondition, ResourceExhausted) as error:
        return await _page(request, session, given, plain_text(error), status_of(error))
    return RedirectResponse("/tokens", 303)  # so that reloading does not create another one


async def revoke(request: Request) -> Response:
    """Revoke a token."""
    session = session_of(request)
    check_may(session, "AdminService/RevokeToken")
    given = await read_posted(request, session)
    gone = await session.client.revoke_token(text_field(given, "id", ""))
    session.flash = (
        f"The token {gone.id} of {gone.caller} is revoked. Queries that it held go back to the others."
    )
    return RedirectResponse("/tokens", 303)


async def _make_token(session: Session, given: dict[str, Any]) -> None:
    lifetime = LIFETIMES.get(text_field(given, "lifetime", ""))
    if lifetime is None:
        raise HTTPException(400, "choose one of the times after which the token expires")
    scope = text_field(given, "scope", "")
    if scope not in ("all", "some"):
        raise HTTPException(400, "choose whether the token is for all models")
    models = (
        None
        if scope == "all"
        else [*map(str, given.get("model", [])), *text_field(given, "models", "").split()]
    )
    if models == []:
        raise InvalidArgument("models: choose at least one, or all models")
    session.new_token = await session.client.create_token(
        text_field(given, "caller", "").strip(), [str(each) for each in given.get("role", [])], models=models,
        lifetime_s=lifetime[1],
    )  # fmt: skip


async def _page(
    request: Request, session: Session, given: dict[str, Any], fault: str = "", status: int = 200
) -> Response:
    listed = [each async for each in session.client.tokens()]
    models = [each.name async for each in session.client.models()]
    made, session.new_token = session.new_token, None
    return render_page(
        request,
        "tokens.html",
        status,
        fault=fault,
        flash=session.take_flash(),
        made=made,
        live=[each for each in listed if each.live],
        ended=[each for each in listed if not each.live],
        most=SHOWN_TOKENS,
        entries=list(reversed(await session.client.audit(SHOWN_ENTRIES))),
        models=models[:SHOWN_MODELS],
        given={name: text_field(given, name, "") for name in ("caller", "lifetime", "scope", "models")},
        chosen={str(each) for name in ("role", "model") for each in given.get(name, [])},
        roles=ROLES,
        lifetimes=LIFETIMES,
    )
