"""Slow estimates about models, computed one at a time, and shared by all callers who need the same state of the log.

A separate thread computes them, so that the threads that read the store stay free for short calls.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")
MAX_KEPT: Final = 8
"""Most models whose newest estimate is kept."""
MAX_POLICIES: Final = 10_000
"""Most models for which the server remembers whether their policy needs estimates."""


class Estimates(Generic[T]):
    """The newest estimate of each model. Create and use it in one event loop."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="quercus-estimate")
        self._turn = asyncio.Lock()
        self._known: dict[
            int, tuple[int, T]
        ] = {}  # by key of the model: newest event of the estimate, estimate
        self._queued: dict[
            int, asyncio.Future[T]
        ] = {}  # not begun yet, so they will include all present events
        self.wanted: dict[int, bool] = {}
        """By key of the model: whether its policy needs estimates, as last noted."""

    async def get_estimate(self, key: int, newest: int, estimate: Callable[[], tuple[int, T]]) -> T:
        """Return an estimate that includes an event; compute one if there is none.

        Parameters
        ----------
        key : key of the model.
        newest : number of the newest event that the estimate depends on.
        estimate : computes the estimate from the present log, in a thread; returns its newest event, and the estimate.
        """
        known = self._known.pop(key, None)
        if known is not None:
            self._known[key] = known  # as the last to be dropped
            if known[0] >= newest:
                return known[1]
        queued = self._queued.get(key)
        if queued is None:
            queued = self._queued[key] = asyncio.ensure_future(self._make_estimate(key, estimate))
            queued.add_done_callback(lambda each: each.cancelled() or each.exception())
        return await asyncio.shield(queued)

    def note_wanted(self, key: int, is_wanted: bool) -> None:
        """Remember whether the policy of a model needs estimates."""
        self.wanted[key] = is_wanted
        if len(self.wanted) > MAX_POLICIES:
            del self.wanted[next(iter(self.wanted))]

    async def run_unshared(self, function: Callable[[], R]) -> R:
        """Compute an estimate that is not shared with other callers."""
        async with self._turn:
            return await asyncio.get_running_loop().run_in_executor(self._pool, function)

    def close(self) -> None:
        """Wait for the estimate under way."""
        self._pool.shutdown()

    async def _make_estimate(self, key: int, estimate: Callable[[], tuple[int, T]]) -> T:
        async with self._turn:
            del self._queued[key]  # later callers may know of events that this estimate misses
            made = await asyncio.get_running_loop().run_in_executor(self._pool, estimate)
        self._known[key] = made
        if len(self._known) > MAX_KEPT:
            del self._known[next(iter(self._known))]
        return made[1]
