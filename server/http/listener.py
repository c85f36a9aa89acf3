"""The HTTP server: uvicorn in the event loop of the server, with bounds on what a connection may keep waiting."""

from __future__ import annotations

import asyncio
import logging
import math
import socket
import ssl
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_HEADER_BYTES: Final = 16 * 1024
"""Longest headers of a request; as much as metadata of a call by gRPC."""

ARRIVAL_S: Final = 10.0
"""Longest time until the headers of a request have arrived, and until what is left of one that was refused has."""

IDLE_S: Final = 75
"""Time after which a connection without requests is closed; clients connect again."""

START_POLL_S: Final = 0.01


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 on a connection that is closed when a request does not arrive in time, or when there are too many."""

    max_connections = math.inf
    _arriving: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        if len(self.connections) > self.max_connections:
            transport.abort()
            return
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
    """Uvicorn as a part of a program that handles signals itself."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


class HttpServer:
    """Answers HTTP. Made, started and stopped in one event loop.

    Parameters
    ----------
    application : answers requests.
    sockets : bound to its addresses.
    context : TLS; None: without.
    max_connections : at a time; further ones are closed.
    grace_s : seconds that running requests have when it stops.
    """

    def __init__(
        self,
        application: ASGIApp,
        sockets: Sequence[socket.socket],
        context: ssl.SSLContext | None,
        max_connections: int,
        grace_s: float,
    ) -> None:
        self._sockets = list(sockets)
        config = uvicorn.Config(
            application,
            http=type("Protocol", (BoundedProtocol,), {"max_connections": max_connections}),
            log_config=None,
            log_level=logging.CRITICAL,  # faults of peers; those of calls are logged where they are caught
            access_log=False,
            server_header=False,
            proxy_headers=False,  # addresses are those of connections
            lifespan="off",
            ws="none",
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=max(1, math.ceil(grace_s)),
            h11_max_incomplete_event_size=MAX_HEADER_BYTES,
        )
        config.load()
        config.ssl = context
        self._server = _Uvicorn(config)
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to answer."""
        self._task = asyncio.create_task(self._server.serve(self._sockets), name="quercus-http")
        while not self._server.started:
            if self._task.done():
                await self._task
            await asyncio.sleep(START_POLL_S)

    async def stop(self) -> None:
        """Take no more connections, and give running requests time to end."""
        self._server.should_exit = True
        if self._task is not None:
            await self._task
        for each in self._sockets:
            each.close()
