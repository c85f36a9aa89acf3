"""The interface to a database. Operations within a transaction are in `backend`."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from sqlalchemy import Connection, Engine

from quercus.belief.errors import InvalidInput
from quercus.storage.clocks import StoreClock
from quercus.storage.prepared import Prepared, Rows
from quercus.storage.sqlite.dialect import SqliteDialect
from quercus.storage.urls import parse_url


class Claim(Protocol):
    """Something that is held until it is closed, such as a lock."""

    def close(self) -> None:
        """Release the claim; a second call does nothing."""


class Dialect(Protocol):
    """One database: its connections, its own features, and the meaning of its errors."""

    read_only: bool
    """True if nothing is written."""
    one_writer: bool
    """True if it allows one write transaction at a time."""
    driver_errors: tuple[type[Exception], ...]
    """The errors of the driver and of SQLAlchemy."""
    read_options: Mapping[str, Any]
    """Execution options of a transaction that reads."""
    write_options: Mapping[str, Any]
    """Execution options of a transaction that writes."""
    no_room: str
    """End of the error message if there is no space even for a deletion."""

    @property
    def url(self) -> str:
        """The URL with which another process opens the store."""

    @property
    def store_name(self) -> str:
        """The name of the store in messages, without secrets."""

    @property
    def folder(self) -> Path | None:
        """The folder of the store's files; None if a database server has them."""

    def make_ready(self) -> None:
        """Prepare everything that the first connection needs; raise if that is impossible."""

    def check_reachable(self) -> None:
        """Raise `StoreError` if there can be no store at this place."""

    def is_missing(self) -> bool:
        """Return whether there is no store yet, and opening it creates it."""

    def check_exists(self) -> None:
        """Raise `StoreError` if there is no such database."""

    def create_engine(self) -> Engine:
        """Return an engine with configured connections."""

    def begin(self, connection: Connection, *, writes: bool) -> None:
        """Begin a transaction, if the database's driver does not do so itself."""

    def prepare_database(self, engine: Engine) -> None:
        """Set up the database; raise if its settings are unsafe or unsupported."""

    def lock_schema(self, connection: Connection) -> None:
        """Keep other processes from creating or upgrading tables until the transaction ends."""

    def teach_planner(self, connection: Connection) -> None:
        """Give the query planner expected numbers of rows, once, after the schema was created or upgraded."""

    def path_beside(self, suffix: str) -> Path | None:
        """Return a path beside the store for files that can be recreated; None if the store is not a file."""

    def check_in_place(self) -> None:
        """Raise if the database is no longer the one that was opened."""

    def remember_files(self) -> None:
        """Remember the present files as those that were opened."""

    def allow_pauses(self, connection: Connection) -> None:
        """Let this transaction be idle for long, because it waits for something else."""

    def rows_written(self, connection: Connection) -> int:
        """Return the number of rows that were ever inserted, changed or deleted through a connection."""

    def note_commit(self) -> None:
        """Note that this process has just committed."""

    def notify_on_commit(self, connection: Connection) -> None:
        """Notify other processes of changes when the transaction commits."""

    def change_token(self, engine: Engine) -> int:
        """See `Store.change_token`."""

    def read_rows(self, engine: Engine, statement: Prepared, values: Mapping[str, Any]) -> Rows | None:
        """Return the rows of one statement, run on its own; None if it must be run in a transaction."""

    def own_clock(self, wall: Callable[[], float] | None) -> StoreClock | None:
        """Return the database's clocks, with `wall` as wall clock if given; None if the machine's clocks are used."""

    def resume_clock(self, connection: Connection) -> None:
        """Advance the offset of the lease clock if the clock would otherwise stand still for long."""

    def size_bytes(self, engine: Engine) -> int:
        """Return the size of the store on disk."""

    def free_bytes(self) -> int | None:
        """Return the free bytes on the disk of the store; None if only a database server knows them."""

    def claim(self, engine: Engine, holder: str) -> Claim | None:
        """Claim to be the only server that grows trees, or raise `StoreBusy`; None if several servers may."""

    def find_faults(self, engine: Engine, seconds: float) -> str:
        """Return the faults that a check of limited time finds; empty if there are none."""

    def check_room(self, engine: Engine) -> None:
        """Raise `NoSpace` if the disk has almost no space left."""

    def keep_reserve(self, engine: Engine) -> None:
        """Reserve some disk space for deletions."""

    def lend_reserve(self) -> None:
        """Free some of the reserved space, so that the store can be opened on a full disk."""

    def open_reserve(self, engine: Engine) -> AbstractContextManager[None]:
        """Free the reserved space within the block."""

    def translate_error(self, error: Exception) -> Exception:
        """Return the error for the user in place of a driver's or SQLAlchemy's exception."""

    def close(self) -> None:
        """Close the dialect's own resources."""


def dialect_for(url: str, busy_timeout_s: float, read_only: bool = False) -> Dialect:
    """Return the dialect for a URL.

    Raises
    ------
    InvalidInput
        If it is not a URL, or names a database that is not supported.
    StoreError
        If the driver is not installed.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return SqliteDialect(parsed, busy_timeout_s, read_only)
    from quercus.storage.postgres.dialect import PostgresDialect  # noqa: PLC0415  (a separate extra)

    return PostgresDialect(parsed, busy_timeout_s, read_only)


def sqlite_for(url: str, busy_timeout_s: float, instead: str) -> SqliteDialect:
    """Return the dialect of an SQLite store; for other databases raise `InvalidInput`, with what to do `instead`."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite":
        raise InvalidInput("store", f"is in PostgreSQL: {instead}")
    return SqliteDialect(parsed, busy_timeout_s)
