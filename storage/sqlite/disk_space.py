"""The free space of a store's disk, and the reserve file that keeps some of it for deletions.

SQLite writes every page that it changes into the write-ahead log first. So on a full disk nothing can be deleted, and
the store could never help itself. The server therefore keeps a file of some MiB beside the store, and removes it when a
model cannot be deleted otherwise; its rows go in parts that are much smaller (see `removal`).
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from quercus.storage.errors import NoSpace, ReadOnlyStore, StoreError

ROOM_BYTES: Final = 2**20
"""With less than this on the disk, what was refused for want of space is not tried again."""

RESERVE_BYTES: Final = 2**24
"""What is kept to delete with."""

RESERVE: Final = "-reserve"
"""Behind the store's name."""

NO_SPACE: Final = (
    "cannot grow: no space is left on the disk; free some, or delete a model, and writing goes on by itself"
)

_MEANINGS: Final[dict[int | None, type[StoreError]]] = {
    errno.ENOSPC: NoSpace,
    errno.EDQUOT: NoSpace,
    errno.EACCES: ReadOnlyStore,
    errno.EPERM: ReadOnlyStore,
    errno.EROFS: ReadOnlyStore,
}


class DiskSpace:
    """The disk of one store. What the system refuses is a `StoreError`.

    Parameters
    ----------
    store : the file.
    """

    def __init__(self, store: Path) -> None:
        self.store = store
        self.reserve = store.with_name(store.name + RESERVE)

    def left_bytes(self) -> int:
        """Free bytes on the disk, without the reserve."""
        with self._translated("cannot tell how much room its disk has"):
            disk = os.statvfs(self.store.parent)
        return disk.f_bavail * disk.f_frsize

    def check(self, driver: sqlite3.Connection) -> None:
        """Raise when next to nothing is left, neither on the disk nor in the write-ahead log."""
        if self.left_bytes() < ROOM_BYTES:
            self.settle(driver)
        if (left := self.left_bytes()) < ROOM_BYTES:
            raise NoSpace(f"{self.store} {NO_SPACE} ({left // 1024:,} KiB are left)")

    def keep(self) -> None:
        """Make the reserve where it is not there, and more than it is left."""
        with self._translated(f"has no room to delete models with: {self.reserve} cannot be made"):
            if self._is_kept() or self.left_bytes() < RESERVE_BYTES + ROOM_BYTES:
                return
            self._make_reserve()

    def _is_kept(self) -> bool:
        """Whether the reserve is there; one that a killed server left short is removed."""
        with suppress(FileNotFoundError):
            if self.reserve.stat().st_size >= RESERVE_BYTES:
                return True
            self.reserve.unlink()
        return False

    def _make_reserve(self) -> None:
        with suppress(FileExistsError):
            file = os.open(self.reserve, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            try:
                _allocate_file(file, RESERVE_BYTES)
            except OSError:  # somebody took the room meanwhile: there is no reserve then
                self.reserve.unlink()
            finally:
                os.close(file)

    def give(self, driver: sqlite3.Connection) -> None:
        """Remove the reserve, and the write-ahead log as far as it is in the store's file by now."""
        with self._translated(f"has no room to delete models with: {self.reserve} cannot be removed"):
            self.reserve.unlink(missing_ok=True)
        self.settle(driver)

    def settle(self, driver: sqlite3.Connection) -> None:
        """Move the write-ahead log into the store's file, and give its room back.

        Not where the file cannot grow by what the log brings, which would take the last room for nothing; nor while
        somebody reads in the log.
        """
        (pages,) = driver.execute("PRAGMA page_count").fetchone()
        (size,) = driver.execute("PRAGMA page_size").fetchone()
        with self._translated("cannot be looked at"):
            grows = pages * size - self.store.stat().st_size
        if grows > self.left_bytes():
            return
        (busy_ms,) = driver.execute("PRAGMA busy_timeout").fetchone()
        driver.execute("PRAGMA busy_timeout = 0")
        try:
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError:  # somebody took the room meanwhile; the log is as good as it was
            pass
        finally:
            driver.execute(f"PRAGMA busy_timeout = {busy_ms}")

    @contextmanager
    def _translated(self, trouble: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = _MEANINGS.get(error.errno, StoreError)
            raise kind(f"{self.store} {trouble} ({error.strerror})") from error


def _allocate_file(file: int, count: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, count)
        return
    for _ in range(0, count, ROOM_BYTES):  # what would be compressed away is no reserve
        os.write(file, os.urandom(ROOM_BYTES))
