"""The pushes that are written together, in their order."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.server.core import writer as writer_module
from quercus.server.core.writer import Writer
from quercus.storage import GroupCall, LeaseRequest
from quercus.storage.log.append import Outcome
from quercus.storage.records import AppendedBatch, Push
from quercus.storage.store import Store

DISK_S = 0.02
DEADLINE_S = 30.0
Future = asyncio.Future[AppendedBatch]


class SlowDisk(Store):
    """A store whose commits take a while."""

    def append_group(self, pushes: Sequence[Push]) -> list[Outcome]:
        time.sleep(DISK_S)
        return super().append_group(pushes)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with SlowDisk.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        opened.create_model("m", b"", budget=0)
        yield opened


@asynccontextmanager
async def writing(store: Store) -> AsyncIterator[Writer]:
    writer = Writer(store)
    writer.start()
    try:
        yield writer
    finally:
        await writer.close()


async def push(writer: Writer, name: str) -> Future:
    return await writer.queue_push(Push("m", [name], np.zeros((1, 2)), [b"\x00\x01"]))


async def together(writer: Writer, count: int = 3) -> None:
    """Have some pushes share a commit: they wait for another write."""
    begun, hold = threading.Event(), threading.Event()

    def wait_for_pushes() -> None:
        begun.set()
        assert hold.wait(DEADLINE_S)

    held = writer.queue_write(wait_for_pushes)
    assert await asyncio.to_thread(begun.wait, DEADLINE_S)
    pushes = [await push(writer, f"before-{i}") for i in range(count)]
    hold.set()
    await asyncio.gather(held, *pushes)


class SetClock(asyncio.SelectorEventLoop):
    """An event loop whose clock can be stopped and set, so that a slow machine changes nothing."""

    def __init__(self) -> None:
        self.stopped_at: float | None = None
        self._ahead_s = 0.0
        super().__init__()

    def time(self) -> float:
        return super().time() + self._ahead_s if self.stopped_at is None else self.stopped_at

    def stop_clock(self) -> None:
        self.stopped_at = self.time()

    def start_clock(self) -> None:
        """Let the clock go on from where it stands."""
        assert self.stopped_at is not None
        self._ahead_s, self.stopped_at = self.stopped_at - super().time(), None

    async def pass_time(self, seconds: float) -> None:
        """Set the clock forward, as while the event loop answers other calls; then let the timers run that are due."""
        assert self.stopped_at is not None
        self.stopped_at += seconds
        for _ in range(2):  # in the first turn the caller comes before the timers
            await asyncio.sleep(0.0)


def commits_after(
    store: Store, count: int, after: Callable[[Writer, SetClock], Awaitable[Sequence[Future]]]
) -> int:
    """Return how many commits the pushes of `after` take when `count` pushes have shared a commit before."""

    async def run() -> int:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SetClock)
        async with writing(store) as writer:
            await together(writer, count)
            before = writer.commits
            loop.stop_clock()
            pushes = await after(writer, loop)
            loop.start_clock()
            await asyncio.gather(*pushes)
            return writer.commits - before

    with asyncio.Runner(loop_factory=SetClock) as runner:
        return runner.run(run())


def test_pushers_that_shared_a_commit_are_waited_for(store: Store) -> None:
    async def after(writer: Writer, _: SetClock) -> list[Future]:
        one = await push(writer, "c")
        await asyncio.to_thread(time.sleep, DISK_S)  # a writer that does not wait writes it now
        return [one, await push(writer, "d")]

    assert commits_after(store, 2, after) == 1


def test_a_busy_machine_is_given_time_to_take_up_all_calls(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer_module, "GATHER_S", 1.0)
    count, busy_s = 5, 0.4 * DISK_S

    async def after(writer: Writer, clock: SetClock) -> list[Future]:
        pushes = []
        for i in range(count):
            pushes.append(await push(writer, f"after-{i}"))
            await clock.pass_time(busy_s)
        return pushes

    assert commits_after(store, count, after) == 1


def test_one_that_came_late_does_not_divide_the_next_round(store: Store) -> None:
    async def after(writer: Writer, clock: SetClock) -> list[Future]:
        alone = await push(writer, "late")
        clock.start_clock()
        await asyncio.wait_for(alone, DEADLINE_S)
        clock.stop_clock()
        one = await push(writer, "after")
        await asyncio.to_thread(time.sleep, DISK_S)  # a writer that expects one writes it now
        return [alone, one, *[await push(writer, f"after-{i}") for i in range(3)]]

    assert commits_after(store, 5, after) == 2


def test_a_single_pusher_soon_waits_no_more(store: Store) -> None:
    async def after(writer: Writer, clock: SetClock) -> list[Future]:
        for i in range(5):  # 3 * STILL_EXPECTED ** 5 < 1
            alone = await push(writer, f"alone-{i}")
            clock.start_clock()
            await asyncio.wait_for(alone, DEADLINE_S)
            clock.stop_clock()
        one = await push(writer, "after")
        await asyncio.to_thread(
            time.sleep, DISK_S
        )  # a writer that still waits shares its commit with the next
        return [one, await push(writer, "next")]

    assert commits_after(store, 3, after) == 7


def test_a_loop_that_comes_late_looks_again_who_came(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "GATHER_S", 2 * DEADLINE_S)

    async def after(writer: Writer, clock: SetClock) -> list[Future]:
        one = await push(writer, "c")
        await clock.pass_time(DEADLINE_S)  # no commit takes so long
        return [one, await push(writer, "d"), await push(writer, "e")]

    assert commits_after(store, 3, after) == 1


def test_a_push_that_nobody_waits_for_gives_its_room_back(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with writing(store) as writer:
            monkeypatch.setattr(writer_module, "PENDING_BYTES", 1)
            (await push(writer, "a")).cancel()
            await asyncio.wait_for(await asyncio.wait_for(push(writer, "b"), 10), 10)

    asyncio.run(run())


def test_waiting_displays_take_room(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are the largest part of a row; without them the bound let a hundred times as much memory wait."""

    async def run() -> None:
        async with writing(store) as writer:
            monkeypatch.setattr(writer_module, "PENDING_BYTES", 60_000)
            shown = Push("m", ["a"], np.zeros((1, 2)), [b"\x00\x01"], displays=[bytes(65_536)])
            written = await writer.queue_push(shown)
            following = asyncio.ensure_future(push(writer, "b"))
            await asyncio.sleep(0.0)
            assert not following.done()  # it waits for room
            await asyncio.wait_for(written, 10)
            await asyncio.wait_for(await following, 10)

    asyncio.run(run())


