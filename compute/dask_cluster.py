"""The executor of a Dask cluster: its scheduler and its workers are the operator's.

Every client of a scheduler can run code on its workers, and workers respond with pickles. So the connection to a
scheduler uses TLS with certificates on both sides, from Dask's configuration (``distributed.comm.tls``); only loopback
works without TLS.
"""

import asyncio
import importlib
import logging
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Final

from quercus.belief.errors import InvalidInput
from quercus.compute.chunks import RemoteFunction, do_chunk
from quercus.compute.errors import ExecutorError
from quercus.compute.pooled import PooledExecutor
from quercus.specification.compute import EXECUTOR
from quercus.specification.hosts import is_loopback

CONNECT_S: Final = 8.0
ANSWER_S: Final = 6.0
"""Longest wait for a scheduler's response to a small request."""
NO_WORKER_S: Final = 30.0
"""Longest time without any worker."""
CLOSE_S: Final = 1.0


class DaskExecutor(PooledExecutor):
    """Workers of a Dask cluster.

    If a worker is lost, the scheduler assigns its task again, and this executor does so if the function was lost too. A
    lost scheduler ends the work with an error.

    Parameters
    ----------
    host, port
        Address of the scheduler.

    Raises
    ------
    InvalidInput
        When the scheduler is on another machine and Dask is not configured for TLS.
    ExecutorError
        When there is no scheduler, or no worker.
    """

    def __init__(self, host: str, port: int) -> None:
        try:
            distributed: Any = importlib.import_module("distributed")
        except ImportError as error:
            raise ExecutorError(f"executor dask://: {error}; pip install 'quercus[dask]'") from error
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        super().__init__(f"dask://{address}", (distributed.scheduler.KilledWorker,))
        security = distributed.Security()
        uses_tls = security.get_connection_args("client")["ssl_context"] is not None
        if not uses_tls and not is_loopback(host):
            reason = (
                f"is '{self.name}', on another machine Dask must speak TLS: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
                "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
            )
            raise InvalidInput(EXECUTOR.name, reason)
        url = f"{'tls' if uses_tls else 'tcp'}://{address}"
        try:
            self._client: Any = distributed.Client(
                url, timeout=CONNECT_S, security=security, set_as_default=False, name="quercus"
            )
        except (OSError, TimeoutError) as error:
            raise ExecutorError(
                f"executor {self.name}: no scheduler answers at {url} within {CONNECT_S:g} s"
            ) from error
        lost_task: type[BaseException] = distributed.client.FutureCancelledError
        self._log = logging.getLogger("tornado.application")
        self._filter = _without(lost_task)
        self._log.addFilter(self._filter)
        self._pool: Any = self._client.get_executor(pure=False)
        self._seen = time.monotonic()
        self._threads: dict[str, int] = {}
        try:
            self._await_workers()
        except BaseException:
            self.close(at_once=True)
            raise

    @property
    def workers(self) -> int:
        """Number of threads of all workers, at least 1."""
        return max(1, sum(self._threads.values()))

    def close(self, *, at_once: bool = False) -> None:
        """Leave the cluster; the scheduler forgets the tasks."""
        del at_once
        # Dask may be on its way to a lost scheduler when it is told to close, and fail of anything
        for _ in range(2):
            try:
                self._client.close(timeout=CLOSE_S)
                break
            except (Exception, asyncio.CancelledError) as error:  # a scheduler in silence notices by itself
                logging.getLogger(__name__).debug("the client of %s was not closed: %r", self.name, error)
        else:
            self._client.status = "closed"  # it would try once more, and fail, when it is collected
        self._log.removeFilter(self._filter)

    def _await_workers(self) -> None:
        while True:
            self._check_workers()
            if self._threads:
                return
            time.sleep(0.1)

    def _check_workers(self) -> None:
        if self._client.status != "running":
            raise ExecutorError(f"executor {self.name}: the scheduler is lost")
        try:
            threads = self._client.sync(self._client.scheduler.ncores, callback_timeout=ANSWER_S)
        except (OSError, TimeoutError) as error:
            raise ExecutorError(
                f"executor {self.name}: the scheduler has not answered for {ANSWER_S:g} s"
            ) from error
        self._threads = threads
        now = time.monotonic()
        if self._threads:
            self._seen = now
        elif now - self._seen > NO_WORKER_S:
            raise ExecutorError(
                f"executor {self.name}: the scheduler has had no worker for {NO_WORKER_S:g} s"
            )

    def _share_function(self, digest: str, function: bytes) -> "_SharedJob":
        return _SharedJob(self._client, self._remote_function(digest, function))

    def _submit_chunk(self, shared: "_SharedJob", tasks: bytes) -> "Future[tuple[float, bytes]]":
        try:
            future: Future[tuple[float, bytes]] = self._pool.submit(do_chunk, shared.function_future(), tasks)
        except (OSError, TimeoutError, RuntimeError) as error:  # Dask's words for a client that is cut off
            self._check_workers()
            raise ExecutorError(f"executor {self.name}: {error}") from error
        return future


class _SharedJob:
    """A job that is stored on all workers, and stored again when it was lost."""

    def __init__(self, client: Any, job: RemoteFunction) -> None:
        self._client = client
        self._job = job
        self._future: Any = None

    def function_future(self) -> Any:
        if self._future is None or self._future.status != "finished":
            self._future = self._client.scatter(self._job, broadcast=True, hash=False, timeout=NO_WORKER_S)
        return self._future


def _without(error: type[BaseException]) -> Callable[[logging.LogRecord], bool]:
    """Return a filter that drops records of an error.

    A task of a lost worker is cancelled. This executor is told by the task itself, so the stack trace that Dask's event
    loop logs as well says nothing new.
    """

    def is_kept(record: logging.LogRecord) -> bool:
        return record.exc_info is None or not isinstance(record.exc_info[1], error)

    return is_kept
