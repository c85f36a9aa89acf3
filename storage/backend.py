"""The operations that each database does in its own way, found through the connection of a transaction."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, type_coerce
from sqlalchemy.sql import Executable
from sqlalchemy.types import NullType

from quercus.storage.clocks import Timestamps

OPTION: Final = "quercus_backend"
"""Name of the execution option with which an engine names its backend."""


class Backend(ABC):
    """The operations of one database."""

    nests_changes: bool
    """True if a statement may use the rows that a change within it returns."""
    misread: tuple[type[Exception], ...]
    """Errors of reading a cell that is not of its column's type; none if the database allows no such cells."""
    repeated: tuple[type[Exception], ...]
    """Errors that `insert_rows` raises for a key that exists already."""
    streaming: Mapping[str, Any] = {}
    """Execution options that keep the rows of a statement from being in memory all at once."""

    @abstractmethod
    def fetch(
        self, connection: Connection, statement: Executable, values: Mapping[str, Any]
    ) -> Sequence[tuple[Any, ...]]:
        """Run a statement through the driver; return its rows."""

    @abstractmethod
    def update_rows(
        self, connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Run an update for each row, at least one; see `quercus.storage.prepared.Prepared.run_for_each`."""

    @abstractmethod
    def insert(self, table: Table) -> Any:
        """Return an insert statement that has ``on_conflict_do_nothing``."""

    @abstractmethod
    def insert_rows(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert rows; see `quercus.storage.inserts.insert_rows`."""

    def insert_together(
        self,
        connection: Connection,
        model_id: int,
        first: int,
        ids: Sequence[str],
        values: Sequence[bytes],
        labels: Sequence[bytes],
        now: Timestamps,
    ) -> bool:
        """Insert pushed rows if there is a faster way than `insert_rows`; return whether there was.

        Parameters
        ----------
        model_id : key of the model, which the caller has locked.
        first : sequence of the first row.
        ids, values, labels : columns of the rows.
        now : time of the push.
        """
        return False

    @abstractmethod
    def continue_keys(self, connection: Connection, table: Table, last: int) -> None:
        """Make the database assign keys after `last`."""

    @abstractmethod
    def foreign_rules(self, connection: Connection) -> list[tuple[str, str, str, bool]]:
        """Return kind, name and table of each foreign trigger or rule, and whether it may change what is stored."""

    def file_faults(self, connection: Connection, most: int) -> Iterator[str]:
        """Yield the damage of the store's file, at most `most` faults of its pages; a server checks its own files."""
        yield from ()

    @abstractmethod
    def object_faults(self, connection: Connection) -> Iterator[tuple[str, bool]]:
        """Yield the differences between the database and the schema, as texts, each with whether it is damage."""

    def prepare_check(self, connection: Connection) -> None:  # noqa: B027  (PostgreSQL needs no preparation)
        """Prepare a connection for the conditions of `type_faults`."""

    def type_faults(self, column: Column[Any]) -> list[ColumnElement[bool]]:
        """Return conditions under which a cell, which is not NULL, has a value that is not of its column's type."""
        return []

    def printed(self, column: Column[Any]) -> ColumnElement[Any]:
        """Return a cell in a form that can be shown, whatever it holds."""
        return type_coerce(column, NullType())


def backend_of(connection: Connection) -> Backend:
    """Return the backend of a connection."""
    found: Backend = connection.get_execution_options()[OPTION]
    return found
