"""A server that is far away, or on a busy machine, takes a while until a connection stands."""

import asyncio
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest
from integration.client.serving import Serving

from quercus.client import Client

SLOW_S = 1.0  # until the first byte of the server passes


@pytest.fixture
def far_away(shared_server: Serving) -> Iterator[str]:
    """Address of the shared server behind a slow line."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, after_s: float) -> None:
        with suppress(ConnectionError):
            await asyncio.sleep(after_s)
            while data := await reader.read(1 << 16):
                writer.write(data)
                await writer.drain()
        with suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

    async def connect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        host, _, port = shared_server.address.rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        await asyncio.gather(copy(reader, back, 0.0), copy(there, writer, SLOW_S))

    async def end() -> None:
        line.close()
        if lines := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(lines, timeout=10.0)  # both sides have hung up

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    line = asyncio.run_coroutine_threadsafe(asyncio.start_server(connect, "127.0.0.1", 0), loop).result(10.0)
    yield f"127.0.0.1:{line.sockets[0].getsockname()[1]}"
    asyncio.run_coroutine_threadsafe(end(), loop).result(20.0)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10.0)
    loop.close()


def test_a_server_behind_a_slow_line_is_reached(far_away: str) -> None:
    with Client(far_away) as client:
        assert client.status().is_grower_healthy  # it came through the slow line
