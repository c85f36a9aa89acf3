"""The executor that is this process."""

from collections.abc import Callable, Sequence
from typing import Any

from quercus.compute.chunks import run_task
from quercus.compute.executor import Executor, Outcomes


class LocalExecutor(Executor):
    """Does tasks one after another in this process."""

    def _run_tasks(self, fn: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Outcomes:
        from threadpoolctl import threadpool_limits  # noqa: PLC0415  (comes with scikit-learn)

        with threadpool_limits(
            1
        ):  # as in all workers: sums over another number of threads may round otherwise
            for number, task in enumerate(tasks):
                yield number, run_task(fn, task)
