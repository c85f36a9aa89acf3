"""The free space of a store's disk, and the reserve file, which keeps some of it for deletions.

SQLite writes every page that it changes into the write-ahead log first. So on a full disk, nothing could be deleted to
make space; the store could not even be opened, because that creates files beside it. Every server therefore keeps a
reserve, a file of some MiB beside the store. It is removed when there is no other space to delete a model, whose rows
are removed in much smaller parts (see `removal`), and then created again, as large as space allows.

SQLite commits to the log, and must later fit the data into the file. So if little space is left, the file may grow only
as far as the log keeps its own space. Pages that a deletion freed may always be written.
"""

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from quercus.storage.errors import NoSpace, ReadOnlyStore, StoreError

ROOM_BYTES: Final = 2**20
"""Least free bytes of the disk for writes."""

PLENTY_BYTES: Final = 2**26
"""With this many free bytes, the growth of the file is not limited."""

RESERVE_BYTES: Final = 2**24
"""Bytes reserved so that models can be deleted on a full disk."""

LOG_BYTES: Final = 2**22
"""Bytes left free for the write-ahead log: it grows to this size (1,000 pages) before SQLite checkpoints it."""

RESERVE: Final = "-reserve"
"""Suffix of the file that reserves the space, after the store's name."""

NO_SPACE: Final = (
    "cannot grow: no space is left on the disk; free some, or delete a model, and writing goes on by itself"
)

_MOST_PAGES: Final = 2**31 - 2  # most pages that every version of SQLite accepts
_LIMIT: Final = "quercus_most_pages"

_MEANINGS: Final[dict[int | None, type[StoreError]]] = {
    errno.ENOSPC: NoSpace,
    errno.EDQUOT: NoSpace,
    errno.EACCES: ReadOnlyStore,
    errno.EPERM: ReadOnlyStore,
    errno.EROFS: ReadOnlyStore,
}


