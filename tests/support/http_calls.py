"""HTTP calls of tests, by the library of Python."""

import http.client
import json
import socket
import ssl
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

DEADLINE_S = 60.0
CODES = "/quercus.v1."


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Said:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.body.splitlines()]

    @property
    def error(self) -> tuple[str, str]:
        return self.json["code"], self.json["message"]


@dataclass(frozen=True)
class Http:
    """An HTTP client of one server; each request has a connection of its own."""

    port: int
    token: str | None = None
    context: ssl.SSLContext | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def connect(self, timeout_s: float = DEADLINE_S) -> http.client.HTTPConnection:
        if self.context is not None:
            return http.client.HTTPSConnection(
                "127.0.0.1", self.port, timeout=timeout_s, context=self.context
            )
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def ask(self, verb: str, path: str, body: bytes | None = None, **headers: str) -> Said:
        sent = dict(self.headers)
        if self.token is not None:
            sent["authorization"] = f"Bearer {self.token}"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        with closing(self.connect()) as connection:
            connection.request(verb, path, body, sent)
            response = connection.getresponse()
            return Said(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def get(self, path: str, **headers: str) -> Said:
        return self.ask("GET", path, **headers)

    def call(self, method: str, request: Any = None, **headers: str) -> Said:
        """Call ``Service/Method`` with a request as JSON; a text is sent as it is."""
        body = request.encode() if isinstance(request, str) else json.dumps(request or {}).encode()
        headers = {"content_type": "application/json"} | headers
        return self.ask("POST", CODES + method, body, **headers)

    def raw(self, data: bytes, timeout_s: float = DEADLINE_S) -> bytes:
        """Send bytes, and return all that comes until the server closes the connection."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout_s) as connection:
            connection.sendall(data)
            found = b""
            while piece := connection.recv(65536):
                found += piece
            return found
