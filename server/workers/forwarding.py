"""Calls between workers: those forwarded to the keeper, and internal ones.

A call is forwarded with the caller's credentials, deadline and request id, and its messages are not parsed. The worker
with the connection admits the call (token, memory, number of calls) and counts it. The keeper's guard checks its
messages and records it in the audit log, and the caller sees the keeper's errors and trailing metadata.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, Final

import grpc
from grpc import aio

from quercus.server.gate.grpc_limits import MAX_METADATA_BYTES, MAX_WAITING_CALLS, UNREQUESTED_CALL_S
from quercus.server.gate.guard import INTERNAL
from quercus.server.gate.handlers import Handler, WrappingInterceptor, metadata_of, wrap_handler
from quercus.server.gate.observing import REQUEST_ID, Call
from quercus.server.gate.rpcs import rpc_of
from quercus.server.telemetry.logs import request_id, set_request_id
from quercus.server.telemetry.metric_sums import Answers
from quercus.server.wire.errors import Unavailable
from quercus.server.wire.json_messages import JsonMessage
from quercus.server.wire.limits import INLINE_BYTES
from quercus.server.workers.board import Post
from quercus.server.workers.line import AWAY, CallLine

CALLER: Final = "x-quercus-caller"
"""Metadata between workers: the address of the caller."""

ENCODING: Final = "x-quercus-encoding"
"""Metadata between workers: the encoding of a request, if it is not protobuf's."""

JSON: Final = "json"

ASK_S: Final = 10.0
"""Longest time, in seconds, for an answer of the keeper itself."""

FORWARDABLE: Final = "quercus.v1."
FEW_AT_ONCE: Final = frozenset({"TreeService/ExplainRow"})
"""Methods that only read, but of which a server runs few calls at once, so that one worker must count them."""
_OWN_METADATA: Final = frozenset({REQUEST_ID, CALLER, ENCODING, "user-agent"})

