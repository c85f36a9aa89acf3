"""Processes for large models, one for each, so that these delay no other model, and their memory can be measured.

The grower starts a process for each large model, which is a grower of that model alone (`quercus.server.growth.grower`
with ``--only``). The system shares out the cores; these processes have a lower priority than the grower. A few run at
once; if more models are large, they take turns. A process may be killed at any time: the log has everything, and the
saved growth most of the work. A process that takes more memory than a model may is killed, and not started again.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quercus.server.growth.child_process import ChildProcess
from quercus.server.growth.heartbeat import Heartbeat
from quercus.server.telemetry import logs
from quercus.specification.pauses import growing_pause_s

_log = logging.getLogger(__name__)

PROCESSES: Final = 4
"""Most models that grow in processes of their own at once."""

TURN_S: Final = 60.0
"""Least seconds that a process works while other models wait for one; then it ends after the current step."""

MEMORY_POLL_S: Final = 0.1
"""Seconds between two measurements of the processes' memory."""

FIRST_RETRY_S: Final = 0.5
LAST_RETRY_S: Final = 60.0

LEAVE: Final = "leave"
"""The line that makes a process end, because it is another model's turn."""

WORK_LEFT: Final = 75
"""Exit code of a process that left in the middle of its work."""

NO_WORK_LEFT: Final = 76
"""Exit code of a process that left with nothing to do."""


@dataclass(frozen=True)
class ExceededModel:
    """A model whose process was killed because it took more memory than a model may, `used_bytes`."""

    key: int
    name: str
    used_bytes: int


class _ModelProcess(ChildProcess):
    def __init__(self, command: Sequence[str], name: str, news: threading.Event) -> None:
        self.name = name
        self.started_at = time.monotonic()
        self.beat = Heartbeat(at=name)
        self.used_bytes = 0  # set if it was killed for its memory
        self.is_leaving = False
        super().__init__(command, news)

    @property
    def may_leave(self) -> bool:
        """True if the process has had its turn, or has nothing to do."""
        return not self.is_leaving and (not self.beat.at or time.monotonic() >= self.started_at + TURN_S)

    def kill(self) -> None:
        """Kill the process, and wait until it has ended."""
        self.process.kill()
        self.join()

    def held_bytes(self) -> int:
        """Return the present memory of the process and of its learner processes, see `private_bytes`."""
        pids = [self.process.pid]
        with contextlib.suppress(OSError):
            children = Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text(encoding="ascii")
            pids += map(int, children.split())
        return sum(map(private_bytes, pids))

    def _read_output(self) -> None:
        with self.process as process:
            if process.stdout is not None:
                for line in process.stdout:
                    with contextlib.suppress(ValueError):
                        before, self.beat = self.beat, Heartbeat.decode(line)
                        if self.beat.damaged != before.damaged:
                            self._news.set()
            process.wait()  # before its standard input is closed, which would change its exit code
        self.has_ended = True
        self._news.set()


