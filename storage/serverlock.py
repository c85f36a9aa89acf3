"""One growing server a store: a lock of the operating system, which ends with the process however it ends.

It lies on a file of its own beside the store, `NAME-server`, because locks on SQLite's own files are SQLite's. The file
stays when the server is gone; only the lock counts, and what is in it is for messages.
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path

from quercus.storage.errors import StoreBusy, StoreError

SUFFIX = "-server"
PATIENCE_S = 1.0  # a process that was killed may take a moment to be gone
RETRY_S = 0.05


class ServerLock:
    """The lock, held from the moment it is made until it is closed.

    Parameters
    ----------
    store : file of the store.
    holder : who takes it, in words for whoever comes second.

    Raises
    ------
    StoreBusy
        Another server has it.
    StoreError
        The file cannot be made.
    """

    def __init__(self, store: Path, holder: str) -> None:
        path = store.resolve().with_name(store.resolve().name + SUFFIX)
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise StoreError(f"{path} cannot be opened: {error.strerror}") from error
        try:
            _wait_for(self._descriptor, store)
            with suppress(OSError):  # on a full disk the lock counts, and who has it cannot be told
                os.ftruncate(self._descriptor, 0)
                os.pwrite(self._descriptor, holder.encode(), 0)
        except BaseException:
            os.close(self._descriptor)
            raise

    def close(self) -> None:
        """Let the next have it; a second call does nothing."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def _wait_for(descriptor: int, store: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() >= deadline:
                holder = os.pread(descriptor, 500, 0).decode(errors="replace") or "another process"
                raise StoreBusy(
                    f"{store} is served by {holder} already, and two servers would both grow its trees: "
                    "stop that one first, or set QUERCUS_GROWER=false for this one to share the store"
                ) from None
        except OSError as error:
            raise StoreError(f"{store} cannot be locked: {error.strerror}") from error
        time.sleep(RETRY_S)
