"""Limits on the calls of each caller and of strangers, and refusal of calls when the server is overloaded."""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from quercus.belief.errors import InvalidInput
from quercus.server.machine import resident_bytes
from quercus.server.wire.errors import ResourceExhausted
from quercus.server.workers.board import Board, Tally

_log = logging.getLogger(__name__)
BURST_S: Final = 2.0
"""A caller that was quiet may make the calls of this many seconds at once."""

MAX_CALLERS: Final = 10_000
"""Most callers whose rate is remembered. The one that was quiet longest is forgotten first, and gets a full bucket."""

ROUNDING: Final = 0.001
"""Tolerance in calls for rounding errors, because a bucket's time is a float of a clock that may run for years."""

MEMORY_POLL_S: Final = 0.25
SHED_RETRY_S: Final = 1.0
SAFE_SHARE: Final = 0.9
"""Calls are accepted again once memory is below this share of the limit."""


class CallRates:
    """A token bucket for each caller. A bucket is stored as the time when it will be full again.

    Parameters
    ----------
    calls_per_s : calls per second of one caller; 0 for no limit.
    clock : returns monotonic seconds, the same in all workers.
    board : where the workers of a server share the buckets; None if this is the only process.
    """

    def __init__(
        self,
        calls_per_s: float,
        clock: Callable[[], float] = time.monotonic,
        board: Board | None = None,
    ) -> None:
        self._rate = calls_per_s
        self._most = max(1.0, calls_per_s * BURST_S)
        self._clock = clock
        self._board = board
        self._buckets: OrderedDict[str, float] = OrderedDict()

    @property
    def are_bounded(self) -> bool:
        """True if there is a limit."""
        return self._rate > 0

    def admit_call(self, caller: str) -> None:
        """Admit a call.

        Raises
        ------
        ResourceExhausted
            If the caller calls faster than it may; the error says when to try again.
        """
        if not self._rate:
            return
        now = self._clock()
        full_at = max(now, self._bucket_of(caller))
        left = self._most - (full_at - now) * self._rate
        if left < 1.0 - ROUNDING:
            raise ResourceExhausted(
                f"calls_per_s: {caller} makes more than {self._rate:g} calls a second",
                (1.0 - left) / self._rate,
            )
        self._keep_bucket(caller, full_at + 1.0 / self._rate)

    def _bucket_of(self, caller: str) -> float:
        if self._board is not None:
            return self._board.caller_time(caller)
        if caller in self._buckets:
            self._buckets.move_to_end(caller)
        return self._buckets.get(caller, -math.inf)

    def _keep_bucket(self, caller: str, full_at: float) -> None:
        if self._board is not None:
            self._board.keep_caller_time(caller, full_at)
            return
        self._buckets[caller] = full_at
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)


class CallsAtOnce:
    """Limits the number of calls under way. Used in one event loop, by the tasks of the calls.

    Parameters
    ----------
    most : most calls at a time.
    whose : whose calls they are, for error messages.
    count : their number in all workers together; None if this is the only process.
    """

    def __init__(self, most: int, whose: str = "", count: Tally | None = None) -> None:
        self._most = most
        self._whose = whose
        self._count = Tally() if count is None else count

    def count_call(self) -> None:
        """Count a call until its task ends.

        Raises
        ------
        ResourceExhausted
            If the limit is reached; the error says when to try again.
        """
        if self._count.total >= self._most:
            raise ResourceExhausted(
                f"max_calls: {self._most:,} calls{self._whose} are under way, the most allowed",
                SHED_RETRY_S,
            )
        if (task := asyncio.current_task()) is not None:  # it always is
            self._count.add(1)
            task.add_done_callback(lambda _: self._count.add(-1))


