"""Tasks in chunks that are worth sending, and their execution by a worker.

The function of the tasks goes to a worker once (`RemoteFunction`). A chunk lasts at least a tenth of a second, judged
by the tasks before it. The results do not depend on the division of the tasks.
"""

import math
import pickle
import platform
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quercus.compute.errors import ExecutorError

CHUNK_S = 0.1
"""Least time that a chunk should last: sending one costs some milliseconds."""
MOST_TASKS = 1_000
"""Most tasks of a chunk."""
MOST_LOSSES = 3
"""Number of times that the worker of a chunk may be lost."""


@dataclass(frozen=True, slots=True)
class FailedChunk:
    """The outcome of a task that raised."""

    error: Exception


@dataclass(frozen=True, slots=True)
class RemoteFunction:
    """A function in the form that is sent to workers.

    Parameters
    ----------
    digest
        Identifies the function.
    place
        A file that holds the pickled function, or the bytes themselves.
    environment
        Description of the calling process's environment, see `environment_properties`.
    """

    digest: str
    place: Path | bytes
    environment: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TaskChunk:
    """Tasks that go to a worker together: the numbers from `first` on, and how often their worker was lost."""

    first: int
    count: int
    losses: int = 0


class ChunkPlan:
    """Divides tasks into chunks, by the time that earlier ones took.

    Parameters
    ----------
    tasks
        Number of tasks.
    """

    def __init__(self, tasks: int) -> None:
        self._tasks = tasks
        self._next = 0
        self._again: deque[TaskChunk] = deque()
        self._completed_tasks, self._seconds = 0, 0.0

    def next_chunk(self, workers: int) -> TaskChunk | None:
        """Return the next chunk, None when all tasks are assigned. No worker gets more than its share of the rest."""
        if self._again:
            return self._again.popleft()
        left = self._tasks - self._next
        if not left:
            return None
        count = 1
        if self._completed_tasks:
            count = math.ceil(CHUNK_S * self._completed_tasks / max(self._seconds, 1e-9))
        count = max(1, min(count, MOST_TASKS, left // max(1, workers)))
        self._next += count
        return TaskChunk(self._next - count, count)

    def record_time(self, tasks: int, seconds: float) -> None:
        """Note the time that tasks took."""
        self._completed_tasks += tasks
        self._seconds += seconds

    def return_lost(self, chunk: TaskChunk, executor: str, why: BaseException) -> None:
        """Return a chunk to the plan after its worker was lost.

        Raises
        ------
        ExecutorError
            When the chunk lost its worker too often.
        """
        losses = chunk.losses + 1
        if losses > MOST_LOSSES:
            last = chunk.first + chunk.count - 1
            raise ExecutorError(
                f"executor {executor}: tasks {chunk.first} to {last} lost their worker {losses} times, "
                f"at most {MOST_LOSSES} are made good; is memory short? ({type(why).__name__}: {why})"
            ) from why
        self._again.append(TaskChunk(chunk.first, chunk.count, losses))


def run_task(fn: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    """Return the result of a task, or `FailedChunk`."""
    try:
        return fn(*arguments)
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # it came while compiled code ran
            raise KeyboardInterrupt from error
        return FailedChunk(error)
    except Exception as error:
        return FailedChunk(error)


def do_chunk(job: RemoteFunction, tasks: bytes) -> tuple[float, bytes]:
    """Do the tasks of a chunk up to the first that fails, in a worker.

    Parameters
    ----------
    job
        The function.
    tasks
        The pickled list of argument tuples.

    Returns
    -------
    seconds
        Seconds that the tasks took.
    outcomes
        The pickled list of results; the last one may be `FailedChunk`.

    Raises
    ------
    ExecutorError
        When this process is not like the one that asks.
    """
    if environment_properties() != job.environment:
        raise ExecutorError(
            f"a worker runs {', '.join(environment_properties())}; the tasks come from {', '.join(job.environment)}"
        )
    fn = _function_of(job)
    arguments = pickle.loads(tasks)  # noqa: S301 - of the process that started this one, or over TLS
    started = time.perf_counter()
    outcomes: list[Any] = []
    for each in arguments:
        outcomes.append(run_task(fn, each))
        if isinstance(outcomes[-1], FailedChunk):
            outcomes[-1] = _sendable_failure(outcomes[-1])
            break
    return time.perf_counter() - started, pickle.dumps(outcomes)


def environment_properties() -> tuple[str, ...]:
    """Return the properties that may affect results besides the arguments: versions, and the kind of processor."""
    import numpy as np  # noqa: PLC0415

    from quercus import __version__  # noqa: PLC0415

    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    return f"Quercus {__version__}", python, f"NumPy {np.__version__}", platform.machine()


_last: tuple[str, Callable[..., Any]] | None = None
"""Function of a worker's last chunk, so that the chunks of one job unpickle it once."""


def _function_of(job: RemoteFunction) -> Callable[..., Any]:
    global _last  # noqa: PLW0603  (once a worker and job, not once a chunk)
    known = _last
    if known is None or known[0] != job.digest:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415  (comes with scikit-learn)

        threadpool_limits(1)  # for good: sums over another number of threads may round otherwise
        data = job.place if isinstance(job.place, bytes) else job.place.read_bytes()
        known = _last = job.digest, pickle.loads(data)  # noqa: S301 - as above
    return known[1]


def _sendable_failure(failed: FailedChunk) -> FailedChunk:
    """Return a failure that survives pickling, with the trace of where it happened."""
    error = failed.error
    where = "".join(traceback.format_exception(error)).rstrip()
    try:
        error.add_note(f"in a worker:\n{where}")
        pickle.loads(pickle.dumps(error))  # noqa: S301 - made a line before
    except Exception:  # pickling an exception can raise any error
        error = RuntimeError(f"{type(failed.error).__name__}: {failed.error}")
        error.add_note(f"in a worker:\n{where}")
    return FailedChunk(error)


def pickled_chunk(tasks: Sequence[tuple[Any, ...]], chunk: TaskChunk) -> bytes:
    """Return the pickled arguments of a chunk."""
    return pickle.dumps(list(tasks[chunk.first : chunk.first + chunk.count]))
