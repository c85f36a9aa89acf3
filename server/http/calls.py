"""Calls by HTTP, which pass the interceptors and handlers of the gRPC port, with headers as metadata."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import grpc
from google.rpc import status_pb2
from grpc import aio
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from quercus.server.gate.guard import AUTHORIZATION
from quercus.server.gate.observing import REQUEST_ID
from quercus.server.wire.errors import DETAILS_KEY, PUSHBACK_KEY
from quercus.server.workers.line import CallDetails, FindHandler, LineContext, Metadata

BODY_S: Final = 60.0
"""Longest time, in seconds, for the body of a request to arrive."""

_PASSED_ON: Final = (AUTHORIZATION, REQUEST_ID, "traceparent", "tracestate")
"""Headers that become metadata of a call."""


class Metadatum(NamedTuple):
    """A pair of metadata, as in gRPC."""

    key: str
    value: str


class ClientLeft(Exception):  # noqa: N818 - what happened
    """The client closed the connection before its call ended."""


@dataclass(eq=False)
class Failure(Exception):  # noqa: N818 - what a call ends with
    """The end of a call that failed.

    Attributes
    ----------
    code : status code of gRPC.
    message : one sentence for people.
    trailing : trailing metadata.
    http_status : status of the response; 0 for that of the code.
    """

    code: grpc.StatusCode
    message: str
    trailing: Metadata = ()
    http_status: int = 0

    @property
    def details(self) -> list[Any]:
        """The details of the error, each packed in ``google.protobuf.Any``."""
        data = dict(self.trailing).get(DETAILS_KEY, b"")
        return list(status_pb2.Status.FromString(data).details) if isinstance(data, bytes) else []

    @property
    def retry_s(self) -> int | None:
        """Whole seconds after which to try again; None if not known."""
        pushback = dict(self.trailing).get(PUSHBACK_KEY)
        return None if pushback is None else math.ceil(int(pushback) / 1000)


def invalid_request(message: str, http_status: int = 0) -> Failure:
    """Return the failure of a request that is invalid before it becomes a call."""
    return Failure(grpc.StatusCode.INVALID_ARGUMENT, message, http_status=http_status)


def peer_of(scope: Scope) -> str:
    """Return the address of a caller as gRPC writes it, so that it counts as the same caller on both ports.

    Examples
    --------
    >>> peer_of({"client": ("127.0.0.1", 40001)}), peer_of({"client": ("::1", 40001)})
    ('ipv4:127.0.0.1:40001', 'ipv6:%5B::1%5D:40001')
    """
    host, port = scope.get("client") or ("", 0)
    return f"ipv6:%5B{host}%5D:{port}" if ":" in host else f"ipv4:{host}:{port}"


class HttpContext(LineContext):
    """The context of a call for interceptors and handlers.

    Parameters
    ----------
    scope : the request.
    timeout_s : seconds until the caller's deadline; None if there is none.
    send : sends a message of a stream.
    """

    def __init__(
        self, scope: Scope, timeout_s: float | None, send: Callable[[bytes], Awaitable[None]] | None = None
    ) -> None:
        headers = Headers(scope=scope)
        super().__init__(tuple(Metadatum(key, headers[key]) for key in _PASSED_ON if key in headers))
        self._peer = peer_of(scope)
        self._send = send
        self._ends_at = None if timeout_s is None else time.monotonic() + timeout_s

    def peer(self) -> str:
        """Return the address of the HTTP client."""
        return self._peer

    def time_remaining(self) -> float | None:
        """Return the seconds until the caller's deadline; None if there is none."""
        return None if self._ends_at is None else max(0.0, self._ends_at - time.monotonic())

    async def write(self, message: bytes) -> None:
        """Send a message of a stream."""
        assert self._send is not None  # noqa: S101 - only streams write
        await self._send(message)


