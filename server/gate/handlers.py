"""Handlers of methods: registered, found by name, and wrapped by interceptors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import grpc
from grpc import aio

Handler = Any  # grpc.RpcMethodHandler: untyped in grpcio
Behaviour = Any  # a coroutine function or an asynchronous generator function of request(s) and context
Wrap = Callable[[Behaviour, bool], Behaviour]
Deserialize = Callable[[bytes], Any]
Serialize = Callable[[Any], bytes]
FindHandler = Callable[[Any], Awaitable[Handler]]
"""Finds the handler of a call by its details."""
Codecs = tuple[Deserialize | None, Serialize | None]


class WrappingInterceptor(ABC):
    """An interceptor that wraps each method once, not each call; `Joined` makes one of gRPC's of some of them."""

    @abstractmethod
    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the wrapped handler of a method."""

    async def admit(self, details: Any, handler: Handler) -> Handler:
        """Return the wrapped handler of a new call, or another handler that refuses the call."""
        return handler


class Joined(aio.ServerInterceptor):
    """Several interceptors as one, so that a call is intercepted once.

    Parameters
    ----------
    parts : the interceptors, the outermost first.
    """

    def __init__(self, *parts: WrappingInterceptor) -> None:
        self._admitting: list[tuple[_Wrapped, WrappingInterceptor]] = []
        around: list[WrappingInterceptor] = []
        for part in reversed(parts):
            around.append(part)
            if type(part).admit is not WrappingInterceptor.admit:
                self._admitting.append((_Wrapped(around), part))
                around = []
        self._outermost = _Wrapped(around)

    async def intercept_service(self, continuation: FindHandler, handler_call_details: Any) -> Handler:
        """Return the wrapped handler of the called method; None for one that the server does not have."""
        handler = await continuation(handler_call_details)
        if handler is None:
            return None
        method = handler_call_details.method
        for wrapped, part in self._admitting:
            handler = await part.admit(handler_call_details, wrapped.handler(method, handler))
        return self._outermost.handler(method, handler)


class _Wrapped:
    """Handlers wrapped by some interceptors, the innermost first."""

    def __init__(self, parts: Sequence[WrappingInterceptor]) -> None:
        self._parts = parts
        self._made: dict[tuple[str, bool], tuple[Handler, Handler]] = {}

    def handler(self, method: str, handler: Handler) -> Handler:
        key = method, handler.request_streaming  # one that refuses reads no request
        made = self._made.get(key)
        if made is None or made[0] is not handler:  # an interceptor further in may make one for every call
            wrapped = handler
            for part in self._parts:
                wrapped = part.wrap_handler(method, wrapped)
            made = self._made[key] = (handler, wrapped)
        return made[1]


def metadata_of(context: Any, key: str) -> str | None:
    """Return the first value that the caller gave under a key, None if it gave none.

    Parameters
    ----------
    context : context of a call, or the details of one that is not admitted yet.
    """
    given = context.invocation_metadata
    for name, value in (given() if callable(given) else given) or ():
        if name == key:
            return str(value)
    return None


def wrap_handler(
    handler: Handler,
    *,
    unary: Wrap,
    stream: Wrap,
    codecs: Codecs | None = None,
) -> Handler:
    """Return a handler like `handler` with something around its behaviour.

    Parameters
    ----------
    handler : handler of a method.
    unary, stream : wrap the behaviour of a method with one response, or with many; they are told whether requests come
        as a stream.
    codecs : read requests and write responses; None: as the handler does.
    """
    streams_in = handler.request_streaming
    if codecs is None:
        codecs = (handler.request_deserializer, handler.response_serializer)
    if handler.response_streaming:
        behaviour = stream(handler.stream_stream or handler.unary_stream, streams_in)
        make: Any = (
            grpc.stream_stream_rpc_method_handler if streams_in else grpc.unary_stream_rpc_method_handler
        )
    else:
        behaviour = unary(handler.stream_unary or handler.unary_unary, streams_in)
        make = grpc.stream_unary_rpc_method_handler if streams_in else grpc.unary_unary_rpc_method_handler
    return make(behaviour, *codecs)


class Services:
    """Takes the place of a server when generated code registers services; their methods are found by name.

    Generated code registers each method with ``grpc.aio`` as well. That server then waits for the next call of all
    registered methods at once, and adds and removes a callback for each of them at every call: 46 µs with the forty
    methods of Quercus.

    Attributes
    ----------
    handlers : what servers add; each finds the methods of one service.
    """

    def __init__(self) -> None:
        self.handlers: list[Any] = []

    def add_generic_rpc_handlers(self, handlers: Sequence[Any]) -> None:
        """Add a service, whose methods are found by name."""
        self.handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: Mapping[str, Any]) -> None:
        """Do nothing: the methods are found by name."""
