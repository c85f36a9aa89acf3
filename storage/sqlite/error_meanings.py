"""The meaning of errors of SQLite and its driver for a user."""

import os
import sqlite3
from contextlib import suppress
from pathlib import Path

from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from quercus.storage.errors import CorruptStore, NoSpace, ReadOnlyStore, StoreBusy, StoreError
from quercus.storage.sqlite.disk_space import NO_SPACE, ROOM_BYTES, DiskSpace

DRIVER_ERRORS = (SQLAlchemyError, sqlite3.Error)

DAMAGED = (
    "is damaged: see quercus check --store {0}, and quercus restore FILE --store {0} --force for a backup"
)

# A few errors that the driver itself raises have no code, and get the general message.
_BUSY = (StoreBusy, "was locked by another process for longer than the busy timeout: try again")
_MEANINGS: dict[int, tuple[type[StoreError], str]] = {
    sqlite3.SQLITE_BUSY: _BUSY,
    sqlite3.SQLITE_LOCKED: _BUSY,
    sqlite3.SQLITE_READONLY: (ReadOnlyStore, "may not be written"),
    sqlite3.SQLITE_NOTADB: (CorruptStore, "is not a store of quercus"),
    sqlite3.SQLITE_CORRUPT: (CorruptStore, DAMAGED),
    sqlite3.SQLITE_FULL: (NoSpace, NO_SPACE),
}


def primary_code(error: sqlite3.Error) -> int:
    """Return the primary result code; 0 for an error of the driver itself."""
    return (getattr(error, "sqlite_errorcode", None) or 0) & 0xFF


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether another process holds the lock."""
    return _MEANINGS.get(primary_code(error)) is _BUSY


def store_error(error: Exception, path: Path, room: DiskSpace) -> StoreError:
    """Return the error for the user in place of a driver's or SQLAlchemy's exception."""
    cause = error.orig if isinstance(error, DBAPIError) else error
    if not isinstance(cause, sqlite3.Error):
        return StoreError(f"{path}: {cause}")
    code = primary_code(cause)
    kind, says = _MEANINGS.get(code) or _trouble_of_disk(code, room)
    return kind(f"{path} {says.format(path)} ({cause})")


def _trouble_of_disk(code: int, room: DiskSpace) -> tuple[type[StoreError], str]:
    """Return the probable cause of an unspecific error, such as a file that could not be written."""
    with suppress(OSError, StoreError):
        if os.statvfs(room.folder).f_flag & os.ST_RDONLY:
            return ReadOnlyStore, "may not be written: its file system is mounted read-only"
        if room.left_bytes() < ROOM_BYTES:
            return NoSpace, NO_SPACE
    if code == sqlite3.SQLITE_IOERR:
        return StoreError, "cannot be used: its disk or its file system fails, see the log of the system"
    return StoreError, "cannot be used"
