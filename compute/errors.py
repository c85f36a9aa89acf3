"""Errors of an executor itself, as opposed to those of its tasks."""


class ExecutorError(RuntimeError):
    """An executor cannot run its tasks: a lost scheduler, a task that ends its workers, a worker of another version."""
