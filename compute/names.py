"""The names of executors, and the executor of a name."""

import re
from dataclasses import dataclass
from typing import Literal, assert_never

from quercus.belief.errors import InvalidInput, shown
from quercus.compute.executor import Executor
from quercus.compute.local import LocalExecutor
from quercus.specification.compute import EXECUTOR, MAX_PROCESSES

FORM = (
    f"must be local, processes:N with N a whole number in [1, {MAX_PROCESSES}], "
    "or dask://host:port with a port in [1, 65535]"
)


@dataclass(frozen=True, slots=True)
class ExecutorName:
    """The name of an executor in its parts.

    Parameters
    ----------
    kind
        Kind of the executor.
    processes
        Number of processes of ``processes:N``; otherwise 0.
    host, port
        Address of a Dask scheduler; otherwise empty and 0.
    """

    kind: Literal["local", "processes", "dask"]
    processes: int = 0
    host: str = ""
    port: int = 0


def parse_executor(name: str) -> ExecutorName:
    """Return the parts of an executor's name.

    Raises
    ------
    InvalidInput
        When it is none.

    Examples
    --------
    >>> parse_executor("processes:4").processes, parse_executor("dask://[::1]:8786").host
    (4, '::1')
    >>> parse_executor("processes:0")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    quercus.belief.errors.InvalidInput: executor: is 'processes:0', must be local, processes:N with N a whole number ...
    """
    EXECUTOR.check(name)
    if name == "local":
        return ExecutorName("local")
    if match := re.fullmatch(r"processes:([0-9]{1,9})", name, re.ASCII):
        processes = int(match[1])
        if 1 <= processes <= MAX_PROCESSES:
            return ExecutorName("processes", processes)
    if match := re.fullmatch(
        r"dask://(?:\[([0-9a-fA-F:.]{2,45})\]|([\w.-]{1,253})):([0-9]{1,5})", name, re.ASCII
    ):
        port = int(match[3])
        if 1 <= port <= 65535:
            return ExecutorName("dask", host=match[1] or match[2], port=port)
    raise InvalidInput(EXECUTOR.name, f"is {shown(name)}, {FORM}")


def open_executor(name: str = EXECUTOR.default) -> Executor:
    """Return the executor of a name; to be used in a ``with`` block.

    Raises
    ------
    InvalidInput
        When the name is none, or Dask would speak without TLS to another machine.
    ExecutorError
        When there is no scheduler, or no worker.
    """
    parts = parse_executor(name)
    if parts.kind == "local":
        return LocalExecutor()
    if parts.kind == "processes":
        from quercus.compute.processes import ProcessExecutor  # noqa: PLC0415  (started only when asked for)

        return ProcessExecutor(parts.processes)
    if parts.kind == "dask":
        from quercus.compute.dask_cluster import DaskExecutor  # noqa: PLC0415  (the dask extra)

        return DaskExecutor(parts.host, parts.port)
    assert_never(parts.kind)
