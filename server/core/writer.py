"""The thread that writes to the store, so that the event loop never commits, and small pushes share commits.

A commit costs more than a row. After a commit that several pushes shared, the next push is therefore held briefly, so
that the same callers share a commit again. A single pusher does not wait, except at first after others have stopped.
Leases and answers that arrive during a write
share a transaction too, without waiting.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from quercus.server.wire.limits import GROUP_ROWS, PENDING_BYTES
from quercus.server.workers.board import Tally
from quercus.storage import AppendedBatch, GroupCall, Push, StorageError, Store

_log = logging.getLogger(__name__)
T = TypeVar("T")


@dataclass(eq=False)
class _WriteJob:
    future: asyncio.Future[Any]
    run: Callable[[], Any] | None = None
    push: Push | None = None
    call: GroupCall | None = None
    size: int = 0  # of a push, in bytes


_STOP: Final = None
STORE_POLL_S: Final = 1.0
"""Seconds between two checks that the store accepts writes."""
GATHER_S: Final = 0.05
"""Longest time, in seconds, that pushes are held while others keep arriving; if none do, they wait as long as a commit
takes.

On a busy machine a round of 64 calls takes about 40 ms, so a writer that committed earlier would commit only some.
"""
GATHER_ROWS: Final = 64
"""Rows that are committed without further waiting, because they cost about as much as the commit itself."""
STILL_EXPECTED: Final = 0.8
"""Share of the expected pushes that are still expected after a commit of fewer.

