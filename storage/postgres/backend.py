"""The statements that only PostgreSQL has."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, Final, cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Delete, Insert, Table, Update, func, select
from sqlalchemy.dialects import postgresql

from quercus.storage.backend import Asked, Backend
from quercus.storage.postgres import objects, one_message

WRITTEN: Final = "quercus_written"
"""Key in a connection's `info` of the number of rows that were written through it."""

_DIALECT: Final = postgresql.dialect()  # type: ignore[no-untyped-call]


class PostgresBackend(Backend):
    """See `quercus.storage.backend.Backend`."""

    takes_arrays = True
    keeps_types = True
    repeated: tuple[type[Exception], ...] = (psycopg.errors.UniqueViolation,)
    streaming: Mapping[str, Any] = {"stream_results": True}

    foreign_rules = staticmethod(objects.foreign_rules)
    object_faults = staticmethod(objects.object_faults)

    def insert(self, table: Table) -> Any:
        """Return an insert statement that knows ``on_conflict_do_nothing``."""
        return postgresql.insert(table)

    def insert_rows(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Copy rows into the table."""
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        statement, types = _copy_statement(table, tuple(columns))
        with psycopg.Cursor(driver) as cursor:
            with cursor.copy(statement) as copy:
                copy.set_types(types)
                for row in rows:
                    copy.write_row(row)
            connection.info[WRITTEN] = connection.info.get(WRITTEN, 0) + cursor.rowcount

    def read_each(self, connection: Connection, asked: Sequence[Asked]) -> list[Sequence[Any]]:
        """Return the rows of each statement, which all go in one message."""
        return list(one_message.exchange_statements(connection, asked))

    def commit_with(
        self, connection: Connection, change: Insert | Update | Delete, values: Mapping[str, Any]
    ) -> None:
        """Execute the statement, and commit, in one message. SQLAlchemy still has to end the transaction."""
        one_message.exchange_statements(connection, [(change, values)], commits=True)

    def continue_keys(self, connection: Connection, table: Table, last: int) -> None:
        """Set the sequence of the table's keys."""
        sequence = func.pg_get_serial_sequence(table.name, "id")
        connection.execute(select(func.setval(sequence, last)))


@cache
def _copy_statement(table: Table, columns: tuple[str, ...]) -> tuple[sql.Composed, list[str]]:
    """Return the statement that copies rows in binary, and the types of the columns."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    types = (table.c[name].type.compile(_DIALECT) for name in columns)
    bare = [written.partition("(")[0].partition(" COLLATE")[0].lower() for written in types]
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table.name), names), bare
