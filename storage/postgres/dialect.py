"""The PostgreSQL dialect of the store (see `quercus.storage.dialect`).

Writers lock rows: first those of the models that they change, in order of name, and last the counter of changes.
Readers see a single state of the store (REPEATABLE READ) and lock nothing. If a client is cut off while it holds a
lock, the database server ends its connection after `IDLE_S`.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, Final

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import TimeoutError as PoolTimeout

from quercus.specification.distribution import install_command
from quercus.storage.backend import OPTION
from quercus.storage.errors import NoSpace, ReadOnlyStore, StoreBusy, StoreError

try:
    import psycopg
    from psycopg.pq import Format
    from psycopg.types.array import ListBinaryDumper
except ImportError as error:
    raise StoreError(
        f"a store in PostgreSQL needs the driver psycopg: {install_command('server', 'postgres')}"
    ) from error

from quercus.storage.postgres import clock
from quercus.storage.postgres.backend import WRITTEN, PostgresBackend
from quercus.storage.postgres.clock import DatabaseClock
from quercus.storage.postgres.error_meanings import DRIVER_ERRORS, meant_error
from quercus.storage.prepared import Prepared
from quercus.storage.urls import with_secrets, without_password

POOL_SIZE: Final = 8
POOL_OVERFLOW: Final = 24  # connections beyond the pool; further threads wait
IDLE_S: Final = 5.0
"""Seconds after which the database server ends an idle transaction, and releases its locks."""

COUNTER_MAX_AGE_S: Final = 0.02
"""Greatest age of the counter of changes, in seconds, unless a change is announced."""

CHANNEL: Final = "quercus"
OLDEST: Final = 140_000
"""The oldest supported version of PostgreSQL, as a number; upstream supports it too."""

_NOT_BY_INDEX: Final = tuple(
    f"enable_{way}" for way in ("seqscan", "bitmapscan", "hashjoin", "mergejoin", "material")
)
"""Plans that are switched off. All statements look up few rows by an index. A plan is made while its tables are small
and have no statistics, and is kept; once they had grown, it would read them completely. A bitmap scan visits dead
entries of an index every time, while a plain index scan marks them and skips them the next time."""

SCHEMA_LOCK: Final = 0x71756572_00000001  # number of the advisory lock
_SETTINGS: Final = text(
    "SELECT current_setting('server_version_num')::int AS version, current_setting('server_version') AS named, "
    "current_setting('server_encoding') AS encoding, "
    "current_setting('fsync') = 'on' AS flushes, current_setting('synchronous_commit') <> 'off' AS waits, "
    "pg_is_in_recovery() OR current_setting('transaction_read_only')::bool AS read_only"
)


class BinaryCursor(psycopg.Cursor[Any]):
    """A cursor that reads in binary, so that bytes are not sent as hexadecimal digits, which take twice the space."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.format = Format.BINARY


