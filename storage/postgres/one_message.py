"""Statements that go to the database server together, in one message, and so in one journey.

Not by libpq's pipelines: a client that stands still amid a pipeline is at work to the database server, which does not
hang up on it for being idle, so what it holds stays held. The server begins with a message when all of it has come.
The protocol has no parameters in a message of several statements: each is prepared by its name, and then called.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import count
from typing import Any, Final, TypeAlias, cast

import psycopg
from psycopg import ClientCursor, IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from sqlalchemy import Boolean, Connection, Float, LargeBinary
from sqlalchemy.dialects.postgresql.psycopg import dialect as psycopg_dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.sql import Executable
from sqlalchemy.sql.elements import ClauseElement
from sqlalchemy.types import TypeEngine

from quercus.storage.postgres.array_text import array_text

Asked: TypeAlias = tuple[Executable, Mapping[str, Any]]
"""A statement, and its parameters, which the driver takes as they are."""

CACHED_STATEMENTS: Final = 200  # texts of statements
_PREPARED: Final = (
    "quercus_prepared"  # names of the statements that a connection has prepared; not there: unknown
)
_THERE: Final = "SELECT name FROM pg_prepared_statements"
_DIALECT: Final = psycopg_dialect(paramstyle="numeric_dollar")  # type: ignore[no-untyped-call]
_DECLARED: Final = {Float: "float8", Boolean: "boolean", LargeBinary: "bytea"}
_NUMBERS: Final = count(1)


class StatementText:
    """The text of a statement, with its name, the names of its parameters in order, and those that never change."""

    __slots__ = ("call", "constants", "name", "order", "preparation", "text")

    def __init__(self, statement: Executable) -> None:
        compiled = cast(ClauseElement, statement).compile(dialect=_DIALECT)
        self.name = f"quercus_{next(_NUMBERS)}"
        self.order: tuple[str, ...] = tuple(cast(Any, compiled).positiontup or ())
        self.constants = {name: value for name, value in compiled.params.items() if value is not None}
        self.text = str(compiled)
        kinds = (_declared_type(cast(Any, compiled).binds[name].type) for name in self.order)
        self.preparation = f"PREPARE {self.name}{_in_brackets(kinds)} AS {self.text}"
        self.call = f"EXECUTE {self.name}{_in_brackets('%s' for _ in self.order)}"


def _in_brackets(parts: Iterable[str]) -> str:
    """The parts in brackets; nothing where there are none."""
    joined = ", ".join(parts)
    return f"({joined})" if joined else ""


def _declared_type(kind: TypeEngine[Any]) -> str:
    """Return the type of a parameter, where SQLAlchemy does not write it into the statement."""
    for general, name in _DECLARED.items():
        if isinstance(kind, general):
            return name
    return "unknown"


text_of = lru_cache(maxsize=CACHED_STATEMENTS)(StatementText)


def exchange_statements(
    connection: Connection, asked: Sequence[Asked], *, commits: bool = False
) -> list[list[Any]]:
    """Execute statements in order, and return the rows of each.

    Parameters
    ----------
    connection : whose transaction begins with them, if it has not begun.
    asked : the statements.
    commits : the transaction ends with them.
    """
    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    texts = [text_of(statement) for statement, _ in asked]
    try:
        _prepare_statements(connection, driver, texts)
        begins = driver.info.transaction_status is TransactionStatus.IDLE
        parts = [text.call for text in texts]
        if begins:
            parts.insert(0, _begin_statement(driver))
            driver.autocommit = True  # the driver is to begin no transaction of its own
        if commits:
            parts.append("COMMIT")
        given = [
            array_text(value) if isinstance(value, list) else value
            for text, (_, values) in zip(texts, asked, strict=True)
            for value in map({**text.constants, **values}.__getitem__, text.order)
        ]
        with ClientCursor(driver, row_factory=namedtuple_row) as cursor:
            cursor.execute(cast(Any, "; ".join(parts)), given)
            return _fetch_rows(cursor, begins, len(asked))
    except psycopg.Error:
        connection.info.pop(_PREPARED, None)
        if driver.closed:
            with suppress(SQLAlchemyError):  # it is to notice, and to give up the other connections too
                connection.exec_driver_sql("SELECT 1")
        raise


def _fetch_rows(cursor: "ClientCursor[Any]", begins: bool, count: int) -> list[list[Any]]:
    found = []
    if begins:
        cursor.nextset()
    for _ in range(count):
        found.append([] if cursor.rownumber is None else cursor.fetchall())
        cursor.nextset()
    return found


def leave_to_driver(connection: Connection) -> None:
    """Let the driver begin this transaction, unless `exchange_statements` does, which may have begun the one before."""
    cast("psycopg.Connection[Any]", connection.connection.driver_connection).autocommit = False


def forget_prepared(connection: Connection) -> None:
    """Forget what is prepared, because the driver removes all prepared statements, ours too, after a rollback."""
    if not (connection.closed or connection.invalidated):
        connection.info.pop(_PREPARED, None)


def _prepare_statements(
    connection: Connection, driver: "psycopg.Connection[Any]", texts: Sequence[StatementText]
) -> None:
    prepared: set[str] | None = connection.info.get(_PREPARED)
    if prepared is None:
        prepared = connection.info[_PREPARED] = {name for (name,) in driver.execute(_THERE)}
    for text in texts:
        if text.name not in prepared:
            driver.execute(cast(Any, text.preparation), prepare=False)
            prepared.add(text.name)


def _begin_statement(driver: "psycopg.Connection[Any]") -> str:
    """Return the statement by which the driver would begin a transaction."""
    level = driver.isolation_level or IsolationLevel.READ_COMMITTED
    return f"BEGIN ISOLATION LEVEL {level.name.replace('_', ' ')}" + (
        " READ ONLY" if driver.read_only else ""
    )