class ModelProcesses:
    """The large models of a grower, and their processes.

    Parameters
    ----------
    command : command of a process, without the key of its model, which is added at the end.
    most_bytes : most memory that a model may take; 0 for any.
    most : most processes at once.
    """

    def __init__(self, command: Sequence[str], most_bytes: int, *, most: int = PROCESSES) -> None:
        self._command = [*command]
        self.most_bytes = most_bytes
        self._most = most
        self._names: dict[int, str] = {}  # of all models here, by key
        self._running: dict[int, _ModelProcess] = {}
        self._waiting: list[int] = []
        self._awaited: set[int] = set()  # changed after their process was told to leave
        self._failures: dict[int, int] = {}
        self._retry_at: dict[int, float] = {}
        self._exceeded: dict[int, ExceededModel] = {}
        self._news = threading.Event()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None

    def __contains__(self, key: object) -> bool:
        return key in self._names

    @property
    def keys(self) -> Sequence[int]:
        """The keys of the models."""
        return tuple(self._names)

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each model that has a process, by name."""
        return {each.name: each.process.pid for each in self._running.values() if not each.has_ended}

    @property
    def working(self) -> tuple[str, ...]:
        """Models whose process is taking a step, by name."""
        return tuple(each.name for each in self._running.values() if each.beat.at and not each.has_ended)

    @property
    def waiting(self) -> tuple[str, ...]:
        """Models that wait for a process, by name."""
        return tuple(self._names[key] for key in self._waiting)

    @property
    def damaged(self) -> dict[str, str]:
        """Models that cannot be read, each with the reason."""
        return {name: reason for each in self._running.values() for name, reason in each.beat.damaged}

    @property
    def has_news(self) -> bool:
        """True if `collect_exceeded` has something to do."""
        return self._news.is_set() or bool(self._giving_way())

    @property
    def wake_at(self) -> float:
        """Monotonic time when a process that failed is started again."""
        return min(self._retry_at.values(), default=float("inf"))

    def add_model(self, key: int, name: str) -> None:
        """Add a model, which grows as soon as a process is free."""
        self._names[key] = name
        self._waiting.append(key)
        self._start_waiting()

    def note_change(self, key: int) -> None:
        """Note that a model has changed: it needs a process again if it has none, or its process is about to leave."""
        running = self._running.get(key)
        if running is not None:
            if running.is_leaving:
                self._awaited.add(key)
        elif key not in self._waiting and key not in self._retry_at and key not in self._exceeded:
            self._waiting.append(key)
            self._start_waiting()

    def drop_model(self, key: int) -> None:
        """Remove a model; its process has ended when this returns."""
        running = self._running.pop(key, None)
        if running is not None:
            running.kill()
        for known in (self._names, self._failures, self._retry_at, self._exceeded):
            known.pop(key, None)
        self._awaited.discard(key)
        if key in self._waiting:
            self._waiting.remove(key)

    def collect_exceeded(self) -> list[ExceededModel]:
        """Follow processes that have ended, start others, and return the models that took too much memory."""
        self._news.clear()
        for key, process in [*self._running.items()]:
            if process.has_ended:
                del self._running[key]
                self._follow_end(key, process)
        now = time.monotonic()
        for key in [key for key, at in self._retry_at.items() if at <= now]:
            del self._retry_at[key]
            self._waiting.append(key)
        self._start_waiting()
        return [*self._exceeded.values()]

    def _follow_end(self, key: int, process: _ModelProcess) -> None:
        code, changed = process.process.returncode, key in self._awaited
        self._awaited.discard(key)
        if process.used_bytes:
            self._exceeded[key] = ExceededModel(key, process.name, process.used_bytes)
        elif code == 0:  # the model is gone
            self.drop_model(key)
        elif code == WORK_LEFT or (code == NO_WORK_LEFT and changed):
            self._failures.pop(key, None)
            self._waiting.append(key)
        elif code != NO_WORK_LEFT:
            count = self._failures[key] = self._failures.get(key, 0) + 1
            delay = growing_pause_s(count, FIRST_RETRY_S, LAST_RETRY_S)
            self._retry_at[key] = time.monotonic() + delay
            _log.warning(
                "the process of model %s ended with code %s; starting it again in %.1f s",
                process.name,
                code,
                delay,
            )

    def _start_waiting(self) -> None:
        while self._waiting and len(self._running) < self._most:
            key = self._waiting.pop(0)
            name = self._names[key]
            try:
                self._running[key] = _ModelProcess(
                    [*self._command, "--log-level", logs.current_level(), "--only", str(key)],
                    name,
                    self._news,
                )
            except OSError as error:  # out of memory or of processes, perhaps only for now
                self._retry_at[key] = time.monotonic() + LAST_RETRY_S
                _log.error("no process for model %s can be started (%s); trying again later", name, error)
                continue
            _log.info("model %s grows in a process of its own, %d", name, self._running[key].process.pid)
            if self.most_bytes and self._watcher is None:
                self._watcher = threading.Thread(
                    target=self._kill_exceeding, name="quercus-memory", daemon=True
                )
                self._watcher.start()
        for process in self._giving_way():
            process.is_leaving = True
            process.send_line(LEAVE)

    def _giving_way(self) -> list[_ModelProcess]:
        """Return the processes that must leave because other models wait: those that have run longest."""
        wanted = len(self._waiting) - sum(each.is_leaving for each in self._running.values())
        longest_first = sorted(self._running.values(), key=lambda each: each.started_at)
        return [each for each in longest_first if each.may_leave][: max(0, wanted)]

    def set_log_level(self, level: str) -> None:
        """Set the log level of the processes. Thread-safe."""
        for each in [*self._running.values()]:
            each.send_line(level)

    def close(self) -> None:
        """End all processes."""
        self._closed.set()
        for each in self._running.values():
            each.kill()
        self._running.clear()

    def _kill_exceeding(self) -> None:
        """Kill each process that takes more memory than a model may, even in the middle of a step."""
        while not self._closed.wait(MEMORY_POLL_S):
            for each in [*self._running.values()]:
                if not each.has_ended and (used := each.held_bytes()) > self.most_bytes:
                    each.used_bytes = used
                    each.process.kill()


def private_bytes(pid: int) -> int:
    """Return the private memory of a process: without shared libraries and mapped files.

    Return 0 if the system has no ``/proc`` like that of Linux.
    """
    try:
        _, resident, shared, *_ = Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")
