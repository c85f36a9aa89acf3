"""Sees every call from outside: counts it, times it, gives it an id and a line in the log."""

from __future__ import annotations

import asyncio
import logging
import random
import re
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from functools import cache
from typing import Any, Final

import grpc

from quercus.server.gate.call import Call
from quercus.server.gate.handlers import Handler, WrappingInterceptor, metadata_of, wrap_handler
from quercus.server.gate.rpcs import rpc_of
from quercus.server.telemetry.logs import set_request_id
from quercus.server.telemetry.metrics import CODES, Metrics

_log = logging.getLogger("quercus.calls")
REQUEST_ID: Final = "x-request-id"
SLOW_S: Final = 1.0
"""A call that is no stream and takes longer is worth a line at level info."""

_SOUND: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Observer(WrappingInterceptor):
    """The outermost interceptor.

    A client may name its request in the metadata ``x-request-id``; else it gets a name. It is in every line that
    the server logs for it, and in the trailing metadata of the answer.

    Parameters
    ----------
    metrics : the metrics that it counts.
    """

    def __init__(self, metrics: Metrics) -> None:
        super().__init__()
        self._metrics = metrics

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler, whose calls are counted and timed."""
        calls = _ObservedMethod(self._metrics, method, handler)
        return wrap_handler(handler, unary=calls.observe_unary, stream=calls.observe_stream)


class _ObservedMethod:
    """The calls of one method, each from its start to its end."""

    def __init__(self, metrics: Metrics, method: str, handler: Handler) -> None:
        _, service, name = method.split("/", 2)
        self._method = method
        self._is_patient = rpc_of(method).waits
        self._metrics = metrics
        self._labels = labels = (_type_of(handler), service, name)
        is_stream = handler.request_streaming or handler.response_streaming
        self._started = metrics.started.labels(*labels)
        self._handled = cache(lambda code: metrics.handled.labels(*labels, CODES[code]))
        self._seconds = None if is_stream else metrics.seconds.labels(*labels)

    def _begin_call(self, context: Any) -> Call:
        call = Call(context)
        given = metadata_of(call, REQUEST_ID)
        request_id = given if given and _SOUND.fullmatch(given) else _new_id()
        set_request_id(request_id)
        call.set_trailing_metadata(((REQUEST_ID, request_id),))
        self._started.inc()
        self._metrics.count_begin()
        return call

    def _end_call(self, call: Call, error: BaseException | None) -> None:
        seconds = time.perf_counter() - call.began_at
        code = _status_code(call, error)
        call.mark_ended()
        self._metrics.count_end()
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
                return await behaviour(self._count_requests(request, call) if streams_in else request, call)
            except BaseException as caught:
                error = caught
                raise
            finally:
                self._end_call(call, error)

        return observed

    def observe_stream(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with many responses; it is closed before the call ends, however it ends."""

        async def observed(request: Any, context: Any) -> None:
            call, error = self._begin_call(context), None
            sent = self._metrics.sent.labels(*self._labels)
            asked = self._count_requests(request, call) if streams_in else request
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

    async def _count_requests(self, requests: AsyncIterator[Any], call: Call) -> AsyncIterator[Any]:
        """Yield requests until there are no more or the call has ended: a task that reads may outlive it."""
        received = self._metrics.received.labels(*self._labels)
        if call.has_ended:
            return
        async for request in requests:
            received.inc()
            yield request
            if call.has_ended:
                return


def _type_of(handler: Handler) -> str:
    """Return the kind of a method, in the words of Go's middleware."""
    if handler.request_streaming:
        return "bidi_stream" if handler.response_streaming else "client_stream"
    return "server_stream" if handler.response_streaming else "unary"


def _new_id() -> str:
    """Return a name for a request. It is no secret, so no system call is made for it."""
    return f"{random.getrandbits(64):016x}"


def _status_code(call: Call, error: BaseException | None) -> str:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    code = call.code()
    if isinstance(code, grpc.StatusCode):
        return code.name
    if error is None:
        return "OK"
    return next((each.name for each in grpc.StatusCode if each.value[0] == code), "UNKNOWN")
