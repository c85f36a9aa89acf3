"""A console in a process of its own, started as a user starts it, and a small client of HTTP for it."""

from __future__ import annotations

import http.client
import json
import os
import re
import select
import signal
import subprocess
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from integration.client.serving import QUERCUS, START_S, STOP_S

FORM_TOKEN = re.compile(r'name="form_token" value="([^"]+)"')


class ConsoleProcess:
    """``quercus console`` beside a server.

    Parameters
    ----------
    server
        Address of the server.
    port
        0: any free one.
    flags
        More flags.
    """

    def __init__(self, server: str, port: int = 0, *flags: str) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("QUERCUS_TOKEN")}
        self.process = subprocess.Popen(
            [QUERCUS, "console", "--server", server, "--port", str(port), *flags],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], START_S)
        line = self.process.stdout.readline() if ready else ""
        if not line.startswith("console at "):
            self.process.kill()
            raise AssertionError(f"the console did not start: {line!r} {self.process.communicate()[1]!r}")
        self.url = line.removeprefix("console at ").strip().rstrip("/")

    @property
    def port(self) -> int:
        port = urlsplit(self.url).port
        assert port is not None
        return port

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        """End it; return what it said on stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, said = self.process.communicate(timeout=STOP_S)
        return said


@dataclass
class Response:
    """A response of the console."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def json(self) -> Any:
        return json.loads(self.text)


class Visitor:
    """Speaks HTTP as a browser does, with cookies and the headers of a page of the console's own.

    Parameters
    ----------
    port
        Of the console.
    source
        Address of this machine from which it connects; empty: the usual one.
    """

    def __init__(self, port: int, source: str = "") -> None:
        self.port = port
        self.source = source
        self.host = f"127.0.0.1:{port}"
        self.cookies: dict[str, str] = {}
        self.form_token = ""

    def ask(self, method: str, path: str, body: bytes | str | None = None, **headers: str) -> Response:
        """Send a request; headers are written with underscores, and None leaves one out."""
        own = {"Host": self.host, "Sec-Fetch-Site": "same-origin"}
        if self.cookies:
            own["Cookie"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        own |= {name.replace("_", "-").title(): value for name, value in headers.items()}
        connection = http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=60, source_address=(self.source, 0) if self.source else None
        )
        connection.request(method, path, body, {k: v for k, v in own.items() if v})
        answer = connection.getresponse()
        text = answer.read().decode(errors="backslashreplace")  # a picture is not text
        for each in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = each.partition(";")[0].partition("=")
            self.cookies[name] = value.strip('"')
        connection.close()
        found = FORM_TOKEN.search(text)
        self.form_token = found[1] if found else self.form_token
        return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, text)

    def get(self, path: str, **headers: str) -> Response:
        return self.ask("GET", path, **headers)

    def form(self, path: str, fields: dict[str, Any], **headers: str) -> Response:
        """Send a form, with the secret of the session."""
        body = urlencode({"form_token": self.form_token} | fields, doseq=True)
        return self.ask(
            "POST", path, body, **({"content_type": "application/x-www-form-urlencoded"} | headers)
        )

    def upload(self, name: str, content: bytes) -> Response:
        """Send a file to the page of new models."""
        self.get("/create")
        parts = [
            f'--b\r\nContent-Disposition: form-data; name="form_token"\r\n\r\n{self.form_token}\r\n'.encode(),
            f'--b\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'.encode(),
            content + b"\r\n--b--\r\n",
        ]
        return self.ask("POST", "/create", b"".join(parts), content_type="multipart/form-data; boundary=b")

    def script(self, path: str, value: Any, **headers: str) -> Response:
        """Send JSON, as a script of a page does."""
        own = {
            "content_type": "application/json",
            "accept": "application/json",
            "x_form_token": self.form_token,
        }
        return self.ask("POST", path, json.dumps(value), **(own | headers))

    def sign_in(self, **fields: str) -> Response:
        """Sign in with a token or a name, and read the secret of the session."""
        answer = self.form("/sign-in", fields)
        if answer.status == 303:
            self.get("/")
        return answer
