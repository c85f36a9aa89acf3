"""The workers of a server, seen from outside: their processes, and which of them a connection is with."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

from integration.client.serving import Serving

from quercus.client import Client
from support.processes import children

ESTABLISHED = "01"
WAIT_S = 60.0
MOST_TRIES = 200
"""Connections to be made until each worker has one: half a dozen do nearly always."""


def workers_of(parent: int) -> dict[int, int]:
    """Process ids of the workers of a server that run, by their number."""
    found = {}
    for pid in children(parent):
        with suppress(OSError):
            words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
            if "quercus.server.workers.worker" in words:
                found[int(words[words.index("quercus.server.workers.worker") + 1])] = pid
    return found


def connections_of(pid: int, port: int) -> int:
    """Number of connections to a port that a process has accepted."""
    inodes = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[1].rpartition(":")[2], 16) == port and fields[3] == ESTABLISHED:
                inodes.add(f"socket:[{fields[9]}]")
    open_files = []
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            open_files.append(os.readlink(entry))
    return len(inodes.intersection(open_files))


def client_of_each(serving: Serving, closing: ExitStack, **settings: object) -> dict[int, Client]:
    """Return a client of each worker, by its number."""
    workers = workers_of(serving.process.pid)
    found: dict[int, Client] = {}
    for _ in range(MOST_TRIES):
        before = {number: connections_of(pid, serving.port) for number, pid in workers.items()}
        client = Client(serving.address, **settings)
        client.wait_ready(WAIT_S)
        (number,) = (
            number for number, pid in workers.items() if connections_of(pid, serving.port) > before[number]
        )
        if number in found:
            client.close()
            _wait_until(partial(_has_at_most, workers[number], serving.port, before[number]))
        else:
            found[number] = closing.enter_context(client)
        if len(found) == len(workers):
            return found
    raise AssertionError(f"only the workers {sorted(found)} of {sorted(workers)} get connections")


def _has_at_most(pid: int, port: int, count: int) -> bool:
    return connections_of(pid, port) <= count


def kill_worker(serving: Serving, number: int) -> None:
    """SIGKILL one worker, and wait until another has its place."""
    pid = workers_of(serving.process.pid)[number]
    os.kill(pid, signal.SIGKILL)
    _wait_until(lambda: workers_of(serving.process.pid).get(number, pid) != pid)


def _wait_until(until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WAIT_S
    while not until():
        assert time.monotonic() < deadline
        time.sleep(0.01)
