"""The addresses that Label Studio calls on a machine-learning backend, over HTTP."""

from __future__ import annotations

import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from quercus.client import errors
from quercus.client.aio import Client
from quercus.client.bridges.label_studio import LabelStudioBridge, TaskFormat
from quercus.client.bridges.label_studio_tasks import BadTaskError, fields_of

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
TIMEOUT_S: Final = 15.0
OUTAGE_S: Final = 60.0
"""Seconds that a statement waits for an unreachable server."""
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
LEAST_SECRET: Final = 22
"""Characters: 128 random bits in base64."""
_STATUS: Final[dict[type[Exception], int]] = {
    BadTaskError: 400,
    errors.InvalidArgument: 400,
    errors.PermissionDenied: 403,
    errors.Unauthenticated: 403,
    errors.NotFound: 404,
    errors.FailedPrecondition: 409,
    errors.ResourceExhausted: 429,
    errors.Unavailable: 503,
    errors.DeadlineExceeded: 503,
}


@dataclass(frozen=True)
class BackendConfig:
    """The configuration of a backend.

    Attributes
    ----------
    server, model, form
        Address of the server, the model, and the format of tasks.
    secret
        The first part of every path; empty: none, and only programs of this machine may call.
    """

    server: str
    model: str
    form: TaskFormat
    secret: str = ""

    def __post_init__(self) -> None:
        if self.secret and (
            len(self.secret) < LEAST_SECRET or not self.secret.replace("-", "").replace("_", "").isalnum()
        ):
            reason = f"must be letters, digits, - and _, at least {LEAST_SECRET} of them, as openssl rand -hex 16 gives"
            raise errors.invalid("secret", reason)


class RefusedRequestError(Exception):
    """A request that is refused before it is read."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def application(config: BackendConfig, notify: Callable[[str], None]) -> Starlette:
    """Return the application: ``/health``, ``/setup``, ``/predict`` and ``/webhook``."""
    backend = _Backend(config, notify)
    paths: list[tuple[str, str, _Handler]] = [
        ("/health", "GET", backend.health),
        ("/setup", "POST", backend.setup),
        ("/predict", "POST", backend.predict),
        ("/webhook", "POST", backend.webhook),
    ]
    prefix = "/{secret}" if config.secret else ""
    routes = [
        Route(prefix + path, backend.guarded_endpoint(call), methods=[method]) for path, method, call in paths
    ]
    app = Starlette(routes=routes, lifespan=backend.lifespan)
    app.router.redirect_slashes = False  # unknown callers learn nothing about the paths
    return app


_Handler = Callable[[Request], Awaitable[dict[str, Any]]]


class _Backend:
    """Holds the connections, and answers each address."""

    def __init__(self, config: BackendConfig, notify: Callable[[str], None]) -> None:
        self._config, self._notify = config, notify
        self._bridge: LabelStudioBridge

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Connect; a client belongs to the loop in which it was made."""
        config = self._config
        async with (
            Client(config.server, timeout_s=TIMEOUT_S, outage_s=0.0) as reading,
            Client(config.server, timeout_s=TIMEOUT_S, outage_s=OUTAGE_S) as stating,
        ):
            with suppress(errors.QuercusError):  # one that has answered once is waited for later
                await stating.get_model(config.model)
            self._bridge = LabelStudioBridge(reading, stating, config.model, config.form)
            yield

    def guarded_endpoint(self, call: _Handler) -> Callable[[Request], Awaitable[Response]]:
        """Return an endpoint that refuses strangers, and answers errors as JSON."""

        async def endpoint(request: Request) -> Response:
            try:
                self._check_caller(request)
                return JSONResponse(await call(request))
            except RefusedRequestError as error:
                return JSONResponse({"error": str(error)}, error.status)
            except UnicodeEncodeError:
                return JSONResponse({"error": "the request holds half of a surrogate pair"}, 400)
            except (BadTaskError, errors.QuercusError) as error:
                status = next((code for kind, code in _STATUS.items() if isinstance(error, kind)), 502)
                self._notify(f"{request.url.path.rpartition('/')[2] or 'health'}: {error}")
                return JSONResponse({"error": str(error)}, status)

        return endpoint

    def _check_caller(self, request: Request) -> None:
        """Refuse callers without the secret; if there is no secret, callers that name another machine."""
        given = request.path_params.get("secret", "")
        if not hmac.compare_digest(given.encode(), self._config.secret.encode()):
            raise RefusedRequestError(404, "no such path")
        host = request.headers.get("host", "")
        name, colon, port = host.rpartition(":")
        if not self._config.secret and (name if colon and port.isdigit() else host) not in LOOPBACK_NAMES:
            raise RefusedRequestError(
                421, f"without a secret, the host must be one of {sorted(LOOPBACK_NAMES)}"
            )

    async def health(self, _: Request) -> dict[str, Any]:
        """Report that model and server are reachable."""
        return {"status": "UP", "model_class": "Quercus", "model_version": await self._bridge.health()}

    async def setup(self, request: Request) -> dict[str, Any]:
        """Check the labelling configuration of a project."""
        sent = await _request_body(request)
        return {"model_version": await self._bridge.setup(_text_field(sent, "schema"))}

    async def predict(self, request: Request) -> dict[str, Any]:
        """Predict tasks."""
        sent = await _request_body(request)
        tasks = sent.get("tasks")
        if not isinstance(tasks, list):
            raise BadTaskError("tasks: must be a list")
        results = await self._bridge.predict(
            [fields_of(each) for each in tasks], _text_field(sent, "label_config")
        )
        return {"results": results}

    async def webhook(self, request: Request) -> dict[str, Any]:
        """State the labels of the annotators."""
        sent = await _request_body(request)
        stored = await self._bridge.state_annotations(sent)
        if stored:
            self._notify(f"{sent['action']}: {stored} stated")
        return {"stated": stored}


def _text_field(sent: dict[str, Any], name: str) -> str:
    text = sent.get(name)
    if not isinstance(text, str):
        raise BadTaskError(f"{name}: must be a text")
    return text


async def _request_body(request: Request) -> dict[str, Any]:
    """Return the JSON object in the body of a request, whose size is bounded."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise RefusedRequestError(415, "a request must be application/json")
    body = bytearray()
    try:
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                raise RefusedRequestError(413, f"a request may have {MAX_BODY_BYTES:,} bytes")
    except ClientDisconnect:
        raise RefusedRequestError(400, "the request ended early") from None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise BadTaskError("the request is not JSON") from None
    if not isinstance(content, dict):
        raise BadTaskError("the request is not an object of JSON")
    return content