class OpenStreams:
    """Limits the number of open streams of each caller.

    Parameters
    ----------
    most : most open streams of one caller.
    board : where the workers of a server share the counts; None if this is the only process.
    """

    def __init__(self, most: int, board: Board | None = None) -> None:
        self._most = most
        self._open: dict[str, int] = {}
        self._board = board

    @contextmanager
    def count_stream(self, caller: str) -> Iterator[None]:
        """Count a stream while it is open.

        Raises
        ------
        ResourceExhausted
            If the caller has as many streams open as it may.
        """
        count = self._open.get(caller, 0)
        if self._board is not None:
            count += self._board.streams_elsewhere(caller)
        if count >= self._most:
            raise ResourceExhausted(
                f"max_streams: {caller} has {count} streams open, at most {self._most} are allowed: close some",
                None,
            )
        self._add(caller, 1)
        try:
            yield
        finally:
            self._add(caller, -1)

    def _add(self, caller: str, change: int) -> None:
        if self._board is not None:
            self._board.count_stream(caller, change)
        count = self._open.get(caller, 0) + change
        if count:
            self._open[caller] = count
        else:
            del self._open[caller]


class MemoryWatch:
    """Watches the memory of the server; above a limit, new work is refused until enough is free again.

    Parameters
    ----------
    most_bytes : the limit; 0 for none.
    read : returns the resident memory of this process, in bytes.
    used : memory of all workers together, where this process publishes its own; None if this is the only process.
    """

    def __init__(
        self, most_bytes: int, read: Callable[[], int] | None = None, used: Tally | None = None
    ) -> None:
        self._most = most_bytes
        self._read = read or resident_bytes
        self._used = Tally() if used is None else used
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self.is_full = False

    def start(self) -> None:
        """Start watching."""
        if self._most:
            self._thread = threading.Thread(target=self._watch_memory, name="quercus-memory", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop watching."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def compare_memory(self) -> None:
        """Measure the memory, and compare it with the limit."""
        self._used.set(self._read())
        used = self._used.total
        full = used > self._most * (SAFE_SHARE if self.is_full else 1.0)
        if full != self.is_full:
            what = "refusing new work" if full else "taking work again"
            _log.warning("%s: the server uses %d of %d MB", what, used // 10**6, self._most // 10**6)
        self.is_full = full

    def check_memory(self) -> None:
        """Admit new work.

        Raises
        ------
        ResourceExhausted
            If memory is short; the error says when to try again.
        """
        if self.is_full:
            raise ResourceExhausted(
                f"max_memory_bytes: the server uses all of {self._most // 10**6} MB: send it again",
                SHED_RETRY_S,
            )

    def _watch_memory(self) -> None:
        while not self._stopping.wait(MEMORY_POLL_S):
            self.compare_memory()


MAX_READINGS: Final = 8
"""Most requests of strangers that are read at a time; each may take `max_message_bytes` before its length is known."""

READING_S: Final = 5.0
"""Longest time, in seconds, for a request of a stranger to arrive."""

MAX_PROBE_BYTES: Final = 4 * 1024
"""Most bytes of a request of a stranger, which only names a service."""

PROBE_RETRY_S: Final = 0.2


class ProbeReadings:
    """Reads the requests of strangers, only a few at a time.

    If there are too many, the oldest is given up for the next: a probe sends its request with the call, so a request
    that is still missing will probably never arrive.
    """

    def __init__(self) -> None:
        self._under_way: deque[asyncio.Future[None]] = deque()

    async def read_request(self, requests: AsyncIterator[bytes]) -> bytes:
        """Return the first message of a call; empty if there is none.

        Raises
        ------
        ResourceExhausted
            If it did not arrive in time, or was given up for another.
        InvalidInput
            If it is too long for a probe.
        """

        async def first_of(requests: AsyncIterator[bytes]) -> bytes:
            return await anext(requests, b"")

        if len(self._under_way) >= MAX_READINGS:
            self._under_way.popleft().set_result(None)
        giving_way: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._under_way.append(giving_way)
        # A read that is given up is not cancelled, but ends with its call: gRPC would leak a message that arrives at
        # that moment.
        reading = asyncio.ensure_future(first_of(requests))
        # retrieve the error of a read that nobody awaits any more
        reading.add_done_callback(lambda each: each.cancelled() or each.exception())
        try:
            await asyncio.wait((reading, giving_way), timeout=READING_S, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not giving_way.done():
                self._under_way.remove(giving_way)
                giving_way.cancel()
        if not reading.done():
            raise ResourceExhausted(
                "the request of a caller without a token did not arrive in time", PROBE_RETRY_S
            )
        if len(data := reading.result()) > MAX_PROBE_BYTES:
            raise InvalidInput("request", f"has {len(data):,} bytes, a probe has at most {MAX_PROBE_BYTES:,}")
        return data
