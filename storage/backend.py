"""The statements that the databases do not share, found through the connection of a transaction."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import Column, ColumnElement, Connection, Table, type_coerce
from sqlalchemy.types import NullType

from quercus.storage.clocks import Timestamps

if TYPE_CHECKING:
    from quercus.storage.prepared import Prepared, Write

OPTION: Final = "quercus_backend"
"""Name of the execution option by which an engine tells its backend."""


class Backend:
    """One database's own way to do something; by default that of SQLAlchemy."""

    nests_changes: bool
    """A statement may use what a change within it returns."""
    keeps_types: bool
    """A cell holds only values of its column's type."""
    repeated: tuple[type[Exception], ...]
    """Errors of `insert_rows` for a key that is there already."""
    streaming: Mapping[str, Any] = {}
    """Execution options of a statement whose rows are not to be in memory all at once."""

    def fetch(
        self, connection: Connection, prepared: "Prepared", values: Mapping[str, Any]
    ) -> Sequence[tuple[Any, ...]]:
        """Run a prepared statement by the driver; return its rows."""
        raise NotImplementedError

    def write_together(self, connection: Connection, writes: "Sequence[Write]") -> None:
        """Write rows, at least one of each; see `quercus.storage.prepared.write_together`."""
        raise NotImplementedError

    def insert(self, table: Table) -> Any:
        """Return an insert statement that knows ``on_conflict_do_nothing``."""
        raise NotImplementedError

    def insert_rows(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert rows; see `quercus.storage.inserts.insert_rows`."""
        raise NotImplementedError

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
        """Insert pushed rows where there is a faster way than `insert_rows`; return whether there is.

        Parameters
        ----------
        model_id : key of the model, which the caller holds.
        first : sequence of the first row.
        ids, values, labels : columns of the rows.
        now : time of the push.
        """
        return False

    def continue_keys(self, connection: Connection, table: Table, last: int) -> None:
        """Make the next key that the database gives follow `last`."""
        raise NotImplementedError

    def foreign_rules(self, connection: Connection) -> list[tuple[str, str, str, bool]]:
        """Return kind, name and table of triggers and rules of others, and whether one may change what is stored."""
        raise NotImplementedError

    def object_faults(self, connection: Connection) -> Iterator[tuple[str, bool]]:
        """Yield, in words, how the objects of the database differ from the schema's, and whether that is damage."""
        raise NotImplementedError

    def prepare_check(self, connection: Connection) -> None:
        """Prepare a connection for the conditions of `type_faults`."""

    def type_faults(self, column: Column[Any]) -> list[ColumnElement[bool]]:
        """Return conditions under which a cell, which is not NULL, holds no value of its column's type."""
        return []

    def printed(self, column: Column[Any]) -> ColumnElement[Any]:
        """Return a cell in the form in which a fault names it, whatever it holds."""
        return type_coerce(column, NullType())


def backend_of(connection: Connection) -> Backend:
    """Return the backend of a connection."""
    found: Backend = connection.get_execution_options()[OPTION]
    return found
