"""Handlers of methods, wrapped: what every interceptor does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import grpc

Handler = Any  # grpc.RpcMethodHandler: untyped in grpcio
Behaviour = Any  # a coroutine function or an asynchronous generator function of request(s) and context
Wrap = Callable[[Behaviour, bool], Behaviour]
Deserialize = Callable[[bytes], Any]


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
