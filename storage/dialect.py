"""The protocol of a database. What differs within a transaction is in `backend`."""

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
    """Something that is held until it is closed."""

    def close(self) -> None:
        """Release the claim; a second call does nothing."""


class Dialect(Protocol):
    """One database: its connection, its special statements, and the meaning of its errors."""

    read_only: bool
    """Nothing is written."""
    one_writer: bool
    """It takes one writing transaction at a time."""
    driver_errors: tuple[type[Exception], ...]
    """The errors of the driver and of SQLAlchemy."""
    read_options: Mapping[str, Any]
    """Execution options of a transaction that reads."""
    write_options: Mapping[str, Any]
    """Execution options of a transaction that writes."""
    no_room: str
    """Text after the error if there is no space even for a deletion."""

    @property
    def url(self) -> str:
        """The store as a URL, with all that another process needs to open it."""

    @property
    def store_name(self) -> str:
        """The name of the store in messages, without secrets."""

    def make_ready(self) -> None:
        """Prepare everything that the first connection needs; raise if that is impossible."""

    def check_exists(self) -> None:
        """Raise `StoreError` when there is no such database."""

    def create_engine(self) -> Engine:
        """Engine whose connections are set up as they will be used."""

    def begin(self, connection: Connection, *, writes: bool) -> None:
        """Begin the transaction that SQLAlchemy has just begun, where the database's driver does not."""

    def prepare_database(self, engine: Engine) -> None:
        """Set up the database, and raise when it would break a promise."""

    def lock_schema(self, connection: Connection) -> None:
        """Lock out other processes that create or upgrade tables until the transaction ends."""

    def teach_planner(self, connection: Connection) -> None:
        """Give the planner expected numbers of rows, once, after the schema was built."""

    def path_beside(self, suffix: str) -> Path | None:
        """A place beside the store for files that can be made again; None where there is none."""

    def check_in_place(self) -> None:
        """Raise when the database is not the one that was opened."""

    def remember_files(self) -> None:
        """Take the database as it is now for the one that was opened."""

    def allow_pauses(self, connection: Connection) -> None:
        """Permit this transaction to be idle for long, because its user waits for others."""

    def rows_written(self, connection: Connection) -> int:
        """Return the number of rows that were ever inserted, changed or deleted through a connection."""

    def note_commit(self) -> None:
        """Remember that this process has just committed."""

    def notify_on_commit(self, connection: Connection) -> None:
        """Notify other processes of changes as soon as the transaction commits."""

    def change_token(self, engine: Engine) -> int:
        """See `Store.change_token`."""

    def read_rows(self, engine: Engine, statement: Prepared, values: Mapping[str, Any]) -> Rows | None:
        """Return the rows of one statement, run as a separate transaction; None if it must be run in a given one."""

    def own_clock(self, wall: Callable[[], float] | None) -> StoreClock | None:
        """The database's clocks; None: those of the machine serve. `wall`: for times that are shown."""

    def resume_clock(self, connection: Connection) -> None:
        """Let the lease clock run on from where it is, if it would stand still for long."""

    def size_bytes(self, engine: Engine) -> int:
        """Return the size of the store on disk."""

    def claim(self, engine: Engine, holder: str) -> Claim | None:
        """Claim to be the only server that grows trees; None: several may. `StoreBusy` if another has the claim."""

    def find_faults(self, engine: Engine, seconds: float) -> str:
        """Return the faults that a check of a number of seconds finds; empty: none."""

    def check_room(self, engine: Engine) -> None:
        """Raise `NoSpace` if the disk has almost no space left."""

    def keep_reserve(self, engine: Engine) -> None:
        """Keep some space to delete with."""

    def lend_reserve(self) -> None:
        """Give some of that space for good, to open the store with."""

    def open_reserve(self, engine: Engine) -> AbstractContextManager[None]:
        """Give the space that is kept for deletions, for a moment."""

    def translate_error(self, error: Exception) -> Exception:
        """Return the error for the user in place of a driver's or SQLAlchemy's exception."""

    def close(self) -> None:
        """Close the dialect's own resources."""


def dialect_for(url: str, busy_timeout_s: float, read_only: bool = False) -> Dialect:
    """The dialect a URL asks for.

    Raises
    ------
    InvalidInput
        When it is not a URL, or of a database that is not supported.
    StoreError
        When its driver is not installed.
    """
    parsed = parse_url(url)
    if parsed.get_backend_name() == "sqlite":
        return SqliteDialect(parsed, busy_timeout_s, read_only)
    from quercus.storage.postgres.dialect import PostgresDialect  # noqa: PLC0415  (a separate extra)

    return PostgresDialect(parsed, busy_timeout_s, read_only)


def sqlite_for(url: str, busy_timeout_s: float, instead: str) -> SqliteDialect:
    """The file a URL names; `InvalidInput` when it names a database of another kind, with what to do `instead`."""
    parsed = parse_url(url)
    if parsed.get_backend_name() != "sqlite":
        raise InvalidInput("store", f"is in PostgreSQL: {instead}")
    return SqliteDialect(parsed, busy_timeout_s)
