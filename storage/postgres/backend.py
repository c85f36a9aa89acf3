"""The operations of PostgreSQL."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from itertools import chain, islice
from typing import Any, Final, cast

import psycopg
from psycopg import sql
from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import SQLAlchemyError

from quercus.labelling.event import SOURCE, EventKind
from quercus.storage.backend import Backend
from quercus.storage.clocks import Timestamps
from quercus.storage.inserts import row_insert
from quercus.storage.postgres import objects
from quercus.storage.postgres.texts import arrays_of, text_of, text_together
from quercus.storage.prepared import Prepared, Write

WRITTEN: Final = "quercus_written"
"""Key in a connection's `info`: the number of rows that were written through it."""

FEW: Final = 1000
"""Most rows that are sent with their statement instead of by COPY: PostgreSQL would wait for the rest of a copy for
ever if the client were suspended."""

_PUSH: Final = f"""
INSERT INTO log (model_id, sequence, id, "values", label, created_at, clock, kind, author, reliability, conflict)
SELECT %s, %s + place - 1, id, "values", label, %s, %s, {int(EventKind.INSTANCE)}, '{SOURCE}', 1.0, false
FROM unnest(%b::text[], %b::bytea[], %b::bytea[]) WITH ORDINALITY AS given (id, "values", label, place)
"""  # noqa: S608 - constants of ours

_DIALECT: Final = postgresql.dialect()  # type: ignore[no-untyped-call]


class PostgresBackend(Backend):
    """See `quercus.storage.backend.Backend`."""

    nests_changes = True
    misread: tuple[type[Exception], ...] = ()
    repeated: tuple[type[Exception], ...] = (psycopg.errors.UniqueViolation,)
    streaming: Mapping[str, Any] = {"stream_results": True}

    foreign_rules = staticmethod(objects.foreign_rules)
    object_faults = staticmethod(objects.object_faults)

    def fetch(
        self, connection: Connection, prepared: Prepared, values: Mapping[str, Any]
    ) -> Sequence[tuple[Any, ...]]:
        """Run a prepared statement through the driver; return its rows."""
        text, constants = text_of(prepared)
        with _cursor(connection) as cursor:
            cursor.execute(text, {**constants, **values}, prepare=True, binary=True)
            _note_written(connection, cursor)
            return cursor.fetchall() if cursor.description else []

    def write_together(self, connection: Connection, writes: Sequence[Write]) -> None:
        """Write all rows by one statement."""
        text = text_together(tuple(prepared for prepared, _ in writes))
        with _cursor(connection) as cursor:
            cursor.execute(text, arrays_of(writes), prepare=True)
        connection.info[WRITTEN] = connection.info.get(WRITTEN, 0) + sum(len(rows) for _, rows in writes)

    def insert(self, table: Table) -> Any:
        """Return an insert statement that has ``on_conflict_do_nothing``."""
        return postgresql.insert(table)

    def insert_rows(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert rows by one statement, or many by COPY."""
        ahead = iter(rows)
        first = list(islice(ahead, FEW + 1))
        if len(first) <= FEW:
            insert = row_insert(table, tuple(columns))
            insert.run_for_each(connection, [dict(zip(columns, row, strict=True)) for row in first])
            return
        statement, types = _copy_statement(table, tuple(columns))
        with _cursor(connection) as cursor:
            with cursor.copy(statement) as copy:
                copy.set_types(types)
                for row in chain(first, ahead):
                    copy.write_row(row)
            _note_written(connection, cursor)

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
        """Insert INSTANCE events `first`, `first` + 1, ... by one statement, in which constants are sent only once."""
        given = (model_id, first, now.wall, now.clock, list(ids), list(values), list(labels))
        with _cursor(connection) as cursor:
            cursor.execute(_PUSH, given, prepare=True)
            _note_written(connection, cursor)
        return True

    def continue_keys(self, connection: Connection, table: Table, last: int) -> None:
        """Set the sequence of the table's keys."""
        sequence = func.pg_get_serial_sequence(table.name, "id")
        connection.execute(select(func.setval(sequence, last)))


@contextmanager
def _cursor(connection: Connection) -> Iterator["psycopg.Cursor[Any]"]:
    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    try:
        with psycopg.Cursor(driver) as cursor:
            yield cursor
    except psycopg.Error:
        if driver.closed:  # let SQLAlchemy notice, so that it also drops its other connections
            with suppress(SQLAlchemyError):
                connection.exec_driver_sql("SELECT 1")
        raise


def _note_written(connection: Connection, cursor: "psycopg.Cursor[Any]") -> None:
    if not (cursor.statusmessage or "").startswith("SELECT"):
        connection.info[WRITTEN] = connection.info.get(WRITTEN, 0) + max(0, cursor.rowcount)


@cache
def _copy_statement(table: Table, columns: tuple[str, ...]) -> tuple[sql.Composed, list[str]]:
    """Return the COPY statement in binary, and the types of the columns."""
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    types = (table.c[name].type.compile(_DIALECT) for name in columns)
    bare = [written.partition("(")[0].partition(" COLLATE")[0].lower() for written in types]
    return sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table.name), names), bare
