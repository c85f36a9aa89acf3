"""The status of a model, read once for all streams that wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from quercus.server.core.changes import ChangeSignal
from quercus.server.wire.limits import MAX_CACHED_MODELS
from quercus.storage import ModelRecord, Store

STATUS_POLL_S: Final = 5.0
"""Longest time, in seconds, between two reads of the store by a waiting stream, even without a change signal."""


@dataclass(frozen=True)
class ModelStatus:
    """A model, and the time until which it cannot change without a commit.

    Attributes
    ----------
    record : the model.
    until : monotonic time in seconds when a lease ends, a postponed query comes back, or the model must be read again
        anyway.
    """

    record: ModelRecord
    until: float

    @property
    def patience_s(self) -> float:
        """Seconds to wait for a change before looking again."""
        return min(max(self.until - time.monotonic(), 0.0) + 0.001, STATUS_POLL_S)


@dataclass(frozen=True, eq=False)
class _CachedStatus:
    seen: int  # change stamp of the model before the read began
    task: asyncio.Future[ModelStatus]

    def is_usable(self, seen: int) -> bool:
        if self.seen != seen:
            return False
        if not self.task.done():
            return True
        fine = not self.task.cancelled() and self.task.exception() is None
        return fine and 0.0 < self.task.result().until - time.monotonic() <= STATUS_POLL_S


class ModelStatusCache:
    """The status of each model that a call waits for, as of the last noticed change."""

    def __init__(self, store: Store, read: Callable[..., Awaitable[Any]], changes: ChangeSignal) -> None:
        self._store = store
        self._read = read
        self._changes = changes
        self._readings: dict[str, _CachedStatus] = {}

    async def get_status(self, model: str, *, fresh: bool = False) -> ModelStatus:
        """Return the status of a model as of the last noticed change.

        Parameters
        ----------
        model : id of the model.
        fresh : read it now, for a caller that begins to wait and must see its own earlier writes.

        Raises
        ------
        NotFound
            If there is no such model.
        """
        reading = self._readings.pop(model, None)
        if fresh or reading is None or not reading.is_usable(self._changes.change_stamp(model)):
            reading = _CachedStatus(
                self._changes.change_stamp(model),
                asyncio.ensure_future(self._read(_read_status, self._store, model)),
            )
            reading.task.add_done_callback(lambda task: task.cancelled() or task.exception())
        self._readings[model] = reading
        if len(self._readings) > MAX_CACHED_MODELS:
            del self._readings[next(iter(self._readings))]
        return await asyncio.shield(reading.task)


def _read_status(store: Store, model: str) -> ModelStatus:
    now = time.monotonic()
    left_s = store.next_change_s(model)
    return ModelStatus(
        store.get_model(model), now + min(STATUS_POLL_S if left_s is None else left_s, STATUS_POLL_S)
    )
