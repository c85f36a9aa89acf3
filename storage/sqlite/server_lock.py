"""The lock by which only one server at a time grows the trees of a store.

It is a lock of the operating system, which ends with its process. It is on the store's own file, so it cannot be
removed without removing the store, which a server notices at every call (`StoreFile.check_in_place`). SQLite locks
other bytes of the file, with locks that belong to a process, while this one belongs to an open file. The file
`NAME-server` beside the store names the holder, only for messages: it may be deleted, and stays when the server ends.
On systems without locks of open files (outside Linux), that file is locked instead.
"""

import fcntl
import os
import struct
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from quercus.storage.errors import StoreBusy, StoreError

SUFFIX: Final = "-server"
PATIENCE_S: Final = 1.0  # a process that was killed may take a moment to end
RETRY_S: Final = 0.05
PLACE: Final = 2**62  # offset of the locked byte, far beyond any that SQLite locks or writes
FLOCK: Final = "hhqqi4x"  # struct flock of the C library, on 64 bits: type, whence, start, length, process

# When a process closes any descriptor of a file, the system drops all SQLite locks of the process on that file. So one
# descriptor per file, by device and inode, is opened, used again, and never closed.
_descriptors: dict[tuple[int, int], int] = {}
_held: set[tuple[int, int]] = set()  # locked by this process, to which the system would grant the lock again
_opening = threading.Lock()
_HAS_FILE_LOCKS: Final = hasattr(fcntl, "F_OFD_SETLK")


class ServerLock:
    """The lock, held from creation until it is closed.

    Parameters
    ----------
    store : file of the store, which must exist.
    holder : description of this process, for the error of others.

    Raises
    ------
    StoreBusy
        If another server has the lock.
    StoreError
        If the file cannot be opened or locked.
    """

    def __init__(self, store: Path, holder: str) -> None:
        real = store.resolve()
        words = real.with_name(real.name + SUFFIX)
        self._file: tuple[int, int] | None = _take_lock(real if _HAS_FILE_LOCKS else words, store, words)
        with suppress(OSError):  # on a full disk the lock is valid, but its holder cannot be written
            words.write_text(holder)

    def close(self) -> None:
        """Release the lock; a second call does nothing."""
        file, self._file = self._file, None
        if file is not None:
            with _opening:
                _lock_file(_descriptors[file], fcntl.F_UNLCK)
                _held.discard(file)


def _take_lock(place: Path, store: Path, words: Path) -> tuple[int, int]:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            if (file := _try_lock(place)) is not None:
                return file
        except OSError as error:
            raise StoreError(f"{store} cannot be locked: {error.strerror}") from error
        if time.monotonic() >= deadline:
            raise StoreBusy(
                f"{store} is served by {_holder_words(words)} already: stop that one first; a server that shares the "
                "store needs QUERCUS_GROWER=false, because only one may grow its trees"
            )
        time.sleep(RETRY_S)


def _try_lock(place: Path) -> tuple[int, int] | None:
    """Return the file, now locked; None if another process has its lock."""
    with _opening:
        if not _HAS_FILE_LOCKS:
            place.touch()
        file = _file_identity(place.stat())
        if file not in _descriptors:
            descriptor = os.open(place, os.O_RDWR | os.O_CLOEXEC)
            file = _file_identity(os.fstat(descriptor))  # the file may have been replaced at this moment
            _descriptors.setdefault(file, descriptor)
        if file in _held:
            return None
        try:
            _lock_file(_descriptors[file], fcntl.F_WRLCK)
        except BlockingIOError:
            return None
        _held.add(file)
        return file


def _file_identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _lock_file(descriptor: int, kind: int) -> None:
    if not _HAS_FILE_LOCKS:
        fcntl.flock(descriptor, fcntl.LOCK_UN if kind == fcntl.F_UNLCK else fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack(FLOCK, kind, os.SEEK_SET, PLACE, 1, 0))


def _holder_words(words: Path) -> str:
    with suppress(OSError):
        return words.read_bytes()[:500].decode(errors="replace") or "another process"
    return "another process"
