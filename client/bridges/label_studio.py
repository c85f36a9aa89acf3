"""Label Studio's machine-learning backend over HTTP: predictions for its tasks, and its annotations as statements.

Tasks stand for existing rows of the model: a field of their data holds the id. A prediction selects the undominated
classes, and its score is the position of the row on the agenda, so that sorting by score, lowest first, shows the most
useful rows first.
"""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from quercus.belief.errors import shown
from quercus.client import errors
from quercus.client.aio import Client
from quercus.client.answers import Statement
from quercus.client.bridges.label_studio_tasks import (
    BadTaskError,
    Control,
    choices_of,
    fields_of,
    item_of,
    labeller_of,
    read_control,
)
from quercus.client.results import Instance, Model

MAX_BODY_BYTES: Final = 16 * 1024 * 1024
MAX_TASKS: Final = 2_000
"""Maximum number of tasks in a request."""
MAX_ROWS_AT_ONCE: Final = 32
"""Number of rows that are read from the server concurrently."""
TIMEOUT_S: Final = 15.0
OUTAGE_S: Final = 60.0
"""Seconds for which a statement waits for an unreachable server."""
LOOPBACK_NAMES: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})
LEAST_SECRET: Final = 22
"""Minimum length in characters: 128 random bits in base64."""
NOT_ASKED: Final = 1.0
"""Score of a row that is not on the agenda; rows on it have a lower score."""
ANNOTATION_ACTIONS: Final = frozenset({"ANNOTATION_CREATED", "ANNOTATIONS_CREATED", "ANNOTATION_UPDATED"})
"""Events that report a label of a row; others are ignored."""
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
_Handler = Callable[[Request], Awaitable[dict[str, Any]]]


@dataclass(frozen=True)
class BackendConfig:
    """The configuration of a backend.

    Attributes
    ----------
    server, model
        Address of the server, and the model.
    id_field
        The field of a task's data that holds the id of the row; if the data lack it, the field of the task itself.
    question
        Name of the question, if a project has several.
    labeller
        Name under which answers are stated; empty: the name of the person who gave them, which needs the role operator.
    secret
        The first part of every path; empty: none, and only programs of this machine may call.
    """

    server: str
    model: str
    id_field: str = "id"
    question: str = ""
    labeller: str = ""
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
    app.router.redirect_slashes = False  # strangers learn nothing about the paths
    return app


