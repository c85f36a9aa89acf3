"""Checks of every request (host, origin, size), and headers of every response."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Iterable
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quercus.console.sign_on import SignOn

MAX_BODY_BYTES = 1024 * 1024
MAX_UPLOAD_BYTES = 128 * 1024 * 1024
UPLOADS = re.compile(r"/create|/m/[a-z][a-z0-9_-]*/desk/rows")
"""Paths that accept a file."""
MAX_SIGN_IN_BYTES = 16 * 1024
SIGN_IN = "/sign-in"
"""The only path whose body is read before the sender is known."""
SIGN_IN_S = 10.0
"""Maximum seconds for the sign-in form to arrive."""
_SAFE = frozenset({"GET", "HEAD"})


def content_policy(media: Iterable[str] = ()) -> str:
    """Return the value of Content-Security-Policy: only content that the console itself serves.

    Examples
    --------
    >>> "script-src 'self';" in content_policy()
    True
    """
    shown = " ".join(["'self'", *media])
    return (
        "default-src 'none'; script-src 'self'; style-src 'self'; "
        f"img-src {shown}; media-src {shown}; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )


class RequestGuard:
    """Refuses requests from other sites, for other host names, or of excessive size; adds security headers.

    Parameters
    ----------
    app
        The guarded application.
    names
        Host names that are allowed in the header Host, in lower case.
    media
        Origins of pictures and sounds.
    https
        Whether browsers use TLS.
    sign_on
        Reads the user from the header of a sign-on proxy; None if there is no such proxy.
    """

    def __init__(
        self,
        app: ASGIApp,
        names: Collection[str],
        media: Iterable[str] = (),
        https: bool = False,
        sign_on: SignOn | None = None,
    ) -> None:
        self._app, self._names = app, frozenset(names)
        self._sign_on = sign_on
        self._headers = {
            "Content-Security-Policy": content_policy(media),
            "X-Frame-Options": "DENY",
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cross-Origin-Opener-Policy": "same-origin",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
        }
        if https:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":  # there are no websockets
            raise RuntimeError(f"the console does not speak {scope['type']}")
        headers = Headers(scope=scope)
        sent = self._with_headers(scope, send)
        fault = self.find_fault(scope["method"], scope["path"], headers)
        if (
            fault is None
            and self._sign_on is not None
            and (why := self._sign_on.claim_user(scope)) is not None
        ):
            fault = (400, why)
        if fault is not None:
            await PlainTextResponse(fault[1] + "\n", fault[0])(scope, receive, sent)
            return
        timely = (
            _timely_body(receive) if scope["path"] == SIGN_IN and scope["method"] not in _SAFE else receive
        )
        await self._app(scope, _bounded_body(timely, _longest_body(scope["path"])), sent)

    def find_fault(self, method: str, path: str, headers: Headers) -> tuple[int, str] | None:
        """Return the status and the reason of a refusal; None if the request is allowed."""
        host = headers.get("host", "")
        if _without_port(host).lower() not in self._names:
            return (
                421,
                "this console is not available under that host name; its operator can add it with --name",
            )
        bound = _longest_body(path)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return 400, "Content-Length is not a number"
        if int(length) > bound:
            return 413, f"a request to {path[:100]} may have at most {bound:,} bytes"
        if method not in _SAFE and not _is_own(headers, host):
            return 403, "this request does not come from a page of the console"
        if "text/event-stream" in headers.get("accept", "") and not _is_own(headers, host):
            return 403, "events are only for pages of the console"
        return None

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        is_static = scope["path"].startswith("/static/")

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-cache" if is_static else "no-store")
            await send(message)

        return send_with_headers


def _without_port(host: str) -> str:
    """Return the name in a header Host.

    Examples
    --------
    >>> _without_port("[::1]:8080"), _without_port("localhost:8080"), _without_port("a.example")
    ('[::1]', 'localhost', 'a.example')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _is_own(headers: Headers, host: str) -> bool:
    """Return whether a page of the console makes the request, by the browser's headers."""
    site = headers.get("sec-fetch-site")
    if site is not None:
        return site == "same-origin"
    try:
        origin = urlsplit(headers.get("origin", "")).netloc
    except ValueError:  # not an address
        return False
    return bool(host) and origin == host


def _longest_body(path: str) -> int:
    """Return the maximum number of bytes in the body of a request to a path."""
    if path == SIGN_IN:
        return MAX_SIGN_IN_BYTES
    return MAX_UPLOAD_BYTES if UPLOADS.fullmatch(path) else MAX_BODY_BYTES


def _timely_body(receive: Receive) -> Receive:
    """Return a source of a request's body that ends with an error if not all of it arrives in time."""
    deadline: float | None = asyncio.get_running_loop().time() + SIGN_IN_S

    async def receive_in_time() -> Message:
        nonlocal deadline
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise HTTPException(408, "the request did not arrive in time") from None
        if not message.get("more_body", False):
            deadline = None  # from now on, wait for the end of the connection
        return message

    return receive_in_time


def _bounded_body(receive: Receive, bound: int) -> Receive:
    """Return a source of a request's body that ends with an error beyond ``bound`` bytes."""
    taken = 0

    async def receive_counted() -> Message:
        nonlocal taken
        message = await receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > bound:
                raise HTTPException(413, f"a request may have at most {bound:,} bytes")
        return message

    return receive_counted
