"""Lets in who may call, and writes administrative calls into the audit log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError
from grpc import aio

from quercus.belief.errors import InvalidInput
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import (
    ADMINISTRATIVE,
    Principal,
    TokenAuthority,
    check_permission,
    set_caller,
    short_name,
)
from quercus.server.gate.handlers import Handler, Wrap, WrappedHandlers, metadata_of, wrap_handler
from quercus.server.gate.message_reading import MessageReader
from quercus.server.gate.observing import PATIENT
from quercus.server.gate.throttle import CallRates, MemoryWatch, OpenStreams
from quercus.server.labelling.leasing import ANY
from quercus.server.wire.errors import PermissionDenied, ResourceExhausted, Unauthenticated, to_failure
from quercus.server.wire.limits import INLINE_BYTES
from quercus.server.wire.names import parse_query
from quercus.specification.bounds import MODEL_ID
from quercus.storage import NotFound, StorageError

_audit = logging.getLogger("quercus.audit")
LIGHT: Final = frozenset({"AdminService/GetStatus", "AdminService/GetCaller", "AdminService/SetLogLevel"})
"""Calls that are let in however short memory is."""

REFUSALS_PER_S: Final = 1.0
"""Refused calls per second of one caller, or of all strangers, in the audit log: they must not fill the disk."""

UNKNOWN_CALLER: Final = "a stranger"
UNREAD_TARGET: Final = "unread"
"""The target of a call whose message is malformed or was not read."""

REFUSED: Final = frozenset({"UNAUTHENTICATED", "PERMISSION_DENIED"})

AUTHORIZATION: Final = "authorization"
INFERENCE: Final = "/inference.GRPCInferenceService/"
OPEN_PREFIX: Final = ("/grpc.health.", f"{INFERENCE}ServerLive", f"{INFERENCE}ServerReady")
"""Probes need no token: whether a server is well is no secret."""


@dataclass(frozen=True)
class CallerLimits:
    """The limits of one caller, and whether there is room for more work."""

    rates: CallRates
    streams: OpenStreams
    memory: MemoryWatch
    refusals: CallRates = field(default_factory=lambda: CallRates(REFUSALS_PER_S))


class Guard(aio.ServerInterceptor):
    """Interceptor that checks the token of every call and the models of every message, and bounds callers.

    Parameters
    ----------
    core : common part of all services.
    authority : None: anyone may call, and only the audit log is written.
    bounds : bounds of callers.
    """

    def __init__(self, core: ServiceCore, authority: TokenAuthority | None, bounds: CallerLimits) -> None:
        self._core = core
        self._authority = authority
        self._bounds = bounds
        self._wrapped = WrappedHandlers(self._wrap_handler)

    async def intercept_service(
        self, continuation: Callable[[Any], Awaitable[Handler]], handler_call_details: Any
    ) -> Handler:
        """Wrap the handler of the method; where the token does not count, nothing of the request is read."""
        method = handler_call_details.method
        handler = self._wrapped.get_wrapped(method, await continuation(handler_call_details))
        if handler is None or self._authority is None or not _reads_first(method, handler):
            return handler
        try:
            await self._authority.identify_caller(metadata_of(handler_call_details, AUTHORIZATION))
        except Exception as error:  # reported by the outer interceptors
            _refusal.set(error)
            return _REFUSING[handler.response_streaming]
        return handler

    def _wrap_handler(self, method: str, handler: Handler) -> Handler:
        reader = MessageReader(handler.request_deserializer, self._core.read)
        codecs = None, handler.response_serializer  # a request is read when it is let in
        if method.startswith(OPEN_PREFIX):
            return wrap_handler(
                handler,
                unary=_reader_of(reader),
                stream=lambda b, _: self._bound_stream(reader, b),
                codecs=codecs,
            )
        gate = _GuardedMethod(self._core, self._authority, self._bounds, method, reader)
        audited = short_name(method) in ADMINISTRATIVE

        def unary(behaviour: Any, streams_in: bool) -> Any:
            guarded = gate.guard_unary(behaviour, streams_in)
            return gate.with_audit(guarded) if audited else guarded

        return wrap_handler(handler, unary=unary, stream=gate.guard_stream, codecs=codecs)

    def _bound_stream(self, reader: MessageReader, behaviour: Any) -> Any:
        """Wrap a stream that needs no token: an address has as many as it may, and leaves calls to others."""

        async def bounded_stream(data: bytes, context: Any) -> None:
            with self._bounds.streams.count_stream(_address_of(context)):
                await behaviour(await reader.read_message(data), context)

        return bounded_stream


_refusal: ContextVar[Exception] = ContextVar("quercus_refusal")
"""The error with which the current call is refused before its request is read."""


async def _refuse_unary(requests: Any, context: Any) -> bytes:
    raise _refusal.get()


async def _refuse_stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
    raise _refusal.get()
    yield b""


_REFUSING: Final[dict[bool, Handler]] = {
    False: grpc.stream_unary_rpc_method_handler(_refuse_unary),
    True: grpc.stream_stream_rpc_method_handler(_refuse_stream),
}
"""Handlers that refuse calls, by whether the response is a stream: they take a stream of requests and read none."""


def _reads_first(method: str, handler: Handler) -> bool:
    """Return whether the guard needs only the token, since gRPC reads the request before it calls the handler.

    The guard reads administrative calls itself: the audit log records their targets, also for unknown callers.
    """
    is_audited = short_name(method) in ADMINISTRATIVE
    return not (handler.request_streaming or is_audited or method.startswith(OPEN_PREFIX))


def _reader_of(reader: MessageReader) -> Wrap:
    def wrap_behaviour(behaviour: Any, _: bool) -> Any:
        async def read(data: bytes, context: Any) -> Any:
            return await behaviour(await reader.read_message(data), context)

        return read

    return wrap_behaviour


class _GuardedMethod:
    """The checks of one method's calls, at their start and with every message."""

    def __init__(
        self,
        core: ServiceCore,
        authority: TokenAuthority | None,
        bounds: CallerLimits,
        method: str,
        reader: MessageReader,
    ) -> None:
        self._core = core
        self._reader = reader
        self._authority = authority
        self._bounds = bounds
        self._is_work = short_name(method) not in LIGHT
        self._is_patient = method.rpartition("/")[2] in PATIENT
        self._method = method

    async def admit_caller(self, context: Any) -> Principal | None:
        """Return who calls; raises unless they may, still."""
        if self._authority is None:
            return None
        principal = await self._authority.identify_caller(metadata_of(context, AUTHORIZATION))
        check_permission(principal, self._method)
        return principal

    async def check_message(self, data: bytes, context: Any) -> Any:
        """Check a message and return it; it is parsed only after the checks that need no parsing."""
        principal = await self.admit_caller(context)
        set_caller(principal)
        self._bounds.rates.take_token(_caller_name(principal, context))
        if self._is_work:
            self._bounds.memory.check_memory()
        request = await self._reader.read_message(data)
        if principal is not None:
            await self._check_message(request, principal)
        return request

    async def _check_message(self, request: Any, principal: Principal) -> None:
        for model in named_models(request):
            if model != ANY and not principal.may_touch(model):  # of any model only those granted are leased
                raise PermissionDenied(f"the token of {principal.name} is not for the model {model[:80]}")
        _check_labeller(request, principal)
        if not principal.is_operator:
            for part in leased_parts(request):
                await self._check_holder(part, principal)

    async def _check_holder(self, request: Any, principal: Principal) -> None:
        """A lease token counts only in the hands it was given to, also after the lease has ended."""
        try:
            model, number = parse_query(request.name)
            holder = await self._core.read(self._core.store.holder, model, number, request.lease_token)
        except (InvalidInput, NotFound):  # which the service says better
            return
        if holder not in {"", principal.name}:
            raise PermissionDenied(f"the lease of {request.name} was given to another labeller")

    def guard_unary(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with one response."""

        async def guarded(data: Any, context: Any) -> Any:
            if streams_in:
                return await behaviour(self._check_messages(data, context), context)
            response = await behaviour(await self.check_message(data, context), context)
            if self._is_patient:  # still; a query leased meanwhile is open again when the lease ends
                await self.admit_caller(context)
            return response

        return guarded

    def guard_stream(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with many responses; the caller's permission is checked for each of them."""

        async def guarded(data: Any, context: Any) -> AsyncIterator[Any]:
            principal = await self.admit_caller(context)
            set_caller(principal)
            with self._bounds.streams.count_stream(_caller_name(principal, context)):
                asked = (
                    self._check_messages(data, context)
                    if streams_in
                    else await self.check_message(data, context)
                )
                async with aclosing(behaviour(asked, context)) as responses:
                    async for response in responses:
                        await self.admit_caller(context)
                        yield response

        return guarded

    async def _check_messages(self, messages: AsyncIterator[bytes], context: Any) -> AsyncIterator[Any]:
        async for data in messages:
            yield await self.check_message(data, context)

    def with_audit(self, behaviour: Any) -> Any:
        """Wrap an administrative handler: caller, target and outcome go into the audit log."""

        async def guarded(data: bytes, context: Any) -> Any:
            outcome = "OK"
            try:
                return await behaviour(data, context)
            except BaseException as error:
                failure = to_failure(error)
                outcome = failure.code.name if failure is not None else type(error).__name__
                raise
            finally:
                await asyncio.shield(self._record_audit(data, context, outcome))

        return guarded

    async def _record_audit(self, data: bytes, context: Any, outcome: str) -> None:
        who = await self._audit_caller(context)
        if outcome in REFUSED and not self._is_worth_a_line(who):
            return
        action, target = self._method.rpartition("/")[2], await self._audit_target(data, outcome)
        _audit.info("%s %s %s: %s", who, action, target, outcome)
        try:
            await self._core.write(self._core.store.access.record, who, action, target, outcome)
        except Exception as error:  # the call itself has ended; a failing store is reported elsewhere
            _audit.error("the audit log could not be written: %s", error)

    async def _audit_target(self, data: bytes, outcome: str) -> str:
        """Return the target of a call; a large message of a refused caller is not read for this."""
        if outcome in REFUSED and len(data) > INLINE_BYTES:
            return UNREAD_TARGET
        try:
            return _target_of(await self._reader.read_message(data))
        except (InvalidInput, DecodeError, MemoryError):
            return UNREAD_TARGET

    def _is_worth_a_line(self, who: str) -> bool:
        try:
            self._bounds.refusals.take_token(UNKNOWN_CALLER if who.startswith(UNKNOWN_CALLER) else who)
        except ResourceExhausted:
            return False
        return True

    async def _audit_caller(self, context: Any) -> str:
        if self._authority is None:
            return f"anyone at {context.peer()}"
        try:
            return (await self._authority.identify_caller(metadata_of(context, AUTHORIZATION))).name
        except Unauthenticated:
            return f"{UNKNOWN_CALLER} at {context.peer()}"
        except StorageError:  # the line is written nevertheless, and bounded as a stranger's
            return f"{UNKNOWN_CALLER} at {context.peer()}, the tokens cannot be read"


def _caller_name(principal: Principal | None, context: Any) -> str:
    """Return the name to which the bounds apply: the token's name, else the address without the port."""
    return _address_of(context) if principal is None else principal.name


def _address_of(context: Any) -> str:
    peer: str = context.peer()
    return peer.rpartition(":")[0] or peer


def _target_of(request: Any) -> str:
    """Return the target of a call, as one line of the log even for invalid names of models."""
    model = next(iter(named_models(request)), None)
    if model is None:
        return "server"
    return f"models/{model if MODEL_ID.fullmatch(model) else ascii(model[:80])}"


def named_models(request: Any) -> list[str]:
    """Return the models that a message names: in `model`, `name`, `parent` or `model_id`, of its parts as well.

    Messages of the Open Inference Protocol name a model without ``models/``, in `name` or `model_name`.
    """
    if request.DESCRIPTOR.file.package == "inference":
        bare = (getattr(request, "model_name", ""), getattr(request, "name", ""))
        return [name for name in bare if name]
    found = []
    for part in carried_requests(request):
        for key in ("model", "name", "parent"):
            resource = getattr(part, key, "")
            if isinstance(resource, str) and resource.startswith("models/"):
                found.append(resource.split("/", 2)[1])
        if model_id := getattr(part, "model_id", ""):
            found.append(model_id)
    return found


def leased_parts(request: Any) -> list[Any]:
    """Return the parts of a message, itself among them, that speak of a leased query."""
    return [part for part in carried_requests(request) if getattr(part, "lease_token", "")]


def carried_requests(request: Any) -> list[Any]:
    """Return a message and the requests that it carries, such as the answers on a stream of queries."""
    found = [request]
    for descriptor, value in request.ListFields():
        if descriptor.message_type is not None and descriptor.message_type.name.endswith("Request"):
            found += value if descriptor.is_repeated else [value]
    return found


def _check_labeller(request: Any, principal: Principal) -> None:
    """Set the labeller of a request to the token's name; only an operator's token may name another."""
    if "labeller" not in request.DESCRIPTOR.fields_by_name or not getattr(request, "model", ""):
        return
    if not request.labeller:
        request.labeller = principal.name
    elif request.labeller != principal.name and not principal.is_operator:
        raise PermissionDenied(
            f"labeller: is {request.labeller[:60]!r}, but the token speaks for {principal.name!r}"
        )
