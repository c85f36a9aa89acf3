"""Executors, which run tasks in this process, in processes of this machine, or on the workers of a Dask cluster.

A task is a pure function of its argument, so its result does not depend on where it runs. Results come in the order of
the tasks, or as they finish. `open_executor` takes the name of an executor: ``local``, ``processes:N`` or
``dask://host:port``.
"""

if __name__ != "quercus.compute":  # by another name every class would exist twice
    raise ImportError(f"import quercus.compute, not {__name__}")

from quercus.compute.errors import ExecutorError
from quercus.compute.executor import Executor
from quercus.compute.names import ExecutorName, open_executor, parse_executor

__all__ = ["Executor", "ExecutorError", "ExecutorName", "open_executor", "parse_executor"]
