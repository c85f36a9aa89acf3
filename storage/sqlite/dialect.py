"""The SQLite dialect of the store (see `quercus.storage.dialect`).

Every write transaction begins IMMEDIATE: a deferred transaction that turns from reading to writing fails at once with
"database is locked", whatever the timeout. The driver's own transaction handling is switched off
(`isolation_level = None`), because it would begin deferred transactions.
"""

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import TimeoutError as PoolTimeout

from quercus.storage.backend import OPTION
from quercus.storage.errors import StoreBusy, StoreError
from quercus.storage.prepared import Prepared, Rows
from quercus.storage.sqlite import planner
from quercus.storage.sqlite.backend import SqliteBackend
from quercus.storage.sqlite.disk_space import DiskSpace
from quercus.storage.sqlite.error_meanings import DAMAGED, DRIVER_ERRORS, is_busy, primary_code, store_error
from quercus.storage.sqlite.server_lock import ServerLock
from quercus.storage.sqlite.store_file import StoreFile, file_url, path_of
from quercus.storage.sqlite.texts import driver_of, fetch_by

POOL_SIZE = 8
POOL_OVERFLOW = 56  # connections beyond the pool; further threads wait
WAL_RETRY_S = 0.01
CHECK_STEPS = 10_000  # instructions of SQLite's virtual machine between two checks of the time
# SQLite polls a lock after 1, 2, 5, ... and finally every 100 ms, so a process that has waited long loses against one
# that came later. Starting again after this many milliseconds keeps the chances equal.
LOCK_RETRY_MS = 8
RETRIES = "quercus_retries"  # key in a connection's `info`: its busy timeout is `LOCK_RETRY_MS`


