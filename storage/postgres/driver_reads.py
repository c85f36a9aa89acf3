"""Statements that psycopg's cursor executes; their text is made once."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final, cast

import psycopg
from psycopg.rows import namedtuple_row
from sqlalchemy import Connection, Select
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import SQLAlchemyError

CACHED_STATEMENTS: Final = 200  # texts of statements


def fetch(connection: Connection, asked: Sequence[tuple[Select[Any], Mapping[str, Any]]]) -> list[list[Any]]:
    """The rows of each statement, executed in order, with parameters that the driver takes as they are.

    One after the other, not in a pipeline: a client that stands still amid a pipeline is at work to the database
    server, which does not hang up on it for being idle, so what it holds stays held.
    """
    driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
    found = []
    try:
        for statement, values in asked:
            text, constants = text_of(statement, connection.dialect)
            with driver.cursor(row_factory=namedtuple_row) as cursor:
                found.append(cursor.execute(cast(Any, text), {**constants, **values}).fetchall())
    except psycopg.Error:
        if driver.closed:
            with suppress(SQLAlchemyError):  # it is to notice, and to give up the other connections too
                connection.exec_driver_sql("SELECT 1")
        raise
    return found


@lru_cache(maxsize=CACHED_STATEMENTS)
def text_of(statement: Select[Any], dialect: Dialect) -> tuple[str, dict[str, Any]]:
    """The text of a statement, and its parameters that are always the same."""
    compiled = statement.compile(dialect=dialect)
    return str(compiled), {name: value for name, value in compiled.params.items() if value is not None}
