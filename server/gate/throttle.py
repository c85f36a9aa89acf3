"""Bounds on the calls of one caller, and refusal of calls when the server is overloaded."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import Final

from quercus.server.wire.errors import ResourceExhausted

_log = logging.getLogger(__name__)
BURST_S: Final = 2.0
"""Seconds whose calls a caller may make at once after a quiet time."""

MAX_CALLERS: Final = 10_000
"""Callers whose rate is remembered; the one quiet longest is forgotten first, and begins with a full bucket."""

MEMORY_POLL_S: Final = 0.25
SHED_RETRY_S: Final = 1.0
SAFE_SHARE: Final = 0.9
"""Shedding ends when memory is below this share of the bound."""


class CallRates:
    """A bucket of tokens a caller: each call takes one, time puts them back.

    Parameters
    ----------
    calls_per_s : calls per second of one caller; 0: no bound.
    clock : monotonic seconds.
    """

    def __init__(self, calls_per_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = calls_per_s
        self._most = max(1.0, calls_per_s * BURST_S)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()  # tokens left, at

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
        left, at = self._buckets.pop(caller, (self._most, now))
        left = min(self._most, left + (now - at) * self._rate)
        allowed = left >= 1.0
        self._buckets[caller] = (left - 1.0 if allowed else left, now)
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        if not allowed:
            raise ResourceExhausted(
                f"calls_per_s: {caller} makes more than {self._rate:g} calls a second",
                (1.0 - left) / self._rate,
            )


class CallsAtOnce:
    """The number of calls under way. Used in one event loop, by the tasks of the calls.

    Parameters
    ----------
    most : most calls at a time.
    whose : whose calls they are, for errors.
    """

    def __init__(self, most: int, whose: str = "") -> None:
        self._most = most
        self._whose = whose
        self._count = 0

    def count_call(self) -> None:
        """Count a call until its task ends.

        Raises
        ------
        ResourceExhausted
            When there are as many as there may be; it says when to try again.
        """
        if self._count >= self._most:
            raise ResourceExhausted(
                f"max_calls: {self._most:,} calls{self._whose} are under way, the most there may be",
                SHED_RETRY_S,
            )
        if (task := asyncio.current_task()) is not None:  # it always is
            self._count += 1
            task.add_done_callback(self._end_call)

    def _end_call(self, _: object) -> None:
        self._count -= 1


class OpenStreams:
    """The number of open streams of each caller.

    Parameters
    ----------
    most : most open streams of one caller.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._open: dict[str, int] = {}

    @contextmanager
    def count_stream(self, caller: str) -> Iterator[None]:
        """Count a stream while it is open.

        Raises
        ------
        ResourceExhausted
            When the caller has as many open as it may.
        """
        count = self._open.get(caller, 0)
        if count >= self._most:
            raise ResourceExhausted(
                f"max_streams: {caller} has {count} streams open, at most {self._most} are allowed: close some",
                None,
            )
        self._open[caller] = count + 1
        try:
            yield
        finally:
            left = self._open[caller] - 1
            if left:
                self._open[caller] = left
            else:
                del self._open[caller]


class MemoryWatch:
    """Watches the memory of this process; above a bound new work is refused until there is room again.

    Parameters
    ----------
    most_bytes : the bound; 0: none.
    read : resident memory of the process, in bytes.
    """

    def __init__(self, most_bytes: int, read: Callable[[], int] | None = None) -> None:
        self._most = most_bytes
        self._read = read or resident_bytes
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
        used = self._read()
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
