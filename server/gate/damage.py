"""Calls of damaged models end with DATA_LOSS and say what is damaged, not with an internal error of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

from google.protobuf.message import DecodeError
from grpc import aio

from quercus.labelling.errors import UnreadableLabel
from quercus.server.core.damaged_models import DamagedModels
from quercus.server.gate.guard import named_models
from quercus.server.gate.handlers import Handler, WrappingInterceptor, wrap_handler
from quercus.server.wire.errors import is_out_of_memory, to_failure
from quercus.server.wire.names import ANY
from quercus.storage import CorruptStore

_READING: Final = ("/quercus.v1.", "/inference.")


class DamageInterceptor(WrappingInterceptor):
    """Explains unexpected errors by damage to the model that the request names.

    It is the innermost interceptor, next to the services.

    Parameters
    ----------
    damaged : known damage, and the check.
    """

    def __init__(self, damaged: DamagedModels) -> None:
        self._damaged = damaged

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with its unexpected errors explained."""
        if not method.startswith(_READING) or handler.request_deserializer is None:
            return handler  # it reads no model, or another worker does

        def unary(behaviour: Any, streams_in: bool) -> Any:
            async def explained(request: Any, context: Any) -> Any:
                async with self._explaining(request, streams_in) as asked:
                    return await behaviour(asked, context)

            return explained

        def stream(behaviour: Any, streams_in: bool) -> Any:
            async def explained(request: Any, context: Any) -> AsyncIterator[Any]:
                async with (
                    self._explaining(request, streams_in) as asked,
                    aclosing(behaviour(asked, context)) as responses,
                ):
                    async for response in responses:
                        yield response

            return explained

        return wrap_handler(handler, unary=unary, stream=stream)

    @asynccontextmanager
    async def _explaining(self, request: Any, streams_in: bool) -> AsyncIterator[Any]:
        """Raise an error about a damaged model, named by the newest request, in place of an unexpected one."""
        newest = None if streams_in else request

        async def requests() -> AsyncIterator[Any]:
            nonlocal newest
            async for newest in request:
                yield newest

        try:
            yield requests() if streams_in else request
        except (aio.AbortError, asyncio.CancelledError):
            raise
        except Exception as error:
            is_unexpected = to_failure(error) is None or isinstance(
                error, DecodeError | CorruptStore | UnreadableLabel
            )
            if is_unexpected and not is_out_of_memory(error) and newest is not None:
                for model in named_models(newest):
                    if model != ANY and (found := await self._damaged.find_damage(model)):
                        raise CorruptStore(f"model {model} is damaged: {found}") from error
            raise
