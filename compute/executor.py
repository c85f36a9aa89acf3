"""The interface of executors: results in order, or as they finish."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from types import TracebackType
from typing import Any, Self

from quercus.compute.chunks import FailedChunk

Outcomes = Generator[tuple[int, Any]]


class Executor(ABC):
    """Runs tasks; used in a ``with`` block, which ends the processes that it started.

    Tasks are pure functions of their arguments: they may run more than once, in any order, in any process. Seeds are
    part of the arguments. Functions, arguments and results must pickle.
    """

    def map(self, fn: Callable[..., Any], /, *iterables: Iterable[Any]) -> Generator[Any]:
        """Yield the results of a function, in the order of its arguments, as the built-in ``map`` does.

        A task that raises raises here, after the results of all tasks before it.
        """
        tasks = list(zip(*iterables, strict=False))
        early: dict[int, Any] = {}
        due = 0
        with closing(self._run_tasks(fn, tasks)) as outcomes:
            for number, outcome in outcomes:
                early[number] = outcome
                while due in early:
                    yield _result_or_raise(early.pop(due))
                    due += 1

    def as_finished(self, fn: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
        """Yield the number and the result of each task, as they finish. The first that raises raises here."""
        with closing(self._run_tasks(fn, [(task,) for task in tasks])) as outcomes:
            for number, outcome in outcomes:
                yield number, _result_or_raise(outcome)

    @abstractmethod
    def _run_tasks(self, fn: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Outcomes:
        """Yield the number of each task and its result or `FailedChunk`, as they finish."""

    def close(self, *, at_once: bool = False) -> None:  # noqa: B027 - most, but not all, have something to end
        """End the started processes; `at_once`: without waiting for running tasks."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(at_once=error is not None)


def _result_or_raise(outcome: Any) -> Any:
    if isinstance(outcome, FailedChunk):
        raise outcome.error
    return outcome
