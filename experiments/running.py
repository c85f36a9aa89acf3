"""Works through the cells of a grid, in this process or in several."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Protocol

from quercus.belief.errors import InvalidInput
from quercus.experiments.results import Job, Results, Row

AHEAD = 4
"""Cells handed out for each process: it never waits for work, and few are lost when the run is interrupted."""


class Work(Protocol):
    """A protocol with its settings and its data; it goes to other processes, so it must pickle."""

    def do(self, cell: Job) -> list[Row]:
        """Return the measurements of a cell; they depend on the work's settings and the cell alone."""


@dataclass(frozen=True)
class UnsuitableData:
    """A cell that cannot be: the learner does not take such data."""

    cell: Job
    reason: str


def run(
    work: Work, cells: Sequence[Job], results: Results, jobs: int, done: Callable[[Job], None]
) -> list[UnsuitableData]:
    """Do cells and append their measurements.

    Parameters
    ----------
    work
        Does them.
    cells
        To do, in this order.
    results
        Takes the measurements.
    jobs
        Number of processes; 1: this one.
    done
        Is told each cell that is done.

    Returns
    -------
    list of UnsuitableData
        The cells that the learner refused.
    """
    refusals = []
    outcomes = _here(work, cells) if jobs == 1 else _in_processes(work, cells, jobs)
    with closing(outcomes):
        for cell, outcome in outcomes:
            if isinstance(outcome, UnsuitableData):
                refusals.append(outcome)
            else:
                results.add(outcome)
            done(cell)
    return refusals


Outcome = list[Row] | UnsuitableData


def _do(work: Work, cell: Job) -> Outcome:
    try:
        return work.do(cell)
    except InvalidInput as error:
        return UnsuitableData(cell, str(error))
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):  # it came while compiled code ran
            raise KeyboardInterrupt from error
        raise
    except Exception as error:
        error.add_note(f"in the cell {cell}")
        raise


def _here(work: Work, cells: Sequence[Job]) -> Generator[tuple[Job, Outcome]]:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (comes with scikit-learn)

    with threadpool_limits(1):  # as in the processes: sums over other numbers of threads may round otherwise
        for cell in cells:
            yield cell, _do(work, cell)


def _in_processes(work: Work, cells: Sequence[Job], jobs: int) -> Generator[tuple[Job, Outcome]]:
    with _pool(work, jobs) as pool:
        waiting: dict[Future[Outcome], Job] = {}
        left = iter(cells)
        while True:
            while len(waiting) < AHEAD * jobs and (cell := next(left, None)) is not None:
                waiting[_submit(pool, cell)] = cell
            if not waiting:
                return
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield waiting.pop(future), future.result()


def _submit(pool: ProcessPoolExecutor, cell: Job) -> "Future[Outcome]":
    """Hand out a cell. The first one starts the processes, and they inherit that Ctrl-C is for this one alone."""
    if threading.current_thread() is not threading.main_thread():
        return pool.submit(_work_on, cell)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        return pool.submit(_work_on, cell)
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _pool(work: Work, jobs: int) -> Iterator[ProcessPoolExecutor]:
    """Give a pool whose processes end at once when the block ends in an error, Ctrl-C among them."""
    others = set(multiprocessing.active_children())
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(work,))
    try:
        yield pool
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


_work: Work | None = None
"""In a process of the pool: what it works on."""


def _start(work: Work) -> None:
    from threadpoolctl import threadpool_limits  # noqa: PLC0415  (comes with scikit-learn)

    global _work  # noqa: PLW0603  (sent once a process, not once a cell)
    _work = work
    threadpool_limits(1)
    threading.Thread(target=_end_with_parent, name="quercus-parent", daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _work_on(cell: Job) -> Outcome:
    if _work is None:
        raise RuntimeError("the process was not started by the pool")
    return _do(_work, cell)
