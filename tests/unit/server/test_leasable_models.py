"""Labellers of any model are woken by what they may lease, and a commit costs them the models that it changed."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from quercus.server.core import leasable_models as openings_module
from quercus.server.core.changes import ChangeSignal
from quercus.server.core.leasable_models import LeasableModels
from quercus.storage import AgendaEntry, Policy, Store
from quercus.storage.records import ModelRecord

MODELS = 30


class Counting(Store):
    records_read = 0
    full_looks = 0

    def models_of(self, keys: Sequence[int]) -> list[ModelRecord]:
        found = super().models_of(keys)
        self.records_read += len(found)
        return found

    def models_with_queries(self) -> list[ModelRecord]:
        self.full_looks += 1
        return super().models_with_queries()


async def read(function: Callable[..., Any], *args: Any) -> Any:
    return await asyncio.to_thread(function, *args)


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with Counting.open(f"sqlite:///{tmp_path / 'store.db'}") as opened:
        for number in range(MODELS):
            opened.create_model(f"m{number}", b"", budget=2)
            opened.append_instances(f"m{number}", ["a", "b"], np.zeros((2, 1)), [b"?"] * 2)
        yield opened


def ask(store: Store, model: str) -> None:
    store.publish(model, as_of=2, snapshot=b"", agenda=[AgendaEntry(1, b"", b"")])


def names(found: Sequence[openings_module.LeasableModel]) -> list[str]:
    return sorted(each.record.name for each in found)


def tell(store: Store, changes: ChangeSignal, seen: int) -> int:
    found = store.changes(seen)
    changes.notify_waiting(found)
    return found[-1].number


def test_what_may_be_leased_is_found_and_lost(store: Counting) -> None:
    async def run() -> None:
        leasable_models = LeasableModels(store, read, ChangeSignal(store, 1.0))
        assert await leasable_models.list_leasable(fresh=True) == []
        ask(store, "m3")
        ask(store, "m5")
        assert names(await leasable_models.list_leasable(fresh=True)) == ["m3", "m5"]
        store.set_policy("m5", Policy(tags=("leaves",)))
        assert [each.policy.tags for each in await leasable_models.list_leasable(fresh=True)].count(
            ("leaves",)
        ) == 1
        store.lease("m3", "ann", 1, 60.0)
        store.delete_model("m5")
        assert names(await leasable_models.list_leasable(fresh=True)) == []
        assert store.full_looks == 1

    asyncio.run(run())


def test_a_push_wakes_nobody_and_reads_its_model_alone(store: Counting) -> None:
    async def run() -> None:
        changes = ChangeSignal(store, 1.0)  # not started: told by hand
        leasable_models = LeasableModels(store, read, changes)
        await leasable_models.list_leasable(fresh=True)
        seen, store.records_read = store.newest_change(), 0
        waits = [
            asyncio.create_task(leasable_models.wait_for_change(leasable_models.change_stamp, 20))
            for _ in range(20)
        ]
        await asyncio.sleep(0)
        for number in range(5):
            store.append_instances("m7", [f"p{number}"], np.zeros((1, 1)), [b"?"])
            seen = tell(store, changes, seen)
            while leasable_models._following is not None and not leasable_models._following.done():
                await asyncio.sleep(0.001)
        assert not any(wait.done() for wait in waits)
        assert store.records_read <= 5
        ask(store, "m9")
        tell(store, changes, seen)
        assert await asyncio.gather(*waits) == [True] * 20
        assert names(await leasable_models.list_leasable()) == ["m9"]
        assert store.full_looks == 1

    asyncio.run(run())


def test_a_lease_that_ends_is_found_by_looking_again(
    store: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        ask(store, "m1")
        store.lease("m1", "ann", 1, 1.0)
        leasable_models = LeasableModels(store, read, ChangeSignal(store, 1.0))
        assert await leasable_models.list_leasable(fresh=True) == []
        monkeypatch.setattr(openings_module, "STATUS_POLL_S", 0.0)
        for _ in range(1000):
            if found := await leasable_models.list_leasable():
                break
            await asyncio.sleep(0.01)
        assert names(found) == ["m1"]

    asyncio.run(run())
