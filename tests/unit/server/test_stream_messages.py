"""The messages of a stream, until it ends or the server stops."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import pytest

from quercus.server.config import Config
from quercus.server.core.service_core import ServiceCore
from quercus.server.wire.errors import Unavailable
from quercus.storage import Store

WAIT_S = 20


async def numbers(count: int, then: asyncio.Event | None = None) -> AsyncIterator[int]:
    for number in range(count):
        yield number
    if then is not None:
        await then.wait()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.open(f"sqlite:///{tmp_path / 'q.db'}")


def run(store: Store, check: object) -> None:
    async def main() -> None:
        core = ServiceCore(store, Config())
        core.start()
        try:
            await asyncio.wait_for(check(core), WAIT_S)  # type: ignore[operator]
        finally:
            await core.close()

    asyncio.run(main())


def test_all_messages_come_until_the_stream_ends(store: Store) -> None:
    async def check(core: ServiceCore) -> None:
        assert [number async for number in core.requests_until_stop(numbers(3))] == [0, 1, 2]

    run(store, check)


def test_who_waits_for_a_message_learns_that_the_server_stops(store: Store) -> None:
    async def check(core: ServiceCore) -> None:
        read: asyncio.Queue[int] = asyncio.Queue()

        async def reader() -> None:
            async for number in core.requests_until_stop(numbers(2, then=asyncio.Event())):
                await read.put(number)

        reading = asyncio.create_task(reader())
        assert [await read.get(), await read.get()] == [0, 1]
        core.begin_stop()
        with pytest.raises(Unavailable, match="stopping"):
            await reading

    run(store, check)


def test_what_is_done_with_a_message_is_finished(store: Store) -> None:
    """The stop interrupts the wait for a message, and nothing else that the reader waits for."""

    async def check(core: ServiceCore) -> None:
        begun, finish, done = asyncio.Event(), asyncio.Event(), []

        async def reader() -> None:
            async with aclosing(core.requests_until_stop(numbers(2))) as messages:
                async for number in messages:
                    begun.set()
                    await finish.wait()
                    done.append(number)

        reading = asyncio.create_task(reader())
        await begun.wait()
        core.begin_stop()
        await asyncio.sleep(0)  # a turn in which it could have been interrupted
        finish.set()
        with pytest.raises(Unavailable, match="stopping"):
            await reading
        assert done == [0]

    run(store, check)


def test_a_timeout_raised_by_the_stream_itself_is_passed_on(store: Store) -> None:
    async def late() -> AsyncIterator[int]:
        yield 0
        raise TimeoutError("of the stream")

    async def check(core: ServiceCore) -> None:
        with pytest.raises(TimeoutError, match="of the stream"):
            assert [number async for number in core.requests_until_stop(late())] == []

    run(store, check)


def test_a_reader_that_is_cancelled_is_cancelled(store: Store) -> None:
    async def check(core: ServiceCore) -> None:
        begun = asyncio.Event()

        async def reader() -> None:
            async for _ in core.requests_until_stop(numbers(1, then=asyncio.Event())):
                begun.set()

        reading = asyncio.create_task(reader())
        await begun.wait()
        await asyncio.sleep(0)  # it waits for the next message
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert not core._awaited

    run(store, check)
