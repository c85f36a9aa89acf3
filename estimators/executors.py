"""Executors: where the tasks of forests, cross-validations and experiments run (docs/executors.md).

An executor is chosen by name: ``local``, ``processes:N`` (joblib's loky) or ``dask://host:port`` (an existing cluster).
A task is a pure function of its arguments, so its result does not depend on where it runs. Every worker imports this
module, so it imports little itself.
"""

import asyncio
import importlib
import logging
import os
import pickle
import platform
import re
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from queue import Empty, SimpleQueue
from typing import Any, Final

from quercus.belief.errors import InvalidInput, shown
from quercus.specification.distribution import install_command
from quercus.specification.executor import EXECUTOR, MAX_PROCESSES
from quercus.specification.hosts import is_loopback

MOST_LOSSES: Final = 3
"""Maximum number of times that workers may be lost."""
CONNECT_S: Final = 8.0
ANSWER_S: Final = 6.0
"""Maximum wait, in seconds, for a scheduler's response to a small request."""
NO_WORKER_S: Final = 30.0
"""Maximum time, in seconds, without any worker."""
CHECK_S: Final = 2.0
"""Seconds without a result after which the scheduler is asked for its workers."""
CLOSE_S: Final = 1.0


class ExecutorError(RuntimeError):
    """An executor cannot run its tasks: lost scheduler, a task that kills its workers, a worker of another version."""


@dataclass(frozen=True, slots=True)
class FailedTask:
    """The outcome of a task that raised."""

    error: Exception


Outcomes = Generator[tuple[int, Any]]
"""The number of each task, and its result or `FailedTask`, as they finish."""


class Executor:
    """Runs tasks; `open_executor` opens one.

    Tasks are pure functions of their arguments: they may run more than once, in any order, in any process. Seeds are
    part of the arguments. Functions, arguments and results must pickle.

    Parameters
    ----------
    run
        Runs a function for each tuple of arguments.
    """

    def __init__(self, run: Callable[[Callable[..., Any], Sequence[tuple[Any, ...]]], Outcomes]) -> None:
        self._run = run

    def map(self, fn: Callable[..., Any], /, *iterables: Iterable[Any]) -> Generator[Any]:
        """Yield the results of a function, in the order of its arguments, like the built-in ``map``.

        An exception of a task is raised after the results of all tasks before it.
        """
        early: dict[int, Any] = {}
        due = 0
        with closing(self._run(fn, list(zip(*iterables, strict=False)))) as outcomes:
            for number, outcome in outcomes:
                early[number] = outcome
                while due in early:
                    yield _result_of(early.pop(due))
                    due += 1

    def as_finished(self, fn: Callable[[Any], Any], tasks: Sequence[Any]) -> Generator[tuple[int, Any]]:
        """Yield the number and the result of each task, as they finish; the first exception is raised."""
        with closing(self._run(fn, [(task,) for task in tasks])) as outcomes:
            for number, outcome in outcomes:
                yield number, _result_of(outcome)


def _result_of(outcome: Any) -> Any:
    if isinstance(outcome, FailedTask):
        raise outcome.error
    return outcome


def parse_executor(name: str) -> int | tuple[str, int]:
    """Return the number of processes, or host and port of a Dask scheduler, from an executor's name.

    Raises
    ------
    InvalidInput
        If the name is invalid.

    Examples
    --------
    >>> parse_executor("local"), parse_executor("processes:4"), parse_executor("dask://[::1]:8786")
    (1, 4, ('::1', 8786))
    >>> parse_executor("processes:0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    quercus.belief.errors.InvalidInput: executor: is 'processes:0', must be local, processes:N with N a whole number ...
    """
    EXECUTOR.check(name)
    if name == "local":
        return 1
    if match := re.fullmatch(r"processes:([0-9]{1,9})", name):
        processes = int(match[1])
        if 1 <= processes <= MAX_PROCESSES:
            return processes
    if match := re.fullmatch(
        r"dask://(?:\[([0-9a-fA-F:.]{2,45})\]|([\w.-]{1,253})):([0-9]{1,5})", name, re.A
    ):
        port = int(match[3])
        if 1 <= port <= 65535:
            return match[1] or match[2], port
    raise InvalidInput(
        EXECUTOR.name,
        f"is {shown(name)}, must be local, processes:N with N a whole number in [1, {MAX_PROCESSES}], "
        "or dask://host:port with a port in [1, 65535]",
    )


