"""Workers that hold the shards of a tree: objects that keep their rows between calls."""

import pickle
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from typing import Any, assert_never

from quercus.compute.dask_cluster import DaskExecutor
from quercus.compute.errors import WorkerLostError
from quercus.compute.kept import KeptObject, call_kept
from quercus.compute.names import parse_executor
from quercus.compute.pooled import WORKERS_POLL_S
from quercus.compute.processes import ProcessPool, give_out
from quercus.compute.sharded.shard import Rows, Shard
from quercus.specification.model import Specification


class ShardWorkers(ABC):
    """The workers of an executor, which hold the shards and call their methods.

    Parameters
    ----------
    shards
        Number of shards.
    """

    def __init__(self, shards: int) -> None:
        self.shards = shards

    def call(self, shard: int, method: str, *arguments: Any) -> Any:
        """Call a method of one shard and return its result."""
        return self._collect_results([self._begin_call(shard, method, arguments)])[0]

    def call_all(self, method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        """Call a method of each shard and return the results; the shards work at the same time."""
        return self._collect_results(
            [self._begin_call(shard, method, each) for shard, each in enumerate(arguments)]
        )

    @abstractmethod
    def _begin_call(self, shard: int, method: str, arguments: tuple[Any, ...]) -> Any:
        """Begin a call."""

    @abstractmethod
    def _collect_results(self, calls: list[Any]) -> list[Any]:
        """Wait for calls, and return their results."""


@contextmanager
def open_shard_workers(
    executor: str, specification: Specification, rows: Sequence[Rows]
) -> Iterator[ShardWorkers]:
    """Open one shard for each block of rows on the workers of an executor; shards are assigned round-robin.

    Raises
    ------
    WorkerLostError
        When a worker is lost, also within the ``with`` block.
    """
    parts = parse_executor(executor)
    if parts.kind == "local":
        yield _LocalShardWorkers([Shard(specification, each) for each in rows])
    elif parts.kind == "processes":
        workers = _ProcessShardWorkers(min(parts.processes, len(rows)), len(rows))
        try:
            workers.call_all("", [(specification, each) for each in rows])
            yield workers
        finally:
            workers.close()
    elif parts.kind == "dask":
        with DaskExecutor(parts.host, parts.port) as opened:
            yield _DaskShardWorkers(opened, specification, rows)
    else:
        assert_never(parts.kind)


class _LocalShardWorkers(ShardWorkers):
    def __init__(self, shards: list[Shard]) -> None:
        super().__init__(len(shards))
        self._all = shards

    def _begin_call(self, shard: int, method: str, arguments: tuple[Any, ...]) -> Any:
        return getattr(self._all[shard], method)(*arguments)

    def _collect_results(self, calls: list[Any]) -> list[Any]:
        return calls


class _ProcessShardWorkers(ShardWorkers):
    """Processes of one task at a time each, so that a shard is always called in the same one."""

    def __init__(self, processes: int, shards: int) -> None:
        super().__init__(shards)
        self._pools = [ProcessPool(1) for _ in range(processes)]

    def _begin_call(self, shard: int, method: str, arguments: tuple[Any, ...]) -> Any:
        try:
            return give_out(self._pools[shard % len(self._pools)], _call_own, shard, method, arguments)
        except BrokenProcessPool as error:
            raise WorkerLostError(str(error)) from error

    def _collect_results(self, calls: list[Any]) -> list[Any]:
        try:
            return [call.result() for call in calls]
        except BrokenProcessPool as error:
            raise WorkerLostError(str(error)) from error

    def close(self) -> None:
        for pool in self._pools:
            pool.end_processes()
        for pool in self._pools:
            pool.shutdown(cancel_futures=True)


_own: dict[int, Shard] = {}
"""The shards of this process, if it is a worker."""


def _call_own(shard: int, method: str, arguments: tuple[Any, ...]) -> Any:
    """Call a method of a shard of this process; without a name, make the shard."""
    if not method:
        _own[shard] = Shard(*arguments)
        return None
    return getattr(_own[shard], method)(*arguments)


class _DaskShardWorkers(ShardWorkers):
    """Shards as results of tasks that are bound to their workers; the scheduler forgets them with this client."""

    def __init__(self, executor: DaskExecutor, specification: Specification, rows: Sequence[Rows]) -> None:
        super().__init__(len(rows))
        self._executor = executor
        addresses = executor.worker_addresses
        self._addresses = [addresses[shard % len(addresses)] for shard in range(len(rows))]
        self._made = [
            executor.keep_result(address, KeptObject, pickle.dumps((Shard, (specification, each))))
            for address, each in zip(self._addresses, rows, strict=True)
        ]
        self._calls = [0] * len(rows)

    def _begin_call(self, shard: int, method: str, arguments: tuple[Any, ...]) -> Any:
        number = self._calls[shard]
        self._calls[shard] += 1
        address, kept = self._addresses[shard], self._made[shard]
        return self._executor.submit_to(address, call_kept, kept, number, method, pickle.dumps(arguments))

    def _collect_results(self, calls: list["Future[bytes]"]) -> list[Any]:
        try:
            while wait(calls, WORKERS_POLL_S).not_done:
                gone = set(self._addresses) - set(self._executor.worker_addresses)
                if gone:
                    raise WorkerLostError(f"lost {', '.join(sorted(gone))}")
            return [pickle.loads(call.result()) for call in calls]  # noqa: S301 - of a worker, over TLS
        except self._executor.loss_errors as error:
            self._executor.check_scheduler()
            raise WorkerLostError(f"{type(error).__name__}: {error}") from error
