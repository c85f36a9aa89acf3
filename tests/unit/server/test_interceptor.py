"""Unexpected errors of servicers are logged and leak nothing, in calls of every kind."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.message import EncodeError
from support.said import said

from quercus.belief.errors import InvalidInput
from quercus.server.gate import error_interceptor
from quercus.server.gate.error_interceptor import ErrorInterceptor
from quercus.server.gate.handlers import Joined

SECRET = "the password is swordfish"


class Handlers(grpc.GenericRpcHandler):
    """Calls that fail; the method says how and the request when."""

    def __init__(self, error: Exception | None = None, write: Any = None) -> None:
        self._error = error
        self._write = write

    def service(self, details: Any) -> Any:
        found = RuntimeError(SECRET) if "bug" in details.method else InvalidInput("x", "is bad")
        error = None if self._write is not None else self._error or found

        async def unary(request: Any, context: Any) -> bytes:
            if error is not None:
                raise error
            return b""

        async def stream(request: Any, context: Any) -> AsyncIterator[bytes]:
            yield b"first"
            if error is not None:
                raise error

        write = self._write
        return {
            "unary_unary": grpc.unary_unary_rpc_method_handler(unary, None, write),
            "stream_unary": grpc.stream_unary_rpc_method_handler(unary, None, write),
            "unary_stream": grpc.unary_stream_rpc_method_handler(stream, None, write),
            "stream_stream": grpc.stream_stream_rpc_method_handler(stream, None, write),
        }.get(details.method.rpartition("/")[2])


async def outcome(started: Any, kind: str) -> Any:
    return [each async for each in started] if kind.endswith("stream") else await started


async def call(kind: str, name: str, handlers: Any = None) -> grpc.RpcError:
    server = grpc.aio.server(interceptors=[Joined(ErrorInterceptor())], handlers=[handlers or Handlers()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            argument = iter([b"a"]) if kind.startswith("stream") else b"a"
            started = getattr(channel, kind)(f"/{name}/{kind}")(argument, timeout=20)
            with pytest.raises(grpc.RpcError) as caught:
                await outcome(started, kind)
            return caught.value
    finally:
        await server.stop(None)


KINDS = ["unary_unary", "stream_unary", "unary_stream", "stream_stream"]


@pytest.mark.parametrize("kind", KINDS)
def test_bug(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = asyncio.run(call(kind, "bug"))
    assert error.code() is grpc.StatusCode.INTERNAL
    assert "swordfish" not in str(error.details()) + str(error.trailing_metadata())
    found = re.fullmatch(
        r"internal error, logged by the server under reference ([0-9a-f]{12})", error.details() or ""
    )
    assert found is not None
    assert found[1] in caplog.text
    assert SECRET in caplog.text


@pytest.mark.parametrize("kind", KINDS)
def test_domain_error(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.ERROR):
        error = asyncio.run(call(kind, "domain"))
    assert (error.code(), error.details()) == (grpc.StatusCode.INVALID_ARGUMENT, "x: is bad")
    assert not said(caplog, error_interceptor.__name__)


@pytest.mark.parametrize("kind", KINDS)
def test_a_lack_of_memory_is_reported_with_a_retry_time(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    error = asyncio.run(call(kind, "full", Handlers(MemoryError())))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "no memory left" in (error.details() or "")
    assert ("grpc-retry-pushback-ms", "1000") in list(error.trailing_metadata() or ())
    assert [line for line in said(caplog, error_interceptor.__name__) if "no memory left" in line]


@pytest.mark.parametrize("kind", ["unary_unary", "unary_stream"])
def test_a_response_that_cannot_be_written_ends_with_a_status(kind: str) -> None:
    def write(response: bytes) -> bytes:
        raise EncodeError("Failed to serialize proto: Out of memory")

    error = asyncio.run(call(kind, "sound", Handlers(write=write)))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


def test_unknown_method() -> None:
    error = asyncio.run(call_unknown())
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def call_unknown() -> grpc.RpcError:
    server = grpc.aio.server(interceptors=[Joined(ErrorInterceptor())], handlers=[Handlers()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.RpcError) as caught:
                await channel.unary_unary("/bug/none")(b"", timeout=20)
            return caught.value
    finally:
        await server.stop(None)
