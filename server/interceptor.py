"""The catch-all: domain errors become their status, anything else is logged and leaks nothing."""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError
from google.rpc import code_pb2
from grpc import aio

from quercus.belief.errors import InvalidInput
from quercus.server.errors import Failure, failure, to_failure
from quercus.server.handlers import Handler, Wrapped, rewrap

_log = logging.getLogger(__name__)


class CatchAll(aio.ServerInterceptor):
    """Turn every exception of a handler into a status with details.

    Bytes that are no message of the method's type are an invalid argument (gRPC would answer UNKNOWN). An
    exception that no servicer is expected to raise is a bug: it is logged with its trace under a reference,
    and the client sees the reference only. Made and used in one event loop.
    """

    def __init__(self) -> None:
        self._wrapped = Wrapped(self._wrap)
        self._streams = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def streams_end(self, timeout_s: float) -> bool:
        """Wait until no stream to a client is open; False when the time was up first."""
        try:
            await asyncio.wait_for(self._quiet.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    @property
    def has_streams(self) -> bool:
        """Whether a stream to a client is open."""
        return self._streams > 0

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Handler]], handler_call_details: Any
    ) -> Handler:
        """Wrap the handler of the method."""
        return self._wrapped.of(handler_call_details.method, await continuation(handler_call_details))

    def _wrap(self, method: str, handler: Handler) -> Handler:
        return rewrap(
            handler,
            unary=lambda behaviour, streams_in: _guard_unary(method, _checked(behaviour, streams_in)),
            stream=lambda behaviour, streams_in: self._counted(
                _guard_stream(method, _checked(behaviour, streams_in))
            ),
            reading=_lenient,
        )

    def _counted(self, behaviour: Any) -> Any:
        async def counted(request: Any, context: Any) -> AsyncIterator[Any]:
            self._streams += 1
            self._quiet.clear()
            try:
                async for response in behaviour(request, context):
                    yield response
            finally:
                self._streams -= 1
                if not self._streams:
                    self._quiet.set()

        return counted


@dataclass(frozen=True)
class _Unreadable:
    """Stands for a request that could not be read, until somebody is there who can say so."""

    reason: str


def _lenient(deserialize: Callable[[bytes], Any] | None) -> Callable[[bytes], Any] | None:
    if deserialize is None:
        return None

    def read(data: bytes) -> Any:
        try:
            return deserialize(data)
        except DecodeError as error:
            return _Unreadable(str(error))

    return read


def _checked(behaviour: Any, streaming: bool) -> Any:
    async def check_all(requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            yield _check(request)

    return lambda request, context: behaviour(check_all(request) if streaming else _check(request), context)


def _check(request: Any) -> Any:
    if isinstance(request, _Unreadable):
        raise InvalidInput("request", f"cannot be read ({request.reason})")
    return request


def _guard_unary(method: str, behaviour: Any) -> Any:
    async def guarded(request: Any, context: Any) -> Any:
        try:
            result = behaviour(request, context)
            return await result if inspect.isawaitable(result) else result
        except (aio.AbortError, asyncio.CancelledError):
            raise
        except Exception as error:
            await _abort(method, error, context)

    return guarded


def _guard_stream(method: str, behaviour: Any) -> Any:
    async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
        try:
            result = behaviour(request, context)
            if inspect.isawaitable(result):  # a handler that writes through the context
                await result
                return
            async for response in result:
                yield response
        except (aio.AbortError, asyncio.CancelledError):
            raise
        except Exception as error:
            await _abort(method, error, context)

    return guarded


async def _abort(method: str, error: Exception, context: Any) -> None:
    refused = to_failure(error) or _bug(method, error)
    await context.abort(
        refused.code, refused.message, (*refused.metadata, *(context.trailing_metadata() or ()))
    )


def _bug(method: str, error: Exception) -> Failure:
    reference = secrets.token_hex(6)
    _log.error("%s failed (reference %s)", method, reference, exc_info=error)
    return failure(code_pb2.INTERNAL, f"internal error, logged by the server under reference {reference}")
