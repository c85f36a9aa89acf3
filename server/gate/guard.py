"""Admits calls: counts them, then checks token, messages, and the models and leases that messages name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final

import grpc
from google.protobuf.message import DecodeError

from quercus.belief.errors import InvalidInput
from quercus.server.core.service_core import ServiceCore
from quercus.server.gate.access import (
    TOKEN_NAME,
    Principal,
    TokenAuthority,
    check_permission,
    current_caller,
    labeller_of,
    set_caller,
)
from quercus.server.gate.audit import REFUSED, UNREAD_TARGET, AuditLog, outcome_of
from quercus.server.gate.handlers import Handler, WrappingInterceptor, metadata_of, wrap_handler
from quercus.server.gate.message_reading import MessageReader, is_small
from quercus.server.gate.rpcs import ROLES, Rpc, rpc_of
from quercus.server.gate.throttle import CallRates, CallsAtOnce, MemoryWatch, OpenStreams, ProbeReadings
from quercus.server.wire.errors import PermissionDenied
from quercus.server.wire.limits import INLINE_BYTES
from quercus.server.wire.names import ANY, parse_query
from quercus.specification.bounds import MODEL_ID
from quercus.storage import NotFound

AUTHORIZATION: Final = "authorization"
INFERENCE: Final = "/inference.GRPCInferenceService/"
INTERNAL: Final = "quercus.Worker"
"""The service by which workers call each other; it is served only on their private sockets."""
OPEN_PREFIX: Final = (
    "/grpc.health.", f"{INFERENCE}ServerLive", f"{INFERENCE}ServerReady", f"/{INTERNAL}/"
)  # fmt: skip
"""Methods that need no token: health probes, since the health of a server is not secret, and calls between workers."""


@dataclass(frozen=True)
class CallerLimits:
    """The limits of callers, and the watch on memory."""

    calls: CallsAtOnce
    strangers: CallsAtOnce
    rates: CallRates
    streams: OpenStreams
    memory: MemoryWatch


class Guard(WrappingInterceptor):
    """Interceptor that checks the token of every call and the models of every message, and enforces limits.

    Parameters
    ----------
    core : common part of all services.
    authority : identifies callers. None if callers need no token; limits and the audit log still apply.
    bounds : limits of callers.
    audit : the audit log.
    """

    def __init__(
        self, core: ServiceCore, authority: TokenAuthority | None, bounds: CallerLimits, audit: AuditLog
    ) -> None:
        self._core = core
        self._authority = authority
        self._bounds = bounds
        self._audit = audit
        self._probes = ProbeReadings()
        self._refusing: dict[str, Handler] = {}

    async def admit(self, details: Any, handler: Handler) -> Handler:
        """Return the handler of an admitted call, or one that refuses the call without reading its messages.

        The number of calls is checked before the token, so that calls beyond the limit cost no look-up of a token. The
        audit log therefore calls their callers strangers, even if the token is valid.
        """
        method = details.method
        if method.startswith(OPEN_PREFIX):
            return handler
        try:
            self._bounds.calls.count_call()
            if self._authority is not None:
                set_caller(await self._authority.identify_caller(metadata_of(details, AUTHORIZATION)))
            if not rpc_of(method).light:
                self._bounds.memory.check_memory()
        except Exception as error:  # raised when the handler is called, so that outer interceptors report it
            _refusal.set(error)
            if not handler.request_streaming:  # gRPC would read the request before it calls the handler
                return self._refusing_handler(method, handler)
        return handler

    def _refusing_handler(self, method: str, handler: Handler) -> Handler:
        """Return a handler that refuses calls; it takes a stream of requests, so that none of them is read."""
        found = self._refusing.get(method)
        if found is None:
            if handler.response_streaming:
                found = grpc.stream_stream_rpc_method_handler(_refuse_stream)
            elif rpc_of(method).audited:

                async def refuse(requests: Any, context: Any) -> None:
                    who = self._audit.name_caller(current_caller(), context)
                    await self._audit.record_call(who, method, _refusal.get())
                    _raise_refusal()

                found = grpc.stream_unary_rpc_method_handler(refuse)
            else:
                found = grpc.stream_unary_rpc_method_handler(_refuse_unary)
            self._refusing[method] = found
        return found

    def wrap_handler(self, method: str, handler: Handler) -> Handler:
        """Return the handler with checks of its messages."""
        if (
            handler.request_deserializer is None
        ):  # forwarded to another worker, whose guard checks the messages
            return wrap_handler(handler, unary=_unless_refused, stream=_unless_refused_stream)
        reader = MessageReader(handler.request_deserializer, self._core.read)
        if method.startswith(OPEN_PREFIX):
            return self._open_handler(handler, reader)
        gate = _GuardedMethod(self._core, self._authority, self._bounds, reader, method, rpc_of(method))

        def unary(behaviour: Any, streams_in: bool) -> Any:
            guarded = gate.guard_unary(behaviour, streams_in)
            return self._with_audit(guarded, method, reader) if rpc_of(method).audited else guarded

        codecs = None, handler.response_serializer  # a request is parsed only after the checks
        return wrap_handler(handler, unary=unary, stream=gate.guard_stream, codecs=codecs)

    def _with_audit(self, behaviour: Any, method: str, reader: MessageReader) -> Any:
        """Wrap an administrative handler, so that its calls are recorded in the audit log."""

        async def audited(data: bytes, context: Any) -> Any:
            failed: BaseException | None = None
            try:
                return await behaviour(data, context)
            except BaseException as error:
                failed = error
                raise
            finally:
                who = self._audit.name_caller(current_caller(), context)
                target = await _audit_target(reader, data, outcome_of(failed))
                await self._audit.record_call(who, method, failed, target)

        return audited

    def _open_handler(self, handler: Handler, reader: MessageReader) -> Handler:
        """Return the handler of a method that needs no token.

        It takes a stream of requests, so that the request is read here, and not by gRPC, which reads those of any
        number of calls at a time.
        """
        write = handler.response_serializer

        async def answer(requests: Any, context: Any) -> Any:
            data = await self._probes.read_request(requests)
            return await handler.unary_unary(await reader.read_message(data), context)

        async def watch(requests: Any, context: Any) -> None:
            """Limit the streams of one address, and those of all strangers, so that others can still call."""
            self._bounds.strangers.count_call()
            with self._bounds.streams.count_stream(_address_of(context)):
                data = await self._probes.read_request(requests)
                await handler.unary_stream(await reader.read_message(data), context)

        if handler.response_streaming:
            return grpc.stream_stream_rpc_method_handler(watch, None, write)
        return grpc.stream_unary_rpc_method_handler(answer, None, write)


_refusal: ContextVar[Exception | None] = ContextVar("quercus_refusal", default=None)
"""The error that refuses the current call before any of its messages is read; None if the call is admitted."""


def _raise_refusal() -> None:
    if (error := _refusal.get()) is not None:
        raise error


async def _refuse_unary(requests: Any, context: Any) -> None:
    _raise_refusal()


async def _refuse_stream(requests: Any, context: Any) -> AsyncIterator[bytes]:
    _raise_refusal()
    yield b""


def _unless_refused(behaviour: Any, _: bool) -> Any:
    async def admitted(request: Any, context: Any) -> Any:
        _raise_refusal()
        return await behaviour(request, context)

    return admitted


def _unless_refused_stream(behaviour: Any, _: bool) -> Any:
    async def admitted(request: Any, context: Any) -> AsyncIterator[Any]:
        _raise_refusal()
        async with aclosing(behaviour(request, context)) as responses:
            async for response in responses:
                yield response

    return admitted


@dataclass(frozen=True)
class _GuardedMethod:
    """The checks of one method's calls, at their start and with every message."""

    core: ServiceCore
    authority: TokenAuthority | None
    bounds: CallerLimits
    reader: MessageReader
    method: str
    rpc: Rpc

    async def admit_caller(self, context: Any) -> Principal | None:
        """Return the caller; raise if the token is no longer valid, or does not allow the call.

        `Guard.admit` checks the token before any message is read. Here it is checked again, for each message and each
        response of a stream, because it may be revoked while the call is open. Roles are checked only here.
        """
        if self.authority is None:
            return None
        principal = await self.authority.identify_caller(metadata_of(context, AUTHORIZATION))
        check_permission(principal, self.method)
        return principal

    async def check_message(self, data: bytes, context: Any) -> Any:
        """Check a message, and return it parsed; checks that need no parsing come first."""
        principal = None
        if self.authority is not None:
            principal = await self.admit_caller(context)
            set_caller(principal)
        if self.bounds.rates.are_bounded:
            self.bounds.rates.admit_call(_caller_name(principal, context))
        if not self.rpc.light:
            self.bounds.memory.check_memory()
        request = self.reader.parse_message(data) if is_small(data) else await self.reader.read_message(data)
        if principal is not None:
            await self._check_names(request, principal)
        return request

    async def _check_names(self, request: Any, principal: Principal) -> None:
        """Refuse models that the token does not grant, other labellers' names, and leases that others hold."""
        for model in named_models(request):
            if model != ANY and not principal.may_touch(model):  # ANY leases only from granted models
                raise PermissionDenied(f"the token of {principal.name} is not for the model {model[:80]}")
        names = request.DESCRIPTOR.fields_by_name
        if "labeller" in names and "model" in names and request.model:
            request.labeller = labeller_of(request.labeller)
        if principal.is_operator:
            return
        for part in _carried_requests(request):
            token = getattr(part, "lease_token", "")
            if not token:
                continue
            try:  # only the labeller who got a lease token may use it, even after the lease has ended
                model, number = parse_query(part.name)
                holder = await self.core.read(self.core.store.holder, model, number, token)
            except (InvalidInput, NotFound):  # the service reports it better
                continue
            if holder not in {"", principal.name}:
                raise PermissionDenied(f"{part.name} was given to another labeller")

    def guard_unary(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with one response."""

        async def guarded(data: Any, context: Any) -> Any:
            if streams_in:
                _raise_refusal()
                return await behaviour(self._check_messages(data, context), context)
            response = await behaviour(await self.check_message(data, context), context)
            if (
                self.rpc.waits
            ):  # the token may be invalid by now; a query that was leased opens when the lease ends
                await self.admit_caller(context)
            return response

        return guarded

    def guard_stream(self, behaviour: Any, streams_in: bool) -> Any:
        """Wrap a handler with many responses; the caller's permission is checked for each of them."""

        async def guarded(data: Any, context: Any) -> AsyncIterator[Any]:
            _raise_refusal()
            principal = await self.admit_caller(context)
            set_caller(principal)
            with self.bounds.streams.count_stream(_caller_name(principal, context)):
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


def _caller_name(principal: Principal | None, context: Any) -> str:
    """Return the name to which limits apply: that of the token, or the address without the port."""
    return _address_of(context) if principal is None else principal.name


def _address_of(context: Any) -> str:
    peer: str = context.peer()
    return peer.rpartition(":")[0] or peer


async def _audit_target(reader: MessageReader, data: bytes, outcome: str) -> str:
    """Return the target of a call on one line, even if it is an invalid name.

    A large message of a refused caller is not read for this.
    """
    if outcome in REFUSED and len(data) > INLINE_BYTES:
        return UNREAD_TARGET
    try:
        request = await reader.read_message(data)
    except (InvalidInput, DecodeError, MemoryError):
        return UNREAD_TARGET
    model = next(iter(named_models(request)), None)
    if model is None:
        return _token_target(request) or "server"
    return f"models/{model if MODEL_ID.fullmatch(model) else ascii(model[:80])}"


def _token_target(request: Any) -> str:
    """Return the token that a call creates or revokes, on one line; "" for other calls."""
    match request.DESCRIPTOR.name:
        case "CreateTokenRequest":
            roles, caller = ", ".join(request.roles[: len(ROLES)]), request.caller
            return f"a token of {caller[:63]!a}: {roles[:80]!a}"
        case "RevokeTokenRequest":
            return request.name if TOKEN_NAME.fullmatch(request.name) else ascii(request.name[:80])
    return ""


def named_models(request: Any) -> list[str]:
    """Return the models that a message and its parts name in `model`, `name`, `parent` or `model_id`.

    Messages of the Open Inference Protocol name a model without ``models/``, in `name` or `model_name`.
    """
    if request.DESCRIPTOR.file.package == "inference":
        bare = (getattr(request, "model_name", ""), getattr(request, "name", ""))
        return [name for name in bare if name]
    found = []
    for part in _carried_requests(request):
        for key in ("model", "name", "parent"):
            resource = getattr(part, key, "")
            if isinstance(resource, str) and resource.startswith("models/"):
                found.append(resource.split("/", 2)[1])
        if model_id := getattr(part, "model_id", ""):
            found.append(model_id)
    return found


def _carried_requests(request: Any) -> list[Any]:
    """Return a message and the requests that it carries, such as the answers on a stream of queries."""
    found = [request]
    for descriptor, value in request.ListFields():
        if descriptor.message_type is not None and descriptor.message_type.name.endswith("Request"):
            found += value if descriptor.is_repeated else [value]
    return found
