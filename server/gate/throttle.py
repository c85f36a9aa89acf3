"""Bounds on the calls of one caller, and refusal of calls when the server is overloaded."""

from __future__ import annotations

import asyncio
import logging
import math
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from quercus.server.wire.errors import ResourceExhausted
from quercus.server.workers.board import Board, Tally

_log = logging.getLogger(__name__)
BURST_S: Final = 2.0
"""Seconds whose calls a caller may make at once after a quiet time."""

MAX_CALLERS: Final = 10_000
"""Callers whose rate is remembered; the one quiet longest is forgotten first, and begins with a full bucket."""

ROUNDING: Final = 0.001
"""Part of a call that rounding may take from a bucket: its moment is a float of a clock that may stand at years."""

MEMORY_POLL_S: Final = 0.25
SHED_RETRY_S: Final = 1.0
SAFE_SHARE: Final = 0.9
"""Shedding ends when memory is below this share of the bound."""


class CallRates:
    """A bucket of tokens a caller: each call takes one, time puts them back.

    A bucket is kept as the moment when it will be full again.

    Parameters
    ----------
    calls_per_s : calls per second of one caller; 0: no bound.
    clock : monotonic seconds, the same in all workers.
    board : where the workers of a server keep the buckets together; None: this process is alone.
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
        """True if there is a bound."""
        return self._rate > 0

    def take_token(self, caller: str) -> None:
        """Admit a call.

        Raises
        ------
        ResourceExhausted
            When the caller calls faster than it may; it says when to try again.
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
    """The number of calls under way. Used in one event loop, by the tasks of the calls.

    Parameters
    ----------
    most : most calls at a time.
    whose : whose calls they are, for errors.
    count : their number, in all workers together; None: this process is alone.
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
            When there are as many as there may be; it says when to try again.
        """
        if self._count.total >= self._most:
            raise ResourceExhausted(
                f"max_calls: {self._most:,} calls{self._whose} are under way, the most there may be",
                SHED_RETRY_S,
            )
        if (task := asyncio.current_task()) is not None:  # it always is
            self._count.add(1)
            task.add_done_callback(self._end_call)

    def _end_call(self, _: object) -> None:
        self._count.add(-1)


class OpenStreams:
    """The number of open streams of each caller.

    Parameters
    ----------
    most : most open streams of one caller.
    board : where the workers of a server count together; None: this process is alone.
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
            When the caller has as many open as it may.
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
    """Watches the memory of the server; above a bound new work is refused until there is room again.

    Parameters
    ----------
    most_bytes : the bound; 0: none.
    read : resident memory of the process, in bytes.
    used : memory of all workers together, of which this process tells its own; None: this process is alone.
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
        """Begin to watch."""
        if self._most:
            self._thread = threading.Thread(target=self._watch_memory, name="quercus-memory", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Watch no more."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def compare_memory(self) -> None:
        """Compare the used memory with the bound."""
        self._used.set(self._read())
        used = self._used.total
        full = used > self._most * (SAFE_SHARE if self.is_full else 1.0)
        if full != self.is_full:
            what = "refusing new work" if full else "taking work again"
            _log.warning("%s: the server uses %d of %d MB", what, used // 10**6, self._most // 10**6)
        self.is_full = full

    def check_memory(self) -> None:
        """Admit work.

        Raises
        ------
        ResourceExhausted
            While memory is short; it says when to try again.
        """
        if self.is_full:
            raise ResourceExhausted(
                f"max_memory_bytes: the server uses all of {self._most // 10**6} MB: send it again",
                SHED_RETRY_S,
            )

    def _watch_memory(self) -> None:
        while not self._stopping.wait(MEMORY_POLL_S):
            self.compare_memory()


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not tell in the way of Linux."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def memory_of_machine(root: Path = Path("/")) -> int:
    """Return how many bytes of memory this process may use; 0 when unknown.

    That is the memory of the machine, or the lowest bound of the control groups of the process: its own group and all
    groups above it, as the slices of systemd.

    Parameters
    ----------
    root : folder of ``proc`` and ``sys``.
    """
    found = list(_group_bounds(root))
    with suppress(ValueError, OSError):
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(found, default=0)


def _group_bounds(root: Path) -> Iterator[int]:
    """Yield the bounds of memory of the groups of this process, of both versions of control groups."""
    groups = root / "sys/fs/cgroup"
    try:
        lines = (root / "proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        top, file = (groups / "memory", "memory.limit_in_bytes") if controllers else (groups, "memory.max")
        group = PurePosixPath(path.strip("/"))
        # a container may see the names that its host has; then the bound is in the folder on top
        for folder in (".",) if ".." in group.parts else (group, *group.parents):
            with suppress(OSError, ValueError):  # it is not there, or says "max"
                yield int((top / folder / file).read_text(encoding="ascii"))