class SqliteDialect:
    """One SQLite file.

    Parameters
    ----------
    url : URL
        Of SQLAlchemy, with a file path.
    busy_timeout_s : float
        Seconds for which a writer waits for another process.
    read_only : bool
        True if nothing is written, neither to the file nor beside it.
    """

    one_writer = True
    driver_errors: tuple[type[Exception], ...] = DRIVER_ERRORS
    read_options: Mapping[str, Any] = {}
    write_options: Mapping[str, Any] = {}
    no_room = "and the space reserved for deletions is used up: free some MiB on the disk"

    def __init__(self, url: URL, busy_timeout_s: float, read_only: bool = False) -> None:
        self.path = path_of(url)
        self.file = StoreFile(self.path, read_only)
        self.room = DiskSpace(self.file.place)
        self.read_only = read_only
        self.busy_timeout_s = busy_timeout_s
        self._url = url
        self._token_lock = threading.Lock()
        self._token_connection: Any = None

    @property
    def url(self) -> str:
        """The store as a URL."""
        return file_url(self.path)

    @property
    def store_name(self) -> str:
        """The name of the store in messages."""
        return str(self.path)

    @property
    def folder(self) -> Path:
        """The folder of the file, after symbolic links."""
        return self.room.folder

    def make_ready(self) -> None:
        """Create the file if there is none; raise if it cannot be used."""
        self.file.check_reachable()
        if not self.read_only:
            self.file.make_file()

    def check_reachable(self) -> None:
        """See `StoreFile.check_reachable`."""
        self.file.check_reachable()

    def is_missing(self) -> bool:
        """Return whether there is no such file."""
        return not self.path.exists()

    def check_exists(self) -> None:
        """Raise if there is no such file."""
        if self.is_missing():
            raise StoreError(f"{self.path} does not exist")

    def path_beside(self, suffix: str) -> Path:
        """Return a path beside the file."""
        return self.file.path_beside(suffix)

    def check_in_place(self) -> None:
        """See `StoreFile.check_in_place`."""
        self.file.check_in_place()

    def remember_files(self) -> None:
        """See `StoreFile.remember_files`."""
        self.file.remember_files()

    def size_bytes(self, _: Engine | None = None) -> int:
        """Return the size of the files: the database and its write-ahead log."""
        return self.file.size_bytes()

    def free_bytes(self) -> int:
        """Return the free bytes on the disk, without those of the reserve."""
        return self.room.left_bytes()

    def claim(self, _: Engine, holder: str) -> ServerLock:
        """Lock the store for this server."""
        return ServerLock(self.path, holder)

    def own_clock(self, _: Callable[[], float] | None) -> None:
        """Return None: the machine's clocks are used, because no other machine uses the file."""
        return

    def resume_clock(self, connection: Connection) -> None:
        """Do nothing: the machine's clock since boot does not jump."""

    def check_room(self, engine: Engine) -> None:
        """Raise `NoSpace` if the disk has almost no space left."""
        with self.driver_connection(engine) as driver:
            self.room.check_space(driver)

    def keep_reserve(self, engine: Engine) -> None:
        """Create the reserve, or enlarge it."""
        if self.room.is_short():
            with self.driver_connection(engine) as driver:
                self.room.keep_reserve(driver)

    def lend_reserve(self) -> None:
        """Free some of the reserve, so that the store can be opened."""
        self.room.shrink_reserve()

    @contextmanager
    def open_reserve(self, engine: Engine) -> Iterator[None]:
        """Free the reserve within the block."""
        with self.driver_connection(engine) as driver:
            self.room.release_reserve(driver)
            try:
                yield
            finally:  # the deletion is committed, so a failure here does not matter
                with suppress(StoreError, *DRIVER_ERRORS):
                    self.room.checkpoint_log(driver)

    def allow_pauses(self, connection: Connection) -> None:
        """Do nothing: SQLite ends no idle transactions."""

    def lock_schema(self, connection: Connection) -> None:
        """Do nothing: there is one writer at a time."""

    def note_commit(self) -> None:
        """Do nothing: `change_token` sees every commit."""

    def notify_on_commit(self, connection: Connection) -> None:
        """Do nothing: `change_token` sees every commit."""

    @contextmanager
    def driver_connection(self, engine: Engine) -> Iterator[sqlite3.Connection]:
        """Open a connection of the driver itself, outside any transaction."""
        raw = engine.raw_connection()
        try:
            yield cast(sqlite3.Connection, raw.driver_connection)
        finally:
            raw.close()

    def find_faults(self, engine: Engine, seconds: float) -> str:
        """Return the faults of the file that a check of limited time finds; empty if there are none."""
        deadline = time.monotonic() + seconds
        with self.driver_connection(engine) as driver:
            driver.set_progress_handler(lambda: time.monotonic() > deadline, CHECK_STEPS)
            try:
                found = [str(row[0]) for row in driver.execute("PRAGMA quick_check(1)")]
                if found == ["ok"]:
                    return ""
                return f"{DAMAGED.format(self.store_name)} ({'; '.join(found)})"
            except sqlite3.OperationalError as error:
                if primary_code(error) == sqlite3.SQLITE_INTERRUPT:
                    return ""
                raise
            finally:
                driver.set_progress_handler(None, 0)

    def create_engine(self) -> Engine:
        """Return an engine with configured connections; users of a connection call `begin`."""
        creator = {"creator": self.connect_to_read} if self.read_only else {}
        engine = create_engine(
            self._url,
            **creator,
            poolclass=QueuePool,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_timeout=max(self.busy_timeout_s, 1.0),
            connect_args={"timeout": self.busy_timeout_s, "check_same_thread": False},
            execution_options={OPTION: SqliteBackend()},
        )
        event.listen(engine, "connect", _set_up_connection)
        return engine

    def connect_to_read(self) -> sqlite3.Connection:
        """Return a connection of the driver that only reads."""
        # immutable: otherwise SQLite would create files beside it. `check_in_place` then notices writes of others.
        mode = "immutable=1" if self.file.is_still else "mode=ro"
        return sqlite3.connect(
            f"{self.path.resolve().as_uri()}?{mode}",
            uri=True,
            timeout=self.busy_timeout_s,
            check_same_thread=False,
        )

    def begin(self, connection: Connection, *, writes: bool) -> None:
        """Begin a transaction through the driver: SQLAlchemy's event takes longer than the rest of a short read."""
        driver = driver_of(connection)
        # seldom, because writes keep their connection; it takes 40 µs
        if connection.info.get(RETRIES, False) != writes:
            timeout_ms = LOCK_RETRY_MS if writes else round(1000 * self.busy_timeout_s)
            driver.execute(f"PRAGMA busy_timeout = {timeout_ms}")
            connection.info[RETRIES] = writes
        if not writes:
            driver.execute("BEGIN")
            return
        deadline = time.monotonic() + self.busy_timeout_s
        while not _begin_immediate(driver, give_up=time.monotonic() >= deadline):
            pass
        self.room.limit_growth(driver, connection.info)

    def prepare_database(self, engine: Engine) -> None:
        """Switch the file permanently to write-ahead logging, so that readers never wait for the writer."""
        if self.read_only:
            return
        deadline = time.monotonic() + self.busy_timeout_s
        while True:
            raw = engine.raw_connection()
            try:
                # The switch needs exclusive access, and not every version of SQLite honours the busy timeout for it.
                row = raw.cursor().execute("PRAGMA journal_mode = WAL").fetchone()
                if row is not None and str(row[0]).lower() == "wal":
                    return
                raise StoreError(f"{self.path} cannot use write-ahead logging (journal mode {row})")
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() >= deadline:
                    raise
            finally:
                raw.close()
            time.sleep(WAL_RETRY_S)

    def teach_planner(self, connection: Connection) -> None:
        """Write statistics for the query planner, see `planner`."""
        planner.write_statistics(connection)

    def rows_written(self, connection: Connection) -> int:
        """Return the number of rows that were ever inserted, changed or deleted through a connection."""
        return int(driver_of(connection).total_changes)

    def change_token(self, engine: Engine) -> int:
        """Return `PRAGMA data_version` of a connection that never writes, which changes with every commit."""
        with self._reading_connection(engine) as driver:
            return int(driver.execute("PRAGMA data_version").fetchone()[0])

    def read_rows(self, engine: Engine, statement: Prepared, values: Mapping[str, Any]) -> Rows:
        """Return the rows of a statement, by the connection of `change_token`: five times as fast as a transaction."""
        with self._reading_connection(engine) as driver:
            return fetch_by(driver, statement.statement, values)

    @contextmanager
    def _reading_connection(self, engine: Engine) -> Iterator[sqlite3.Connection]:
        with self._token_lock:
            if self._token_connection is None:
                self._token_connection = engine.raw_connection()
            yield cast(sqlite3.Connection, self._token_connection.driver_connection)

    def close(self) -> None:
        """Close the connection of `change_token`."""
        with self._token_lock:
            if self._token_connection is not None:
                self._token_connection.close()
                self._token_connection = None

    def translate_error(self, error: Exception) -> StoreError:
        """Return the error for the user in place of a driver's or SQLAlchemy's exception."""
        if isinstance(error, PoolTimeout):
            return StoreBusy(
                f"{self.path}: too many calls at once, none ended within {self.busy_timeout_s:g} s"
            )
        return store_error(error, self.path, self.room)


def _set_up_connection(connection: object, _record: object) -> None:
    driver = cast(sqlite3.Connection, connection)
    driver.isolation_level = None
    # secure_delete: some builds of SQLite overwrite deleted pages, so that removing a tree fills the log as adding does
    for pragma in ("foreign_keys = ON", "synchronous = FULL", "secure_delete = FAST"):
        driver.execute(f"PRAGMA {pragma}")


def _begin_immediate(driver: sqlite3.Connection, *, give_up: bool) -> bool:
    """Return whether we got the write lock; with `give_up`, raise instead of returning False."""
    try:
        driver.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if give_up or not is_busy(error):
            raise
        return False
    return True
