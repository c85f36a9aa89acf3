"""Sees every call from outside: counts it, times it, gives it an id and a line in the log."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Final

import grpc
from grpc import aio

from quercus.server.handlers import Handler, rewrap
from quercus.server.logs import set_request_id
from quercus.server.metrics import Metrics

_log = logging.getLogger("quercus.calls")
REQUEST_ID: Final = "x-request-id"
SLOW_S: Final = 1.0
"""A call that is no stream and takes longer is worth a line at level info."""

PATIENT: Final = frozenset({"LeaseQueries"})
"""Calls that take long because they were asked to wait."""

_SOUND: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


class Observer(aio.ServerInterceptor):
    """The outermost interceptor.

    A client may name its request in the metadata ``x-request-id``; else it gets a name. It stands in every line that
    the server logs for it, and in the trailing metadata of the answer.

    Parameters
    ----------
    metrics : what is counted.
    """

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Handler]], handler_call_details: Any
    ) -> Handler:
        """Wrap the handler of the method."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        metadata = handler_call_details.invocation_metadata or ()
        given = next((value for key, value in metadata if key == REQUEST_ID), "")
        call = _Call(self._metrics, handler_call_details.method, str(given))
        return rewrap(handler, unary=call.unary, stream=call.stream)


class _Call:
    """One call, from its start to its end."""

    def __init__(self, metrics: Metrics, method: str, given: str) -> None:
        _, service, name = method.split("/", 2)
        self._labels = (service, name)
        self._method = method
        self._metrics = metrics
        self._id = given if _SOUND.fullmatch(given) else secrets.token_hex(8)

    def _begin(self, context: Any) -> float:
        set_request_id(self._id)
        context.set_trailing_metadata(((REQUEST_ID, self._id),))
        self._metrics.started.labels(*self._labels).inc()
        self._metrics.begin()
        return time.perf_counter()

    def _end(self, context: Any, started: float, error: BaseException | None, *, timed: bool) -> None:
        seconds = time.perf_counter() - started
        code = _code(context, error)
        self._metrics.end()
        self._metrics.handled.labels(*self._labels, code).inc()
        if timed:
            self._metrics.seconds.labels(*self._labels).observe(seconds)
        is_slow = timed and seconds > SLOW_S and self._labels[1] not in PATIENT
        level = logging.INFO if is_slow else logging.DEBUG
        if _log.isEnabledFor(level):
            _log.log(level, "%s %s in %.1f ms from %s", self._method, code, 1000 * seconds, context.peer())

    def unary(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with one response."""

        async def observed(request: Any, context: Any) -> Any:
            started, error = self._begin(context), None
            try:
                return await behaviour(self._counted(request) if streams_in else request, context)
            except BaseException as caught:
                error = caught
                raise
            finally:
                self._end(context, started, error, timed=not streams_in)

        return observed

    def stream(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with many responses."""

        async def observed(request: Any, context: Any) -> AsyncIterator[Any]:
            started, error = self._begin(context), None
            sent = self._metrics.sent.labels(*self._labels)
            try:
                async for response in behaviour(self._counted(request) if streams_in else request, context):
                    sent.inc()
                    yield response
            except BaseException as caught:
                error = caught
                raise
            finally:
                self._end(context, started, error, timed=False)

        return observed

    async def _counted(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        received = self._metrics.received.labels(*self._labels)
        async for request in requests:
            received.inc()
            yield request


def _code(context: Any, error: BaseException | None) -> str:
    if isinstance(error, asyncio.CancelledError | GeneratorExit):
        return "CANCELLED"
    code = context.code()
    if isinstance(code, grpc.StatusCode):
        return code.name
    if error is None:
        return "OK"
    return next((each.name for each in grpc.StatusCode if each.value[0] == code), "UNKNOWN")
