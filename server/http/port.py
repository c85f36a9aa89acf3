"""The HTTP port of a server, put together."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from starlette.datastructures import Headers, QueryParams
from starlette.responses import Response

from quercus.server.config import Config
from quercus.server.gate.listening import HTTP, hold_port
from quercus.server.gate.tls import Certificates
from quercus.server.http.application import application
from quercus.server.http.calls import Gate
from quercus.server.http.health import Parts
from quercus.server.http.listener import HttpServer
from quercus.server.workers.line import FindHandler

ReadMetrics = Callable[[str], Awaitable[tuple[str, bytes]]]
"""Returns type and text of the page of metrics for a header Accept."""


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
    """Bind the HTTP port; the server that is returned answers once it is started.

    Parameters
    ----------
    config : configuration of the server.
    find : finds the handler of a call behind the interceptors of gRPC's port.
    parts : what is wrong with each part of the server.
    metrics : reads the page of metrics.
    certificates : of the server; None: without TLS.
    max_connections : at a time.
    shares_port : whether other processes, workers of the same server, listen on the port too.

    Raises
    ------
    BadStart
        When the port is taken.
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
