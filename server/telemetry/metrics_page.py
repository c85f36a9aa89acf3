"""The page of metrics: HTTP for Prometheus, and not for pages of other sites that a browser has open."""

from __future__ import annotations

import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, make_server

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer

_PORT: Final = re.compile(r":[0-9]{1,5}$")
_REFUSAL: Final = (
    "the metrics are not served under this host name: name it in metrics_names, or ask for the address\n"
)


class HostCheck:
    """The host names under which the page is served: addresses, names of this machine, and those that are given.

    A browser that a foreign page sends here, after its name was made to lead here (DNS rebinding), sends that name in
    the header Host. No address and no name of this machine can be such a name.

    Parameters
    ----------
    names : further names, without port.
    """

    def __init__(self, names: Iterable[str] = ()) -> None:
        own = ("localhost", socket.gethostname())
        self._names = frozenset(each.strip().lower() for each in (*own, *names) if each.strip())

    def is_allowed(self, host: str) -> bool:
        """Return whether a request with this header Host is answered.

        Examples
        --------
        >>> check = HostCheck(["metrics.example"])
        >>> [check.is_allowed(host) for host in ("127.0.0.1:9464", "[::1]:9464", "LOCALHOST", "metrics.example:80")]
        [True, True, True, True]
        >>> [check.is_allowed(host) for host in ("evil.example:9464", "127.0.0.1.evil.example", "")]
        [False, False, False]
        """
        name = _PORT.sub("", host).lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
        except ValueError:
            return False
        return True


class _QuietHandler(WSGIRequestHandler):
    timeout = 10.0  # seconds for a request that does not come to its end

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Log nothing: a scrape every few seconds is no event."""


def start_page(registry: CollectorRegistry, host: str, port: int, names: Iterable[str]) -> Callable[[], None]:
    """Answer ``GET /metrics`` in a separate thread; return what ends it.

    Raises
    ------
    OSError
        When the address cannot be listened on.
    """
    check, page = HostCheck(names), make_wsgi_app(registry)

    def checked_page(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        if check.is_allowed(environ.get("HTTP_HOST", "")):
            return page(environ, start_response)
        status = HTTPStatus.MISDIRECTED_REQUEST
        start_response(f"{int(status)} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")])
        return [_REFUSAL.encode()]

    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]

    class Listener(ThreadingWSGIServer):
        address_family = family

    server = make_server(str(address[0]), port, checked_page, Listener, _QuietHandler)
    thread = threading.Thread(target=server.serve_forever, name="quercus-metrics", daemon=True)
    thread.start()

    def stop_server() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return stop_server
