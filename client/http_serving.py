"""Start and stop of HTTP servers: the console, and bridges that receive requests.

The service's HTTP port uses the same connections (`TimedProtocol`).
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware
from uvicorn.protocols.http.h11_impl import H11Protocol

from quercus.belief.errors import InvalidInput

GRACE_S = 3
MAX_CONNECTIONS = 2_000
LOOPBACK = ("127.0.0.1", "::1")
PEER = "quercus.peer"
"""Key of the peer's host and port in the scope of a request; unlike `client`, no header changes it."""

MAX_HEADER_BYTES = 16 * 1024
"""Maximum size of a request's headers, in bytes."""

ARRIVAL_S = 10.0
"""Maximum seconds until the headers of a request have arrived, since silent connections would keep others out."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed if a request does not arrive in time."""

    _arriving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the timer for the first request."""
        super().connection_made(transport)
        self._arriving = self.loop.call_later(ARRIVAL_S, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive a part of a request: the first part starts the timer, and complete headers stop it."""
        if self._arriving is None and (self.cycle is None or self.cycle.response_complete):
            self._arriving = self.loop.call_later(ARRIVAL_S, self.transport.close)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket.

    Raises
    ------
    InvalidInput
        If it is impossible to listen on the address.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen()  # so that early requests wait until the server runs
    except OSError as error:
        raise InvalidInput("port", f"cannot listen on {host}:{port}: {error.strerror or error}") from None
    return made


def serve(
    application: ASGIApp,
    listening: socket.socket,
    tls_cert: str = "",
    tls_key: str = "",
    *,
    max_connections: int = MAX_CONNECTIONS,
    trusted_proxies: Sequence[str] = (),
) -> None:
    """Answer until SIGINT or SIGTERM; requests beyond ``max_connections`` at once get status 503.

    A request from a proxy on this machine, or from one of ``trusted_proxies`` (addresses or networks), counts as coming
    from the address in its header X-Forwarded-For.

    Raises
    ------
    InvalidInput
        If certificate and key are not valid.
    """
    try:
        settings = uvicorn.Config(
            _with_peer(application, [*LOOPBACK, *trusted_proxies]),
            log_level="warning",
            access_log=False,
            server_header=False,
            lifespan="on",
            loop="asyncio",  # also where the server has uvloop installed
            ws="none",
            timeout_graceful_shutdown=GRACE_S,
            limit_concurrency=max_connections,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
            http=TimedProtocol,
            proxy_headers=False,  # `_with_peer` reads them
            ssl_certfile=tls_cert or None,
            ssl_keyfile=tls_key or None,
        )
        settings.load()
    except (ssl.SSLError, OSError) as error:
        reason = f"{tls_cert} and {tls_key} are not a certificate and its private key in PEM ({error})"
        raise InvalidInput("tls", reason) from None
    logging.getLogger("uvicorn.error").addFilter(_is_fault)
    server = uvicorn.Server(settings)
    for number in (signal.SIGINT, signal.SIGTERM):
        # uvicorn handles signals while it runs, and raises them again at its end; an earlier signal must also end it
        signal.signal(number, lambda *_: setattr(server, "should_exit", True))
    server.run(sockets=[listening])


def _is_fault(record: logging.LogRecord) -> bool:
    """Return whether to log a record: not that a request was cancelled because the program ends."""
    return record.exc_info is None or not isinstance(record.exc_info[1], asyncio.CancelledError)


def _with_peer(application: ASGIApp, trusted: list[str]) -> ASGIApp:
    """Return an application that gets the peer of a connection in addition to the client that a trusted proxy names."""
    behind_proxies: Any = ProxyHeadersMiddleware(application, trusted)  # type: ignore[arg-type]

    async def serve_request(scope: Scope, receive: Receive, send: Send) -> None:
        scope[PEER] = scope.get("client")
        await behind_proxies(scope, receive, send)

    return serve_request
