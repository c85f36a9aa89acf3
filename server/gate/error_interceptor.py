"""Errors of calls: domain errors become statuses; others are logged, and callers see only a reference to the log.

Calls about damaged models end with DATA_LOSS and a description of the damage, not with an internal error.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any, Final

from google.protobuf.message import DecodeError
from google.rpc import code_pb2
from grpc import aio

from quercus.labelling.errors import UnreadableLabel
from quercus.server.core.damaged_models import DamagedModels
from quercus.server.gate.guard import named_models
from quercus.server.gate.handlers import Handler, WrappingInterceptor, wrap_handler
from quercus.server.wire.errors import grpc_status, is_out_of_memory, to_failure
from quercus.server.wire.names import ANY
from quercus.storage import CorruptStore

_log = logging.getLogger(__name__)


class ErrorInterceptor(WrappingInterceptor):
    """Turns every exception of a handler into a status with details.

    An exception that no servicer is expected to raise is a bug: it is logged with its traceback under a reference, and
    the client sees only the reference. Responses are serialised here, so that running out of memory for one also ends
    with a status. Create and use it in one event loop.
    """

    def __init__(self) -> None:
        self._streams = 0
        self._quiet = asyncio.Event()
        self._quiet.set()

    async def streams_end(self, timeout_s: float) -> bool:
        """Wait until no stream to a client is open; return False if the time runs out first."""
        try:
            await asyncio.wait_for(self._quiet.wait(), timeout_s)
        except TimeoutError:
            return False
        return True

    @property
    def has_streams(self) -> bool:
        """True if a stream to a client is open."""
        return self._streams > 0

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with its errors turned into statuses."""
        write: Callable[[Any], bytes] = handler.response_serializer or bytes

        def guard_unary(behaviour: Any, _: bool) -> Any:
            async def guarded(request: Any, context: Any) -> Any:
                try:
                    return write(await behaviour(request, context))
                except (aio.AbortError, asyncio.CancelledError):
                    raise
                except Exception as error:
                    await _abort_with_status(method, error, context)

            return guarded

        def guard_stream(behaviour: Any, _: bool) -> Any:
            async def guarded(request: Any, context: Any) -> AsyncIterator[Any]:
                self._streams += 1
                self._quiet.clear()
                try:
                    result = behaviour(request, context)
                    if inspect.isawaitable(result):  # a handler that writes through the context
                        await result
                        return
                    async with aclosing(result) as responses:
                        async for response in responses:
                            yield write(response)
                except (aio.AbortError, asyncio.CancelledError):
                    raise
                except Exception as error:
                    await _abort_with_status(method, error, context)
                finally:
                    self._streams -= 1
                    if not self._streams:
                        self._quiet.set()

            return guarded

        writes_itself = inspect.iscoroutinefunction(handler.unary_stream or handler.stream_stream)
        codecs = handler.request_deserializer, handler.response_serializer if writes_itself else None
        return wrap_handler(handler, unary=guard_unary, stream=guard_stream, codecs=codecs)


async def _abort_with_status(method: str, error: Exception, context: Any) -> None:
    refused = to_failure(error)
    if refused is None:
        reference = secrets.token_hex(6)
        _log.error("%s failed (reference %s)", method, reference, exc_info=error)
        text = f"internal error, logged by the server under reference {reference}"
        refused = grpc_status(code_pb2.INTERNAL, text)
    if is_out_of_memory(error):
        _log.warning("%s: %s", method, refused.message)
    trailing = (*refused.metadata, *(context.trailing_metadata() or ()))
    await context.abort(refused.code, refused.message, trailing)


_READING: Final = ("/quercus.v1.", "/inference.")


class DamageInterceptor(WrappingInterceptor):
    """Replaces unexpected errors by a description of the damage, if the request names a damaged model.

    It is the innermost interceptor, next to the services.

    Parameters
    ----------
    damaged : finds the damage.
    """

    def __init__(self, damaged: DamagedModels) -> None:
        self._damaged = damaged

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with its unexpected errors explained."""
        if not method.startswith(_READING) or handler.request_deserializer is None:
            return handler  # it reads no model, or another worker runs it

        def unary(behaviour: Any, streams_in: bool) -> Any:
            async def explained(request: Any, context: Any) -> Any:
                asked = _Asked(request, streams_in)
                try:
                    return await behaviour(asked.given, context)
                except Exception as error:
                    await self._raise_damage(error, asked.newest)
                    raise

            return explained

        def stream(behaviour: Any, streams_in: bool) -> Any:
            async def explained(request: Any, context: Any) -> AsyncIterator[Any]:
                asked = _Asked(request, streams_in)
                try:
                    async with aclosing(behaviour(asked.given, context)) as responses:
                        async for response in responses:
                            yield response
                except Exception as error:
                    await self._raise_damage(error, asked.newest)
                    raise

            return explained

        return wrap_handler(handler, unary=unary, stream=stream)

    async def _raise_damage(self, error: Exception, newest: Any) -> None:
        """Raise an error about damage if an error is unexpected and the newest request names a damaged model."""
        if newest is None or isinstance(error, aio.AbortError) or is_out_of_memory(error):
            return
        if to_failure(error) is not None and not isinstance(
            error, DecodeError | CorruptStore | UnreadableLabel
        ):
            return
        for model in named_models(newest):
            if model != ANY and (found := await self._damaged.find_damage(model)):
                raise CorruptStore(f"model {model} is damaged: {found}") from error


class _Asked:
    """The request or requests of a call, to be `given` to its handler; it remembers the `newest`."""

    def __init__(self, request: Any, streams_in: bool) -> None:
        self.newest = None if streams_in else request
        self.given = self._read(request) if streams_in else request

    async def _read(self, requests: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for request in requests:
            self.newest = request
            yield request