@contextmanager
def open_executor(name: str = EXECUTOR.default) -> Iterator[Executor]:
    """Open the executor with a name, for a ``with`` block.

    Raises
    ------
    InvalidInput
        If the name is invalid, or Dask would connect to another machine without TLS.
    ExecutorError
        If there is no scheduler or no worker.
    """
    place = parse_executor(name)
    if isinstance(place, tuple):
        with _dask_client(name, *place) as client:
            yield Executor(_Cluster(name, client).run)
    else:
        yield Executor(_run_here if place == 1 else partial(_run_in_processes, name, place))


def _run_here(fn: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Outcomes:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (of the extras)

    with threadpool_limits(
        1
    ):  # as in all executors: sums over another number of threads may round differently
        for number, arguments in enumerate(tasks):
            yield number, fn(*arguments)


def _run_in_processes(
    name: str, processes: int, fn: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]
) -> Outcomes:
    """Run tasks in joblib processes. If one dies, joblib ends all of them, and unfinished tasks are started again."""
    from joblib import Parallel, delayed, parallel_config  # noqa: PLC0415  (of the extras)

    left = dict(enumerate(tasks))
    for losses in range(1, MOST_LOSSES + 2):
        calls = [delayed(_run_in_process)(fn, number, arguments) for number, arguments in left.items()]
        with parallel_config("loky", n_jobs=processes, inner_max_num_threads=1):
            outcomes = Parallel(return_as="generator_unordered")(calls)
        try:
            for number, outcome in outcomes:
                del left[number]
                yield number, outcome
            return
        except BrokenProcessPool as error:
            if losses > MOST_LOSSES:
                raise ExecutorError(
                    f"executor {name}: tasks lost their worker {losses} times, at most {MOST_LOSSES} are allowed; "
                    f"is memory short? ({type(error).__name__}: {error})"
                ) from error
        finally:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns of unused results
                outcomes.close()


def _run_in_process(fn: Callable[..., Any], number: int, arguments: tuple[Any, ...]) -> tuple[int, Any]:
    _end_with_parent()
    return number, _outcome_of(fn, arguments)


