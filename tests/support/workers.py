"""The workers of a server, seen from outside: their processes, and which of them a connection is with."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import ExitStack, suppress
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import grpc
from integration.client.serving import Serving

from quercus.client import Client
from support.processes import children
from support.waiting import until

T = TypeVar("T")
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


def client_of_each(
    serving: Serving, closing: ExitStack, scheme: str = "", **settings: Any
) -> dict[int, Client]:
    """Return a client of each worker, by its number."""

    def connect() -> Client:
        client = Client(scheme + serving.address, **settings)
        client.wait_ready(WAIT_S)
        return client

    return _one_of_each(serving, closing, connect)


def channel_of_each(serving: Serving, closing: ExitStack) -> dict[int, grpc.Channel]:
    """Return a channel of gRPC to each worker, by its number; it does not connect anew by itself to another one."""

    def connect() -> grpc.Channel:
        channel = grpc.insecure_channel(serving.address, options=[("grpc.use_local_subchannel_pool", 1)])
        grpc.channel_ready_future(channel).result(WAIT_S)
        return channel

    return _one_of_each(serving, closing, connect)


def http_of_each(serving: Serving, port: int, closing: ExitStack) -> dict[int, HTTPConnection]:
    """Return a connection of HTTP to each worker, by its number."""

    def connect() -> HTTPConnection:
        connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
        connection.request("GET", "/livez")
        connection.getresponse().read()
        return connection

    return _one_of_each(serving, closing, connect, port)


def _one_of_each(
    serving: Serving, closing: ExitStack, connect: Callable[[], T], port: int = 0
) -> dict[int, T]:
    workers, port = workers_of(serving.process.pid), port or serving.port
    found: dict[int, T] = {}
    for _ in range(MOST_TRIES):
        before = {number: connections_of(pid, port) for number, pid in workers.items()}
        made: Any = connect()
        (number,) = (number for number, pid in workers.items() if connections_of(pid, port) > before[number])
        if number in found:
            made.close()
            until(partial(_has_at_most, workers[number], port, before[number]))
        else:
            closing.callback(made.close)
            found[number] = made
        if len(found) == len(workers):
            return dict(sorted(found.items()))
    raise AssertionError(f"only the workers {sorted(found)} of {sorted(workers)} get connections")


def _has_at_most(pid: int, port: int, count: int) -> bool:
    return connections_of(pid, port) <= count


def kill_worker(serving: Serving, number: int) -> None:
    """SIGKILL one worker, and wait until another has its place."""
    until(lambda: number in workers_of(serving.process.pid))
    pid = workers_of(serving.process.pid)[number]
    os.kill(pid, signal.SIGKILL)
    until(lambda: workers_of(serving.process.pid).get(number, pid) != pid)
