"""Models with open queries, read once for all labellers who wait for any model; only changed ones are read again."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quercus.server.core.changes import ChangeSignal
from quercus.server.core.model_status import STATUS_POLL_S
from quercus.storage import Change, ModelRecord, Policy, StorageError, Store


@dataclass(frozen=True)
class LeasableModel:
    """A model with open queries, and its labelling policy."""

    record: ModelRecord
    policy: Policy

    @property
    def change_mark(self) -> tuple[int, ...]:
        """A value that changes whenever a labeller may get something new from the model."""
        return mark_of(self.record)


def mark_of(record: ModelRecord) -> tuple[int, ...]:
    """Return a mark of everything that decides whether a query of the model can be leased.

    As long as the mark is unchanged, another attempt would fail again. The mark may be older than the attempt that it
    is remembered with, but no later state that offers more has the same mark: `times_opened` never falls, and as long
    as it stays the same, the number of open queries can only fall.
    """
    return (
        record.key,
        record.tree_version,
        record.sequence_grown,
        record.sequence_asked,
        record.times_opened,
        record.queries_open,
        record.queries_leased,
        record.queries_answered,
    )


@dataclass(frozen=True)
class _StoreState:
    seen: int  # number of the newest change that it includes
    at: float  # monotonic time when all models were last read
    open: dict[int, LeasableModel]  # by key


class LeasableModels:
    """The leasable queries of all models.

    The cost of a commit depends on the models that it changed, not on the number of models or waiting labellers.
    Queries that open again without a commit, because a lease expired, are found by reading all models with queries
    every few seconds.
    """

    def __init__(self, store: Store, read: Callable[..., Awaitable[Any]], changes: ChangeSignal) -> None:
        self._store = store
        self._read = read
        self._changes = changes
        self._look = _StoreState(0, float("-inf"), {})
        self._reading = asyncio.Lock()
        self._stamp = 0
        self._waiting: set[asyncio.Future[None]] = set()
        self._following: asyncio.Task[None] | None = None
        changes.add_listener(self._on_change)

    @property
    def change_stamp(self) -> int:
        """A value that differs after every change; take it before a read, then wait for a change."""
        return self._stamp

    async def list_leasable(self, *, fresh: bool = False) -> list[LeasableModel]:
        """Return the models that have open queries and budget left.

        Parameters
        ----------
        fresh : read all changes now, for a caller that begins to wait and must see its own earlier writes.
        """
        if fresh or time.monotonic() - self._look.at >= STATUS_POLL_S:
            await self._refresh_state()
        return list(self._look.open.values())

    async def wait_for_change(self, seen: int, timeout_s: float | None = None) -> bool:
        """Wait until the leasable queries have changed since `seen`; return False if the time runs out first."""
        if self._stamp != seen:
            return True
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(mine)
        if len(self._waiting) == 1:  # while no call waited, changes were not read
            self._on_change(())
        try:
            async with asyncio.timeout(timeout_s):
                await mine
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(mine)
        return True

    def _on_change(self, _: Sequence[Change]) -> None:
        if self._waiting and (self._following is None or self._following.done()):
            self._following = asyncio.create_task(self._follow_changes(), name="quercus-openings")

    async def _follow_changes(self) -> None:
        """Read changes until there are no more; the change signal reports trouble of the store."""
        while self._waiting:
            noticed = self._changes.change_count
            try:
                await self._refresh_state()
            except StorageError:
                self._wake_waiting()  # these calls read again, and get the error
            if noticed == self._changes.change_count:
                return

    async def _refresh_state(self) -> None:
        async with self._reading:
            before = self._look
            look: _StoreState = await self._read(_look_again, self._store, before)
            self._look = look
            if {each.change_mark for each in look.open.values()} != {
                each.change_mark for each in before.open.values()
            }:
                self._wake_waiting()

    def _wake_waiting(self) -> None:
        self._stamp += 1
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)


def _look_again(store: Store, before: _StoreState) -> _StoreState:
    now = time.monotonic()
    if now - before.at >= STATUS_POLL_S:
        seen = store.newest_change()
        return _StoreState(seen, now, _read_leasable(store, store.models_with_queries()))
    changes = store.changes(before.seen)
    if not changes:
        return before
    changed = {change.key for change in changes}
    found = {key: opening for key, opening in before.open.items() if key not in changed}
    return _StoreState(
        changes[-1].number, before.at, found | _read_leasable(store, store.models_of(sorted(changed)))
    )


def _read_leasable(store: Store, records: Sequence[ModelRecord]) -> dict[int, LeasableModel]:
    asking = {  # those with an open query and budget left
        record.key: record
        for record in records
        if record.queries_open and record.queries_answered + record.queries_leased < record.budget
    }
    policies = store.policies_of(sorted(asking)) if asking else {}
    return {key: LeasableModel(record, policies[key]) for key, record in asking.items() if key in policies}