class PostgresDialect:
    """One database of PostgreSQL.

    Parameters
    ----------
    url : URL
        Of SQLAlchemy; its parameters are those of libpq.
    busy_timeout_s : float
        Seconds for which a writer waits for a row.
    read_only : bool
        True if nothing is written.
    """

    one_writer = False
    driver_errors: tuple[type[Exception], ...] = DRIVER_ERRORS
    read_options: Mapping[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    write_options: Mapping[str, Any] = {"isolation_level": "READ COMMITTED"}
    no_room = "and no space is reserved for deletions: free some on the disk of the database server"

    def __init__(self, url: URL, busy_timeout_s: float, read_only: bool = False) -> None:
        self._url = with_secrets(url.set(drivername="postgresql+psycopg"))
        self.read_only = read_only
        self.busy_timeout_s = busy_timeout_s
        self._token_lock = threading.Lock()
        self._listener: psycopg.Connection[Any] | None = None
        self._token = 0
        self._look_at = 0.0
        self._committed = False

    @property
    def url(self) -> str:
        """The store as a URL, with its password if it has one."""
        return self._url.set(drivername="postgresql").render_as_string(hide_password=False)

    @property
    def store_name(self) -> str:
        """The name of the store in messages."""
        place = {key: value for key, value in self._url.query.items() if key in ("host", "port")}
        shown = (
            without_password(self._url).set(drivername="postgresql").difference_update_query(self._url.query)
        )
        return shown.update_query_dict(place).render_as_string()

    @property
    def folder(self) -> None:
        """None: the database server has the files."""
        return None

    def make_ready(self) -> None:
        """Do nothing: the database must exist."""

    def check_reachable(self) -> None:
        """Do nothing, see `check_exists`."""

    def is_missing(self) -> bool:
        """Return False: the database must exist."""
        return False

    def check_exists(self) -> None:
        """Raise if the database cannot be reached, or does not exist."""
        engine = self.create_engine()
        try:
            engine.connect().close()
        except DRIVER_ERRORS as error:
            raise self.translate_error(error) from error
        finally:
            engine.dispose()

    def create_engine(self) -> Engine:
        """Return an engine; the database server ends its connections when they are cut off."""
        given = self._url.query
        settings = {
            "lock_timeout": f"{max(1, round(1000 * self.busy_timeout_s))}",
            "idle_in_transaction_session_timeout": f"{round(1000 * IDLE_S)}",
            "tcp_keepalives_idle": "5",
            "tcp_keepalives_interval": "2",
            "tcp_keepalives_count": "3",
            "jit": "off",  # statements are short
            **dict.fromkeys(_NOT_BY_INDEX, "off"),
        }
        words = " ".join(f"-c {name}={value}" for name, value in settings.items())
        arguments: dict[str, Any] = {
            "options": f"{words} {given.get('options', '')}".strip(),
            "application_name": given.get("application_name", "quercus"),
            "connect_timeout": given.get("connect_timeout", max(2, round(self.busy_timeout_s))),
            "tcp_user_timeout": given.get("tcp_user_timeout", round(1000 * max(self.busy_timeout_s, 1.0))),
            "cursor_factory": BinaryCursor,
        }
        engine = create_engine(
            self._url,
            poolclass=QueuePool,
            pool_size=POOL_SIZE,
            max_overflow=POOL_OVERFLOW,
            pool_timeout=max(self.busy_timeout_s, 1.0),
            pool_use_lifo=True,  # the connection used last has its statements prepared
            connect_args=arguments,
            execution_options={OPTION: PostgresBackend()},
        )
        event.listen(engine, "connect", _send_lists_in_binary)
        event.listen(engine, "after_cursor_execute", _count_rows)
        return engine

    def begin(self, connection: Connection, *, writes: bool) -> None:
        """Do nothing: the driver begins a transaction with the first statement."""

    def prepare_database(self, engine: Engine) -> None:
        """Check version and settings of the database server; raise if they are unsafe or unsupported."""
        with engine.connect() as connection:
            found = connection.execute(_SETTINGS).one()
        if found.version < OLDEST:
            raise StoreError(
                f"{self.store_name} is served by PostgreSQL {found.named}, must be {OLDEST // 10_000} or newer"
            )
        if found.encoding != "UTF8":
            raise StoreError(
                f"{self.store_name} has the encoding {found.encoding}, must have UTF8: "
                "create it with createdb --encoding=UTF8 --template=template0"
            )
        for name, is_safe in (("fsync", found.flushes), ("synchronous_commit", found.waits)):
            if not is_safe:
                raise StoreError(
                    f"{self.store_name} may lose acknowledged commits: set {name} = on in postgresql.conf"
                )
        if found.read_only and not self.read_only:
            raise ReadOnlyStore(
                f"{self.store_name} may not be written: the database server is a standby, or read-only by its settings"
            )

    def lock_schema(self, connection: Connection) -> None:
        """Take an advisory lock for the transaction."""
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": SCHEMA_LOCK})

    def teach_planner(self, connection: Connection) -> None:
        """Do nothing: autovacuum keeps statistics."""

    def path_beside(self, suffix: str) -> None:
        """Return None: the store is not a file."""

    def check_in_place(self) -> None:
        """Do nothing: a database in use cannot be replaced."""

    def remember_files(self) -> None:
        """Do nothing, see `check_in_place`."""

    def allow_pauses(self, connection: Connection) -> None:
        """Keep the database server from ending this transaction when it is idle."""
        connection.execute(text("SET LOCAL idle_in_transaction_session_timeout = 0"))

    def rows_written(self, connection: Connection) -> int:
        """Return the number of rows that were ever inserted, changed or deleted through a connection."""
        return int(connection.info.get(WRITTEN, 0))

    def note_commit(self) -> None:
        """Make the next `change_token` read the counter at once."""
        self._committed = True

    def notify_on_commit(self, connection: Connection) -> None:
        """Make all other processes read the counter at once. It slows the commit down, so few commits should do it."""
        connection.execute(text(f"NOTIFY {CHANNEL}"))

    def change_token(self, engine: Engine) -> int:
        """Return the counter of changes, at most `COUNTER_MAX_AGE_S` old; after an announcement it is read again."""
        with self._token_lock:
            try:
                if self._listener is None:
                    self._listener = self._detached_connection(engine, f"LISTEN {CHANNEL}")
                told = [True for _ in self._listener.notifies(timeout=0)]
                if told or self._committed or time.monotonic() >= self._look_at:
                    self._committed = False
                    self._look_at = time.monotonic() + COUNTER_MAX_AGE_S
                    row = self._listener.execute("SELECT number FROM change_counter").fetchone()
                    self._token = int(row[0]) if row else 0
            except DRIVER_ERRORS:
                self._close_listener()
                raise
            return self._token

    def read_rows(self, engine: Engine, statement: Prepared, values: Mapping[str, Any]) -> None:
        """Return None: rows are read in a transaction."""

    def _detached_connection(self, engine: Engine, statement: str) -> "psycopg.Connection[Any]":
        """Return a connection of our own in autocommit mode, on which a statement was executed."""
        raw = engine.raw_connection()
        driver = raw.driver_connection
        raw.detach()
        assert isinstance(driver, psycopg.Connection)  # noqa: S101 - its engine is ours
        driver.set_autocommit(True)
        driver.execute(statement)
        return driver

    def own_clock(self, wall: Callable[[], float] | None) -> DatabaseClock:
        """Return the database's clocks, because several machines may use the store."""
        return DatabaseClock(wall)

    def resume_clock(self, connection: Connection) -> None:
        """See `clock.resume_clock`."""
        clock.resume_clock(connection)

    def size_bytes(self, engine: Engine) -> int:
        """Return the size of the database."""
        with engine.connect() as connection:
            return int(connection.execute(text("SELECT pg_database_size(current_database())")).scalar_one())

    def free_bytes(self) -> None:
        """Return None, see `check_room`."""

    def claim(self, engine: Engine, holder: str) -> None:
        """Do nothing: several growers may share the store (see `growers`)."""

    def find_faults(self, engine: Engine, seconds: float) -> str:
        """Return no faults: the database server checks its own files."""
        return ""

    def check_room(self, engine: Engine) -> None:
        """Do nothing: only the database server knows its disk."""

    def keep_reserve(self, engine: Engine) -> None:
        """Do nothing, see `check_room`."""

    def lend_reserve(self) -> None:
        """Do nothing, see `check_room`."""

    @contextmanager
    def open_reserve(self, engine: Engine) -> Iterator[None]:
        """Raise `NoSpace`, because no space is reserved."""
        if engine is not None:
            raise NoSpace(f"{self.store_name} cannot grow: no space is left on the disk")
        yield

    def translate_error(self, error: Exception) -> Exception:
        """Return the error for the user in place of a driver's or SQLAlchemy's exception."""
        if isinstance(error, PoolTimeout):
            return StoreBusy(
                f"{self.store_name}: too many calls at once, none ended within {self.busy_timeout_s:g} s"
            )
        return meant_error(error, self.store_name)

    def close(self) -> None:
        """Close the connection of `change_token`."""
        with self._token_lock:
            self._close_listener()

    def _close_listener(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(psycopg.Error):
                listener.close()


def _send_lists_in_binary(driver: "psycopg.Connection[Any]", _record: Any) -> None:
    """Let the driver send arrays in binary; as texts they take it two to nine times the CPU time."""
    driver.adapters.register_dumper(list, ListBinaryDumper)


def _count_rows(
    connection: Connection, cursor: Any, _statement: str, _parameters: Any, _context: Any, _many: bool
) -> None:
    if (cursor.statusmessage or "").startswith(("INSERT", "UPDATE", "DELETE")):
        connection.info[WRITTEN] = connection.info.get(WRITTEN, 0) + max(0, cursor.rowcount)
