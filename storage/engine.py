"""Transactions on a database. Readers never wait for writers, and only errors of `errors` are raised."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

from sqlalchemy import Connection

from quercus.belief.errors import InvalidInput
from quercus.labelling.errors import Refused
from quercus.storage import changes
from quercus.storage.dialect import Claim, Dialect
from quercus.storage.errors import (
    CorruptStore,
    FailedPrecondition,
    NoSpace,
    ReadOnlyUntilRestart,
    StoreBusy,
    StoreError,
)
from quercus.storage.prepared import Prepared, Rows

T = TypeVar("T")


class Database:
    """A database, accessed through a dialect. Safe for threads, not for `fork`."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        # If the database allows one writer, the writers of this process queue here instead of polling its lock.
        self._writer: AbstractContextManager[object] = (
            threading.Lock() if dialect.one_writer else nullcontext()
        )
        self._write_connection: Connection | None = None
        self._closed = False
        self._damage = ""
        self._write_trouble = self._read_only = (
            f"{dialect.store_name} could not be written when it was opened, and is only read: "
            "make it writable and start the server again"
            if dialect.read_only
            else ""
        )
        self._claim: Claim | None = None
        self._keeps_reserve = False
        with self._translating_errors():
            dialect.make_ready()
            self._engine = dialect.create_engine()
        try:
            self._prepare_database()
        except BaseException:
            self._engine.dispose()
            raise

    def _prepare_database(self) -> None:
        """Prepare the database; on a full disk, with some of the reserved space."""
        with suppress(NoSpace), self._translating_errors():
            self.dialect.prepare_database(self._engine)
            return
        with self._translating_errors():
            self.dialect.lend_reserve()
            self.dialect.prepare_database(self._engine)

    @contextmanager
    def read(self, *, unhurried: bool = False) -> Iterator[Connection]:
        """Open a read transaction, which sees a single state of the store; an `unhurried` one may take long."""
        with self._translating_errors():
            self.dialect.check_in_place()
            with self._open_transaction(writes=False, unhurried=unhurried) as connection:
                yield connection

    @contextmanager
    def write(self, *, unhurried: bool = False, announced: bool = False) -> Iterator[Connection]:
        """Open a write transaction, committed to disk when the block ends, rolled back if it raises.

        An `unhurried` one may take long; after an `announced` one, other processes look for changes at once.
        """
        with self._noting_write_trouble(), self._translating_errors(), self._writer:
            if self._read_only:
                raise ReadOnlyUntilRestart(self._read_only)
            if self._damage:  # further writes would make it worse
                raise ReadOnlyUntilRestart(f"{self._damage}; nothing is written to it any more")
            self.dialect.check_in_place()
            with self._open_transaction(writes=True, unhurried=unhurried) as connection:
                before = self.dialect.rows_written(connection)
                changes.begin_transaction(connection)
                yield connection
                wrote = self.dialect.rows_written(connection) > before
                if wrote:
                    if announced:
                        self.dialect.notify_on_commit(connection)
                    changes.mark_held_models(connection)  # last: it holds a row that every writer needs
            if wrote:
                self.dialect.note_commit()
            # once more, because a commit to a file that was replaced meanwhile is lost
            self.dialect.check_in_place()

    @contextmanager
    def _open_transaction(self, *, writes: bool, unhurried: bool) -> Iterator[Connection]:
        options = self.dialect.write_options if writes else self.dialect.read_options
        with (
            self._writer_connection()
            if writes and self.dialect.one_writer
            else self._engine.connect() as connection
        ):
            if options:
                connection.execution_options(**options)
            with connection.begin():
                self.dialect.begin(connection, writes=writes)
                if unhurried:
                    self.dialect.allow_pauses(connection)
                yield connection

    @contextmanager
    def _writer_connection(self) -> Iterator[Connection]:
        """Open the writer's connection, which is kept between transactions unless one fails."""
        connection, self._write_connection = self._write_connection or self._engine.connect(), None
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        if self._closed or self._write_connection is not None:
            connection.close()
        else:
            self._write_connection = connection

    def _close_kept(self) -> None:
        with self._writer:
            connection, self._write_connection = self._write_connection, None
            if connection is not None:
                connection.close()

    def write_when_full(self, change: Callable[[Connection], T], *smaller: Callable[[Connection], T]) -> T:
        """Run a function in a write transaction, even if the disk is full; return its result.

        On a full disk, the transaction uses the reserved space. If that is not enough, the `smaller` functions are
        tried one after the other.

        Raises
        ------
        NoSpace
            If there is no space even for the smallest.
        """
        trouble = self._write_trouble
        with suppress(NoSpace), self.write() as connection:
            return change(connection)
        try:
            done = self._write_with_reserve(smaller or (change,))
        finally:
            with (
                suppress(StoreError),
                self._translating_errors(),
            ):  # a failure here is found again by the next look
                self._keep_reserve()
        self._write_trouble = trouble  # the first attempt failed, but the write succeeded
        return done

    def _write_with_reserve(self, changes_to_try: Sequence[Callable[[Connection], T]]) -> T:
        *larger, smallest = changes_to_try
        with self._translating_errors():
            for change in larger:
                with (
                    suppress(NoSpace),
                    self.dialect.open_reserve(self._engine),
                    self.write() as connection,
                ):
                    return change(connection)
            try:
                with self.dialect.open_reserve(self._engine), self.write() as connection:
                    return smallest(connection)
            except NoSpace as error:
                raise NoSpace(f"{error}, {self.dialect.no_room}") from error

    def keep_reserve(self) -> None:
        """Keep some space reserved for `write_when_full` from now on, as every server does."""
        self._keeps_reserve = True
        with suppress(StoreError), self._translating_errors():  # the next `check_room` raises it again
            self._keep_reserve()

    def _keep_reserve(self) -> None:
        if self._keeps_reserve:
            self.dialect.keep_reserve(self._engine)

    @property
    def write_trouble(self) -> str:
        """The reason why the store refused the last write; empty once `probe_write` succeeds."""
        return self._write_trouble or self._damage

    @contextmanager
    def probe_write(self) -> Iterator[Connection]:
        """Open a write transaction that finds out whether the store accepts writes."""
        self.check_room()
        with self.write() as connection:
            yield connection
        self._write_trouble = ""

    def check_room(self) -> None:
        """Raise `NoSpace` if the disk has almost no space left."""
        with self._noting_write_trouble(), self._translating_errors():
            self.dialect.check_in_place()
            self.dialect.check_room(self._engine)
            self._keep_reserve()

    def claim(self, holder: str) -> None:
        """Claim the store for this server until it is closed; see `Dialect.claim`."""
        with self._translating_errors():
            self._claim = self.dialect.claim(self._engine, holder)

    @contextmanager
    def _noting_write_trouble(self) -> Iterator[None]:
        try:
            yield
        except StoreBusy:
            raise
        except StoreError as error:
            self._write_trouble = str(error)
            raise

    def change_token(self) -> int:
        """See `Store.change_token`."""
        with self._translating_errors():
            self.dialect.check_in_place()
            return self.dialect.change_token(self._engine)

    def read_rows(self, statement: Prepared, **values: Any) -> Rows:
        """Return the rows of one read statement; cheaper than a transaction."""
        with self._translating_errors():
            self.dialect.check_in_place()
            found = self.dialect.read_rows(self._engine, statement, values)
        if found is not None:
            return found
        with self.read() as connection:
            return statement.run_for_all(connection, **values)

    def check_file(self, seconds: float) -> None:
        """Check the file for a limited time; raise `CorruptStore` if a fault is found."""
        with self._translating_errors():
            found = self.dialect.find_faults(self._engine, seconds)
        if found:
            raise CorruptStore(f"{self.dialect.store_name} {found}")

    def size_bytes(self) -> int:
        """Return the size of the store on disk."""
        with self._translating_errors():
            return self.dialect.size_bytes(self._engine)

    def remember_files(self) -> None:
        """Remember the files: from now on every call checks that they are still the same."""
        self.dialect.remember_files()

    def close(self) -> None:
        """Close all connections. A second call does nothing."""
        self._closed = True
        with self._translating_errors(check=False):
            self.dialect.close()
            self._close_kept()
            self._engine.dispose()
        if self._claim is not None:
            self._claim.close()

    @contextmanager
    def _translating_errors(self, *, check: bool = True) -> Iterator[None]:
        if check and self._closed:
            raise StoreError(f"{self.dialect.store_name} is closed")
        try:
            yield
        except self.dialect.driver_errors as error:
            translated = self.dialect.translate_error(error)
            if isinstance(translated, CorruptStore):
                self._damage = str(translated)
            raise translated from error
        except OverflowError as error:
            raise InvalidInput("number", "an integer does not fit into 64 bits") from error
        except Refused as error:
            raise FailedPrecondition(error.reason) from error
        except UnicodeEncodeError as error:
            raise InvalidInput("text", "a name or id is not valid Unicode text") from error
