"""A receiver of webhooks: a real HTTP server on loopback that checks signatures in its own way."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()
Answer = tuple[int, dict[str, str]]


@dataclass(frozen=True)
class Posted:
    """A message that arrived, and whether its signature is right."""

    id: str
    timestamp: int
    event: dict[str, Any]
    headers: dict[str, str]
    is_signed: bool


class RunningReceiver:
    """Answers what a function of the message says, 204 if it says nothing.

    Parameters
    ----------
    answer : of a message and how many arrived before it; may wait.
    """

    def __init__(self, answer: Callable[[Posted, int], Answer | None] = lambda *_: None) -> None:
        self.posted: list[Posted] = []
        self._answer = answer
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                found = _read(dict(self.headers.items()), body)
                before = len(receiver.posted)
                receiver.posted.append(found)
                status, headers = receiver._answer(found, before) or (204, {})
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        """Stop it."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _read(headers: dict[str, str], body: bytes) -> Posted:
    lower = {name.lower(): value for name, value in headers.items()}
    identifier, at = lower["webhook-id"], lower["webhook-timestamp"]
    key = base64.b64decode(SECRET.split("_")[1])
    signed = f"{identifier}.{at}.".encode() + body
    right = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return Posted(identifier, int(at), json.loads(body), lower, lower["webhook-signature"] == right)
