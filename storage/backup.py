"""Copies of a store: made while it is in use, checked, and put back.

A backup is a store like any other, of one moment: it can be opened, checked and served as it stands. SQLite only, as
`dialect` is: another database has tools of its own.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from quercus.belief.errors import InvalidInput
from quercus.storage.dialect import SqliteDialect, dialect_for, file_url
from quercus.storage.errors import CorruptStore, StoreBusy, StoreError
from quercus.storage.verify import open_read_only, verify

PAGES = 2_000  # copied between two looks at the progress: 8 MB
COMPANIONS = ("-wal", "-shm")

Progress = Callable[[int, int], None]  # pages done, pages in all


def back_up(url: str, target: Path, *, force: bool = False, progress: Progress | None = None) -> int:
    """Copy a store as it is at this moment, while servers use it.

    The copy appears under its name only when it is whole and on the disk.

    Parameters
    ----------
    url : of the store.
    target : file to write; its folder must exist.
    force : replace what is there.
    progress : told how far it is.

    Returns
    -------
    int : bytes of the copy.

    Raises
    ------
    InvalidInput
        The target exists, or is the store itself.
    StoreError
        The store is not there or cannot be read, or the copy cannot be written.
    """
    dialect = existing(url)
    _check_target(dialect.path, target, force)
    part = target.with_name(target.name + ".part")
    try:
        part.unlink(missing_ok=True)
        # for this user alone, like the store, and never through a link that somebody laid there
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(open_read_only(dialect.path)) as source, closing(sqlite3.connect(part)) as copy:
            step = None if progress is None else lambda _, left, whole: progress(whole - left, whole)
            source.backup(copy, pages=PAGES, progress=step)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, whoever opens it next
        _flush(part)
        part.replace(target)
        _flush(target.parent)
        return target.stat().st_size
    except (sqlite3.Error, OSError) as error:
        raise _explained(error, dialect, target) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def restore(backup: Path, url: str, *, force: bool = False, progress: Progress | None = None) -> int:
    """Put a backup in the place of a store that nobody uses.

    The backup is checked first, and brought to the schema of this version when it is opened next.

    Parameters
    ----------
    backup : file that `back_up` wrote.
    url : of the store.
    force : replace a store that is there.
    progress : told how far it is.

    Returns
    -------
    int : bytes of the store.

    Raises
    ------
    InvalidInput
        A store is there.
    CorruptStore
        The backup is damaged or no store.
    StoreBusy
        A server uses the store.
    """
    dialect = _sqlite(url)
    existing(file_url(backup))
    faults = verify(file_url(backup))
    if faults:
        raise CorruptStore(f"{backup} cannot be restored: {faults[0]}")
    if dialect.path.exists():
        if not force:
            raise InvalidInput("store", f"{dialect.path} exists; say --force to replace it by the backup")
        _settle(dialect.path)
    with closing(dialect.claim("quercus restore")):
        return back_up(file_url(backup), dialect.path, force=True, progress=progress)


def _sqlite(url: str) -> SqliteDialect:
    dialect = dialect_for(url, 5.0)
    dialect.check_reachable()
    return dialect


def existing(url: str) -> SqliteDialect:
    """What reaches a store that must be there already; `StoreError` when it is not."""
    dialect = _sqlite(url)
    if not dialect.path.exists():
        raise StoreError(f"{dialect.path} does not exist")
    return dialect


def _check_target(source: Path, target: Path, force: bool) -> None:
    if not target.parent.is_dir():
        raise InvalidInput("target", f"{target}: the folder {target.parent} does not exist")
    if target.exists():
        if target.samefile(source):
            raise InvalidInput("target", f"{target} is the store itself")
        if target.is_dir():
            raise InvalidInput("target", f"{target} is a folder, must be a file")
        if not force:
            raise InvalidInput("target", f"{target} exists; say --force to replace it")


def _settle(path: Path) -> None:
    """Make sure that nobody has a store open, and that all of it is in its file.

    Were a write-ahead log left beside it, SQLite would write its pages into whatever file has the name next. So whoever
    kills a restore finds the old store, whole, or the new one.
    """
    try:
        # A connection that wants the file for itself gets it only when no other process has it open.
        with closing(sqlite3.connect(path, timeout=0.2)) as alone:
            alone.execute("PRAGMA locking_mode = EXCLUSIVE")
            alone.execute("BEGIN EXCLUSIVE")
            alone.execute("ROLLBACK")
            alone.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        raise StoreBusy(f"{path} is in use: stop the server first ({error})") from error
    except sqlite3.DatabaseError:  # damaged: a reason to restore it, and its log is worth nothing
        pass
    for suffix in COMPANIONS:
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    _flush(path.parent)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _explained(error: Exception, dialect: SqliteDialect, target: Path) -> StoreError:
    if isinstance(error, sqlite3.Error):
        translated = dialect.translate(error)
        translated.add_note(f"while copying to {target}")
        return translated
    return StoreError(f"{target} cannot be written: {getattr(error, 'strerror', None) or error}")
