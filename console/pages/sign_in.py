"""Sign in with a token, or with a name if the server requires no token; sign out."""

from __future__ import annotations

import asyncio
import logging
import math

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from quercus.client.errors import InvalidArgument, PermissionDenied, QuercusError, Unauthenticated
from quercus.console.sessions import IDLE_S, Session
from quercus.console.sign_on import BadUserFile
from quercus.console.web import (
    Console,
    console_of,
    own_path,
    read_posted,
    render_page,
    session_of,
    session_or_none,
    signed_on_user,
)
from quercus.specification.bounds import MAX_LABELLER_CHARACTERS

MAX_TOKEN = 200
_log = logging.getLogger("quercus.console")


async def sign_in(request: Request) -> Response:
    """Show the sign-in form, and sign in."""
    console = console_of(request)
    if (user := signed_on_user(request)) is not None:
        return await _sign_on(request, console, user)
    given = await request.form(max_files=0, max_fields=8) if request.method == "POST" else None
    goes_to = own_path(str(given.get("next", "")) if given else request.query_params.get("next"))
    if given is None:
        if session_or_none(request) is not None:
            return RedirectResponse(goes_to, 303)
        return await _sign_in_form(request, console, goes_to)
    address = request.client.host if request.client else ""
    wait_s = console.throttle.wait_s(address)
    if wait_s > 0:
        minutes = math.ceil(wait_s / 60)
        return await _sign_in_form(
            request, console, goes_to, f"Too many attempts failed. Try again in {minutes} min.", 429
        )
    try:
        session = await _open_session(console, str(given.get("token", "")), str(given.get("name", "")))
    except (Unauthenticated, PermissionDenied, InvalidArgument) as error:
        console.throttle.count_failure(address)
        return await _sign_in_form(request, console, goes_to, _failure_text(error), 403)
    console.throttle.forget_failures(address)
    return await _begin_session(request, session, RedirectResponse(goes_to, 303))


async def _sign_on(request: Request, console: Console, user: str) -> Response:
    """Sign in the user named by the sign-on proxy, with the token from the operator's file.

    The browser continues from a page, not by a redirection: it would not send the cookie in a navigation that began on
    another site, the user's identity provider.
    """
    goes_to = own_path(request.query_params.get("next"))
    if session_or_none(request) is not None:
        return RedirectResponse(goes_to, 303)
    if request.method != "GET" or request.headers.get("sec-fetch-dest", "document") != "document":
        # otherwise pictures on another site could use up the user's sessions
        raise HTTPException(403, "only a page that is opened in a browser signs in")
    key = f"user {user}"
    if console.throttle.wait_s(key) > 0:
        raise HTTPException(429, f"Signing in as {user} failed too often. Try again in some minutes.")
    try:
        token = None if console.sign_on is None else await asyncio.to_thread(console.sign_on.token_of, user)
    except BadUserFile as error:
        _log.error("nobody can sign on by the proxy: %s", error)
        raise HTTPException(
            503, "The console cannot read its file of users; the reason is in its log. Tell its operator."
        ) from None
    if token is None:
        raise HTTPException(
            403,
            f"The sign-on proxy says that you are {user}. This console has no token for that user: its operator adds "
            "a line to the file of --sign-on-users.",
        )
    try:
        session = await _open_session(console, token, user)
    except (Unauthenticated, PermissionDenied, InvalidArgument):
        console.throttle.count_failure(key)
        raise HTTPException(
            403,
            f"The sign-on proxy says that you are {user}, and the server does not take the token of that user. It was "
            "revoked or has expired: ask the operator of the console for another.",
        ) from None
    if not session.caller.needs_token:
        await session.close()
        raise HTTPException(403, "The server requires no token, so a sign-on proxy has no effect.")
    console.throttle.forget_failures(key)
    session.user = user
    return await _begin_session(request, session, render_page(request, "signed_on.html", goes_to=goes_to))


async def _begin_session(request: Request, session: Session, response: Response) -> Response:
    """Return a response that gives the browser a new session, replacing its old one."""
    console = console_of(request)
    old = request.cookies.get(console.cookie_name)
    if old:
        await console.sessions.end_session(old)
    secret = await console.sessions.add_session(session)
    response.set_cookie(
        console.cookie_name,
        secret,
        max_age=int(IDLE_S),
        path="/",
        secure=console.config.is_encrypted,
        httponly=True,
        samesite="strict",
    )
    return response


async def sign_out(request: Request) -> Response:
    """Close the connection of the session, and forget it."""
    console, session = console_of(request), session_of(request)
    await read_posted(request, session)
    await console.sessions.end_session(request.cookies.get(console.cookie_name, ""))
    response: Response = RedirectResponse("/sign-in", 303)
    if session.user is not None:  # visiting the sign-in page would sign in again
        response = render_page(request, "signed_out.html", user=session.user)
    response.delete_cookie(
        console.cookie_name, path="/", secure=console.config.is_encrypted, httponly=True, samesite="strict"
    )
    return response


async def _open_session(console: Console, token: str, name: str) -> Session:
    """Return a session if the server accepts the token, or requires none and a name is given."""
    token, name = token.strip(), name.strip()
    if len(token) > MAX_TOKEN:
        raise Unauthenticated(f"token: has {len(token):,} characters; no token has more than {MAX_TOKEN}")
    client = console.connect(token or None)
    try:
        caller = await client.caller()
        if not caller.needs_token:
            _check_open(console, name)  # even if a sign-on proxy names the user: there is no token for it
        elif not token:
            raise Unauthenticated("token: the server requires one")
    except BaseException:
        await client.close()
        raise
    labeller = name if not caller.needs_token else caller.name
    return Session(caller, labeller, client, console.sessions.current_time())


def _check_open(console: Console, name: str) -> None:
    if not console.config.on_loopback and console.config.access != "open":
        raise HTTPException(
            403,
            "The server requires no token, and others can reach this console, so anybody could label. Its operator can "
            "allow that with --access open, or make the server require tokens.",
        )
    if not 1 <= len(name) <= MAX_LABELLER_CHARACTERS or not name.isprintable():
        raise InvalidArgument(
            f"name: give one of 1 to {MAX_LABELLER_CHARACTERS} characters; your answers are kept under it"
        )


async def _sign_in_form(
    request: Request, console: Console, goes_to: str, fault: str = "", status: int = 200
) -> Response:
    caller, trouble = None, ""
    client = console.connect()
    try:
        caller = await client.caller()
    except Unauthenticated:
        pass
    except QuercusError as error:
        trouble = str(error)
    finally:
        await client.close()
    is_open = caller is not None and not caller.needs_token
    return render_page(
        request, "sign_in.html", status, goes_to=goes_to, fault=fault, is_open=is_open, trouble=trouble,
        server=console.config.server,
    )  # fmt: skip


def _failure_text(error: QuercusError) -> str:
    if isinstance(error, Unauthenticated):
        return "The server does not accept this token. Is it complete, and neither revoked nor expired?"
    return str(error)
