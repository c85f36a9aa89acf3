"""Processes take turns: what one compiles, another one waits for, and loads."""

import os
import sys
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

FILE: Final = "turns"
LONGEST_S: Final = 30.0
"""Longest wait: a process that holds a turn may be stopped, and not go on."""

LOOK_S: Final = 0.02


@contextmanager
def taking_turn(folder: str | None, name: str) -> Iterator[None]:
    """Hold the turn at `name` inside; wait while another process holds it, but not for ever.

    Kernels do not call each other in a circle, so processes do not wait for each other in one either. Without a
    `folder` to share, or where the file system has no locks, nobody waits, and both do the work.
    """
    held = _lock_turn(folder, name, LONGEST_S)
    try:
        yield
    finally:
        if held:
            _unlock_turn(folder, name)


def take_turn(folder: str | None, name: str) -> bool:
    """Take the turn at `name` until this process ends; False where another process holds it or nobody can."""
    return _lock_turn(folder, name)


def is_taken(folder: str | None, name: str) -> bool:
    """Return whether another process holds the turn at `name`, or nobody can."""
    free = _lock_turn(folder, name)
    if free:
        _unlock_turn(folder, name)
    return not free


if sys.platform == "win32":

    def _lock_turn(folder: str | None, name: str, longest_s: float = 0.0) -> bool:
        return False

    def _unlock_turn(folder: str | None, name: str) -> None:
        pass

else:
    import fcntl

    def _lock_turn(folder: str | None, name: str, longest_s: float = 0.0) -> bool:
        if folder is None:
            return False
        until = time.monotonic() + longest_s
        try:
            file = _lock_file(folder)
            while not _lock_at_once(file, _byte_of(name)):
                if time.monotonic() >= until:
                    return False
                time.sleep(LOOK_S)
        except OSError:
            return False
        return True

    def _lock_at_once(file: int, place: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
        except (BlockingIOError, PermissionError):  # another process has it
            return False
        return True

    def _unlock_turn(folder: str | None, name: str) -> None:
        if folder is not None:
            fcntl.lockf(_lock_file(folder), fcntl.LOCK_UN, 1, _byte_of(name))

    @cache
    def _lock_file(folder: str) -> int:
        """Return a descriptor that stays open: closing one ends all locks of the process on its file."""
        return os.open(os.path.join(folder, FILE), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def _byte_of(name: str) -> int:
        """Return the byte of the file that stands for a name. Two names on one byte only wait without need."""
        return zlib.crc32(name.encode())
