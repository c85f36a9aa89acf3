"""Backups of a store: made while it is in use, checked, and restored.

A backup is itself a store, as it was at one moment: it can be opened, checked and served. SQLite only: PostgreSQL has
its own tools.
"""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

from quercus.belief.errors import InvalidInput
from quercus.storage.admin.durable import flush_to_disk
from quercus.storage.admin.verify import ContentReader, verify_store
from quercus.storage.admin.verify_schema import said_of_rule
from quercus.storage.dialect import sqlite_for
from quercus.storage.errors import CorruptStore, InconsistentHistory, StoreBusy, StoreError
from quercus.storage.sqlite.dialect import SqliteDialect
from quercus.storage.sqlite.disk_space import RESERVE
from quercus.storage.sqlite.objects import TRIGGERS
from quercus.storage.sqlite.server_lock import SUFFIX, ServerLock
from quercus.storage.sqlite.store_file import file_url

PAGES = 2_000  # copied between two reports of progress: 8 MB
LOGS = ("-wal", "-shm", "-journal")  # SQLite keeps these files beside the database
COMPANIONS = (*LOGS, SUFFIX, RESERVE)

DUMPS = "copy it with pg_dump --format=custom, and put it back with pg_restore; see docs/postgresql.md"

Progress = Callable[[int, int], None]  # pages done, pages in all


def back_up(url: str, target: Path, *, force: bool = False, progress: Progress | None = None) -> int:
    """Copy a store as it is at this moment; servers may use it meanwhile.

    The copy gets its name only when it is complete and on the disk.

    Parameters
    ----------
    url : URL of the store.
    target : file to write; its folder must exist.
    force : replace an existing file.
    progress : called with the pages done and the pages in all.

    Returns
    -------
    int : size of the copy in bytes.

    Raises
    ------
    InvalidInput
        If the target exists, or is the store itself or a file that belongs to a store; or if the log of an earlier
        store is left beside it.
    StoreBusy
        If the target is a store in use.
    StoreError
        If the store does not exist or cannot be read, or the copy cannot be written.
    """
    dialect = existing_database(url)
    _check_target(dialect.path, target, force)
    _settle_log(target)
    return _copy_store(dialect, target, progress)


