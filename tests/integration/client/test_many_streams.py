"""More calls of one client than a connection has room for, and calls that the server's gRPC rejects."""

import asyncio
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from integration.server.conftest import Live
from support import flood
from support.waiting import until

from quercus.client import Client, Nominal, Specification, Unavailable
from quercus.client.aio import Client as AioClient
from quercus.client.transport import LONG_CALLS_OF_CONNECTION, SpreadChannel
from quercus.server import app
from quercus.server.config import Config
from quercus.server.gate.grpc_limits import MAX_CALLS_OF_CONNECTION, grpc_options

SPECIFICATION = Specification([Nominal("X", "ab")], ["o", "s"], budget=9)
STREAMS = 2 * MAX_CALLS_OF_CONNECTION + 10
WAITING = 5
CALLS = 60


@pytest.fixture
def live(tmp_path: Path) -> Any:
    started = Live(Config(store=str(tmp_path / "store.db"), port=0, grower=False))
    yield started
    started.close()


@pytest.fixture
def crowded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A server whose gRPC rejects calls when five are waiting to be taken up."""
    few = dict.fromkeys(
        ("grpc.server.max_pending_requests", "grpc.server.max_pending_requests_hard_limit"), WAITING
    )
    monkeypatch.setattr(
        app,
        "grpc_options",
        lambda *bounds, **named: list((dict(grpc_options(*bounds, **named)) | few).items()),
    )
    started = Live(Config(store=str(tmp_path / "store.db"), port=0, grower=False))
    yield started
    started.close()


def test_streams_beyond_what_a_connection_has_room_for_leave_room_for_calls(live: Live) -> None:
    assert LONG_CALLS_OF_CONNECTION < MAX_CALLS_OF_CONNECTION

    async def ask() -> None:
        async with AioClient(live.server.address, timeout_s=flood.CALL_S) as client:
            await client.create_model("m", SPECIFICATION)
            watches = [asyncio.create_task(anext(client.watch("m"))) for _ in range(STREAMS)]
            leases = [asyncio.create_task(client.lease("m", labeller="ann", wait_s=60)) for _ in range(20)]
            under_way = live.server._metrics.under_way
            await asyncio.to_thread(until, lambda: under_way.total >= STREAMS + len(leases))
            assert (await client.get_model("m")).name == "m"
            for each in (*watches, *leases):
                each.cancel()
            await asyncio.gather(*watches, *leases, return_exceptions=True)

    asyncio.run(ask())


def test_threads_that_watch_leave_room_for_calls(live: Live) -> None:
    with Client(live.server.address, timeout_s=flood.CALL_S, outage_s=0) as client:
        client.create_model("m", SPECIFICATION)

        def lease() -> None:
            with suppress(Unavailable):  # at last the server stops
                client.lease("m", labeller="ann", wait_s=60)

        threads = [threading.Thread(target=lease) for _ in range(MAX_CALLS_OF_CONNECTION + 20)]
        for thread in threads:
            thread.start()
        under_way = live.server._metrics.under_way
        until(lambda: under_way.total >= len(threads))
        assert client.get_model("m").name == "m"
        live.stop()
        for thread in threads:
            thread.join()


def test_a_connection_whose_calls_have_ended_is_used_again(live: Live) -> None:
    opened: list[Any] = []

    def open_channel() -> grpc.Channel:
        opened.append(grpc.insecure_channel(live.server.address, [("grpc.use_local_subchannel_pool", 1)]))
        return opened[-1]

    live.api.create("m")
    spread = SpreadChannel(open_channel)
    watch = spread.unary_stream("/quercus.v1.TreeService/WatchTree")
    request = b"\n\x08models/m"
    for _ in range(3):
        calls = [watch(request) for _ in range(LONG_CALLS_OF_CONNECTION + 1)]
        assert len(opened) == 2
        for call in calls:
            call.cancel()
        until(lambda: spread.long_calls == 0)
    spread.close()


def test_a_call_that_the_server_rejects_is_repeated(crowded: Live) -> None:
    async def ask(client: AioClient) -> None:
        found = await asyncio.gather(*(client.get_model("m") for _ in range(CALLS)))
        assert {each.name for each in found} == {"m"}

    async def reject() -> None:
        async with AioClient(crowded.server.address) as client:
            await client.create_model("m", SPECIFICATION)
            await ask(client)
        async with AioClient(crowded.server.address, outage_s=0) as client:
            results = [client.get_model("m") for _ in range(CALLS)]
            failed = [each for each in await asyncio.gather(*results, return_exceptions=True) if each]
        assert "has too many waiting calls: call again later" in {
            str(each).partition(" ")[2] for each in failed if isinstance(each, Unavailable)
        }

    asyncio.run(reject())