def _outcome_of(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return the result of a task, or a `FailedTask` that can be pickled and has the worker's traceback."""
    try:
        return fn(*arguments)
    except Exception as raised:
        note = f"in a worker:\n{''.join(traceback.format_exception(raised)).rstrip()}"
        error: Exception = raised
        try:
            error.add_note(note)
            pickle.loads(pickle.dumps(error))  # noqa: S301 - pickled in the same line
        except Exception:  # pickling an exception may raise anything
            error = RuntimeError(f"{type(raised).__name__}: {raised}")
            error.add_note(note)
        return FailedTask(error)


@cache
def _end_with_parent() -> None:
    """End this process when its parent ends for any reason; loky's workers would continue."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, name="quercus-parent", daemon=True).start()


@contextmanager
def _dask_client(name: str, host: str, port: int) -> Iterator[Any]:
    """Connect to a scheduler.

    Every client of a scheduler can run code on its workers, and workers respond with pickles. The connection therefore
    needs TLS with certificates on both sides, from Dask's configuration (``distributed.comm.tls``), except on loopback.
    """
    try:
        distributed: Any = importlib.import_module("distributed")  # the dask extra
    except ImportError as error:
        raise ExecutorError(f"executor dask://: {error}; {install_command('dask')}") from error
    security = distributed.Security()
    uses_tls = security.get_connection_args("client")["ssl_context"] is not None
    if not uses_tls and not is_loopback(host):
        reason = (
            f"is '{name}'; to another machine, Dask must use TLS: set DASK_DISTRIBUTED__COMM__TLS__CA_FILE, "
            "DASK_DISTRIBUTED__COMM__TLS__CLIENT__CERT and DASK_DISTRIBUTED__COMM__TLS__CLIENT__KEY"
        )
        raise InvalidInput(EXECUTOR.name, reason)
    url = f"{'tls' if uses_tls else 'tcp'}://{name.removeprefix('dask://')}"
    try:
        client = distributed.Client(
            url, timeout=CONNECT_S, security=security, set_as_default=False, name="quercus"
        )
    except (OSError, TimeoutError) as error:
        raise ExecutorError(
            f"executor {name}: no scheduler answers at {url} within {CONNECT_S:g} s"
        ) from error
    try:
        yield client
    finally:
        # If Dask is reconnecting to a lost scheduler when it is closed, it may raise anything, and log it too
        log = logging.getLogger("distributed.client")
        before, log.disabled = log.disabled, True
        for _ in range(2):
            with suppress(Exception, asyncio.CancelledError):  # a silent scheduler notices by itself
                client.close(timeout=CLOSE_S)
                break
        else:
            client.status = "closed"  # otherwise it would try again, and fail, when it is garbage-collected
        log.disabled = before


class _Cluster:
    """The workers of a Dask cluster.

    This uses Dask's own client, because joblib's Dask backend waits forever for a task whose worker was lost too often,
    and for a silent scheduler.
    """

    def __init__(self, name: str, client: Any) -> None:
        self._name = name
        self._client = client
        self._seen = time.monotonic()
        while not self._count_workers():
            time.sleep(0.1)

    def run(self, fn: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Outcomes:
        """Run tasks. The scheduler moves tasks of a lost worker to others, or cancels them if the function is lost."""
        pickled, function = pickle.dumps(fn), None
        running: dict[Any, tuple[int, int]] = {}
        finished: SimpleQueue[Any] = SimpleQueue()

        def submit(number: int, losses: int) -> None:
            nonlocal function
            if function is None or function.status != "finished":
                function = self._client.scatter(pickled, broadcast=True, hash=False, timeout=NO_WORKER_S)
            future = self._client.submit(_run_on_worker, _environment(), function, tasks[number], pure=False)
            running[future] = number, losses
            future.add_done_callback(finished.put)

        try:
            for number in range(len(tasks)):
                submit(number, 0)
            while running:
                try:
                    future = finished.get(timeout=CHECK_S)
                except Empty:
                    self._count_workers()
                    continue
                number, losses = running.pop(future)
                try:
                    outcome = self._received(future)
                except CancelledError:
                    self._count_workers()
                    if losses == MOST_LOSSES:
                        raise
                    submit(number, losses + 1)
                else:
                    yield number, outcome
        except ExecutorError:
            raise
        except Exception as error:  # an error of Dask: exceptions of tasks are results
            self._count_workers()
            raise ExecutorError(
                f"executor {self._name}: a worker cannot run tasks: {type(error).__name__}: {error}"
            ) from error

    def _received(self, future: Any) -> Any:
        patience = CHECK_S
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                self._count_workers()
                patience *= 2

    def _count_workers(self) -> int:
        """Return the number of workers.

        Raises
        ------
        ExecutorError
            If the scheduler is lost, or has had no worker for too long.
        """
        if self._client.status != "running":
            raise ExecutorError(f"executor {self._name}: the scheduler is lost")
        try:
            workers = len(self._client.sync(self._client.scheduler.ncores, callback_timeout=ANSWER_S))
        except (OSError, TimeoutError) as error:
            raise ExecutorError(
                f"executor {self._name}: the scheduler has not answered for {ANSWER_S:g} s"
            ) from error
        now = time.monotonic()
        if workers:
            self._seen = now
        elif now - self._seen > NO_WORKER_S:
            raise ExecutorError(
                f"executor {self._name}: the scheduler has had no worker for {NO_WORKER_S:g} s"
            )
        return workers


def _run_on_worker(environment: tuple[str, ...], function: bytes, arguments: tuple[Any, ...]) -> Any:
    if environment != _environment():
        raise ExecutorError(
            f"a worker of the cluster runs {', '.join(_environment())}; the tasks come from {', '.join(environment)}"
        )
    return _outcome_of(_unpickled(function), arguments)


@lru_cache(maxsize=1)
def _unpickled(function: bytes) -> Callable[..., Any]:
    """Return the function of a job (cached for its tasks), and limit linear algebra to one thread from now on."""
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (of the extras)

    fn: Callable[..., Any] = pickle.loads(function)  # noqa: S301 - from the client, over TLS
    threadpool_limits(1)
    return fn


def _environment() -> tuple[str, ...]:
    """Return everything besides the arguments that may affect results: versions and the kind of processor."""
    import numpy as np  # noqa: PLC0415

    from quercus import __version__  # noqa: PLC0415

    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return f"Quercus {__version__}", python, f"NumPy {np.__version__}", platform.machine()
