"""Errors of an executor itself, as opposed to those of its tasks."""


class ExecutorError(RuntimeError):
    """An executor cannot do its tasks: a lost scheduler, a task that ends its workers, a worker of another version."""


class CrewLostError(RuntimeError):
    """A worker was lost, and the objects that it kept with it."""
