"""Calls of damaged models end with DATA_LOSS and say what is damaged, not with an internal error of the server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from google.protobuf.message import DecodeError
from grpc import aio

from quercus.labelling.errors import UnreadableLabel
from quercus.server.core.damaged_models import DamagedModels
from quercus.server.gate.guard import named_models
from quercus.server.gate.handlers import Handler, WrappingInterceptor, wrap_handler
from quercus.server.labelling.leasing import ANY
from quercus.server.wire.errors import is_out_of_memory, to_failure
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
        super().__init__()
        self._damaged = damaged

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with its unexpected errors explained."""
        if not method.startswith(_READING) or handler.request_deserializer is None:
            return handler  # it reads no model, or another worker does
        return wrap_handler(handler, unary=self._explain_unary, stream=self._explain_stream)

    def _explain_unary(self, behaviour: Any, streams_in: bool) -> Any:
        async def explained(request: Any, context: Any) -> Any:
            asked = _AskedModels(request, streams_in) if streams_in else None
            try:
                return await behaviour(request if asked is None else asked.requests, context)
            except (aio.AbortError, asyncio.CancelledError):
                raise
            except Exception as error:
                await self._explain(error, asked or _AskedModels(request, streams_in))
                raise

        return explained

    def _explain_stream(self, behaviour: Any, streams_in: bool) -> Any:
        async def explained(request: Any, context: Any) -> AsyncIterator[Any]:
            asked = _AskedModels(request, streams_in)
            try:
                async with aclosing(behaviour(asked.requests, context)) as responses:
                    async for response in responses:
                        yield response
            except (aio.AbortError, asyncio.CancelledError):
                raise
            except Exception as error:
                await self._explain(error, asked)
                raise

        return explained

    async def _explain(self, error: Exception, asked: _AskedModels) -> None:
        """Raise an error about the damaged model in place of an unexpected one."""
        is_strange = to_failure(error) is None or isinstance(
            error, DecodeError | CorruptStore | UnreadableLabel
        )
        if not is_strange or is_out_of_memory(error):
            return
        for model in asked.models:
            if found := await self._damaged.find_damage(model):
                raise CorruptStore(f"model {model} is damaged: {found}") from error


class _AskedModels:
    """The models that a request, or the newest message of a stream, names."""

    def __init__(self, request: Any, streams_in: bool) -> None:
        self._newest = None if streams_in else request
        self.requests = self._noted_messages(request) if streams_in else request

    @property
    def models(self) -> list[str]:
        return [] if self._newest is None else [name for name in named_models(self._newest) if name != ANY]

    async def _noted_messages(self, messages: AsyncIterator[Any]) -> AsyncIterator[Any]:
        async for self._newest in messages:
            yield self._newest
