"""The statements that only PostgreSQL has."""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import chain, islice
from typing import Any, Final, cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql

from quercus.storage.backend import Backend
from quercus.storage.postgres import objects

WRITTEN: Final = "quercus_written"
"""Key in a connection's `info` of the number of rows that were written through it."""

FEW: Final = 64
"""Rows that go with their statement: PostgreSQL waits for ever for the rest of a copy whose client is stopped."""

_DIALECT: Final = postgresql.dialect()  # type: ignore[no-untyped-call]


class PostgresBackend(Backend):
    """See `quercus.storage.backend.Backend`."""

    runs_texts = False
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
        """Insert rows by one statement, or copy them into the table where they are many."""
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        ahead = iter(rows)
        first = list(islice(ahead, FEW + 1))
        with psycopg.Cursor(driver) as cursor:
            if len(first) <= FEW:
                cursor.execute(
                    _insert_statement(table, tuple(columns), len(first)), list(chain.from_iterable(first))
                )
            else:
                statement, types = _copy_statement(table, tuple(columns))
                with cursor.copy(statement) as copy:
                    copy.set_types(types)
                    for row in chain(first, ahead):
                        copy.write_row(row)
            connection.info[WRITTEN] = connection.info.get(WRITTEN, 0) + cursor.rowcount

    def continue_keys(self, connection: Connection, table: Table, last: int) -> None:
        """Set the sequence of the table's keys."""
        sequence = func.pg_get_serial_sequence(table.name, "id")
        connection.execute(select(func.setval(sequence, last)))


@cache
def _insert_statement(table: Table, columns: tuple[str, ...], count: int) -> sql.Composed:
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    row = sql.SQL("({})").format(sql.SQL(", ").join([sql.Placeholder()] * len(columns)))
    values = sql.SQL(", ").join([row] * count)
    return sql.SQL("INSERT INTO {} ({}) VALUES {}").format(sql.Identifier(table.name), names, values)


@cache
def _copy_statement(table: Table, columns: tuple[str, ...]) -> tuple[sql.Composed, list[str]]:
    """Return the statement that copies rows in binary, and the types of the columns."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    types = (table.c[name].type.compile(_DIALECT) for name in columns)
    bare = [written.partition("(")[0].partition(" COLLATE")[0].lower() for written in types]
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table.name), names), bare
