"""The executor of processes on this machine."""

import multiprocessing
import os
import signal
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext, SpawnProcess
from pathlib import Path
from typing import Any, TypeVar

from quercus.compute.chunks import RemoteFunction, do_chunk
from quercus.compute.pooled import PooledExecutor

T = TypeVar("T")


class ProcessExecutor(PooledExecutor):
    """Processes that are started for this executor and end with it.

    They are spawned, not forked: they inherit no thread, no lock of a compiler, and no channel of gRPC. A process
    that dies is replaced, and its tasks are done again.

    Parameters
    ----------
    processes
        Number of processes.
    """

    def __init__(self, processes: int) -> None:
        super().__init__(f"processes:{processes}", (BrokenProcessPool,))
        self._processes = processes
        self._folder = tempfile.TemporaryDirectory(prefix="quercus-")
        self._pool = ProcessPool(processes)

    @property
    def workers(self) -> int:
        """Number of processes."""
        return self._processes

    def close(self, *, at_once: bool = False) -> None:
        """End the processes."""
        if at_once:
            self._pool.end_processes()
        self._pool.shutdown(cancel_futures=True)
        self._folder.cleanup()

    def _share_function(self, digest: str, function: bytes) -> RemoteFunction:
        path = Path(self._folder.name) / digest  # in a folder of this user alone
        path.write_bytes(function)
        return self._remote_function(digest, path)

    def _submit_chunk(self, shared: RemoteFunction, tasks: bytes) -> "Future[tuple[float, bytes]]":
        try:
            return give_out(self._pool, do_chunk, shared, tasks)
        except BrokenProcessPool:  # one process died, and took the others with it
            self._pool.shutdown(cancel_futures=True)
            self._pool = ProcessPool(self._processes)
            return give_out(self._pool, do_chunk, shared, tasks)


class ProcessPool(ProcessPoolExecutor):
    """A pool of processes that end with this one, or before.

    Parameters
    ----------
    processes
        Number of processes.
    """

    def __init__(self, processes: int) -> None:
        self._own = _CountingContext()
        super().__init__(processes, mp_context=self._own, initializer=_watch_parent)

    def end_processes(self) -> None:
        """End its processes at once, and no other children of this process."""
        for child in self._own.children:
            if child.is_alive():
                child.terminate()


class _CountingContext(SpawnContext):
    """Spawns processes, and knows those that it made."""

    def __init__(self) -> None:
        super().__init__()
        self.children: list[SpawnProcess] = []

    def Process(self, *arguments: Any, **options: Any) -> SpawnProcess:  # type: ignore[override]  # noqa: N802
        made = SpawnProcess(*arguments, **options)
        self.children.append(made)
        return made


def give_out(pool: ProcessPoolExecutor, fn: Callable[..., T], /, *arguments: Any) -> "Future[T]":
    """Give out a task. The first one starts the processes, and they inherit that Ctrl-C is for this one alone."""
    if threading.current_thread() is not threading.main_thread():
        return pool.submit(fn, *arguments)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return pool.submit(fn, *arguments)
    finally:
        signal.signal(signal.SIGINT, before)


def _watch_parent() -> None:
    threading.Thread(target=_end_with_parent, name="quercus-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