SOCKET_OPTIONS: Final = (
    ("grpc.max_receive_message_length", -1),  # checked on arrival, or made by the keeper
    ("grpc.max_send_message_length", -1),
    ("grpc.max_metadata_size", 4 * MAX_METADATA_BYTES),
    ("grpc.absolute_max_metadata_size", 4 * MAX_METADATA_BYTES),
)
CHANNEL_OPTIONS: Final = (
    *SOCKET_OPTIONS,
    ("grpc.enable_retries", 0),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
SERVER_OPTIONS: Final = (
    *SOCKET_OPTIONS,
    ("grpc.server.max_pending_requests", MAX_WAITING_CALLS),
    ("grpc.server.max_pending_requests_hard_limit", MAX_WAITING_CALLS),
    ("grpc.server_max_unrequested_time_in_server", UNREQUESTED_CALL_S),
)


class Forwarder:
    """Forwards calls to the keeper.

    Parameters
    ----------
    address : the keeper's private socket, for gRPC.
    line : the keeper's socket for small calls.
    all_writes : whether the keeper must run all methods that write.
    """

    def __init__(self, address: str, line: str, all_writes: bool) -> None:
        self._channel = aio.insecure_channel(address, options=CHANNEL_OPTIONS)
        self._line = CallLine(line)
        self._all_writes = all_writes
        self._handlers: dict[str, Handler] = {}

    async def start(self) -> None:
        """Connect to the keeper."""
        await self._line.start()

    async def close(self) -> None:
        """End the connections."""
        await self._line.close()
        await self._channel.close()

    def is_forwarded(self, method: str) -> bool:
        """Return whether calls of a method are forwarded, as those of the whole server and `FEW_AT_ONCE` are."""
        if not method.startswith(f"/{FORWARDABLE}"):
            return False
        rpc = rpc_of(method)
        return rpc.whole_server or rpc.name in FEW_AT_ONCE or (self._all_writes and not rpc.reads)

    def divide(self, handlers: Any) -> Any:
        """Return the handlers of a service, with those of forwarded methods replaced."""
        return _Divided(handlers, self)

    def handler_of(self, method: str, handler: Handler) -> Handler:
        """Return a handler that forwards calls, in place of the one that would answer them here."""
        made = self._handlers.get(method)
        if made is None:
            behaviour = (
                self._stream(method, handler) if handler.response_streaming else self._unary(method, handler)
            )
            made = self._handlers[method] = wrap_handler(
                handler, unary=lambda *_: behaviour, stream=lambda *_: behaviour, codecs=(None, None)
            )
        return made

    async def record(self, who: str, action: str, target: str, outcome: str) -> None:
        """Store a line of the audit log through the keeper, for a call that was refused here."""
        call: Any = self._channel.unary_unary(f"/{INTERNAL}/Record")
        await call(json.dumps([who, action, target, outcome]).encode(), wait_for_ready=True, timeout=10.0)

    async def ask(self, name: str, data: bytes) -> bytes:
        """Call a method of the keeper's service `INTERNAL`.

        Raises
        ------
        Unavailable
            If the keeper does not run.
        """
        call: Any = self._channel.unary_unary(f"/{INTERNAL}/{name}")
        try:
            # wait for the successor if the keeper has died
            answer: bytes = await call(data, timeout=ASK_S, wait_for_ready=True)
        except aio.AioRpcError:
            raise Unavailable(AWAY) from None
        return answer

    def _unary(self, method: str, handler: Handler) -> Any:
        make: Any = self._channel.stream_unary if handler.request_streaming else self._channel.unary_unary
        start = make(method)

        async def forward(request: Any, context: Any) -> Any:
            if not handler.request_streaming and len(request) <= INLINE_BYTES:
                return await self._forward_small(method, request, context)
            metadata = _metadata_for(context, request)
            if isinstance(request, bytes):
                request = bytes(request)  # gRPC accepts no subclass
            call = start(request, timeout=context.time_remaining(), metadata=metadata)
            try:
                response = await call
            except aio.AioRpcError as error:
                await _pass_on(error, context)
            context.set_trailing_metadata(tuple(await call.trailing_metadata()))
            return response

        return forward

    async def _forward_small(self, method: str, request: bytes, context: Any) -> bytes:
        reply = await self._line.call(method, request, _metadata_for(context, request))
        if reply.code is not grpc.StatusCode.OK:
            await context.abort(reply.code, reply.details, reply.trailing)
        context.set_trailing_metadata(reply.trailing)
        return reply.data

    def _stream(self, method: str, handler: Handler) -> Any:
        make: Any = self._channel.stream_stream if handler.request_streaming else self._channel.unary_stream
        start = make(method)

        async def forward(request: Any, context: Any) -> AsyncIterator[bytes]:
            call = start(request, timeout=context.time_remaining(), metadata=_metadata_for(context))
            try:
                async for response in call:
                    yield response
                context.set_trailing_metadata(tuple(await call.trailing_metadata()))
            except aio.AioRpcError as error:
                await _pass_on(error, context)
            finally:
                call.cancel()

        return forward


def _metadata_for(context: Any, request: Any = b"") -> tuple[tuple[str, str | bytes], ...]:
    kept = [
        (key, value)
        for key, value in context.invocation_metadata()
        if key not in _OWN_METADATA and not key.startswith("grpc-")
    ]
    if isinstance(request, JsonMessage):
        kept.append((ENCODING, JSON))
    return (*kept, (REQUEST_ID, request_id()), (CALLER, context.peer()))


async def _pass_on(error: aio.AioRpcError, context: Any) -> None:
    """End a call as the keeper ended it, by raising."""
    trailing = tuple(error.trailing_metadata() or ())
    if error.code() is grpc.StatusCode.UNAVAILABLE and REQUEST_ID not in dict(trailing):
        raise Unavailable(AWAY)  # the connection failed, since the keeper's own answers have a request id
    await context.abort(error.code(), error.details() or "", trailing)


class _Divided(grpc.GenericRpcHandler):
    def __init__(self, inner: Any, forwarder: Forwarder) -> None:
        self._inner = inner
        self._forwarder = forwarder

    def service(self, handler_call_details: Any) -> Handler:
        handler = self._inner.service(handler_call_details)
        if handler is not None and self._forwarder.is_forwarded(handler_call_details.method):
            return self._forwarder.handler_of(handler_call_details.method, handler)
        return handler


class Arrivals(WrappingInterceptor):
    """The outermost interceptor of forwarded calls, which other workers have counted and given ids."""

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with contexts that name the original callers."""
        return wrap_handler(handler, unary=_arrived_unary, stream=_arrived_stream)


def _arrived_call(context: Any) -> Call:
    call = Call(context, CALLER)
    if given := metadata_of(call, REQUEST_ID):
        set_request_id(given)
        call.set_trailing_metadata(((REQUEST_ID, given),))
    return call


def _arrived_unary(behaviour: Any, streams_in: bool) -> Any:
    async def arrived(request: Any, context: Any) -> Any:
        call = _arrived_call(context)
        if not streams_in and metadata_of(call, ENCODING) == JSON:
            request = JsonMessage(request)
        try:
            return await behaviour(request, call)
        finally:
            call.mark_ended()

    return arrived


def _arrived_stream(behaviour: Any, streams_in: bool) -> Any:
    async def arrived(request: Any, context: Any) -> None:
        call = _arrived_call(context)
        asked = call.requests_until_end(request) if streams_in else request
        try:
            async with aclosing(behaviour(asked, call)) as responses:
                async for response in responses:
                    await call.write(response)
        finally:
            call.mark_ended()

    return arrived


Answer = Callable[[bytes], Awaitable[bytes]]


def internal_handler(answers: dict[str, Answer]) -> Any:
    """Return the service `INTERNAL` of a worker.

    Parameters
    ----------
    answers : function that answers each method, by name.
    """

    def method(answer: Answer) -> Handler:
        async def run(request: bytes, context: Any) -> bytes:
            return await answer(request)

        return grpc.unary_unary_rpc_method_handler(run)

    return grpc.method_handlers_generic_handler(
        INTERNAL, {name: method(answer) for name, answer in answers.items()}
    )


ANSWER_S: Final = 1.0
"""Longest time, in seconds, for a worker to answer; one that hangs is left out."""


class WorkerMetrics:
    """Asks the other workers for their metrics, in threads of the metrics page."""

    def __init__(self, post: Post) -> None:
        self._channels = {
            worker: grpc.insecure_channel(post.socket_of(worker), options=CHANNEL_OPTIONS)
            for worker in post.others
        }

    def ask(self) -> Answers:
        """Ask all workers at once; return the answers that arrive in time."""
        calls: dict[int, Any] = {}
        for worker, channel in self._channels.items():
            method: Any = channel.unary_unary(f"/{INTERNAL}/Metrics")
            calls[worker] = method.future(b"", timeout=ANSWER_S, wait_for_ready=True)
        found: dict[int, tuple[int, str]] = {}
        for worker, call in calls.items():
            try:
                process, text = json.loads(call.result())
            except grpc.RpcError:
                continue
            found[worker] = process, text
        return found

    def close(self) -> None:
        """End the connections."""
        for channel in self._channels.values():
            channel.close()


async def answer_metrics(own_text: Callable[[], bytes]) -> bytes:
    """Return this worker's process id and metrics, for the keeper."""
    return json.dumps([os.getpid(), (await asyncio.to_thread(own_text)).decode()]).encode()
