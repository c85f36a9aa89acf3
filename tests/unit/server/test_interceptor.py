"""What no servicer expects is logged and leaks nothing, whatever the kind of call."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from quercus.belief.errors import InvalidInput
from quercus.server.interceptor import CatchAll

SECRET = "the password is swordfish"


class Handlers(grpc.GenericRpcHandler):
    """Calls that fail; the method says how and the request when."""

    def service(self, details: Any) -> Any:
        error: Exception = RuntimeError(SECRET) if "bug" in details.method else InvalidInput("x", "is bad")

        async def unary(request: Any, context: Any) -> bytes:
            raise error

        async def stream(request: Any, context: Any) -> AsyncIterator[bytes]:
            yield b"first"
            raise error

        return {
            "unary_unary": grpc.unary_unary_rpc_method_handler(unary),
            "stream_unary": grpc.stream_unary_rpc_method_handler(unary),
            "unary_stream": grpc.unary_stream_rpc_method_handler(stream),
            "stream_stream": grpc.stream_stream_rpc_method_handler(stream),
        }.get(details.method.rpartition("/")[2])


async def outcome(started: Any, kind: str) -> Any:
    return [each async for each in started] if kind.endswith("stream") else await started


async def call(kind: str, name: str, handlers: Any = None) -> grpc.RpcError:
    server = grpc.aio.server(interceptors=[CatchAll()], handlers=[handlers or Handlers()])
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


def logged(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What Quercus logged: grpc.aio complains at times of the event loop of an earlier test."""
    return [record.getMessage() for record in caplog.records if record.name.startswith("quercus")]


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
    assert not logged(caplog)


class Readers(grpc.GenericRpcHandler):
    """Calls that read every request, of type Duration, and answer nothing."""

    def service(self, details: Any) -> Any:
        async def unary(request: Any, context: Any) -> bytes:
            return b""

        async def read_all(requests: AsyncIterator[Any], context: Any) -> bytes:
            async for _ in requests:
                pass
            return b""

        async def stream(request: Any, context: Any) -> AsyncIterator[bytes]:
            yield b""

        async def stream_all(requests: AsyncIterator[Any], context: Any) -> AsyncIterator[bytes]:
            async for _ in requests:
                yield b""

        read = Duration.FromString
        return {
            "unary_unary": grpc.unary_unary_rpc_method_handler(unary, read),
            "stream_unary": grpc.stream_unary_rpc_method_handler(read_all, read),
            "unary_stream": grpc.unary_stream_rpc_method_handler(stream, read),
            "stream_stream": grpc.stream_stream_rpc_method_handler(stream_all, read),
        }[details.method.rpartition("/")[2]]


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_that_are_no_message(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    error = asyncio.run(call(kind, "reader", Readers()))  # the one request is b"a": half a field
    assert error.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert (error.details() or "").startswith("request: cannot be read (")
    assert "google.protobuf.Duration" in (error.details() or "")
    assert not logged(caplog)


def test_unknown_method() -> None:
    error = asyncio.run(call_unknown())
    assert error.code() is grpc.StatusCode.UNIMPLEMENTED


async def call_unknown() -> grpc.RpcError:
    server = grpc.aio.server(interceptors=[CatchAll()], handlers=[Handlers()])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            with pytest.raises(grpc.RpcError) as caught:
                await channel.unary_unary("/bug/none")(b"", timeout=20)
            return caught.value
    finally:
        await server.stop(None)
