"""The calls of `quercus.v1` by HTTP: unary ones by the Connect protocol, streams of responses as lines of JSON.

https://connectrpc.com/docs/protocol describes requests, errors and ``GET``. A stream of responses has one message on
each line; if it fails after the first, the last line is ``{"error": ...}``, which no message has.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import Any, Final

import grpc
from google.protobuf import json_format
from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass
from starlette.datastructures import Headers, QueryParams
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from quercus.inference import open_inference_pb2
from quercus.server.gate.observing import REQUEST_ID
from quercus.server.http.calls import ClientLeft, Failure, Gate, HttpContext, invalid_request
from quercus.server.wire.json_messages import JsonMessage, write_json
from quercus.server.wire.limits import INLINE_JSON_BYTES
from quercus.v1.calls import METHODS, is_reading, methods_of

JSON_TYPE: Final = "application/json"
PROTO_TYPE: Final = "application/proto"
LINES_TYPE: Final = "application/x-ndjson"
TIMEOUT: Final = "connect-timeout-ms"
VERSION: Final = "connect-protocol-version"
MAX_TIMEOUT_DIGITS: Final = 10

HTTP_STATUS: Final[Mapping[grpc.StatusCode, int]] = {
    grpc.StatusCode.CANCELLED: 499,
    grpc.StatusCode.UNKNOWN: 500,
    grpc.StatusCode.INVALID_ARGUMENT: 400,
    grpc.StatusCode.DEADLINE_EXCEEDED: 504,
    grpc.StatusCode.NOT_FOUND: 404,
    grpc.StatusCode.ALREADY_EXISTS: 409,
    grpc.StatusCode.PERMISSION_DENIED: 403,
    grpc.StatusCode.RESOURCE_EXHAUSTED: 429,
    grpc.StatusCode.FAILED_PRECONDITION: 400,
    grpc.StatusCode.ABORTED: 409,
    grpc.StatusCode.OUT_OF_RANGE: 400,
    grpc.StatusCode.UNIMPLEMENTED: 501,
    grpc.StatusCode.INTERNAL: 500,
    grpc.StatusCode.UNAVAILABLE: 503,
    grpc.StatusCode.DATA_LOSS: 500,
    grpc.StatusCode.UNAUTHENTICATED: 401,
}
"""The HTTP status for each status code, as in Connect."""

_PARAMETERS: Final = frozenset({"connect", "encoding", "message", "base64", "compression"})


def code_word(code: grpc.StatusCode) -> str:
    """Return Connect's word for a status code.

    Examples
    --------
    >>> code_word(grpc.StatusCode.NOT_FOUND), code_word(grpc.StatusCode.CANCELLED)
    ('not_found', 'canceled')
    """
    return "canceled" if code is grpc.StatusCode.CANCELLED else code.name.lower()


def error_body(failure: Failure) -> dict[str, Any]:
    """Return the error of a response: code, message, and details, each both encoded and readable."""
    body: dict[str, Any] = {"code": code_word(failure.code), "message": failure.message}
    details = []
    for detail in failure.details:
        value = base64.b64encode(detail.value).decode().rstrip("=")
        shown = json_format.MessageToDict(detail)
        shown.pop("@type")
        details.append({"type": detail.TypeName(), "value": value, "debug": shown})
    if details:
        body["details"] = details
    return body


def error_response(
    failure: Failure, headers: Mapping[str, str] | None = None, body: Mapping[str, Any] | None = None
) -> JSONResponse:
    """Return the response to a call that failed; `body` replaces Connect's."""
    sent = dict(headers or {})
    if (retry_s := failure.retry_s) is not None:
        sent["Retry-After"] = str(retry_s)
    if failure.code is grpc.StatusCode.UNAUTHENTICATED:
        sent["WWW-Authenticate"] = "Bearer"
    return JSONResponse(body or error_body(failure), failure.http_status or HTTP_STATUS[failure.code], sent)


@dataclass(frozen=True)
class HttpMethod:
    """A method that can be called by HTTP.

    Attributes
    ----------
    path : ``/{service}/{method}``.
    descriptor : protobuf's descriptor.
    """

    path: str
    descriptor: MethodDescriptor

    @cached_property
    def response(self) -> type[Message]:
        """The class of the responses."""
        return GetMessageClass(self.descriptor.output_type)

    @property
    def takes_stream(self) -> bool:
        """True if requests are a stream, which is not supported by HTTP."""
        return bool(self.descriptor.client_streaming)

    @property
    def verbs(self) -> tuple[str, ...]:
        """The HTTP methods by which it is called."""
        return ("GET", "HEAD", "POST") if is_reading(self.descriptor) else ("POST",)


HTTP_METHODS: Final[Mapping[str, HttpMethod]] = {
    path: HttpMethod(path, method)
    for path, method in {**METHODS, **methods_of(open_inference_pb2.DESCRIPTOR)}.items()
}
"""The methods, by path."""


@dataclass(frozen=True)
class _Asked:
    """A request before its body is read.

    Attributes
    ----------
    is_json : whether messages are JSON; otherwise they have protobuf's encoding.
    given : the message, if the URL has it.
    """

    is_json: bool
    given: bytes | None = None

    def encode(self, data: bytes) -> bytes:
        """Return the bytes of a message, in a type that tells how to read them."""
        return JsonMessage(data) if self.is_json else data