class DiskSpace:
    """The disk of one store. Errors of the operating system become a `StoreError`.

    Parameters
    ----------
    store : the file, not a link to it.

    Attributes
    ----------
    folder : folder of the store, its reserve and its log.
    """

    def __init__(self, store: Path) -> None:
        self.store = store
        self.reserve = store.with_name(store.name + RESERVE)
        self._log = store.with_name(store.name + "-wal")
        self.folder = store.parent

    def left_bytes(self) -> int:
        """Return the free bytes on the disk, without those of the reserve."""
        with self._translating_errors("cannot tell how much room its disk has"):
            disk = os.statvfs(self.folder)
        return disk.f_bavail * disk.f_frsize

    def check_space(self, driver: sqlite3.Connection) -> None:
        """Raise `NoSpace` if almost no space is left for the write-ahead log, or for the growth of the file."""
        if self.left_bytes() < ROOM_BYTES:
            self._empty_log(driver)
        left = self.left_bytes()
        if left < PLENTY_BYTES and min(left, self._writable_bytes(driver, left)) < ROOM_BYTES:
            raise NoSpace(f"{self.store} {NO_SPACE} ({left // 1024:,} KiB are left)")

    def limit_growth(self, driver: sqlite3.Connection, info: dict[Any, Any]) -> None:
        """Limit the growth of the file if the disk has little space; `info` lasts as long as the connection."""
        left = self.left_bytes()
        pages = _MOST_PAGES
        if left < PLENTY_BYTES:
            growth = max(0, self._growth_bytes(driver, left))
            pages = _read_pragma(driver, "page_count") + growth // _read_pragma(driver, "page_size")
        if pages != info.get(_LIMIT, _MOST_PAGES):
            driver.execute(f"PRAGMA max_page_count = {pages}")
            info[_LIMIT] = pages

    def _writable_bytes(self, driver: sqlite3.Connection, left: int) -> int:
        """Return the bytes that can be stored in free pages of the file, and by growing it."""
        return _free_bytes(driver) + max(0, self._growth_bytes(driver, left))

    def _growth_bytes(self, driver: sqlite3.Connection, left: int) -> int:
        """Return the bytes by which the file may grow while the log keeps its space; negative if not at all."""
        return left - ROOM_BYTES - max(0, LOG_BYTES - self._log_bytes()) - self._due_bytes(driver)

    def _due_bytes(self, driver: sqlite3.Connection) -> int:
        """Return the bytes by which the file will grow when the log is checkpointed."""
        with self._translating_errors("cannot be looked at"):
            held = self.store.stat().st_size
        return _read_pragma(driver, "page_count") * _read_pragma(driver, "page_size") - held

    def _log_bytes(self) -> int:
        return _size_bytes(self._log)

    def _empty_log(self, driver: sqlite3.Connection) -> None:
        """Checkpoint the log, with the space of the reserve if that frees more than it uses."""
        self.checkpoint_log(driver)
        if self._log_bytes() > max(ROOM_BYTES, self._due_bytes(driver)) and _size_bytes(self.reserve):
            self.release_reserve(driver)
            self.keep_reserve(driver)

    def is_short(self) -> bool:
        """Return whether the reserve is smaller than it should be."""
        return _size_bytes(self.reserve) < RESERVE_BYTES

    def keep_reserve(self, driver: sqlite3.Connection) -> None:
        """Create the reserve, or enlarge it, as far as that leaves space for the log, and as much again for data."""
        with self._translating_errors(f"has no room to delete models with: {self.reserve} cannot be made"):
            held = _size_bytes(self.reserve)
            spare = held + self.left_bytes() - LOG_BYTES - ROOM_BYTES
            wanted = min(spare, (spare + _free_bytes(driver)) // 2)
            wanted = min(RESERVE_BYTES, wanted - wanted % ROOM_BYTES)
            if wanted > held:
                self._enlarge_reserve(held, wanted)

    def _enlarge_reserve(self, held: int, wanted: int) -> None:
        file = os.open(self.reserve, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        try:
            _allocate_file(file, held, wanted - held)
        except OSError:  # the space was taken meanwhile: the reserve stays
            os.ftruncate(file, held)
        finally:
            os.close(file)

    def shrink_reserve(self) -> None:
        """Shrink the reserve by the space that is needed to open and read the store."""
        with self._translating_errors(
            f"cannot be opened on a full disk: {self.reserve} cannot be made smaller"
        ):
            if held := _size_bytes(self.reserve):
                os.truncate(self.reserve, max(0, held - ROOM_BYTES))

    def release_reserve(self, driver: sqlite3.Connection) -> None:
        """Remove the reserve, and checkpoint the log."""
        with self._translating_errors(f"has no room to delete models with: {self.reserve} cannot be removed"):
            self.reserve.unlink(missing_ok=True)
        self.checkpoint_log(driver)

    def checkpoint_log(self, driver: sqlite3.Connection) -> None:
        """Move the write-ahead log into the store's file, and free its space.

        Do nothing if the file cannot grow enough, because that would use up the last space in vain. The log stays while
        somebody reads it.
        """
        if self._due_bytes(driver) > self.left_bytes():
            return
        busy_ms = _read_pragma(driver, "busy_timeout")
        driver.execute("PRAGMA busy_timeout = 0")
        try:
            driver.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        except sqlite3.OperationalError:  # the space was taken meanwhile; the log is unchanged
            pass
        finally:
            driver.execute(f"PRAGMA busy_timeout = {busy_ms}")

    @contextmanager
    def _translating_errors(self, trouble: str) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            kind = _MEANINGS.get(error.errno, StoreError)
            raise kind(f"{self.store} {trouble} ({error.strerror})") from error


def _read_pragma(driver: sqlite3.Connection, name: str) -> int:
    return int(driver.execute(f"PRAGMA {name}").fetchone()[0])


def _free_bytes(driver: sqlite3.Connection) -> int:
    """Return the bytes of the file's free pages."""
    return _read_pragma(driver, "freelist_count") * _read_pragma(driver, "page_size")


def _size_bytes(path: Path) -> int:
    with suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0


def _allocate_file(file: int, start: int, count: int) -> None:
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, start, count)
        return
    os.lseek(file, start, os.SEEK_SET)
    for _ in range(0, count, ROOM_BYTES):  # random, because a file system may compress zeros away
        os.write(file, os.urandom(ROOM_BYTES))
