"""Processes take turns: what one compiles, another one waits for, and loads."""

import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

FILE: Final = "turns"


@contextmanager
def taking_turn(folder: str | None, name: str) -> Iterator[None]:
    """Hold the turn at `name` inside; wait while another process holds it.

    Kernels do not call each other in a circle, so processes do not wait for each other in one either. Without a
    `folder` to share, or where the file system has no locks, nobody waits, and both do the work.
    """
    held = _lock(folder, name, wait=True)
    try:
        yield
    finally:
        if held:
            _unlock(folder, name)


def take_turn(folder: str | None, name: str) -> bool:
    """Take the turn at `name` until this process ends; False where another process holds it or nobody can."""
    return _lock(folder, name, wait=False)


def is_taken(folder: str | None, name: str) -> bool:
    """Return whether another process holds the turn at `name`, or nobody can."""
    free = _lock(folder, name, wait=False)
    if free:
        _unlock(folder, name)
    return not free


if sys.platform == "win32":

    def _lock(folder: str | None, name: str, *, wait: bool) -> bool:
        return False

    def _unlock(folder: str | None, name: str) -> None:
        pass

else:
    import fcntl

    def _lock(folder: str | None, name: str, *, wait: bool) -> bool:
        if folder is None:
            return False
        try:
            fcntl.lockf(_file(folder), fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB), 1, _place(name))
        except OSError:
            return False
        return True

    def _unlock(folder: str | None, name: str) -> None:
        if folder is not None:
            fcntl.lockf(_file(folder), fcntl.LOCK_UN, 1, _place(name))

    @cache
    def _file(folder: str) -> int:
        """Return a descriptor that stays open: closing one ends all locks of the process on its file."""
        return os.open(os.path.join(folder, FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _place(name: str) -> int:
        """Return the byte of the file that stands for a name. Two names on one byte only wait without need."""
        return zlib.crc32(name.encode())
