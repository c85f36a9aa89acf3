"""What is between an outbox and its server fails in every way that passes: the outbox waits, says for what, goes on."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from integration.client.serving import Serving

from quercus.client import (
    Client,
    DeadlineExceeded,
    FailedPrecondition,
    InvalidArgument,
    Nominal,
    Specification,
)

PATIENCE = 300
SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"])
CODES = [grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE,
         grpc.StatusCode.UNKNOWN, grpc.StatusCode.CANCELLED]  # fmt: skip


class Proxy(grpc.GenericRpcHandler):
    """Hands bytes on to a server, but answers pushes itself while it is `broken`."""

    def __init__(self, address: str) -> None:
        self._address = address
        self.broken: grpc.StatusCode | None = None
        self.refused = 0

    def service(self, details: Any) -> Any:
        async def forward(requests: AsyncIterator[bytes], context: Any) -> AsyncIterator[bytes]:
            if self.broken is not None and "/Push" in details.method:
                self.refused += 1
                await context.abort(self.broken, "the proxy is broken")
            async with grpc.aio.insecure_channel(self._address) as channel:
                async for response in channel.stream_stream(details.method)(requests):
                    yield response

        return grpc.stream_stream_rpc_method_handler(forward)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Proxy, str]]:
    serving = Serving(tmp_path_factory.mktemp("server"), grower=False)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    made = Proxy(serving.address)

    async def start() -> tuple[grpc.aio.Server, int]:
        server = grpc.aio.server(handlers=[made])
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        return server, port

    server, port = asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    yield made, f"127.0.0.1:{port}"
    asyncio.run_coroutine_threadsafe(server.stop(None), loop).result(30)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()
    serving.stop()


@pytest.mark.parametrize("code", CODES)
def test_an_outbox_outlives_what_passes(
    code: grpc.StatusCode, proxy: tuple[Proxy, str], tmp_path: Path
) -> None:
    between, address = proxy
    model = code.name.lower()
    with Client(address) as client:
        client.create_model(model, SPECIFICATION)
        with client.outbox(model, tmp_path / "rows.buffer") as outbox:
            between.broken, between.refused = code, 0
            for k in range(3):
                outbox.put([["a"], ["b"]], ids=[f"a{k}", f"b{k}"])
            for _ in range(PATIENCE):  # gRPC tries some codes several times before it says so
                if outbox.waiting_for and between.refused > 1:
                    break
                with pytest.raises(DeadlineExceeded, match=r"6 rows still wait after 0\.1 s"):
                    outbox.flush(0.1)
            assert "the proxy is broken" in outbox.waiting_for
            assert between.refused > 1
            with pytest.raises(DeadlineExceeded, match=r"6 rows still wait after .* the proxy is broken"):
                outbox.flush(0.1)
            between.broken = None
            outbox.flush(60)
            assert outbox.waiting_for == ""
        assert client.get_model(model).instance_count == 6


def test_rows_packed_for_a_given_specification_do_not_reach_another_model(
    shared_server: Serving, tmp_path: Path
) -> None:
    with Client(shared_server.address) as client:
        client.create_model("outbox-swapped", Specification([Nominal("X", "ba")], ["o", "s"]))
        outbox = client.outbox("outbox-swapped", tmp_path / "rows.buffer", specification=SPECIFICATION)
        outbox.put([["a"]])
        refused = "specification: has other attributes or classes than model"
        with pytest.raises(InvalidArgument, match=refused):
            outbox.flush(60)
        with pytest.raises(InvalidArgument, match=refused):
            outbox.close()
        assert client.get_model("outbox-swapped").instance_count == 0


def test_rows_for_a_given_specification_keep_to_the_model_that_was_met_first(
    shared_server: Serving, tmp_path: Path
) -> None:
    with Client(shared_server.address) as client:
        client.create_model("outbox-again", SPECIFICATION)
        outbox = client.outbox("outbox-again", tmp_path / "rows.buffer", specification=SPECIFICATION)
        outbox.put([["a"]])
        outbox.flush(60)
        client.delete_model("outbox-again")
        client.create_model("outbox-again", SPECIFICATION)
        outbox.put([["b"]])
        with pytest.raises(FailedPrecondition, match="was deleted, and another has its name"):
            outbox.flush(60)
        with pytest.raises(FailedPrecondition):
            outbox.close()
        assert client.get_model("outbox-again").instance_count == 0
