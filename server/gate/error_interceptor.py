"""The catch-all: domain errors become statuses; others are logged, and callers see only a reference to the log."""

from __future__ import annotations

import asyncio
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any

from google.rpc import code_pb2
from grpc import aio

from quercus.server.gate.handlers import Handler, WrappingInterceptor, wrap_handler
from quercus.server.wire.errors import grpc_status, is_out_of_memory, to_failure

_log = logging.getLogger(__name__)


class ErrorInterceptor(WrappingInterceptor):
    """Turn every exception of a handler into a status with details.

    An exception that no servicer is expected to raise is a bug: it is logged with its trace under a reference, and the
    client sees the reference only. Responses are serialised here, so that one for which there is no memory ends with a
    status as well. Made and used in one event loop.
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
        """Return the handler, whose errors become statuses."""
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
