"""Estimates are shared by who asks at the same state, made one at a time, and never older than who asks for them."""

import asyncio
import threading
from collections.abc import Callable

import pytest

from quercus.server.core.estimates import MAX_KEPT, Estimates


class Log:
    """A log whose estimate is its newest event, and takes as long as the test likes."""

    def __init__(self) -> None:
        self.newest = 0
        self.made: list[int] = []
        self.begun = threading.Semaphore(0)
        self.go = threading.Semaphore(0)

    def estimate(self) -> tuple[int, str]:
        assert threading.current_thread().name.startswith("quercus-estimate")
        newest = self.newest
        self.begun.release()
        assert self.go.acquire(timeout=30)
        self.made.append(newest)
        return newest, f"as of {newest}"


def test_who_asks_while_one_is_made_shares_the_next() -> None:
    log = Log()

    async def run() -> None:
        estimates: Estimates[str] = Estimates()
        log.newest = 1
        first = asyncio.ensure_future(estimates.get_estimate(7, 1, log.estimate))
        await asyncio.to_thread(log.begun.acquire)
        log.newest = 2
        others = [asyncio.ensure_future(estimates.get_estimate(7, 2, log.estimate)) for _ in range(5)]
        gone = asyncio.ensure_future(estimates.get_estimate(7, 2, log.estimate))
        await asyncio.sleep(0)
        gone.cancel()
        log.newest = 3  # what comes before one begins it knows
        log.go.release(2)
        assert await first == "as of 1"
        assert await asyncio.gather(*others) == ["as of 3"] * 5
        assert await estimates.get_estimate(7, 3, log.estimate) == "as of 3"
        assert await estimates.get_estimate(7, 2, log.estimate) == "as of 3"
        estimates.close()

    asyncio.run(run())
    assert log.made == [1, 3]


def test_what_fails_is_tried_again_and_the_newest_are_kept() -> None:
    made: list[int] = []

    def of(key: int) -> Callable[[], tuple[int, int]]:
        def estimate() -> tuple[int, int]:
            made.append(key)
            if made == [0]:
                raise ValueError("broken")
            return 1, key

        return estimate

    async def run() -> None:
        estimates: Estimates[int] = Estimates()
        with pytest.raises(ValueError, match="broken"):
            await estimates.get_estimate(0, 1, of(0))
        for key in (*range(MAX_KEPT), 0, MAX_KEPT, 0, 1):
            assert await estimates.get_estimate(key, 1, of(key)) == key
        assert await estimates.run_unshared(lambda: threading.current_thread().name) == "quercus-estimate_0"
        estimates.close()

    asyncio.run(run())
    assert made == [0, *range(MAX_KEPT), MAX_KEPT, 1]
