"""Tasks for executors: they must be importable in worker processes."""

import os
import signal
import time
from functools import partial
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from quercus.belief.errors import InvalidInput
from quercus.estimators.executors import open_executor


def draw(seed):
    """Numbers that depend on every bit of the seed, and on nothing else."""
    generator = np.random.default_rng(seed)
    square = generator.normal(size=(40, 40))
    return (square @ square).sum(axis=0), os.getpid()


def end_own_process(folder, number, times=1):
    """Task 3 kills the process that it runs in, so many times."""
    if number == 3:
        deaths = len(list(Path(folder).iterdir()))
        if deaths < times:
            (Path(folder) / str(deaths)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.02)
    return number**2


def refuse_seven(number):
    if number == 7:
        raise InvalidInput("number", "is 7, must be another")
    return number


class StubbornError(Exception):
    """An exception that no pickle brings back."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def raise_stubborn(number):
    raise StubbornError(number, "more")


def say_and_wait(folder, number):
    (Path(folder) / str(number)).touch()
    until = time.monotonic() + 60
    while not (Path(folder) / "end").exists() and time.monotonic() < until:
        time.sleep(0.05)


def process_of(folder, _number):
    """The process of this task, which waits until another process has one: a busy machine lets one do them all."""
    (Path(folder) / str(os.getpid())).touch()
    until = time.monotonic() + 60
    while len(list(Path(folder).iterdir())) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    return os.getpid()


def count_blas_threads(_number):
    """The numbers of threads of all libraries of linear algebra here."""
    np.ones((2, 2)) @ np.ones((2, 2))
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def is_mapped(array, _number):
    """Return whether an array lies in a file that processes share."""
    return isinstance(array, np.memmap)


def lead(folder):
    """Wait for tasks of two processes."""
    with open_executor("processes:2") as there:
        list(there.map(partial(say_and_wait, folder), range(4)))
