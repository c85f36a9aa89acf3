"""A thousand streams that wait on one model read it once a change."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.server.core.changes import ChangeSignal
from quercus.server.core.model_status import ModelStatusCache
from quercus.storage.changes import Change
from quercus.storage.errors import NotFound
from quercus.storage.records import AgendaEntry
from quercus.storage.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Store.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        opened.create_model("m", b"", budget=5)
        yield opened


class Reads:
    def __init__(self) -> None:
        self.count = 0

    async def __call__(self, function: Callable[..., Any], *args: Any) -> Any:
        self.count += 1
        return await asyncio.to_thread(function, *args)


def test_one_read_for_all(store: Store) -> None:
    async def run() -> None:
        reads = Reads()
        changes = ChangeSignal(store, 1.0)  # not started: it changes when it is told
        model_statuses = ModelStatusCache(store, reads, changes)
        many = await asyncio.gather(*(model_statuses.get_status("m") for _ in range(1000)))
        assert ({each.record.instance_count for each in many}, reads.count) == ({0}, 1)
        await model_statuses.get_status("m")
        assert reads.count == 1
        changes.notify_waiting([Change(9, 9, "other", 0)])
        await model_statuses.get_status("m")
        assert reads.count == 1
        changes.notify_waiting([Change(10, 1, "m", 0)])
        await asyncio.gather(*(model_statuses.get_status("m") for _ in range(1000)))
        assert reads.count == 2
        await model_statuses.get_status("m", fresh=True)
        assert reads.count == 3
        for _ in range(2):  # a failure is not kept
            with pytest.raises(NotFound):
                await model_statuses.get_status("no")
        assert reads.count == 5

    asyncio.run(run())


def test_a_lease_that_ends_is_seen_without_a_commit(store: Store) -> None:
    store.append_instances("m", ["a"], np.zeros((1, 1)), [b"?"])
    store.publish("m", as_of=1, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])
    store.lease("m", "ann", 1, 1.0)

    async def run() -> None:
        model_statuses = ModelStatusCache(store, Reads(), ChangeSignal(store, 1.0))
        before = await model_statuses.get_status("m")
        assert before.record.queries_leased == 1
        assert before.patience_s <= 1.01
        while time.monotonic() <= before.until:
            await asyncio.sleep(before.patience_s)
        assert (await model_statuses.get_status("m")).record.queries_leased == 0

    asyncio.run(run())
