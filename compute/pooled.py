"""Base of executors with workers: it submits chunks ahead, submits lost ones again, and bounds every wait."""

import hashlib
import pickle
from abc import abstractmethod
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import Any

from quercus.compute.chunks import ChunkPlan, RemoteFunction, TaskChunk, environment_properties, pickled_chunk
from quercus.compute.errors import ExecutorError
from quercus.compute.executor import Executor, Outcomes

CHUNKS_PER_WORKER = 4
"""Chunks submitted per worker: no worker waits for work, and few chunks are lost if the run is interrupted."""
WORKERS_POLL_S = 2.0
"""Seconds without a result after which the workers are checked."""


class PooledExecutor(Executor):
    """An executor of several workers.

    Parameters
    ----------
    name
        Name of the executor, as users write it.
    lost
        Exceptions that mean that a chunk's worker was lost.
    """

    def __init__(self, name: str, lost: tuple[type[BaseException], ...]) -> None:
        self.name = name
        self._lost: tuple[type[BaseException], ...] = (CancelledError, *lost)

    @property
    @abstractmethod
    def workers(self) -> int:
        """Number of chunks that run at once."""

    @abstractmethod
    def _share_function(self, digest: str, function: bytes) -> Any:
        """Return the handle of a pickled function for `_submit_chunk`."""

    @abstractmethod
    def _submit_chunk(self, shared: Any, tasks: bytes) -> "Future[tuple[float, bytes]]":
        """Submit a chunk."""

    def _check_workers(self) -> None:
        """Raise `ExecutorError` if no worker is left."""

    def _run_tasks(self, fn: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Outcomes:
        function = pickle.dumps(fn)
        shared = self._share_function(hashlib.sha256(function).hexdigest(), function)
        plan = ChunkPlan(len(tasks))
        running: dict[Future[tuple[float, bytes]], TaskChunk] = {}
        try:
            while True:
                while (
                    len(running) < CHUNKS_PER_WORKER * self.workers
                    and (chunk := plan.next_chunk(self.workers)) is not None
                ):
                    running[self._submit_chunk(shared, pickled_chunk(tasks, chunk))] = chunk
                if not running:
                    return
                for future in self._first_completed(running):
                    chunk = running.pop(future)
                    outcomes = self._outcome_of(future, chunk, plan)
                    if outcomes is not None:
                        yield from zip(range(chunk.first, chunk.first + chunk.count), outcomes, strict=False)
        finally:
            for future in running:
                future.cancel()

    def _first_completed(
        self, running: dict["Future[tuple[float, bytes]]", TaskChunk]
    ) -> set["Future[tuple[float, bytes]]"]:
        while not (completed := wait(running, WORKERS_POLL_S, FIRST_COMPLETED).done):
            self._check_workers()
        return completed

    def _outcome_of(
        self, future: "Future[tuple[float, bytes]]", chunk: TaskChunk, plan: ChunkPlan
    ) -> list[Any] | None:
        """Return the outcomes of a chunk, None if it has to be done again."""
        try:
            seconds, data = future.result()
        except self._lost as error:
            self._check_workers()
            plan.return_lost(chunk, self.name, error)
            return None
        except ExecutorError as error:
            raise ExecutorError(f"executor {self.name}: {error}") from error
        except Exception as error:  # of the worker itself: tasks that raise are results
            raise ExecutorError(
                f"executor {self.name}: a worker cannot do tasks: {type(error).__name__}: {error}"
            ) from error
        outcomes: list[Any] = pickle.loads(data)  # noqa: S301 - of a process that this one started, or over TLS
        plan.record_time(len(outcomes), seconds)
        return outcomes

    @staticmethod
    def _remote_function(digest: str, place: Any) -> RemoteFunction:
        return RemoteFunction(digest, place, environment_properties())
