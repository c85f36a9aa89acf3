"""The outermost interceptor: it counts, times and logs every call, and gives it an id and a safe context."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import cache
from typing import Any, Final

import grpc
from google.protobuf import descriptor_pool
from grpc import aio

from quercus.server.gate.handlers import Handler, WrappingInterceptor, metadata_of, wrap_handler
from quercus.server.gate.rpcs import rpc_of
from quercus.server.telemetry.logs import set_request_id
from quercus.server.telemetry.metrics import CODES, Metrics

_log = logging.getLogger("quercus.calls")
REQUEST_ID: Final = "x-request-id"
SLOW_S: Final = 1.0
"""Seconds after which a call that is not a stream gets a line at level info."""

_SOUND: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Call:
    """Replaces the context of ``grpc.aio`` for all code inside the outermost interceptor.

    ``grpc.aio`` frees a call when its task ends. Reading the context later (in a task that outlives the call, or an
    asynchronous generator that is closed late) would access freed memory. So the context is read when the call begins,
    and nothing is sent after it has ended.

    Parameters
    ----------
    context : context of a call of ``grpc.aio`` that has just begun.
    forwarded_from : key of the metadata in which another worker names the caller; None if the caller is the peer.

    Attributes
    ----------
    began_at : time of ``time.perf_counter``.
    has_ended : whether the call has ended, so that nothing can be sent any more.
    """

    def __init__(self, context: Any, forwarded_from: str | None = None) -> None:
        self._context = context
        self._metadata = tuple(context.invocation_metadata() or ())
        given = dict(self._metadata).get(forwarded_from) if forwarded_from is not None else None
        self._peer: str = context.peer() if given is None else given
        self.began_at = time.perf_counter()
        self.has_ended = False

    def mark_ended(self) -> None:
        """Note that the call has ended, so that nothing is sent any more."""
        self.has_ended = True

    def peer(self) -> str:
        """Return the address of the caller, as gRPC writes it: ``ipv4:127.0.0.1:40001``."""
        return self._peer

    def invocation_metadata(self) -> tuple[Any, ...]:
        """Return the metadata of the caller."""
        return self._metadata

    def trailing_metadata(self) -> tuple[Any, ...]:
        """Return the trailing metadata."""
        return tuple(self._context.trailing_metadata() or ())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)  # deadline and status

    async def requests_until_end(
        self, requests: AsyncIterator[Any], count: Callable[[], object] = lambda: None
    ) -> AsyncIterator[Any]:
        """Yield and count requests until they end, or the call ends, which a reading task may outlive."""
        if self.has_ended:
            return
        async for request in requests:
            count()
            yield request
            if self.has_ended:
                return

    async def write(self, response: Any) -> None:
        """Send a message."""
        await self._send_unless_ended(self._context.write, response)

    async def abort(self, code: Any, details: str = "", trailing_metadata: tuple[Any, ...] = ()) -> None:
        """End the call with a status, by raising."""
        await self._send_unless_ended(self._context.abort, code, details, trailing_metadata)

    async def _send_unless_ended(self, send: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Send; if the client has gone, cancel the call, as gRPC would do a moment later."""
        if self.has_ended:
            raise asyncio.CancelledError
        try:
            await send(*arguments)
        except aio.InternalError:
            raise asyncio.CancelledError from None


class Observer(WrappingInterceptor):
    """The outermost interceptor.

    A client may give its request an id in the metadata ``x-request-id``; otherwise the server generates one. The id is
    in every line that the server logs for the request, and in the trailing metadata of the response.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with its calls counted and timed."""
        calls = _ObservedMethod(self._metrics, method, handler)
        return wrap_handler(handler, unary=calls.observe_unary, stream=calls.observe_stream)


class _ObservedMethod:
    """Counts and times the calls of one method."""

    def __init__(self, metrics: Metrics, method: str, handler: Handler) -> None:
        _, service, name = method.split("/", 2)
        self._method = method
        self._is_patient = rpc_of(method).waits
        self._metrics = metrics
        self._labels = labels = (_type_of(service, name, handler), service, name)
        is_stream = labels[0] != "unary"
        self._started = metrics.started.labels(*labels)
        self._handled = cache(lambda code: metrics.handled.labels(*labels, CODES[code]))
        self._seconds = None if is_stream else metrics.seconds.labels(*labels)

    def _begin_call(self, context: Any) -> Call:
        call = Call(context)
        given = metadata_of(call, REQUEST_ID)
        # an id need not be unpredictable, so `random` saves a system call
        request_id = given if given and _SOUND.fullmatch(given) else f"{random.getrandbits(64):016x}"
        set_request_id(request_id)
        call.set_trailing_metadata(((REQUEST_ID, request_id),))
        self._started.inc()
        self._metrics.under_way.add(1)
        return call

    def _end_call(self, call: Call, error: BaseException | None) -> None:
        seconds = time.perf_counter() - call.began_at
        code = _status_code(call, error)
        call.mark_ended()
        self._metrics.under_way.add(-1)
        self._handled(code).inc()
        if self._seconds is not None:
            self._seconds.observe(seconds)
        is_slow = self._seconds is not None and seconds > SLOW_S and not self._is_patient
        level = logging.INFO if is_slow else logging.DEBUG
        if _log.isEnabledFor(level):
            _log.log(level, "%s %s in %.1f ms from %s", self._method, code, 1000 * seconds, call.peer())

    def observe_unary(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with one response."""

        async def observed(request: Any, context: Any) -> Any:
            call, error = self._begin_call(context), None
            try:
                return await behaviour(self._counted(request, call) if streams_in else request, call)
            except BaseException as caught:
                error = caught
                raise
            finally:
                self._end_call(call, error)

        return observed

    def observe_stream(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with many responses; its generator is always closed before the call ends."""

        async def observed(request: Any, context: Any) -> None:
            call, error = self._begin_call(context), None
            sent = self._metrics.sent.labels(*self._labels)
            asked = self._counted(request, call) if streams_in else request
            try:
                async with aclosing(behaviour(asked, call)) as responses:
                    async for response in responses:
                        await call.write(response)
                        sent.inc()
            except BaseException as caught:
                error = caught
                raise
            finally:
                self._end_call(call, error)

        return observed

    def _counted(self, requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        return call.requests_until_end(requests, self._metrics.received.labels(*self._labels).inc)


def _type_of(service: str, name: str, handler: Handler) -> str:
    """Return the kind of a method, named as by Go's gRPC middleware.

    The protocol says it: a handler that refuses calls, or bounds them, reads a single request as a stream too.
    """
    try:
        method = descriptor_pool.Default().FindMethodByName(f"{service}.{name}")
    except KeyError:
        streams_in, streams_out = handler.request_streaming, handler.response_streaming
    else:
        streams_in, streams_out = method.client_streaming, method.server_streaming
    if streams_in:
        return "bidi_stream" if streams_out else "client_stream"
    return "server_stream" if streams_out else "unary"


def _status_code(call: Call, error: BaseException | None) -> str:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    code = call.code()
    if isinstance(code, grpc.StatusCode):
        return code.name
    if error is None:
        return "OK"
    return next((each.name for each in grpc.StatusCode if each.value[0] == code), "UNKNOWN")
