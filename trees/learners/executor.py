"""The part of an executor that learners need; those of `quercus.estimators.executors` have more."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol


class TaskExecutor(Protocol):
    """Any `concurrent.futures.Executor`, or any of `quercus.estimators.executors`."""

    def map(self, fn: Callable[..., Any], /, *iterables: Iterable[Any]) -> Iterable[Any]:
        """Return the results of `fn`, in order."""