async def answer_call(gate: Gate, method: HttpMethod, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer one call of a method."""
    headers = Headers(scope=scope)
    context: HttpContext | None = None
    lines = _Lines(method, send)
    try:
        asked = _read_head(method, scope, headers)
        context = HttpContext(scope, timeout_of(headers), lines.write)
        lines.context = context
        data = await gate.call(method.path, context, receive, asked.encode, asked.given, length_of(headers))
        if method.descriptor.server_streaming:
            await lines.end()
            return
        response = Response(data, media_type=PROTO_TYPE)
        if asked.is_json:
            response = Response(await _json_of(method, data), media_type=JSON_TYPE)
        response.headers.update(answer_headers(context))
    except ClientLeft:
        return
    except Failure as failure:
        if lines.have_begun:
            await lines.end(failure)
            return
        response = error_response(failure, answer_headers(context))
    await response(scope, receive, send)


async def _json_of(method: HttpMethod, data: bytes) -> bytes:
    if len(data) <= INLINE_JSON_BYTES:
        return write_json(method.response.FromString(data))
    return await asyncio.to_thread(lambda: write_json(method.response.FromString(data)))


def answer_headers(context: HttpContext | None) -> dict[str, str]:
    """Return the headers of a response that follow from its call."""
    trailing = {} if context is None else dict(context.trailing_metadata())
    return {"X-Request-Id": str(trailing[REQUEST_ID])} if REQUEST_ID in trailing else {}


class _Lines:
    """A stream of responses as lines of JSON; the response begins with the first message."""

    def __init__(self, method: HttpMethod, send: Send) -> None:
        self._method = method
        self._send = send
        self.context: HttpContext | None = None
        self.have_begun = False

    async def write(self, data: bytes) -> None:
        """Send a message."""
        await self._begin()
        await self._send_line(await _json_of(self._method, data))

    async def end(self, failure: Failure | None = None) -> None:
        """Send the error as the last line, if the call failed, and end the response."""
        await self._begin()
        if failure is not None:
            await self._send_line(JSONResponse({"error": error_body(failure)}).body)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _begin(self) -> None:
        if self.have_begun:
            return
        self.have_begun = True
        sent = Response(media_type=LINES_TYPE, headers=answer_headers(self.context))
        del sent.headers["content-length"]
        await self._send({"type": "http.response.start", "status": 200, "headers": sent.raw_headers})

    async def _send_line(self, line: bytes | memoryview[int]) -> None:
        await self._send({"type": "http.response.body", "body": bytes(line) + b"\n", "more_body": True})


def _read_head(method: HttpMethod, scope: Scope, headers: Headers) -> _Asked:
    """Read and check everything but the body.

    Raises
    ------
    Failure
        If it is not a valid request for the method.
    """
    if method.takes_stream:
        raise Failure(
            grpc.StatusCode.UNIMPLEMENTED,
            f"{method.path.lstrip('/')} takes a stream of messages: call it by gRPC, at the server's other port",
        )
    if headers.get(VERSION, "1") != "1":
        raise invalid_request(f"{VERSION}: is {headers[VERSION][:20]!r}, must be 1")
    if scope["method"] == "POST":
        return _Asked(_is_json(headers))
    return _read_query(QueryParams(scope["query_string"]))


def _is_json(headers: Headers) -> bool:
    """Return whether a request is JSON; otherwise it has protobuf's encoding."""
    given = headers.get("content-type", "")
    kind, _, parameters = given.partition(";")
    charset = re.fullmatch(r'\s*charset="?utf-8"?\s*|\s*', parameters, re.IGNORECASE)
    if kind.strip().lower() not in {JSON_TYPE, PROTO_TYPE} or charset is None:
        raise invalid_request(
            f"content-type: is {given[:60]!r}, must be {JSON_TYPE} or {PROTO_TYPE}",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    if (compression := headers.get("content-encoding", "identity")) != "identity":
        raise invalid_request(
            f"content-encoding: is {compression[:60]!r}, only identity is read",
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
        )
    return kind.strip().lower() == JSON_TYPE


def _read_query(query: QueryParams) -> _Asked:
    """Read the message in a URL: ``?encoding=json&message={...}``."""
    for name in query:
        if name not in _PARAMETERS:
            raise invalid_request(
                f"{name[:60]}: is not a parameter of a call, which has {', '.join(sorted(_PARAMETERS))}"
            )
    checks: tuple[tuple[str, str, tuple[str, ...]], ...] = (
        ("connect", "v1", ("v1",)),
        ("encoding", "json", ("json", "proto")),
        ("compression", "identity", ("identity",)),
        ("base64", "0", ("0", "1")),
    )
    given = {name: _chosen(query, name, default, choices) for name, default, choices in checks}
    is_json = given["encoding"] == "json"
    text = query.get("message", "{}" if is_json and given["base64"] == "0" else "")
    if given["base64"] == "1":
        try:
            data = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            raise invalid_request("message: is not base64 for addresses") from None
    elif is_json:
        data = text.encode("utf-8", "surrogateescape")
    else:
        raise invalid_request("encoding: is proto, whose bytes an address carries with base64=1 only")
    return _Asked(is_json, _Asked(is_json).encode(data))


def _chosen(query: QueryParams, name: str, default: str, choices: tuple[str, ...]) -> str:
    value = query.get(name, default)
    if value not in choices:
        raise invalid_request(f"{name}: is {value[:20]!r}, must be {' or '.join(choices)}")
    return value


def timeout_of(headers: Headers) -> float | None:
    """Return the seconds until the deadline of a call; None if there is none."""
    given = headers.get(TIMEOUT)
    if given is None:
        return None
    if not (given.isascii() and given.isdigit() and len(given) <= MAX_TIMEOUT_DIGITS):
        raise invalid_request(
            f"{TIMEOUT}: is {given[:20]!r}, must be a whole number of milliseconds with at most "
            f"{MAX_TIMEOUT_DIGITS} digits"
        )
    return int(given) / 1000


def length_of(headers: Headers) -> int:
    """Return the length of the body by its header; 0 if not given."""
    given = headers.get("content-length", "0")
    return int(given) if given.isascii() and given.isdigit() else 0
