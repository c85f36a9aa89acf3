"""The context of a call for its handler; it is safe to use after the call has ended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from grpc import aio


class Call:
    """A substitute for the context of ``grpc.aio``, for everything that the outermost interceptor calls.

    ``grpc.aio`` frees a call when its task ends, and later reads of the context (by a task that outlived the call, or
    an asynchronous generator that is closed late) access freed memory. So the contents of the context are read when the
    call begins, and nothing is sent once it has ended.

    Parameters
    ----------
    context : context of a call of ``grpc.aio`` that has just begun.
    forwarded_from : metadata in which another worker of this server names the caller; None: the caller is the peer.

    Attributes
    ----------
    began_at : of ``time.perf_counter``.
    has_ended : whether nothing is sent any more.
    """

    def __init__(self, context: Any, forwarded_from: str | None = None) -> None:
        self._context = context
        self._metadata = tuple(context.invocation_metadata() or ())
        given = dict(self._metadata).get(forwarded_from) if forwarded_from is not None else None
        self._peer: str = context.peer() if given is None else given
        self.began_at = time.perf_counter()
        self.has_ended = False

    def mark_ended(self) -> None:
        """End the call: nothing is sent from now on."""
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

    async def write(self, response: Any) -> None:
        """Send a message."""
        await self._send_unless_ended(self._context.write, response)

    async def abort(self, code: Any, details: str = "", trailing_metadata: tuple[Any, ...] = ()) -> None:
        """End the call with a status; raises always."""
        await self._send_unless_ended(self._context.abort, code, details, trailing_metadata)

    async def _send_unless_ended(self, send: Callable[..., Awaitable[None]], *arguments: Any) -> None:
        """Send; if the client has gone, cancel the call, which gRPC would do a moment later anyway."""
        if self.has_ended:
            raise asyncio.CancelledError
        try:
            await send(*arguments)
        except aio.InternalError:
            raise asyncio.CancelledError from None