class Gate:
    """Admits, reads and serves calls, in this order, as the gRPC port does.

    Parameters
    ----------
    find : finds the handler of a call, behind the interceptors of the gRPC port.
    max_bytes : most bytes of the body of a request.
    """

    def __init__(self, find: FindHandler, max_bytes: int) -> None:
        self._find = find
        self._max_bytes = max_bytes

    async def call(
        self,
        method: str,
        context: HttpContext,
        receive: Receive,
        encode: Callable[[bytes], bytes],
        given: bytes | None = None,
        length: int = 0,
    ) -> bytes:
        """Serve a call; return its response, empty for a stream, whose messages the context sends.

        Parameters
        ----------
        method : ``/{service}/{method}``.
        context : context of the call.
        receive : source of the request's body, which is read once the caller is admitted.
        encode : converts the body to a request: bytes of protobuf, or an `EncodedMessage`.
        given : the request, if it is not in the body.
        length : length of the body by its header.

        Raises
        ------
        Failure
            If the call fails.
        ClientLeft
            If nobody waits for the response any more.
        """
        try:
            async with asyncio.timeout(context.time_remaining()):
                response = await self._serve(method, context, receive, encode, given, length)
        except TimeoutError:
            raise Failure(grpc.StatusCode.DEADLINE_EXCEEDED, "the deadline of the client passed") from None
        except aio.AbortError:
            response = b""
        code = context.code()
        if code not in {None, grpc.StatusCode.OK}:
            raise Failure(code, context.details(), context.trailing_metadata())
        return response

    async def _serve(
        self,
        method: str,
        context: HttpContext,
        receive: Receive,
        encode: Callable[[bytes], bytes],
        given: bytes | None,
        length: int,
    ) -> bytes:
        handler = await self._find(CallDetails(method, context.invocation_metadata()))

        async def request() -> bytes:
            return encode(await self._read_body(receive, length)) if given is None else given

        async def requests() -> AsyncIterator[bytes]:  # for handlers that refuse, or read a probe
            yield await request()

        if handler.request_streaming:
            asked: Any = requests()
            behaviour = handler.stream_stream or handler.stream_unary
            return await behaviour(asked, context) or b""
        asked = await request()
        async with _ending_with_the_client(receive):
            return await (handler.unary_stream or handler.unary_unary)(asked, context) or b""

    async def _read_body(self, receive: Receive, length: int) -> bytes:
        if length > self._max_bytes:
            raise self._too_large()
        parts: list[bytes] = []
        read = 0
        try:
            async with asyncio.timeout(BODY_S):
                while True:
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        raise ClientLeft
                    parts.append(message.get("body", b""))
                    read += len(parts[-1])
                    if read > self._max_bytes:
                        raise self._too_large()
                    if not message.get("more_body", False):
                        return b"".join(parts)
        except TimeoutError:
            raise Failure(
                grpc.StatusCode.DEADLINE_EXCEEDED,
                f"the body of the request did not arrive within {BODY_S:.0f} s",
                http_status=408,
            ) from None

    def _too_large(self) -> Failure:
        return Failure(
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            f"max_message_bytes: the body has more than {self._max_bytes:,} bytes: send less at once",
            http_status=413,
        )


@asynccontextmanager
async def _ending_with_the_client(receive: Receive) -> AsyncIterator[None]:
    """Cancel the block if the client closes the connection, as gRPC cancels a call.

    Raises
    ------
    ClientLeft
        If the client closes the connection.
    """
    task = asyncio.current_task()
    assert task is not None  # noqa: S101 - a coroutine runs in a task
    has_left = False

    async def watch() -> None:
        nonlocal has_left
        while (await receive())["type"] != "http.disconnect":
            pass
        has_left = True
        task.cancel()

    watching = asyncio.create_task(watch(), name="quercus-http-client")
    try:
        yield
    except asyncio.CancelledError:
        if not has_left:
            raise
        task.uncancel()
        raise ClientLeft from None
    finally:
        watching.cancel()
