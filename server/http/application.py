"""The application of the HTTP port: its paths, and the checks and headers of every request."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import logging
import re
import secrets
import socket
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import cache
from string import Template
from typing import Final

import grpc
from starlette.datastructures import Headers, MutableHeaders, QueryParams
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from quercus import __version__
from quercus.server.http.calls import Failure, Gate
from quercus.server.http.connect import HTTP_METHODS, JSON_TYPE, answer_call, error_response
from quercus.server.http.health import LIVE, READY, Parts, health_response
from quercus.server.http.inference import answer_inference, path_of
from quercus.server.http.openapi import document
from quercus.server.wire.errors import Unavailable

_log = logging.getLogger(__name__)
READ: Final = ("GET", "HEAD")
SHARED_HEADERS: Final = ("X-Request-Id", "Retry-After")
"""Headers of responses that pages of other origins may read."""

ASKED_HEADERS: Final = (
    "Authorization", "Content-Type", "Connect-Protocol-Version", "Connect-Timeout-Ms", "X-Request-Id",
)  # fmt: skip
"""Headers of requests that pages of other origins may send."""

_SAFE_HEADERS: Final = {
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'; base-uri 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Page = Callable[[Headers, QueryParams], Awaitable[Response]]
"""Answers a request for a page."""


def application(
    gate: Gate,
    pages: Mapping[str, Page],
    parts: Parts,
    *,
    names: Sequence[str] = (),
    origins: Sequence[str] = (),
    is_encrypted: bool = False,
) -> ASGIApp:
    """Return the application of the HTTP port.

    Parameters
    ----------
    gate : serves calls.
    pages : further pages, by path.
    parts : returns the trouble of each part of the server.
    names : further host names under which it answers.
    origins : origins of pages that may call it from a browser.
    is_encrypted : whether connections have TLS.
    """
    inner: ASGIApp = _Paths(gate, pages, parts)
    if origins:
        inner = CORSMiddleware(
            inner,
            allow_origins=origins,
            allow_methods=("GET", "POST"),
            allow_headers=ASKED_HEADERS,
            expose_headers=SHARED_HEADERS,
        )
    return _Checked(inner, HostCheck(names), is_encrypted)


class _Checked:
    """Refuses requests under foreign host names, adds security headers, and answers after internal errors."""

    def __init__(self, inner: ASGIApp, hosts: HostCheck, is_encrypted: bool) -> None:
        self._inner = inner
        self._hosts = hosts
        self._headers = dict(_SAFE_HEADERS)
        if is_encrypted:
            self._headers["Strict-Transport-Security"] = "max-age=31536000"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        has_begun = False

        async def send_safely(message: Message) -> None:
            nonlocal has_begun
            if message["type"] == "http.response.start":
                has_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in self._headers.items():
                    headers.setdefault(name, value)
            await send(message)

        if not self._hosts.is_allowed(Headers(scope=scope).getlist("host")):
            reason = "this port does not answer under that host name: name it in http_names, or ask for the address"
            refusal = Failure(grpc.StatusCode.PERMISSION_DENIED, reason, http_status=421)
            await error_response(refusal)(scope, receive, send_safely)
            return
        try:
            await self._inner(scope, receive, send_safely)
        except Exception as error:
            reference = secrets.token_hex(6)
            _log.error("%s failed (reference %s)", scope["path"][:200], reference, exc_info=error)
            if has_begun:
                raise
            text = f"internal error, logged by the server under reference {reference}"
            await error_response(Failure(grpc.StatusCode.INTERNAL, text))(scope, receive, send_safely)


class _Paths:
    """Dispatches requests by path."""

    def __init__(self, gate: Gate, pages: Mapping[str, Page], parts: Parts) -> None:
        self._gate = gate
        self._pages: dict[str, Page] = {
            **pages,
            "/": _index,
            "/openapi.json": _openapi,
            "/livez": _health_page(parts, LIVE),
            "/readyz": _health_page(parts, READY),
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        path = scope["path"]
        method = HTTP_METHODS.get(path)
        if method is not None:
            if scope["method"] in method.verbs:
                await answer_call(self._gate, method, scope, receive, send)
            else:
                await _other_verb(scope, method.verbs)(scope, receive, send)
        elif path in self._pages:
            await (await self._page(scope))(scope, receive, send)
        elif (inference := path_of(path)) is not None:
            if scope["method"] in inference.verbs:
                await answer_inference(self._gate, inference, scope, receive, send)
            else:
                await _other_verb(scope, inference.verbs)(scope, receive, send)
        else:
            text = f"there is nothing at {path[:200]}: the page / says what there is"
            await error_response(Failure(grpc.StatusCode.NOT_FOUND, text))(scope, receive, send)

    async def _page(self, scope: Scope) -> Response:
        if scope["method"] not in READ:
            return _other_verb(scope, READ)
        try:
            return await self._pages[scope["path"]](Headers(scope=scope), QueryParams(scope["query_string"]))
        except Failure as failure:
            return error_response(failure)
        except Unavailable as error:  # the worker that writes is being restarted
            return error_response(Failure(grpc.StatusCode.UNAVAILABLE, str(error)))


@cache
def _description() -> bytes:
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()


async def _openapi(_: Headers, __: QueryParams) -> Response:
    return Response(await asyncio.to_thread(_description), media_type=JSON_TYPE)


def _health_page(parts: Parts, names: tuple[str, ...]) -> Page:
    async def page(_: Headers, query: QueryParams) -> Response:
        return health_response(parts, names, query)

    return page


def _other_verb(scope: Scope, verbs: Sequence[str]) -> JSONResponse:
    text = f"{scope['path'][:200]} is not called by {scope['method'][:20]}, but by {' or '.join(verbs)}"
    failure = Failure(grpc.StatusCode.UNIMPLEMENTED, text, http_status=405)
    return error_response(failure, {"Allow": ", ".join(verbs)})


_PORT: Final = re.compile(r":[0-9]{1,5}$")


class HostCheck:
    """Checks host names: addresses, names of this machine, and those that are given are allowed.

    With DNS rebinding, a foreign page makes its own name resolve to this server. The browser then sends that name in
    the header Host, which is neither an address nor a name of this machine.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        own = ("localhost", socket.gethostname())
        self._names = frozenset(each.strip().lower() for each in (*own, *names) if each.strip())

    def is_allowed(self, hosts: Sequence[str]) -> bool:
        """Return whether a request with these headers Host is answered; there must be exactly one.

        Examples
        --------
        >>> check = HostCheck(["quercus.example"])
        >>> [check.is_allowed([host]) for host in ("127.0.0.1:9464", "[::1]:9464", "LOCALHOST", "quercus.example:80")]
        [True, True, True, True]
        >>> [check.is_allowed([host]) for host in ("evil.example:9464", "127.0.0.1.evil.example", "")]
        [False, False, False]
        >>> check.is_allowed([]), check.is_allowed(["localhost", "localhost"])
        (False, False)
        """
        if len(hosts) != 1:
            return False
        name = _PORT.sub("", hosts[0]).lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True


_PAGE: Final = Template("""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Quercus</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:46em;margin:2em auto;padding:0 1em;color-scheme:light dark}
pre{overflow:auto;padding:.7em;border:1px solid}</style>
<h1>Quercus $version</h1>
<p>A server of trees that learn from streams. This port answers calls by HTTP; gRPC has a port of its own.</p>
<pre>curl "$$URL/quercus.v1.ModelService/ListModels" -H 'Content-Type: application/json' -d '{}'</pre>
<p>Where the server asks for a token, add <code>-H "Authorization: Bearer $$QUERCUS_TOKEN"</code>.</p>
<ul>
<li><a href="/openapi.json">/openapi.json</a>: all calls and their messages (OpenAPI 3.1)</li>
<li><a href="/v2">/v2</a>: the Open Inference Protocol, with which clients of Triton and KServe classify</li>
<li><a href="/livez">/livez</a>, <a href="/readyz">/readyz</a>: whether the server is well</li>
<li><a href="/metrics">/metrics</a>: metrics for Prometheus</li>
</ul>
</html>
""")


async def _index(_: Headers, __: QueryParams) -> Response:
    return HTMLResponse(_PAGE.substitute(version=__version__))
