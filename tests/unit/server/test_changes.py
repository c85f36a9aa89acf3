"""The change signal wakes who waits, and only then."""

import asyncio
import threading
from itertools import count

import pytest

from quercus.server import changes as changes_module
from quercus.server.changes import Changes


class Token:
    """A store's change token, set by the test."""

    def __init__(self) -> None:
        self.value = 0
        self.reads = count()

    def read(self) -> int:
        next(self.reads)
        return self.value


async def started(token: Token) -> Changes:
    changes = Changes(token.read, 0.001)
    changes.start()
    assert await changes.wait(0, 20)  # the first look counts as a change
    return changes


def test_wakes_all_who_wait() -> None:
    async def run() -> None:
        token = Token()
        changes = await started(token)
        seen = changes.count
        waits = [asyncio.create_task(changes.wait(seen, 20)) for _ in range(3)]
        token.value = 1
        assert await asyncio.gather(*waits) == [True] * 3
        assert changes.count == seen + 1
        await changes.close()

    asyncio.run(run())


def test_change_before_the_wait_is_not_missed() -> None:
    async def run() -> None:
        token = Token()
        changes = await started(token)
        seen = changes.count
        token.value = 1
        assert await changes.wait(seen, 20)
        assert await changes.wait(seen, 20)
        await changes.close()

    asyncio.run(run())


def test_time_is_up() -> None:
    async def run() -> None:
        changes = await started(Token())
        assert not await changes.wait(changes.count, 0.05)
        await changes.close()

    asyncio.run(run())


def test_trouble_is_told_once_and_taken_back(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "RETRY_S", 0.001)
    looks, broken = [0], threading.Event()
    broken.set()

    def read() -> int:
        looks[0] += 1
        if broken.is_set():
            if looks[0] == 20:
                broken.clear()
            raise OSError("the disk is gone")
        return 1

    async def run() -> list[str]:
        changes = Changes(read, 0.001)
        changes.start()
        said = []
        for _ in range(2):
            assert await changes.wait(len(said), 20)
            said.append(changes.trouble)
        await changes.close()
        return said

    assert asyncio.run(run()) == ["the disk is gone", ""]
    assert [record.getMessage() for record in caplog.records] == [
        "the store cannot be read: the disk is gone",
        "the store can be read again",
    ]
    assert all(record.exc_info is None for record in caplog.records)


def test_failing_look_is_survived(caplog: object) -> None:
    async def run() -> None:
        token = Token()
        fail = [True]

        def read() -> int:
            if fail.pop() if fail else False:
                raise OSError("disk")
            return token.read()

        changes = Changes(read, 0.001)
        changes.start()
        assert await changes.wait(0, 20)
        await changes.close()

    asyncio.run(run())


def test_close_wakes_everyone() -> None:
    async def run() -> None:
        changes = await started(Token())
        wait = asyncio.create_task(changes.wait(changes.count, 20))
        await asyncio.sleep(0)
        await changes.close()
        assert await wait

    asyncio.run(run())