def _copy_store(dialect: SqliteDialect, target: Path, progress: Progress | None) -> int:
    """Copy to a file beside the target, which then takes its place."""
    part = _part_path(target)
    try:
        part.unlink(missing_ok=True)
        # for this user alone, like the store, and never through a planted link
        os.close(os.open(part, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        with closing(dialect.connect_to_read()) as source, closing(sqlite3.connect(part)) as copy:
            step = None if progress is None else lambda _, left, whole: progress(whole - left, whole)
            # Without a transaction, SQLite restarts whenever somebody commits between two steps, and may never end.
            source.execute("BEGIN")
            for rule in source.execute(TRIGGERS):
                raise CorruptStore(f"{dialect.path} {said_of_rule(*rule)}: remove it before a backup is made")
            source.backup(copy, pages=PAGES, progress=step)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, for any later reader
        flush_to_disk(part)
        part.replace(target)
        flush_to_disk(target.parent)
        return target.stat().st_size
    except (sqlite3.Error, OSError) as error:
        raise _explained_error(error, dialect, target) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def restore_backup(
    backup: Path,
    url: str,
    *,
    force: bool = False,
    despite_remarks: bool = False,
    contents: ContentReader | None = None,
    progress: Progress | None = None,
) -> int:
    """Replace a store that nobody uses with a backup.

    The backup is checked first; a damaged one is never restored. Its schema is upgraded to this version when the store
    is next opened.

    Parameters
    ----------
    backup : file that `back_up` wrote.
    url : URL of the store.
    force : replace an existing store.
    despite_remarks : restore even if `verify_store` has remarks that are not damage.
    contents : see `verify_store`.
    progress : called with the pages done and the pages in all.

    Returns
    -------
    int : size of the store in bytes.

    Raises
    ------
    InvalidInput
        If the store exists, or the log of an earlier one is left; or if its file belongs to another store or to the
        backup.
    CorruptStore
        If the backup is damaged or not a store, or has triggers that are not part of Quercus.
    InconsistentHistory
        If there are remarks on the backup's history.
    StoreBusy
        If a server uses the store.
    """
    source, asked = existing_database(file_url(backup)), _sqlite_path(url).path
    store = asked.resolve()  # a link stays a link
    _check_place(source.path, store)
    _check_sound(backup, despite_remarks, contents)
    new = not store.exists()
    if not new and not force:
        raise InvalidInput("store", f"{asked} exists; give --force to replace it by the backup")
    _check_logs("store", store, force)
    _settle_log(store)
    store.touch(mode=0o600)  # only an existing file can be locked
    with closing(ServerLock(store, "quercus restore")):
        try:
            return _copy_store(source, store, progress)
        except BaseException:
            if new and store.stat().st_size == 0:  # still the empty file from above
                store.unlink()
            raise


def _check_sound(backup: Path, despite_remarks: bool, contents: ContentReader | None) -> None:
    faults = verify_store(file_url(backup), contents)
    damage = [fault for fault in faults if fault.is_damage]
    if damage:
        raise CorruptStore(f"{backup} cannot be restored, it is damaged: {damage[0]}")
    if faults and not despite_remarks:
        count = f"{len(faults)} remark{'' if len(faults) == 1 else 's'}"
        raise InconsistentHistory(
            f"{backup} is not damaged, but there {'is' if len(faults) == 1 else 'are'} {count} on it: {faults[0]}; "
            "say --despite-remarks to restore it as it is"
        )


def _sqlite_path(url: str) -> SqliteDialect:
    dialect = sqlite_for(url, 5.0, DUMPS)
    dialect.file.check_reachable()
    return dialect


def existing_database(url: str) -> SqliteDialect:
    """Return the database of a store that must exist; raise `StoreError` when it does not."""
    dialect = _sqlite_path(url)
    if not dialect.path.exists():
        raise StoreError(f"{dialect.path} does not exist")
    return dialect


def _check_target(source: Path, target: Path, force: bool) -> None:
    if not target.parent.is_dir():
        raise InvalidInput("target", f"{target}: the folder {target.parent} does not exist")
    if target.is_dir():
        raise InvalidInput("target", f"{target} is a folder, must be a file")
    _check_place(source, target)
    if target.exists() and not force:
        raise InvalidInput("target", f"{target} exists; give --force to replace it")
    _check_logs("target", target, force)


def _check_logs(field: str, place: Path, force: bool) -> None:
    """Raise if the log of a store that no longer exists is left: SQLite would apply it to the next file."""
    left = next((log for log in _logs_of(place) if log.exists()), None)
    if left is not None and not place.exists() and not force:
        raise InvalidInput(
            field, f"{place} does not exist, but {left} of an earlier store does; give --force to remove it"
        )


def _logs_of(place: Path) -> list[Path]:
    """Return the paths of a store's logs, beside the path itself and beside the file that a link leads to."""
    return [each.with_name(each.name + suffix) for each in {place, place.resolve()} for suffix in LOGS]


def _check_place(source: Path, target: Path) -> None:
    """Raise if `target`, or the temporary file beside it, is a store or belongs to one."""
    for place in (target, _part_path(target)):
        if _is_same(place, source):
            raise InvalidInput("target", f"{place} is the store itself")
        for suffix in COMPANIONS:
            if _is_same(place, source.resolve().with_name(source.resolve().name + suffix)):
                raise InvalidInput("target", f"{place} belongs to the store {source}: choose another name")
        real = place.resolve()
        owner = next((real.name.removesuffix(each) for each in COMPANIONS if real.name.endswith(each)), "")
        if owner and real.with_name(owner).exists():
            raise InvalidInput(
                "target",
                f"{place} belongs to {real.with_name(owner)}, if that is a store: choose another name",
            )


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, through any links; the files need not exist."""
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return one.resolve() == other.resolve()


def _part_path(target: Path) -> Path:
    return target.with_name(target.name + ".part")


def _settle_log(path: Path) -> None:
    """Check that nobody has a store open, checkpoint its write-ahead log, and remove its log files.

    SQLite would apply a log that is left to the next file of this name. Without any log, a restore that is killed
    leaves either the old store or the new one, complete.
    """
    if path.exists():
        _empty_log(path)
    for log in _logs_of(path):
        log.unlink(missing_ok=True)
    flush_to_disk(path.parent)


def _empty_log(path: Path) -> None:
    try:
        # Exclusive locking succeeds only if no other process has the file open.
        with closing(sqlite3.connect(path, timeout=0.2)) as alone:
            alone.execute("PRAGMA locking_mode = EXCLUSIVE")
            alone.execute("BEGIN EXCLUSIVE")
            alone.execute("ROLLBACK")
            alone.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.OperationalError as error:
        raise StoreBusy(f"{path} is in use: stop the server first ({error})") from error
    except sqlite3.DatabaseError:  # a damaged store: restoring a backup over it is the purpose
        pass


def _explained_error(error: Exception, dialect: SqliteDialect, target: Path) -> StoreError:
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_FULL:
        return StoreError(f"{target} cannot be written: no space is left on its disk")
    if isinstance(error, sqlite3.Error):
        translated = dialect.translate_error(error)
        translated.add_note(f"while copying to {target}")
        return translated
    return StoreError(f"{target} cannot be written: {getattr(error, 'strerror', None) or error}")
