"""The HTTP port: uvicorn in the event loop of the server, with limits for connections."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Final

import uvicorn
from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response
from starlette.types import ASGIApp

from quercus.client import http_serving
from quercus.server.config import Config
from quercus.server.gate.listening import HTTP, hold_port
from quercus.server.gate.tls import Certificates
from quercus.server.http.application import application
from quercus.server.http.calls import Gate
from quercus.server.http.health import Parts
from quercus.server.workers.line import FindHandler

IDLE_S: Final = 75
"""Seconds after which a connection without requests is closed; clients connect again."""

START_POLL_S: Final = 0.01
NO_FILES_S: Final = 0.1
"""Seconds to wait if the process can open no more files."""


class _Uvicorn(uvicorn.Server):
    """Uvicorn within a program that handles signals itself; connections are counted before their handshake.

    Parameters
    ----------
    config : uvicorn's configuration.
    context : TLS context; None for no TLS.
    max_connections : most connections at a time; further ones are closed.
    """

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None, max_connections: int) -> None:
        super().__init__(config)
        self.servers = []
        self._context = context
        self._max_connections = max_connections
        self._accepting: list[asyncio.Task[None]] = []
        self._greeting: dict[asyncio.Task[None], http_serving.TimedProtocol] = {}

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture no signals."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        for each in sockets or ():
            each.listen(self.config.backlog)
            each.setblocking(False)
            self._accepting.append(asyncio.create_task(self._accept(each), name="quercus-http-accept"))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more connections, and end the present ones."""
        for task in (*self._accepting, *self._greeting):
            task.cancel()
        await super().shutdown(sockets)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:
                await asyncio.sleep(NO_FILES_S)
                continue
            # a connection may be in both, because uvicorn adds it before the task of its handshake ends
            made = self.server_state.connections
            count = len(made) + sum(each not in made for each in self._greeting.values())
            if count >= self._max_connections:
                connection.close()
                continue
            protocol = http_serving.TimedProtocol(
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            task = loop.create_task(self._greet(connection, protocol))
            self._greeting[task] = protocol
            task.add_done_callback(self._greeting.pop)

    async def _greet(self, connection: socket.socket, protocol: http_serving.TimedProtocol) -> None:
        wait_s = None if self._context is None else http_serving.ARRIVAL_S
        with contextlib.suppress(OSError):  # the client has gone, or speaks no TLS
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: protocol, connection, ssl=self._context, ssl_handshake_timeout=wait_s
            )


class HttpServer:
    """The server of the HTTP port. Create, start and stop it in one event loop.

    Parameters
    ----------
    application : answers requests.
    sockets : sockets bound to the addresses of the port.
    context : TLS context; None for no TLS.
    max_connections : most connections at a time; further ones are closed.
    """

    def __init__(
        self,
        application: ASGIApp,
        sockets: Sequence[socket.socket],
        context: ssl.SSLContext | None,
        max_connections: int,
    ) -> None:
        self._sockets = list(sockets)
        config = uvicorn.Config(
            application,
            log_config=None,
            log_level=logging.CRITICAL,  # uvicorn would log faults of peers; errors of calls are logged elsewhere
            access_log=False,
            server_header=False,
            proxy_headers=False,  # a caller's address is that of its connection
            lifespan="off",
            ws="none",
            timeout_keep_alive=IDLE_S,
            h11_max_incomplete_event_size=http_serving.MAX_HEADER_BYTES,
        )
        self._server = _Uvicorn(config, context, max_connections)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to answer."""
        self._task = asyncio.create_task(self._server.serve(self._sockets), name="quercus-http")
        while not self._server.started:
            if self._task.done():
                await self._task
            await asyncio.sleep(START_POLL_S)

    async def stop(self, grace_s: float) -> None:
        """Accept no more connections, and give running requests time to finish."""
        self._server.config.timeout_graceful_shutdown = max(1, math.ceil(grace_s))
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        for each in self._sockets:
            each.close()


ReadMetrics = Callable[[str], Awaitable[tuple[str, bytes]]]
"""Returns content type and text of the page of metrics for a header Accept."""


def listen(
    config: Config,
    find: FindHandler,
    parts: Parts,
    metrics: ReadMetrics,
    certificates: Certificates | None,
    *,
    max_connections: int,
    shares_port: bool,
) -> HttpServer:
    """Bind the HTTP port, and return its server, which is not started yet.

    Parameters
    ----------
    config : configuration of the server.
    find : finds the handler of a call, behind the interceptors of the gRPC port.
    parts : returns the trouble of each part of the server.
    metrics : reads the page of metrics.
    certificates : certificate of the server; None for no TLS.
    max_connections : most connections at a time.
    shares_port : whether other workers of the same server listen on the port too.

    Raises
    ------
    BadStart
        If the port is taken.
    """
    sockets, _ = hold_port(config.http_host, config.http_port, HTTP, shared=shares_port)

    async def metrics_page(headers: Headers, _: QueryParams) -> Response:
        kind, text = await metrics(headers.get("accept", ""))
        return Response(text, headers={"Content-Type": kind})

    answers = application(
        Gate(find, config.max_message_bytes),
        {"/metrics": metrics_page},
        parts,
        names=config.names,
        origins=config.origins,
        is_encrypted=certificates is not None,
    )
    context = None if certificates is None else certificates.context
    return HttpServer(answers, sockets, context, max_connections)
