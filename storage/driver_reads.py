"""Statements that the driver itself executes: to make one ready takes SQLAlchemy longer than it takes to run it."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import Connection, Delete, Insert, Select, Update


def read_each(connection: Connection, *asked: tuple[Select[Any], Mapping[str, Any]]) -> list[Sequence[Any]]:
    """The rows of each statement, which is made once; they are executed in order."""
    if connection.dialect.name == "postgresql":
        from quercus.storage.postgres import one_message  # noqa: PLC0415  (a separate extra)

        return list(one_message.exchange_statements(connection, asked))
    return [connection.execute(statement, values).all() for statement, values in asked]


def commit_with(connection: Connection, change: Insert | Update | Delete, values: Mapping[str, Any]) -> None:
    """Execute a last statement, and commit at once where that saves a journey to a database server.

    SQLAlchemy still has to end the transaction; the driver knows that there is none then.
    """
    if connection.dialect.name == "postgresql":
        from quercus.storage.postgres import one_message  # noqa: PLC0415  (a separate extra)

        one_message.exchange_statements(connection, [(change, values)], commits=True)
    else:
        connection.execute(change, values)
