"""The operations of PostgreSQL.

Pushed rows have a statement of their own, `_PUSH`. A push of 1,000 rows takes 1.31 to 1.34 times as long as the same
rows by bare psycopg (`bench/postgres.py`, which wants at most 1.5), by `insert_rows` 2.10 to 2.23 times, and by COPY
1.47 to 1.68 times.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, cast

import psycopg
from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql import Executable
from sqlalchemy.sql.compiler import SQLCompiler

from quercus.labelling.event import SOURCE, EventKind
from quercus.storage.backend import Backend
from quercus.storage.clocks import Timestamps
from quercus.storage.json_values import JsonElements, OneOf
from quercus.storage.postgres import objects
from quercus.storage.postgres.texts import insert_of_rows, text_of, update_of_rows

WRITTEN: Final = "quercus_written"
"""Key in a connection's `info`: the number of rows that were written through it."""

_PUSH: Final = f"""
INSERT INTO log (model_id, sequence, id, "values", label, created_at, clock, kind, author, reliability, conflict)
SELECT %s, %s + place - 1, id, "values", label, %s, %s, {int(EventKind.INSTANCE)}, '{SOURCE}', 1.0, false
FROM unnest(%b::text[], %b::bytea[], %b::bytea[]) WITH ORDINALITY AS given (id, "values", label, place)
"""  # noqa: S608 - constants of ours


class PostgresBackend(Backend):
    """See `quercus.storage.backend.Backend`."""

    nests_changes = True
    misread: tuple[type[Exception], ...] = ()
    repeated: tuple[type[Exception], ...] = (psycopg.errors.UniqueViolation,)
    streaming: Mapping[str, Any] = {"stream_results": True}

    foreign_rules = staticmethod(objects.foreign_rules)
    object_faults = staticmethod(objects.object_faults)

    def fetch(
        self, connection: Connection, statement: Executable, values: Mapping[str, Any]
    ) -> Sequence[tuple[Any, ...]]:
        """Run a statement through the driver; return its rows."""
        text, constants = text_of(statement)
        with _cursor(connection) as cursor:
            cursor.execute(text, {**constants, **values}, prepare=True, binary=True)
            _note_written(connection, cursor)
            return cursor.fetchall() if cursor.description else []

    def update_rows(
        self, connection: Connection, statement: Executable, rows: Sequence[Mapping[str, Any]]
    ) -> None:
        """Run an update once for all rows."""
        many = update_of_rows(statement)
        _write(connection, many.text, many.arrays([each[name] for name in many.types] for each in rows))

    def insert(self, table: Table) -> Any:
        """Return an insert statement that has ``on_conflict_do_nothing``."""
        return postgresql.insert(table)

    def insert_rows(
        self, connection: Connection, table: Table, columns: Sequence[str], rows: Iterable[Sequence[Any]]
    ) -> None:
        """Insert rows by one statement."""
        many = insert_of_rows(table, tuple(columns))
        if arrays := many.arrays(rows):
            _write(connection, many.text, arrays)

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
        _write(connection, _PUSH, given)
        return True

    def continue_keys(self, connection: Connection, table: Table, last: int) -> None:
        """Set the sequence of the table's keys."""
        sequence = func.pg_get_serial_sequence(table.name, "id")
        connection.execute(select(func.setval(sequence, last)))


@compiles(JsonElements, "postgresql")
def _elements_text(called: JsonElements, compiler: SQLCompiler, **kw: Any) -> str:
    return f"json_array_elements_text{compiler.process(called.clause_expr, **kw)}"


@compiles(OneOf, "postgresql")
def _one_of_text(called: OneOf, compiler: SQLCompiler, **kw: Any) -> str:
    # The planner turns IN into a join, and without statistics reads all rows of a model.
    column, values = (compiler.process(each, **kw) for each in called.clauses)
    return f"{column} = ANY (ARRAY{values})"


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


def _write(connection: Connection, text: str, values: Any) -> None:
    with _cursor(connection) as cursor:
        cursor.execute(text, values, prepare=True)
        _note_written(connection, cursor)


def _note_written(connection: Connection, cursor: "psycopg.Cursor[Any]") -> None:
    if not (cursor.statusmessage or "").startswith("SELECT"):
        connection.info[WRITTEN] = connection.info.get(WRITTEN, 0) + max(0, cursor.rowcount)
