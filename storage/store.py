"""The store. Every call is one transaction."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Self

from sqlalchemy import update

from quercus.labelling.shapes import Shape
from quercus.storage import changes, models
from quercus.storage.access import Access
from quercus.storage.admin import removal, transfer
from quercus.storage.admin.verify import ContentReader, model_faults
from quercus.storage.dialect import dialect_for
from quercus.storage.engine import Database
from quercus.storage.growth_calls import GrowthCalls
from quercus.storage.host_clocks import HostClocks, boot_id, since_boot
from quercus.storage.log.calls import LogCalls
from quercus.storage.migrate import ensure_schema
from quercus.storage.queries.calls import QueryCalls
from quercus.storage.queries.desk import KnownModel
from quercus.storage.records import ModelRecord
from quercus.storage.rows import find_key
from quercus.storage.schema import HEAD, lease_clock
from quercus.storage.sqlite.dialect import SqliteDialect

BUSY_TIMEOUT_S = 10.0
LOOK_FOR_REMOVALS_S = 60.0
"""Seconds between two searches for rows that another process's deletion left behind."""


class Store(LogCalls, QueryCalls, GrowthCalls):
    """The store of models, their evidence, queries and trees, in one database.

    Safe for threads; every process opens its own. A write has reached the disk when the call returns. Bytes
    (specifications, labels, trees, reasons) are stored uninterpreted. Every method may raise `StoreError` (`StoreBusy`,
    `ReadOnlyStore`, `CorruptStore`), `NotFound` for an unknown model, query, instance or tree version, and
    `InvalidInput` for an argument out of bounds.
    """

    _removes = True  # an earlier process may have left rows
    _removal_looked = 0.0

    @classmethod
    def open(
        cls,
        url: str,
        *,
        clock: Callable[[], float] | None = None,
        steady: Callable[[], float] | None = None,
        boot: str | None = None,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        check_s: float = 0.0,
        read_only: bool = False,
        create: bool = True,
    ) -> "Store":
        """Open a store; create it if there is none, and upgrade its schema if it is older.

        Parameters
        ----------
        url : str
            ``sqlite:///relative/path`` or ``sqlite:////absolute/path``, whose folder must exist, or
            ``postgresql://user@host/database``, which must exist.
        clock : callable, optional
            Returns seconds since 1970, for times that people see and the expiry of tokens; it need not be steady. By
            default the machine's clock, or the database's if several machines may share the store.
        steady : callable, optional
            Returns seconds since the machine was started, for leases; it must be the same in all processes, and never
            go back. The default is as for `clock`.
        boot : str, optional
            Id of this boot; by default the system's.
        busy_timeout_s : float
            Most seconds that a write waits for another process.
        check_s : float
            Most seconds for checking the file for damage; 0 for no check.
        read_only : bool
            Open a store with this version's schema only for reading; writes raise `ReadOnlyStore`.
        create : bool
            False to raise `StoreError` if there is no store, or the database has no tables.

        Raises
        ------
        UnknownSchema
            If a newer version of Quercus wrote the store.
        ReadOnlyStore, CorruptStore, StoreBusy, StoreError
            If the file cannot be used; the message says why.
        InvalidInput
            If the URL is invalid, or names a database that is not supported.
        """
        dialect = dialect_for(url, busy_timeout_s, read_only)
        if not create:
            dialect.check_exists()
        database = Database(dialect)
        try:
            if check_s > 0:
                database.check_file(check_s)
            ensure_schema(database, create=create)
            clocks = database.dialect.own_clock(clock) if steady is None else None
            if clocks is None:
                machine = (clock or time.time, steady or since_boot)
                clocks = HostClocks.of(database, *machine, boot_id() if boot is None else boot)
        except BaseException:
            database.close()
            raise
        return cls(database, clocks)

    def dump(self, model: str) -> Iterator[str]:
        """Yield a model's log as lines of JSON; see `quercus.storage.admin.transfer`."""
        with self._database.read(unhurried=True) as connection:
            yield from transfer.dump_model(connection, model)

    def load(
        self, lines: Iterable[str], name: str | None = None, meaning: transfer.LogValidator | None = None
    ) -> tuple[str, int]:
        """Create a model from lines that `dump` yielded, all or nothing; return its name and the number of events.

        In SQLite, nothing else can be written meanwhile (docs/operating.md says how long that takes). See
        `quercus.storage.admin.transfer.load_model`.
        """
        with self._database.write(unhurried=True) as connection:
            return transfer.load_model(connection, lines, self._clock_of(connection), name, meaning)

    @property
    def is_read_only(self) -> bool:
        """True if the store was opened read-only."""
        return self._database.dialect.read_only

    @property
    def url(self) -> str:
        """URL with which another process opens the store."""
        return self._database.dialect.url

    @property
    def revision(self) -> str:
        """Revision of the store's schema."""
        return HEAD

    def size_bytes(self) -> int:
        """Return the size of the store on disk, in bytes."""
        return self._database.size_bytes()

    def free_bytes(self) -> int | None:
        """Return the free bytes on the disk of the store; None for a database server."""
        dialect = self._database.dialect
        return dialect.room.left_bytes() if isinstance(dialect, SqliteDialect) else None

    def beside(self, suffix: str) -> Path | None:
        """Return a path beside the store's file, for files that can be recreated; None if the store is not a file."""
        return self._database.dialect.path_beside(suffix)

    @property
    def access(self) -> Access:
        """Tokens and the audit log."""
        return Access(self._database, lambda connection: self._clocks.now(connection).wall)

    @property
    def write_trouble(self) -> str:
        """The reason why the store refuses writes, such as a full disk; empty if it accepts them."""
        return self._database.write_trouble

    def claim(self, holder: str) -> None:
        """Claim to be the only server that grows the store's trees, until the store is closed or the process ends.

        Does nothing if several servers may share the store (`may_be_shared`).

        Parameters
        ----------
        holder : str
            Description of the server, for the error of a second one.

        Raises
        ------
        StoreBusy
            If another server has the claim; the message says which.
        """
        self._database.claim(holder)

    def keep_reserve(self) -> None:
        """Keep some disk space reserved from now on, so that models can be deleted on a full disk; for servers."""
        self._database.keep_reserve()

    def try_to_write(self) -> None:
        """Make a minimal write, and raise `StoreError` if the store refuses it."""
        with self._database.probe_write() as connection:
            connection.execute(update(lease_clock).values(boot=lease_clock.c.boot))

    def check_room(self) -> None:
        """Raise `NoSpace` if the disk has almost no space left."""
        self._database.check_room()

    def close(self) -> None:
        """Close all connections; later calls raise `StoreError`."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def change_token(self) -> int:
        """Return a number that changes soon after any process commits a change of a model; cheap to poll.

        Compare it only for equality, and only between calls on the same `Store`.
        """
        return self._database.change_token()

    def newest_change(self) -> int:
        """Return the number of the newest commit that changed a model; see `changes`."""
        with self._database.read() as connection:
            return changes.newest_commit(connection)

    def changes(self, seen: int) -> list[changes.Change]:
        """Return the models that commits after number `seen` changed or deleted, each once, in that order."""
        return changes.of_rows(self._database.read_rows(changes.SINCE, seen=seen))

    # Models

    def create_model(
        self,
        name: str,
        specification: bytes,
        *,
        budget: int,
        admit: Callable[[int], object] | None = None,
    ) -> ModelRecord:
        """Create a model with an empty log; `AlreadyExists` if the name is taken.

        `admit` is called with the number of models, including this one, while no other can be created. If it raises,
        the model is not created.
        """
        with self._database.write() as connection:
            clock = self._clock_of(connection)
            return models.create(connection, name, specification, budget, clock, admit)

    def get_model(self, name: str) -> ModelRecord:
        """Return a model and its state."""
        with self._database.read() as connection:
            return models.get(connection, name, self._clocks.now(connection))

    def list_models(self, after: str = "", limit: int = 1000) -> list[ModelRecord]:
        """Return models in order of name, those after the name `after`."""
        with self._database.read() as connection:
            return models.read_page(connection, after, limit, self._clocks.now(connection))

    def model_names(self) -> list[str]:
        """Return the names of all models, including damaged ones, in order."""
        with self._database.read() as connection:
            return models.read_names(connection)

    def key_of(self, name: str) -> int:
        """Return the `ModelRecord.key` of a model, even of a damaged one."""
        with self._database.read() as connection:
            return find_key(connection, name)

    def find_damage(self, name: str, contents: ContentReader) -> str:
        """Read all of a model, and return the first damage; empty if there is none."""
        with self._database.read(unhurried=True) as connection:
            key = find_key(connection, name)
            faults = (str(fault) for fault in model_faults(connection, key, contents) if fault.is_damage)
            return next(faults, "")

    def models_of(self, keys: Sequence[int]) -> list[ModelRecord]:
        """Return the models of these `ModelRecord.key`, without deleted ones, in no order."""
        with self._database.read() as connection:
            return models.models_of_keys(connection, keys, self._clocks.now(connection))

    def models_with_queries(self) -> list[ModelRecord]:
        """Return the models that have an open or leased query, in no order."""
        with self._database.read() as connection:
            return models.with_queries(connection, self._clocks.now(connection))

    def delete_model(self, name: str) -> None:
        """Delete a model with its evidence, queries and trees, even on a full disk.

        The model is invisible from now on, and its name is free; `remove_deleted` removes its rows.
        """
        self._removes = True  # even if the call fails after the commit
        self._removes = self._database.write_when_full(partial(removal.mark_deleted, name=name))

    @property
    def removes(self) -> bool:
        """True if rows of deleted models may be left: after a deletion here, and once a minute for other processes."""
        return self._removes or time.monotonic() - self._removal_looked >= LOOK_FOR_REMOVALS_S

    def remove_deleted(self, rows: int = removal.ROWS) -> bool:
        """Remove up to `rows` rows of deleted models, fewer on a full disk; return whether more are left."""
        counts = (rows, *(min(rows, few) for few in removal.FEW_ROWS))
        self._removes, self._removal_looked = True, time.monotonic()
        self._removes = self._database.write_when_full(
            *(partial(removal.remove_some, rows=each) for each in counts)
        )
        return self._removes

    def extend_model(
        self,
        name: str,
        rule: Callable[[bytes], models.Extension],
        request: str,
        is_same: Callable[[bytes, Shape], bool],
    ) -> ModelRecord:
        """Add classes or attributes to a model, as a SPECIFICATION event, once for each request.

        The rule computes the extension from the present specification while the model is locked. From then on, earlier
        events are read in the new shape (`quercus.labelling.shapes`). See `models.extend` for `is_same`.

        Raises
        ------
        AlreadyExists
            If the request was used for a different extension.
        """
        with self._database.write() as connection:
            return models.extend(connection, name, rule, request, is_same, self._clock_of(connection))

    def respecify(self, name: str, specification: bytes, *, budget: int) -> ModelRecord:
        """Change specification and budget, as a SPECIFICATION event.

        Raises
        ------
        FailedPrecondition
            If more queries are answered or leased than the new budget allows.
        """
        return self.revise(name, lambda _: (specification, budget))

    def revise(
        self, name: str, rule: models.SpecificationRule, known: KnownModel | None = None
    ) -> ModelRecord:
        """Change a model like `respecify`, by a rule that runs while the model is locked, so that no change is lost.

        If the new budget is spent and the model is `known`, queries with some of several answers are settled with
        those.
        """
        with self._database.write() as connection:
            return models.respecify(connection, name, rule, self._clock_of(connection), known)
