"""The change signal wakes who waits, and only then."""

import asyncio
import threading
import time

import pytest
from support.said import said

from quercus.server.core import changes as changes_module
from quercus.server.core.changes import ChangeSignal
from quercus.storage.changes import Change


class Commits:
    """A store's changes, made by the test."""

    def __init__(self) -> None:
        self.made = [Change(1, 1, "m", 0)]
        self.tokens = self.looks = 0

    def commit(self, *names: str) -> None:
        number = self.made[-1].number + 1
        self.made += [Change(number, ord(name), name, 0) for name in names]

    def change_token(self) -> int:
        self.tokens += 1
        return len(self.made)

    def changes(self, seen: int) -> list[Change]:
        self.looks += 1
        return [change for change in self.made if change.number > seen]


async def started(commits: Commits) -> ChangeSignal:
    changes = ChangeSignal(commits, 0.001)
    before = changes.change_stamp("m")
    changes.start()
    assert await changes.wait_for_change("m", before, 20)  # at the first look everything has changed
    return changes


def test_wakes_all_who_wait_for_a_model_and_nobody_else() -> None:
    async def run() -> None:
        commits = Commits()
        changes = await started(commits)
        waits = [
            asyncio.create_task(changes.wait_for_change(name, changes.change_stamp(name), 20))
            for name in "mmmno"
        ]
        await asyncio.sleep(0)
        commits.commit("m", "o")
        *mine, other, third = waits
        assert await asyncio.gather(*mine, third) == [True] * 4
        assert not other.done()
        await changes.close()
        assert await other  # at the end everyone is told

    asyncio.run(run())


def test_looks_that_take_long_leave_most_of_the_time_to_others() -> None:
    took_s, count = 0.004, 4

    class Slow(Commits):
        def __init__(self) -> None:
            super().__init__()
            self.begun: list[float] = []

        def change_token(self) -> int:
            self.begun.append(time.monotonic())
            time.sleep(took_s)  # so long it waits for the interpreter's lock on a busy machine
            if len(self.begun) == count:
                self.commit("m")
            return super().change_token()

    async def run() -> float:
        commits = Slow()
        changes = await started(commits)
        assert await changes.wait_for_change("m", changes.change_stamp("m"), 20)
        await changes.close()
        return commits.begun[count - 1] - commits.begun[0]

    assert asyncio.run(run()) >= (count - 1) * took_s / changes_module.READ_SHARE


def test_change_before_the_wait_is_not_missed() -> None:
    async def run() -> None:
        commits = Commits()
        changes = await started(commits)
        seen = changes.change_stamp("m")
        commits.commit("m")
        assert await changes.wait_for_change("m", seen, 20)
        assert await changes.wait_for_change("m", seen, 20)
        await changes.close()

    asyncio.run(run())


def test_nothing_is_read_while_nothing_is_committed() -> None:
    async def run() -> None:
        commits = Commits()
        changes = await started(commits)
        looked, enough = commits.looks, commits.tokens + 5
        while commits.tokens < enough:
            await asyncio.sleep(0.001)
        assert commits.looks == looked
        await changes.close()

    asyncio.run(run())


def test_a_signal_that_rests_looks_when_something_happens_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "QUIET_S", 0.0)
    monkeypatch.setattr(changes_module, "REST_POLL_S", 60.0)
    count = 20

    async def run() -> int:
        commits = Commits()
        changes = await started(commits)  # the wait wakes it
        told: asyncio.Queue[str] = asyncio.Queue()
        changes.add_listener(lambda found: [told.put_nowait(change.name) for change in found])
        for _ in range(count):
            commits.commit("m")
            await asyncio.sleep(0.005)
            changes.look_soon()
            assert await asyncio.wait_for(told.get(), 20) == "m"
        await changes.close()
        return commits.tokens

    assert asyncio.run(run()) <= count + 2


def test_what_is_remembered_of_models_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "MAX_REMEMBERED_CHANGES", 3)

    async def run() -> None:
        changes = ChangeSignal(Commits(), 1.0)  # not started: told by hand
        wait = asyncio.create_task(changes.wait_for_change("x", changes.change_stamp("x"), 20))
        await asyncio.sleep(0)
        changes.notify_waiting([Change(1, 1, name, 0) for name in "abc"])
        assert not wait.done()
        changes.notify_waiting([Change(2, 2, "d", 0)])
        assert await wait  # once too often is no harm

    asyncio.run(run())


def test_time_is_up() -> None:
    async def run() -> None:
        changes = await started(Commits())
        assert not await changes.wait_for_change("m", changes.change_stamp("m"), 0.05)
        await changes.close()

    asyncio.run(run())


def test_trouble_is_reported_once_and_cleared(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes_module, "RETRY_S", 0.001)
    commits, broken = Commits(), threading.Event()
    broken.set()

    def fail() -> int:
        commits.tokens += 1
        if commits.tokens == 20:
            broken.clear()
        if broken.is_set():
            raise OSError("the disk is gone")
        return len(commits.made)

    commits.change_token = fail  # type: ignore[method-assign]

    async def run() -> list[str]:
        changes = ChangeSignal(commits, 0.001)
        seen = changes.change_stamp("")
        changes.start()
        said = []
        for _ in range(2):
            assert await changes.wait_for_change("", seen, 20)  # of no model: trouble is told to all
            said.append(changes.trouble)
            seen = changes.change_stamp("")
        await changes.close()
        return said

    assert asyncio.run(run()) == ["the disk is gone", ""]
    assert said(caplog, changes_module.__name__) == [
        "the store cannot be read: the disk is gone",
        "the store can be read again",
    ]
    assert all(record.exc_info is None for record in caplog.records)


def test_failing_look_is_survived_and_misses_nothing() -> None:
    async def run() -> None:
        commits = Commits()
        changes = await started(commits)
        look, fail = commits.changes, [True]

        def unlucky(seen: int) -> list[Change]:
            if fail.pop() if fail else False:
                raise OSError("disk")
            return look(seen)

        commits.changes = unlucky  # type: ignore[method-assign]
        told: list[str] = []
        changes.add_listener(lambda changes: told.extend(change.name for change in changes))
        commits.commit("n")
        while not told:
            await changes.wait_for_change("n", changes.change_stamp("n"), 1.0)
        assert told == ["n"]
        await changes.close()

    asyncio.run(run())


def test_close_wakes_everyone() -> None:
    async def run() -> None:
        changes = await started(Commits())
        wait = asyncio.create_task(changes.wait_for_change("m", changes.change_stamp("m"), 20))
        await asyncio.sleep(0)
        await changes.close()
        assert await wait

    asyncio.run(run())
