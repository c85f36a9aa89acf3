"""The HTTP server: uvicorn in the event loop of the server, with bounds on what a connection may keep waiting."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import socket
import ssl
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEADER_BYTES: Final = 16 * 1024
"""Longest headers of a request; as much as metadata of a call by gRPC."""

ARRIVAL_S: Final = 10.0
"""Longest time of a handshake, until the headers of a request have arrived, and until the rest of a refused one has."""

IDLE_S: Final = 75
"""Time after which a connection without requests is closed; clients connect again."""

START_POLL_S: Final = 0.01
NO_FILES_S: Final = 0.1
"""Pause where the process may open no more files."""


class TimedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed when a request does not arrive in time."""

    _arriving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._arriving = self.loop.call_later(ARRIVAL_S, transport.close)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Take a part of a request: the first of one starts its time, its whole headers end it."""
        if self._arriving is None and (self.cycle is None or self.cycle.response_complete):
            self._arriving = self.loop.call_later(ARRIVAL_S, self.transport.close)
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def _stop_waiting(self) -> None:
        if self._arriving is not None:
            self._arriving.cancel()
            self._arriving = None


class _Uvicorn(uvicorn.Server):
    """Uvicorn as a part of a program that handles signals itself, and counts connections before their handshake.

    Parameters
    ----------
    config : its configuration.
    context : TLS; None: without.
    max_connections : at a time; further ones are closed.
    """

    def __init__(self, config: uvicorn.Config, context: ssl.SSLContext | None, max_connections: int) -> None:
        super().__init__(config)
        self.servers = []
        self._context = context
        self._max_connections = max_connections
        self._accepting: list[asyncio.Task[None]] = []
        self._greeting: set[asyncio.Task[None]] = set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen."""
        for each in sockets or ():
            each.listen(self.config.backlog)
            each.setblocking(False)
            self._accepting.append(asyncio.create_task(self._accept(each), name="quercus-http-accept"))
        self.started = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more connections, and end those that are there."""
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
            if len(self.server_state.connections) + len(self._greeting) >= self._max_connections:
                connection.close()
                continue
            task = loop.create_task(self._greet(connection))
            self._greeting.add(task)
            task.add_done_callback(self._greeting.discard)

    async def _greet(self, connection: socket.socket) -> None:
        make = partial(
            TimedProtocol, config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        wait_s = None if self._context is None else ARRIVAL_S
        with contextlib.suppress(OSError):  # the client has gone, or speaks no TLS
            await asyncio.get_running_loop().connect_accepted_socket(
                make, connection, ssl=self._context, ssl_handshake_timeout=wait_s
            )


class HttpServer:
    """Answers HTTP. Made, started and stopped in one event loop.

    Parameters
    ----------
    application : answers requests.
    sockets : bound to its addresses.
    context : TLS; None: without.
    max_connections : at a time; further ones are closed.
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
            log_level=logging.CRITICAL,  # faults of peers; those of calls are logged where they are caught
            access_log=False,
            server_header=False,
            proxy_headers=False,  # addresses are those of connections
            lifespan="off",
            ws="none",
            timeout_keep_alive=IDLE_S,
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
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
        """Take no more connections, and give running requests time to end."""
        self._server.config.timeout_graceful_shutdown = max(1, math.ceil(grace_s))
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        for each in self._sockets:
            each.close()
