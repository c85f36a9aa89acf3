"""Handlers of methods, wrapped: what every interceptor does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

Handler = Any  # grpc.RpcMethodHandler: untyped in grpcio
Behaviour = Any  # a coroutine function or an asynchronous generator function of request(s) and context
Wrap = Callable[[Behaviour, bool], Behaviour]
Deserialize = Callable[[bytes], Any]


class Wrapped:
    """Wrapped handlers by method, each made once: methods are few, calls are many.

    Parameters
    ----------
    wrap : makes the wrapped handler of a method and its handler.
    """

    def __init__(self, wrap: Callable[[str, Handler], Handler]) -> None:
        self._wrap = wrap
        self._made: dict[str, tuple[Handler, Handler]] = {}

    def of(self, method: str, handler: Handler) -> Handler:
        """Return the wrapped handler; None for None, a method that the server does not have."""
        if handler is None:
            return None
        made = self._made.get(method)
        if made is None or made[0] is not handler:  # an interceptor further in may make one for every call
            made = self._made[method] = (handler, self._wrap(method, handler))
        return made[1]


def metadata_of(context: Any, key: str) -> str | None:
    """Return the first value that the caller gave under a key, None where it gave none."""
    return next((value for name, value in context.invocation_metadata() or () if name == key), None)


def rewrap(
    handler: Handler,
    *,
    unary: Wrap,
    stream: Wrap,
    reading: Callable[[Deserialize | None], Deserialize | None] = lambda deserialize: deserialize,
) -> Handler:
    """Return a handler like `handler` with something around its behaviour.

    Parameters
    ----------
    handler : of a method.
    unary, stream : wrap the behaviour of a method with one response, or with many; they are told whether requests come
        as a stream.
    reading : wraps the function that reads a request.
    """
    streams_in = handler.request_streaming
    codecs = (reading(handler.request_deserializer), handler.response_serializer)
    if handler.response_streaming:
        behaviour = stream(handler.stream_stream or handler.unary_stream, streams_in)
        make: Any = (
            grpc.stream_stream_rpc_method_handler if streams_in else grpc.unary_stream_rpc_method_handler
        )
    else:
        behaviour = unary(handler.stream_unary or handler.unary_unary, streams_in)
        make = grpc.stream_unary_rpc_method_handler if streams_in else grpc.unary_unary_rpc_method_handler
    return make(behaviour, *codecs)