Otherwise, callers that came late would commit alone from then on: of 64 callers, 19 shared a commit on average.
"""


class Writer:
    """Runs all writes, in order, in one thread, and resolves futures of the event loop.

    While the store refuses writes, for example because the disk is full, it is tried again every second.

    Parameters
    ----------
    store : the open store.
    made : counter of the changes that this worker has made; None if this is the only process.
    committed : called in the thread after writes.
    """

    def __init__(
        self, store: Store, made: Tally | None = None, committed: Callable[[], object] = lambda: None
    ) -> None:
        self._store = store
        self._committed = committed
        self._made = Tally() if made is None else made
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[Sequence[_WriteJob | None]] = queue.SimpleQueue()
        self._gathered: list[_WriteJob] = []
        self._gathered_rows = 0
        self._expected = 1.0  # pushes that may arrive together, see `STILL_EXPECTED`
        self._gap_s = 0.0  # duration of the last commit
        self._thread = threading.Thread(target=self._write_forever, name="quercus-writer", daemon=True)
        self._pending_bytes = 0
        self._room = asyncio.Event()
        self._trouble = store.write_trouble
        self._failure = ""  # an unexpected error, until a check succeeds
        self._look_at = time.monotonic() + STORE_POLL_S
        self._removing = False  # whether rows of deleted models are being removed, between other writes
        self.commits = 0  # number of commits of pushes, which may share one

    @property
    def queue_length(self) -> int:
        """Number of jobs, or groups of pushes, that the thread has not taken yet."""
        return self._queue.qsize() + len(self._gathered)

    @property
    def trouble(self) -> str:
        """The reason why the store refuses writes now; empty if it accepts them."""
        return self._trouble

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    async def queue_push(self, push: Push) -> asyncio.Future[AppendedBatch]:
        """Queue a batch, and return a future that is done once it is committed. Wait while too much is queued."""
        while self._pending_bytes > PENDING_BYTES:
            self._room.clear()
            await self._room.wait()
        size = size_bytes(push)
        self._pending_bytes += size
        future: asyncio.Future[AppendedBatch] = self._loop.create_future()
        self._gather_push(_WriteJob(future, push=push, size=size), len(push.ids))
        return future

    def queue_write(self, run: Callable[[], T]) -> asyncio.Future[T]:
        """Queue any other write; the future has the result of `run`."""
        future: asyncio.Future[T] = self._loop.create_future()
        self._hand_over(_WriteJob(future, run=run))
        return future

    def queue_grouped(self, calls: Sequence[GroupCall]) -> list[asyncio.Future[Any]]:
        """Queue leases and answers, which share transactions with others that wait; return their futures."""
        futures: list[asyncio.Future[Any]] = [self._loop.create_future() for _ in calls]
        self._hand_over(*(_WriteJob(each, call=call) for each, call in zip(futures, calls, strict=True)))
        return futures

    async def close(self) -> None:
        """Finish queued writes, then end the thread."""
        self._hand_over(_STOP)
        await asyncio.to_thread(self._thread.join)

    def _gather_push(self, job: _WriteJob, rows: int) -> None:
        self._gathered.append(job)
        self._gathered_rows += rows
        count = len(self._gathered)
        if count >= self._expected or self._gathered_rows >= GATHER_ROWS:
            self._hand_over()
        elif count == 1:
            now = self._loop.time()
            self._wait_for_more(self._gathered, now, now + GATHER_S)

    def _wait_for_more(self, gathered: list[_WriteJob], now: float, until: float) -> None:
        due = min(now + self._gap_s, until)
        self._loop.call_at(due, self._look_for_more, gathered, len(gathered), due, until)

    def _look_for_more(self, gathered: list[_WriteJob], count: int, due: float, until: float) -> None:
        """Hand over the gathered pushes, unless more than `count` have arrived by now.

        If this is called late, the event loop was busy, and may not have seen all arrivals yet.
        """
        if gathered is not self._gathered:  # already handed over
            return
        now = self._loop.time()
        is_late = now - due > self._gap_s / 2
        if now < until and (is_late or len(gathered) > count):
            self._wait_for_more(gathered, now, until)
        else:
            self._hand_over()

    def _hand_over(self, *more: _WriteJob | None) -> None:
        """Give the thread the gathered jobs, followed by more."""
        if self._gathered or more:
            self._queue.put((*self._gathered, *more))
        self._gathered, self._gathered_rows = [], 0

    def _write_forever(self) -> None:
        stopping = False
        while not stopping:
            jobs: list[_WriteJob | None] = []  # stays empty if the store must be checked first
            with suppress(queue.Empty):
                timeout_s = 0.0 if self._removing else max(0.0, self._look_at - time.monotonic())
                jobs += self._queue.get(timeout=timeout_s)
                while True:
                    jobs += self._queue.get_nowait()
            stopping = _STOP in jobs
            known = [job for job in jobs if job is not None]
            try:
                self._run_all(known)
                if known:
                    self._committed()
                looked = self._probe_store()
                if self._removing:  # some rows of deleted models, so that queued writes can run in between
                    self._removing = False  # if the store refuses it, wait for the next check
                    with suppress(StorageError):
                        self._removing = self._store.remove_deleted()
            except Exception as error:  # these calls fail, but the thread must go on for others
                said = f"an unexpected error ({type(error).__name__}: {error})"
                if said != self._failure:
                    _log.error("writing failed: %s", said, exc_info=error)
                self._failure = said
                with suppress(RuntimeError):  # the event loop has ended, with all callers
                    self._hand_back([(job, error) for job in known])
            else:
                self._failure = "" if looked else self._failure
            trouble = self._store.write_trouble or self._failure
            if trouble and not self._trouble:
                _log.error("nothing can be written, only read: %s", trouble)
            elif self._trouble and not trouble:
                _log.warning("the store takes writes again")
            self._trouble = trouble

    def _probe_store(self) -> bool:
        """If a check is due, check that the store accepts writes; return whether it was due."""
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + STORE_POLL_S
        self._removing = self._store.removes and not self._store.is_read_only
        with suppress(StorageError):  # the store keeps it in `write_trouble`
            if self._store.write_trouble:
                self._store.try_to_write()
            else:
                self._store.check_room()
        return True

    def _run_all(self, jobs: Sequence[_WriteJob]) -> None:
        """Run jobs: pushes keep their order, as do leases and answers; other jobs run after all jobs before them."""
        group: list[_WriteJob] = []
        shared: list[_WriteJob] = []
        rows = 0
        for job in jobs:
            if job.future.cancelled():  # its caller has gone, so nothing is written
                self._hand_back([(job, None)])
                continue
            if job.call is not None:
                shared.append(job)
                continue
            if job.push is not None and rows + len(job.push.ids) <= GROUP_ROWS:
                group.append(job)
                rows += len(job.push.ids)
                continue
            self._commit_pushes(group)
            group, rows = ([], 0) if job.push is None else ([job], len(job.push.ids))
            self._run_shared(shared)  # so that they need not wait for all pushes
            shared = []
            if job.run is not None:
                try:
                    outcome = job.run()
                except Exception as error:
                    outcome = error
                # before the acknowledgement, so that its receiver is not answered from an outdated cache
                self._made.add(1)
                self._hand_back([(job, outcome)])
        self._commit_pushes(group)
        self._run_shared(shared)

    def _run_shared(self, jobs: Sequence[_WriteJob]) -> None:
        """Run leases and answers model by model, because one model may be locked for long."""
        by_model: defaultdict[str, list[tuple[_WriteJob, GroupCall]]] = defaultdict(list)
        for job in jobs:
            if job.call is not None:
                by_model[job.call.model].append((job, job.call))
        for mine in by_model.values():
            outcomes: Sequence[Any]
            try:
                outcomes = self._store.run_group([call for _, call in mine])
            except Exception as error:
                outcomes = [error] * len(mine)
            self._hand_back([(job, outcome) for (job, _), outcome in zip(mine, outcomes, strict=True)])

    def _commit_pushes(self, group: Sequence[_WriteJob]) -> None:
        if not group:
            return
        started = time.monotonic()
        try:
            outcomes: Sequence[Any] = self._store.append_group(
                [job.push for job in group if job.push is not None]
            )
        except Exception as error:
            outcomes = [error] * len(group)
        self.commits += 1
        if any(job.push is not None and job.push.new_values for job in group):
            self._made.add(1)
        self._gap_s = min(time.monotonic() - started, GATHER_S)
        self._hand_back(list(zip(group, outcomes, strict=True)))

    def _hand_back(self, done: Sequence[tuple[_WriteJob, Any]]) -> None:
        self._loop.call_soon_threadsafe(self._resolve_futures, done)

    def _resolve_futures(self, done: Sequence[tuple[_WriteJob, Any]]) -> None:
        """Resolve the futures of jobs, all in one iteration of the event loop."""
        if pushes := sum(job.push is not None for job, _ in done):
            self._expected = max(pushes + len(self._gathered), STILL_EXPECTED * self._expected)
        for job, outcome in done:
            self._pending_bytes -= job.size
            job.size = 0  # subtract it only once, even if the job is handed back again after a failure
            if job.future.done():  # cancelled, or resolved before another job failed
                continue
            if isinstance(outcome, Exception):
                job.future.set_exception(outcome)
                if job.push is not None:
                    job.future.exception()  # mark it as retrieved: after the end of a stream nobody awaits it
            else:
                job.future.set_result(outcome)
        self._room.set()


class NoWriter(Writer):
    """The writer of a worker that only reads, because another worker writes."""

    def start(self) -> None:
        """Do nothing."""

    async def close(self) -> None:
        """Do nothing."""

    def _hand_over(self, *more: _WriteJob | None) -> None:
        raise RuntimeError("this worker only reads: a call that writes was not handed to the keeper")

    def _gather_push(self, job: _WriteJob, rows: int) -> None:
        self._hand_over(job)


def size_bytes(push: Push) -> int:
    """Return the approximate size of a batch in memory."""
    parts = (push.labels, push.ids, push.displays)
    return int(push.values.nbytes) + sum(len(each) for part in parts for each in part)