def test_pushers_that_do_not_come_back_are_not_waited_for_long(store: Store) -> None:
    async def run() -> int:
        async with writing(store) as writer:
            await together(writer)
            before = writer.commits
            await asyncio.wait_for(await push(writer, "c"), 10)
            await asyncio.wait_for(await push(writer, "d"), 10)
            return writer.commits - before

    assert asyncio.run(run()) == 2


def test_other_writes_come_after_the_pushes_before_them(store: Store) -> None:
    async def run() -> int:
        async with writing(store) as writer:
            await together(writer)
            waiting = await push(writer, "c")
            seen = await writer.queue_write(lambda: store.get_model("m").instance_count)
            assert waiting.done()
            return seen

    assert asyncio.run(run()) == 4


def lease_of(model: str, labeller: str) -> LeaseRequest:
    return LeaseRequest(model, labeller, 1, 60.0)


def test_labellers_do_not_wait_behind_all_pushes(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer_module, "GROUP_ROWS", 2)
    done: list[str] = []
    hold = threading.Event()

    async def run() -> None:
        async with writing(store) as writer:
            held = writer.queue_write(partial(hold.wait, 10))
            waiting = [await push(writer, "before")]
            waiting += writer.queue_grouped([lease_of("m", "ann")])
            waiting += [await push(writer, f"after-{k}") for k in range(6)]
            for future, name in zip(waiting, ("before", "ann", *("after",) * 6), strict=True):
                future.add_done_callback(lambda _, name=name: done.append(name))
            hold.set()
            await asyncio.gather(held, *waiting)

    asyncio.run(run())
    assert done.index("ann") < done.index("after") + 2  # one commit of those behind it, at the most
    assert done[-1] == "after"


def test_a_model_that_takes_long_holds_up_no_other(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.create_model("other", b"", budget=0)
    hold, go_on = threading.Event(), threading.Event()
    run_group = store.run_group

    def slow_for_other(calls: Sequence[GroupCall]) -> list[Any]:
        if any(call.model == "other" for call in calls):
            assert go_on.wait(10)
        return run_group(calls)

    async def run() -> None:
        monkeypatch.setattr(store, "run_group", slow_for_other)
        async with writing(store) as writer:
            held = writer.queue_write(partial(hold.wait, 10))
            quick, slow = writer.queue_grouped([lease_of("m", "ann"), lease_of("other", "ann")])
            hold.set()
            await asyncio.wait_for(quick, 10)
            assert not slow.done()
            go_on.set()
            await asyncio.gather(held, slow)

    asyncio.run(run())


@pytest.mark.parametrize("failing", ["check_room", "remove_deleted"])
def test_an_error_that_nobody_foresaw_does_not_end_the_thread(
    store: Store, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    fails = [True]

    def fail(*_: object) -> None:
        if fails:
            raise OSError(24, "Too many open files")

    async def until_trouble(writer: Writer, *, there: bool) -> None:
        while bool(writer.trouble) is not there:
            await asyncio.sleep(0.001)

    async def run() -> str:
        monkeypatch.setattr(writer_module, "STORE_POLL_S", 0.01)
        monkeypatch.setattr(store, failing, fail)
        async with writing(store) as writer:
            await asyncio.wait_for(until_trouble(writer, there=True), 10)
            said = writer.trouble
            await asyncio.wait_for(await push(writer, "a"), 10)
            fails.clear()
            await asyncio.wait_for(until_trouble(writer, there=False), 10)
            return said

    assert "Too many open files" in asyncio.run(run())
    assert store.get_model("m").instance_count == 1


def test_a_group_that_fails_beyond_its_commit_is_answered(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with writing(store) as writer:
            with monkeypatch.context() as broken:
                broken.setattr(store, "append_group", lambda _: [])  # not an outcome for each push
                with pytest.raises(ValueError, match="zip"):
                    await asyncio.wait_for(await push(writer, "a"), 10)
            await asyncio.wait_for(await push(writer, "b"), 10)

    asyncio.run(run())
    assert store.get_model("m").instance_count == 1