class _Backend:
    """The connections and endpoints of the backend.

    The client for reading does not wait for an unreachable server. The one for statements does, because Label Studio
    sends an answer once.
    """

    _reading: Client
    _stating: Client

    def __init__(self, config: BackendConfig, notify: Callable[[str], None]) -> None:
        self._config, self._notify = config, notify
        self._order = asyncio.Lock()  # answers about a row are stated in the order of arrival
        self._rows = asyncio.Semaphore(MAX_ROWS_AT_ONCE)

    @asynccontextmanager
    async def lifespan(self, _: Starlette) -> AsyncIterator[None]:
        """Connect within the event loop, to which the clients belong."""
        server = self._config.server
        async with (
            Client(server, timeout_s=TIMEOUT_S, outage_s=0.0) as self._reading,
            Client(server, timeout_s=TIMEOUT_S, outage_s=OUTAGE_S) as self._stating,
        ):
            with suppress(errors.QuercusError):  # if it answers now, later calls wait through outages
                await self._stating.get_model(self._config.model)
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
        model = await self._reading.get_model(self._config.model)
        return {"status": "UP", "model_class": "Quercus", "model_version": _version_name(model)}

    async def setup(self, request: Request) -> dict[str, Any]:
        """Check that the labelling configuration of a project offers the classes of the model."""
        config = _text_field(await _request_body(request), "schema")
        model = await self._reading.get_model(self._config.model)
        self._read_control(config, model)
        return {"model_version": _version_name(model)}

    def _read_control(self, config: str, model: Model) -> Control:
        return read_control(config, model.specification.classes, self._config.question)

    async def predict(self, request: Request) -> dict[str, Any]:
        """Return a prediction for each task; it is without choices if the row cannot be predicted."""
        sent = await _request_body(request)
        tasks = sent.get("tasks")
        if not isinstance(tasks, list):
            raise BadTaskError("tasks: must be a list")
        config = _text_field(sent, "label_config")
        if len(tasks) > MAX_TASKS:
            raise BadTaskError(f"tasks: are {len(tasks):,}, at most {MAX_TASKS:,} are allowed")
        model = await self._reading.get_model(self._config.model)
        control = self._read_control(config, model)
        rows = await asyncio.gather(*(self._find_row(self._item_id(fields_of(each))) for each in tasks))
        chosen = await self._label_sets(model, rows)
        asked = [each async for each in self._reading.list_queries(self._config.model, ["open", "leased"])]
        # in (0, 1); the first query has the lowest
        scores = {each.instance: (each.place or len(asked)) / (len(asked) + 1) for each in asked}
        return {
            "results": [
                {
                    "result": control.prediction_result(classes),
                    "score": NOT_ASKED if row is None else scores.get(row.id, NOT_ASKED),
                    "model_version": _version_name(model),
                }
                for row, classes in zip(rows, chosen, strict=True)
            ]
        }

    def _item_id(self, task: Mapping[str, Any]) -> str | None:
        return item_of((fields_of(task.get("data")), task), self._config.id_field)

    async def _find_row(self, item: str | None) -> Instance | None:
        if item is None:
            return None
        async with self._rows:
            try:
                return await self._reading.get_instance(self._config.model, item)
            except errors.NotFound:
                return None

    async def _label_sets(self, model: Model, rows: Sequence[Instance | None]) -> Iterable[Sequence[str]]:
        """Return the undominated classes of each row; empty if the model withholds its belief."""
        presentation = model.specification.presentation
        known = [row for row in rows if row is not None]
        if not known or (presentation is not None and "belief" in presentation.withheld):
            return [()] * len(rows)
        try:
            predictions = await self._reading.classify(model.name, [row.values for row in known])
        except errors.FailedPrecondition:  # there is no tree yet
            return [()] * len(rows)
        sets = iter([each.label_set for each in predictions])
        chosen = [() if row is None else next(sets) for row in rows]
        everything = set(model.specification.classes)
        return [
            () if set(each) == everything else each for each in chosen
        ]  # choosing all of them would say nothing

    async def webhook(self, request: Request) -> dict[str, Any]:
        """State the labels of the annotators."""
        sent = await _request_body(request)
        action = sent.get("action")
        if not isinstance(action, str) or action not in ANNOTATION_ACTIONS:
            return {"stated": 0}
        annotations, tasks = _as_list(sent.get("annotation")), _as_list(sent.get("task"))
        if len(annotations) > MAX_TASKS:
            raise BadTaskError(f"annotation: are {len(annotations):,}, at most {MAX_TASKS:,} are allowed")
        by_number = {str(task.get("id")): task for task in tasks}
        statements = []
        for annotation in annotations:
            task = by_number.get(str(annotation.get("task"))) or (tasks[0] if len(tasks) == 1 else {})
            statement = self._statement_of(task, annotation, is_new=action != "ANNOTATION_UPDATED")
            statements += [] if statement is None else [statement]
        if not statements:
            return {"stated": 0}
        async with self._order:
            stored = (await self._stating.state(self._config.model, statements)).stored
        if stored:
            self._notify(f"{action}: {stored} stated")
        return {"stated": stored}

    def _statement_of(
        self, task: Mapping[str, Any], annotation: Mapping[str, Any], *, is_new: bool
    ) -> Statement | None:
        where = f"annotation {annotation.get('id')}"
        item = self._item_id(task)
        if item is None:
            raise BadTaskError(f"{where}: its task has no field {shown(self._config.id_field)}")
        labeller = self._config.labeller or labeller_of(annotation)
        if not labeller:
            raise BadTaskError(f"{where}: has no labeller; name one with --labeller")
        try:
            names = choices_of(annotation, self._config.question)
        except BadTaskError as error:
            raise BadTaskError(f"{where}: {error}") from None
        if names is None:  # no choice is left: retract the labeller's statement
            return None if is_new else Statement(item, labeller=labeller, retract=True)
        for name in names:
            if not isinstance(name, str):
                raise BadTaskError(f"{where}: chooses {shown(name)}, must choose text")
        label = names[0] if len(names) == 1 else frozenset(names)
        return Statement(item, label, labeller)


def _version_name(model: Model) -> str:
    """Return a name for the version of predictions: it changes with the tree, so Label Studio requests them again."""
    return f"{model.name}-{model.tree_version}"


def _as_list(value: object) -> list[dict[str, Any]]:
    return [fields_of(each) for each in value] if isinstance(value, list) else [fields_of(value)]


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
                raise RefusedRequestError(413, f"a request may have at most {MAX_BODY_BYTES:,} bytes")
    except ClientDisconnect:
        raise RefusedRequestError(400, "the request ended early") from None
    try:
        content = json.loads(body)
    except (ValueError, RecursionError):
        raise BadTaskError("the request is not JSON") from None
    if not isinstance(content, dict):
        raise BadTaskError("the request is not a JSON object")
    return content
